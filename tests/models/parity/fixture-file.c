#include "config.h"

#include "tests/models/parity/fixture-file.h"

#include <math.h>
#include <string.h>
#include "tests/models/parity/hash.h"

static void
line_free (gpointer data)
{
  FixtureLine *line = data;
  g_free (line->kind);
  g_free (line->name);
  g_array_unref (line->values);
  g_free (line);
}

static FixtureLine *
parse_line (const char *text)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  FixtureLine *line = g_new0 (FixtureLine, 1);
  line->kind = g_strdup (words[0]);
  line->values = g_array_new (FALSE, FALSE, sizeof (double));
  for (char **word = words + 1; *word; word++)
    {
      char *end;
      double value = g_ascii_strtod (*word, &end);
      if (*end == '\0')
        g_array_append_val (line->values, value);
      else if (word == words + 1)
        line->name = g_strdup (*word);
      else
        g_error ("not a number: %s", *word);
    }
  return line;
}

FixtureFile *
fixture_file_read (const char *name)
{
  g_autofree char *base = g_strconcat (name, ".txt", NULL);
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests", "models", "parity", base, NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);

  FixtureFile *file = g_new0 (FixtureFile, 1);
  file->lines = g_ptr_array_new_with_free_func (line_free);
  g_auto (GStrv) lines = g_strsplit (g_strchomp (text), "\n", -1);
  for (char **line = lines; *line; line++)
    g_ptr_array_add (file->lines, parse_line (*line));
  const FixtureLine *seed = fixture_file_get (file, "seed", 0);
  g_assert_nonnull (seed);
  file->seed = (guint64) fixture_value (seed, 0);
  return file;
}

void
fixture_file_free (FixtureFile *file)
{
  g_ptr_array_unref (file->lines);
  g_free (file);
}

const FixtureLine *
fixture_file_get (const FixtureFile *file, const char *kind, guint n)
{
  for (guint i = 0; i < file->lines->len; i++)
    {
      const FixtureLine *line = g_ptr_array_index (file->lines, i);
      if (g_str_equal (line->kind, kind) && n-- == 0)
        return line;
    }
  return NULL;
}

static void
assert_near (const FixtureLine *line, const char *what, int i, double value, double expected,
             double tolerance)
{
  if (!(fabs (value - expected) <= tolerance))
    g_error ("%s of %s: %s %d is %.9g, PyTorch has %.9g, tolerance %.3g", line->kind, line->name, what, i,
             value, expected, tolerance);
}

void
fixture_assert_tensor (const FixtureFile *file, const FixtureLine *line, const float *x, gint64 n,
                       double tolerance)
{
  g_assert_cmpuint (line->values->len, ==, N_SUMMARY);
  double norm = fixture_value (line, 0), largest = fixture_value (line, 1);

  double squares = 0, top = 0;
  for (gint64 i = 0; i < n; i++)
    {
      squares += (double) x[i] * x[i];
      top = fmax (top, fabs (x[i]));
    }
  assert_near (line, "norm", 0, sqrt (squares), norm, tolerance * norm);
  assert_near (line, "largest entry", 0, top, largest, tolerance * largest);

  g_autofree char *sample = g_strconcat (line->name, "/sample", NULL);
  guint64 state = hash_stream (file->seed, sample);
  for (guint i = 0; i < N_SAMPLES; i++)
    assert_near (line, "sample", (int) i, x[hash_next (&state) % (guint64) n], fixture_value (line, 2 + i),
                 tolerance * largest);

  for (guint p = 0; p < N_PROJECTIONS; p++)
    {
      g_autofree char *name = g_strdup_printf ("%s/projection%u", line->name, p);
      double sum = 0;
      state = hash_stream (file->seed, name);
      for (gint64 i = 0; i < n; i++)
        sum += (double) x[i] * hash_uniform (&state);
      assert_near (line, "projection", (int) p, sum, fixture_value (line, 2 + N_SAMPLES + p),
                   tolerance * sqrt (3) * norm);
    }
}
