/* Windows of logged values. */
#include "config.h"

#include "runner/log-buffer.h"

#include <math.h>

static void
append (const char *name, double mean, gpointer user_data)
{
  g_string_append_printf (user_data, "%s=%g ", name, mean);
}

static void
assert_means (RnLogBuffer *buffer, gint64 end, gint64 n, const char *expected)
{
  g_autoptr (GString) text = g_string_new (NULL);
  rn_log_buffer_foreach (buffer, end, n, append, text);
  g_assert_cmpstr (text->str, ==, expected);
}

/* "norm" is logged every fourth iteration: its mean covers the same iterations as that of "loss". */
static void
fill (RnLogBuffer *buffer)
{
  rn_log_buffer_reserve (buffer, 8);
  for (gint64 i = 0; i < 100; i++)
    {
      rn_log_buffer_push (buffer, "loss", i, (double) i);
      if (i % 4 == 3)
        rn_log_buffer_push (buffer, "norm", i, (double) (10 * i));
    }
}

/* A count is what it was last; where it was not logged there is none. */
static void
test_latest (void)
{
  g_autoptr (RnLogBuffer) buffer = rn_log_buffer_new ();

  rn_log_buffer_reserve (buffer, 8);
  for (gint64 i = 0; i < 20; i++)
    {
      rn_log_buffer_push (buffer, "loss", i, (double) i);
      if (i < 16)
        rn_log_buffer_push_latest (buffer, "skipped", i, (double) (i / 3));
    }
  assert_means (buffer, 16, 4, "loss=13.5 skipped=5 ");
  assert_means (buffer, 15, 3, "loss=13 skipped=4 ");
  assert_means (buffer, 20, 4, "loss=17.5 ");
}

static void
test_means (void)
{
  g_autoptr (RnLogBuffer) buffer = rn_log_buffer_new ();

  fill (buffer);
  assert_means (buffer, 100, 1, "loss=99 norm=990 ");
  assert_means (buffer, 100, 4, "loss=97.5 norm=990 ");
  assert_means (buffer, 100, 8, "loss=95.5 norm=970 ");
  assert_means (buffer, 100, 1000, "loss=95.5 norm=850 "); /* what the rings hold: 8 entries of each */
  assert_means (buffer, 99, 3, "loss=97 ");
  assert_means (buffer, 200, 50, "");
  g_assert_cmpfloat (rn_log_buffer_mean (buffer, "norm", 100, 8), ==, 970);
  g_assert_true (isnan (rn_log_buffer_mean (buffer, "norm", 99, 3)));
  g_assert_true (isnan (rn_log_buffer_mean (buffer, "lr", 100, 8)));
}

static void
test_save (void)
{
  g_autoptr (RnLogBuffer) buffer = rn_log_buffer_new (), back = rn_log_buffer_new ();

  fill (buffer);
  rn_log_buffer_reserve (back, 8);
  for (guint i = 0; i < rn_log_buffer_size (buffer); i++)
    {
      g_autoptr (RnRecord) window = rn_log_buffer_save (buffer, i);
      rn_log_buffer_load (back, rn_log_buffer_name (buffer, i), window);
    }
  assert_means (back, 100, 8, "loss=95.5 norm=970 ");
  rn_log_buffer_push (back, "loss", 100, 108);
  assert_means (back, 101, 8, "loss=97.5 norm=970 ");
}

/* What was a count before a resume is one behind it, also before it is logged again. */
static void
test_save_latest (void)
{
  g_autoptr (RnLogBuffer) buffer = rn_log_buffer_new (), back = rn_log_buffer_new ();

  rn_log_buffer_reserve (buffer, 8);
  rn_log_buffer_reserve (back, 8);
  for (gint64 i = 0; i < 4; i++)
    rn_log_buffer_push_latest (buffer, "skipped", i, (double) i);
  g_autoptr (RnRecord) window = rn_log_buffer_save (buffer, 0);
  rn_log_buffer_load (back, "skipped", window);
  assert_means (buffer, 5, 4, "skipped=3 ");
  assert_means (back, 5, 4, "skipped=3 ");
}

/* Names of what is known late stand where they would have stood; known ones stay. */
static void
test_place (void)
{
  g_autoptr (RnLogBuffer) buffer = rn_log_buffer_new ();

  rn_log_buffer_reserve (buffer, 8);
  rn_log_buffer_push (buffer, "loss", 0, 1);
  rn_log_buffer_push (buffer, "time", 0, 2);
  rn_log_buffer_set_place (buffer, 1);
  rn_log_buffer_push (buffer, "norm", 0, 3);
  rn_log_buffer_push (buffer, "time", 1, 2);
  rn_log_buffer_push_latest (buffer, "scale", 0, 4);
  rn_log_buffer_set_place (buffer, 100);
  rn_log_buffer_push (buffer, "last", 0, 5);
  rn_log_buffer_set_place (buffer, G_MAXUINT);
  rn_log_buffer_push (buffer, "norm", 1, 5);
  rn_log_buffer_push (buffer, "end", 1, 6);
  assert_means (buffer, 2, 2, "loss=1 norm=4 scale=4 time=2 last=5 end=6 ");
}

/* A checkpoint has to hold all of a window. */
static void
test_bound (void)
{
  g_autoptr (RnLogBuffer) buffer = rn_log_buffer_new ();

  rn_log_buffer_reserve (buffer, G_MAXINT64);
  for (gint64 i = 0; i < RN_LOG_MAX_ITERS + 5; i++)
    rn_log_buffer_push (buffer, "loss", i, i < 5 ? 1e9 : 1);
  assert_means (buffer, RN_LOG_MAX_ITERS + 5, G_MAXINT64, "loss=1 ");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/runner/log-buffer/means", test_means);
  g_test_add_func ("/runner/log-buffer/latest", test_latest);
  g_test_add_func ("/runner/log-buffer/save", test_save);
  g_test_add_func ("/runner/log-buffer/save-latest", test_save_latest);
  g_test_add_func ("/runner/log-buffer/place", test_place);
  g_test_add_func ("/runner/log-buffer/bound", test_bound);
  return g_test_run ();
}
