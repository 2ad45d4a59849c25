/* Split lists and class files. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "datasets/file.h"
#include "datasets/split.h"

#include <string.h>

/* As a list of names, none of which leads out of its folder. */
static gboolean
read_split (const char *path, GError **error)
{
  g_autoptr (RnSplit) split = rn_split_read (path, error);

  for (guint i = 0; split != NULL && i < split->names->len; i++)
    {
      const char *name = rn_split_name (split, i);
      g_auto (GStrv) parts = g_strsplit (name, "/", -1);
      g_autofree char *where = rn_split_where (split, i);
      g_autofree char *copy = g_strdup (name);

      g_assert_cmpuint (strlen (name), >, 0);
      g_assert_false (g_path_is_absolute (name));
      g_assert_false (g_strv_contains ((const char *const *) parts, ".."));
      g_assert_nonnull (strchr (where, ':'));
      rn_split_cut_flag (copy);
      rn_split_cut_ending (copy);
    }
  return split != NULL;
}

/* As lines, each of one line and without blanks around it. */
static void
read_lines (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) lines = rn_file_read_lines (path, &error);

  for (guint i = 0; lines != NULL && lines[i] != NULL; i++)
    {
      gsize n = strlen (lines[i]);

      g_assert_cmpuint (n, >, 0);
      g_assert_null (strpbrk (lines[i], "\n\r"));
      g_assert_false (g_ascii_isspace (lines[i][0]));
      g_assert_false (g_ascii_isspace (lines[i][n - 1]));
    }
  rn_fuzz_check (lines != NULL, error);
}

static int
fuzz_list (const guint8 *data, gsize size)
{
  const char *path = rn_fuzz_file (data, size);
  g_autoptr (GError) error = NULL;
  gboolean ok = read_split (path, &error);

  read_lines (path);
  return rn_fuzz_check (ok, error);
}

static void
add_seeds (GPtrArray *seeds)
{
  static const char wide[] = "\xff\xfe"
                             "a\0\r\0\n\0b\0 \0"
                             "1\0";

  rn_fuzz_add_text (seeds, "\xEF\xBB\xBF\r\n a  -1 \r\n\ntwo words\nb\t1\nc 01\n1\nd 0");
  rn_fuzz_add_text (seeds, "JPEGImages/000001.jpg\n./000002\r\nsub\\000003.xml\n");
  g_ptr_array_add (seeds, g_bytes_new_static (wide, sizeof wide - 1));
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN (" -1\n"),        RN_FUZZ_TOKEN ("\t1\r\n"),
  RN_FUZZ_TOKEN (" 0 "),          RN_FUZZ_TOKEN ("\n"),
  RN_FUZZ_TOKEN ("\r"),           RN_FUZZ_TOKEN ("\0"),
  RN_FUZZ_TOKEN ("../"),          RN_FUZZ_TOKEN ("..\\"),
  RN_FUZZ_TOKEN ("C:\\"),         RN_FUZZ_TOKEN (".jpg"),
  RN_FUZZ_TOKEN ("\xff\xfe"),     RN_FUZZ_TOKEN ("\xfe\xff"),
  RN_FUZZ_TOKEN ("\xef\xbb\xbf"), RN_FUZZ_TOKEN ("JPEGImages/"),
  RN_FUZZ_TOKEN ("\x1b[2J"),      { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_list = { "list", fuzz_list, add_seeds, tokens };
