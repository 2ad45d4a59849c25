/* Logs are joined as the run went, damaged ones are read as far as they go, and the report says what they
 * say. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/moving-mean.h"
#include "runner/report.h"
#include "tests/tree.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct
{
  char *dir;
} Fixture;

static void
set_up (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GError) error = NULL;
  f->dir = g_dir_make_tmp ("runner-report-XXXXXX", &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f, gconstpointer user_data)
{
  remove_tree (f->dir);
  g_free (f->dir);
}

static void
write_log (const Fixture *f, const char *name, const char *text, gssize size)
{
  g_autofree char *path = g_build_filename (f->dir, name, NULL);
  g_autoptr (GError) error = NULL;
  g_file_set_contents (path, text, size, &error);
  g_assert_no_error (error);
}

static RnRunLog *
read_dir (const Fixture *f)
{
  g_autoptr (GError) error = NULL;
  RnRunLog *log = rn_run_log_read (f->dir, &error);
  g_assert_no_error (error);
  return log;
}

/* "10:1 20:0.5" */
static void
assert_points (const GPtrArray *all, const char *name, const char *expected)
{
  const RnLogSeries *series = rn_log_find (all, name);
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; series != NULL && i < series->points->len; i++)
    {
      RnLogPoint point = g_array_index (series->points, RnLogPoint, i);
      g_string_append_printf (text, "%s%" G_GINT64_FORMAT ":%g", i > 0 ? " " : "", point.iter, point.value);
    }
  g_assert_cmpstr (text->str, ==, expected);
}

static gboolean
has_note (const RnRunLog *log, const char *pattern)
{
  for (guint i = 0; i < log->notes->len; i++)
    if (g_pattern_match_simple (pattern, g_ptr_array_index (log->notes, i)))
      return TRUE;
  return FALSE;
}

#define META(started, iter) \
  "{\"mode\": \"meta\", \"started\": \"" started "\", \"iter\": " #iter ", \"max_iters\": 60}\n"
#define TRAIN(iter, loss)                                                                              \
  "{\"mode\": \"train\", \"epoch\": 1, \"iter\": " #iter ", \"lr\": 0.01, \"memory\": 100, \"time\": " \
  "0.5, \"data_time\": 0.1, \"loss\": " #loss "}\n"
#define RESUME(iter) "{\"mode\": \"resume\", \"iter\": " #iter ", \"checkpoint\": \"iter_" #iter "\"}\n"
#define VAL(epoch, iter, map) \
  "{\"mode\": \"val\", \"epoch\": " #epoch ", \"iter\": " #iter ", \"n_images\": 4, \"mAP\": " #map "}\n"

/* Killed after 40, taken up at 20, taken up again at 50. The names say another order than the time stamps. */
static void
test_resumed (Fixture *f, gconstpointer user_data)
{
  write_log (f, "b.log.json",
             META ("20260101_100000", 0) TRAIN (10, 5) TRAIN (20, 4) VAL (2, 20, 0.2) TRAIN (30, 3)
                 VAL (3, 30, 0.9) TRAIN (40, 2),
             -1);
  write_log (f, "a.log.json", META ("20260102_100000", 20) TRAIN (25, 2.5) TRAIN (50, 2.25) VAL (5, 50, 0.5),
             -1);
  write_log (f, "c.log.json", META ("20260103_100000", 50) VAL (5, 50, 0.625) TRAIN (60, 1), -1);
  write_log (f, "d.log.json", META ("20260104_100000", 0), -1); /* stopped before its first line */
  write_log (f, "e.txt", "not a log", -1);
  g_autoptr (RnRunLog) log = read_dir (f);

  g_assert_cmpuint (log->n_files, ==, 4);
  g_assert_cmpuint (log->notes->len, ==, 0);
  g_assert_cmpint (log->max_iters, ==, 60);
  g_assert_cmpint (log->first_iter, ==, 0);
  assert_points (log->train, "loss", "10:5 20:4 25:2.5 50:2.25 60:1");
  assert_points (log->val, "mAP", "20:0.2 50:0.625");
  assert_points (log->val, "epoch", "20:2 50:5");
}

/* The same in one file, which each run goes on with; the second was killed in the middle of a line. */
static void
test_appended (Fixture *f, gconstpointer user_data)
{
  write_log (f, "b.log.json",
             META ("20260101_100000", 0) TRAIN (10, 5) TRAIN (20, 4) VAL (2, 20, 0.2) TRAIN (30, 3)
                 VAL (3, 30, 0.9) TRAIN (40, 2) META ("20260102_100000", 20) RESUME (20) TRAIN (25, 2.5)
                     TRAIN (50, 2.25) "{\"mode\": \"tr\n" META ("20260103_100000", 50) RESUME (50)
                         VAL (5, 50, 0.625) TRAIN (60, 1) RESUME (60),
             -1);
  g_autoptr (RnRunLog) log = read_dir (f);

  g_assert_cmpuint (log->notes->len, ==, 1);
  g_assert_true (has_note (log, "*/b.log.json:12: left out: *"));
  g_assert_cmpint (log->first_iter, ==, 0);
  assert_points (log->train, "loss", "10:5 20:4 25:2.5 50:2.25 60:1");
  assert_points (log->val, "mAP", "20:0.2 50:0.625");
}

/* Losses of a val workflow are no scores, nor are their times. */
static void
test_val_losses (Fixture *f, gconstpointer user_data)
{
  write_log (f, "1.log.json",
             META ("20260101_100000", 0)
                 TRAIN (10, 5) "{\"mode\": \"val\", \"epoch\": 1, \"iter\": 10, \"n_batches\": 3, \"time\": "
                               "0.25, \"loss\": 2.5}\n" VAL (1, 10, 0.5),
             -1);
  g_autoptr (RnRunLog) log = read_dir (f);
  g_autofree char *text = rn_report_text (log);

  assert_points (log->val, "loss", "10:2.5");
  g_assert_nonnull (strstr (text, "val loss      last 2.5000, least 2.5000 at iteration 10"));
  g_assert_nonnull (strstr (text, "mAP           last 0.5000"));
  g_assert_null (strstr (text, "n_batches"));
  g_assert_false (rn_log_is_score ("loss"));
  g_assert_false (rn_log_is_score ("time"));
  g_assert_false (rn_log_is_score ("forward_time"));
  g_assert_false (rn_log_is_loss ("loss_scale"));
}

static void
test_started_anew (Fixture *f, gconstpointer user_data)
{
  write_log (f, "1.log.json", META ("20260101_100000", 0) TRAIN (10, 5) TRAIN (20, 4) VAL (0, 0, 0.1), -1);
  write_log (f, "2.log.json", META ("20260102_100000", 0) TRAIN (10, 3), -1);
  g_autoptr (RnRunLog) log = read_dir (f);

  assert_points (log->train, "loss", "10:3");
  g_assert_cmpuint (log->val->len, ==, 0);
  g_assert_true (has_note (log, "*/2.log.json:2: *starts anew*"));
}

/* Without a first line only the same iterations are replaced; the name tells the order. */
static void
test_no_meta (Fixture *f, gconstpointer user_data)
{
  write_log (f, "20260102_100000.log.json", TRAIN (20, 3) TRAIN (40, 2), -1);
  write_log (f, "20260101_100000.log.json", TRAIN (10, 5) TRAIN (20, 4) TRAIN (30, 3.5), -1);
  g_autoptr (RnRunLog) log = read_dir (f);

  assert_points (log->train, "loss", "10:5 20:3 30:3.5 40:2");
  g_assert_cmpuint (log->notes->len, ==, 0);
}

static void
test_first_log_lost (Fixture *f, gconstpointer user_data)
{
  write_log (f, "2.log.json", META ("20260102_100000", 30) TRAIN (40, 2) TRAIN (60, 1), -1);
  g_autoptr (RnRunLog) log = read_dir (f);
  g_autofree char *text = rn_report_text (log);

  g_assert_nonnull (strstr (text, "the first 30 are in no log"));
  g_assert_nonnull (strstr (text, "0.500 s an iteration (waiting for data 0.100 s), 0:00:15 in all"));
}

static void
test_damaged (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GString) text = g_string_new (META ("20260101_100000", 0));

  g_string_append (text, "rubbish\n");
  g_string_append (text, TRAIN (10, null));
  g_string_append (text, "\n  \n");
  g_string_append (text, "{\"mode\": \"train\", \"iter\": 15, \"loss\": NaN}\n"); /* line 6 */
  g_string_append (text, TRAIN (20, 1e999));
  g_string_append (text, "{\"mode\": \"train\", \"loss\": 4}\n"); /* line 8 */
  g_string_append (text, "{\"mode\": 3, \"iter\": 4}\n");         /* line 9 */
  g_string_append (text, TRAIN (30, 2));
  g_string_append (text, "{\"mode\": \"train\", \"iter\": 40, \"lo");
  write_log (f, "1.log.json", text->str, -1);
  g_autoptr (RnRunLog) log = read_dir (f);

  assert_points (log->train, "loss", "10:nan 20:nan 30:2");
  g_assert_true (has_note (log, "*/1.log.json:2: left out: *"));
  g_assert_true (has_note (log, "*/1.log.json:6: left out: *"));
  g_assert_true (has_note (log, "*/1.log.json:8: *no \"iter\"*"));
  g_assert_true (has_note (log, "*/1.log.json:9: *\"mode\"*"));
  g_assert_true (has_note (log, "*/1.log.json:11: *cut off at the end*"));
  g_assert_cmpuint (log->notes->len, ==, 5);
  g_autofree char *report = rn_report_text (log);
  g_assert_nonnull (strstr (report, "not a number in 2 lines, first at iteration 10"));
}

/* Lines without end, zero bytes, brackets without end, more names than anybody needs. */
static void
test_hostile (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (int i = 0; i < 3 << 20; i++)
    g_string_append_c (text, '[');
  g_string_append (text, "\n");
  for (int i = 0; i < 1 << 19; i++)
    g_string_append_c (text, '{');
  g_string_append (text, "\n");
  g_string_append_len (text, "{\"mode\"\0: 1}\n", 13);
  g_string_append (text, "{\"mode\": \"train\", \"iter\": 5");
  for (int i = 0; i < 2000; i++)
    g_string_append_printf (text, ", \"n%d\": %d", i, i);
  g_string_append (text, "}\n" TRAIN (10, 2) "{\"mode\": \"val\", \"iter\": -3, \"mAP\": 1}\n");
  for (int i = 0; i < 50; i++)
    g_string_append (text, "?\n");
  write_log (f, "1.log.json", text->str, (gssize) text->len);
  g_autoptr (RnRunLog) log = read_dir (f);

  g_assert_cmpuint (log->train->len, ==, 256);
  assert_points (log->train, "n17", "5:17");
  g_assert_true (has_note (log, "*:1: *longer than 1 MiB"));
  g_assert_true (has_note (log, "*:2: left out: *"));
  g_assert_true (has_note (log, "*:3: *zero bytes*"));
  g_assert_true (has_note (log, "*: *more notes"));
  g_assert_cmpuint (log->notes->len, ==, 6);
}

/* What a log is called, and what it says, does not act on a terminal. */
static void
test_control (Fixture *f, gconstpointer user_data)
{
  write_log (f, "\033[31m.log.json", "\033]0;x\n{\"mode\": \"val\", \"iter\": 1, \"a\\u001bb\": 1}\n", -1);
  g_autoptr (RnRunLog) log = read_dir (f);
  g_autofree char *text = rn_report_text (log);

  g_assert_cmpuint (log->notes->len, ==, 1);
  g_assert_null (strchr (g_ptr_array_index (log->notes, 0), '\033'));
  g_assert_nonnull (strstr (text, "a?b"));
  g_assert_null (strchr (text, '\033'));
}

static void
test_mmcv (Fixture *f, gconstpointer user_data)
{
  write_log (f, "1.log.json", TRAIN (50, 2) TRAIN (100, 1.5) TRAIN (50, 1), -1);
  g_autoptr (RnRunLog) log = read_dir (f);

  g_assert_true (has_note (log, "*:3: *begin again in each epoch*"));
}

static void
assert_missing (const char *path, const char *pattern)
{
  g_autoptr (GError) error = NULL;
  g_assert_null (rn_run_log_read (path, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING);
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" is not \"%s\"", error->message, pattern);
}

static void
test_missing (Fixture *f, gconstpointer user_data)
{
  g_autofree char *fifo = g_build_filename (f->dir, "fifo.log.json", NULL);
  g_autofree char *folder = g_build_filename (f->dir, "folder.log.json", NULL);
  g_autofree char *below = g_build_filename (f->dir, "run", NULL);
  g_autofree char *nowhere = g_build_filename (f->dir, "nowhere", NULL);

  assert_missing (nowhere, "*/nowhere: *No such file*");
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  g_assert_cmpint (g_mkdir (folder, 0700), ==, 0);
  assert_missing (fifo, "*not a regular file*");
  assert_missing (f->dir, "*: no file ?.log.json in this folder; `runner train` writes*");
  g_assert_cmpint (g_mkdir (below, 0700), ==, 0);
  write_log (f, "run/1.log.json", TRAIN (10, 1), -1);
  assert_missing (f->dir, "*There is one in */run");
}

static void
test_text (Fixture *f, gconstpointer user_data)
{
  write_log (
      f, "1.log.json",
      META ("20260101_100000", 0) TRAIN (10, 5) VAL (1, 10, 0.25) TRAIN (20, 3) VAL (2, 20, 0.75) TRAIN (30,
                                                                                                         4)
          VAL (3, 30,
               0.5) "{\"mode\": \"val\", \"epoch\": 3, \"iter\": 30, \"bbox_mAP_s\": -1.0, \"mAP\": 0.5}\n",
      -1);
  g_autofree char *path = g_build_filename (f->dir, "1.log.json", NULL);
  g_autoptr (RnRunLog) log = rn_run_log_read (path, NULL);
  g_autofree char *text = rn_report_text (log);

  g_assert_nonnull (strstr (text, "1 file, started 20260101_100000"));
  g_assert_nonnull (strstr (text, "iterations    30 of 60, in epoch 1"));
  g_assert_nonnull (strstr (text, "loss          last 4.0000, least 3.0000 at iteration 20"));
  g_assert_nonnull (strstr (text, "mAP           last 0.5000 (epoch 3, iteration 30), best 0.7500 (epoch 2, "
                                  "iteration 20)"));
  g_assert_nonnull (strstr (text, "bbox_mAP_s    none"));
  g_assert_nonnull (strstr (text, "0.500 s an iteration (waiting for data 0.100 s), 0:00:15 in all"));
  g_assert_nonnull (strstr (text, "100 MiB at most"));
}

/* One run, two of the same name, a run that logged nothing. */
static void
test_draw (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GPtrArray) logs = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_run_log_free);
  g_autofree char *picture = g_build_filename (f->dir, "report.png", NULL);
  g_autoptr (GString) text = g_string_new (META ("20260101_100000", 0));
  GError *error = NULL;

  for (int i = 1; i <= 500; i++)
    g_string_append_printf (text, "{\"mode\": \"train\", \"iter\": %d, \"loss\": %s, \"grad_norm\": %g}\n", i,
                            i == 250 ? "null" : "1.5", i == 300 ? 1e6 : 2.0);
  write_log (f, "1.log.json", text->str, -1);
  for (int n = 1; n <= 3; n++)
    {
      if (n == 3)
        write_log (f, "1.log.json", "rubbish", -1);
      g_ptr_array_add (logs, read_dir (f));
      g_assert_true (rn_report_draw (logs, picture, &error));
      g_assert_no_error (error);
      g_assert_true (g_file_test (picture, G_FILE_TEST_IS_REGULAR));
      g_assert_cmpint (g_remove (picture), ==, 0);
    }
  g_autofree char *report = rn_report_text (g_ptr_array_index (logs, 2));
  g_assert_nonnull (strstr (report, "none logged"));

  g_autoptr (GPtrArray) empty = g_ptr_array_new ();
  g_ptr_array_add (empty, g_ptr_array_index (logs, 2));
  g_assert_true (rn_report_draw (empty, picture, &error));
  g_assert_false (rn_report_draw (empty, "/nonexistent/report.png", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_error_free (error);
}

/* Bytes of the picture of one run, whose evaluations hold @scores. */
static GBytes *
draw_scores (const Fixture *f, const char *scores)
{
  g_autoptr (GPtrArray) logs = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_run_log_free);
  g_autofree char *picture = g_build_filename (f->dir, "report.png", NULL), *text = NULL;
  GError *error = NULL;
  char *bytes;
  gsize size;

  text = g_strdup_printf (
      META ("20260101_100000", 0) TRAIN (10, 1)
          TRAIN (20, 1) "{\"mode\": \"val\", \"iter\": 10, %s}\n{\"mode\": \"val\", \"iter\": 20, %s}\n",
      scores, scores);
  write_log (f, "1.log.json", text, -1);
  g_ptr_array_add (logs, read_dir (f));
  g_assert_true (rn_report_draw (logs, picture, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (picture, &bytes, &size, &error));
  g_assert_cmpint (g_remove (picture), ==, 0);
  return g_bytes_new_take (bytes, size);
}

/* The mean over one overlap would hide the curve that it is the same as. */
static void
test_draw_scores (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GBytes) one = draw_scores (f, "\"AP50\": 0.5"),
                     with_mean = draw_scores (f, "\"AP50\": 0.5, \"mAP\": 0.5"),
                     two = draw_scores (f, "\"AP50\": 0.5, \"AP75\": 0.2"),
                     two_with_mean = draw_scores (f, "\"AP50\": 0.5, \"AP75\": 0.2, \"mAP\": 0.35");

  g_assert_true (g_bytes_equal (one, with_mean));
  g_assert_false (g_bytes_equal (two, two_with_mean));
}

/* Equal numbers, a spike in which they vanish, and no number: what is finite and near counts, nothing else.
 */
static void
test_moving_mean (void)
{
  double y[40];

  for (gsize i = 0; i < G_N_ELEMENTS (y); i++)
    y[i] = i < 20 ? 2 : 3;
  y[4] = 1e30;
  y[30] = (double) NAN;
  g_autofree double *mean = rn_moving_mean (y, G_N_ELEMENTS (y), 2);
  g_assert_cmpfloat (mean[0], ==, 2);
  g_assert_cmpfloat (mean[4], >, 1e29);
  g_assert_cmpfloat (mean[7], ==, 2);
  g_assert_cmpfloat (mean[19], ==, (2 + 2 + 2 + 3 + 3) / 5.0);
  g_assert_cmpfloat (mean[29], ==, 3);
  g_assert_true (isnan (mean[30]));
  g_assert_cmpfloat (mean[39], ==, 3);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(path, func) g_test_add (path, Fixture, NULL, set_up, func, tear_down)
  g_test_add_func ("/report/moving-mean", test_moving_mean);
  ADD ("/report/resumed", test_resumed);
  ADD ("/report/appended", test_appended);
  ADD ("/report/val-losses", test_val_losses);
  ADD ("/report/started-anew", test_started_anew);
  ADD ("/report/no-meta", test_no_meta);
  ADD ("/report/first-log-lost", test_first_log_lost);
  ADD ("/report/damaged", test_damaged);
  ADD ("/report/hostile", test_hostile);
  ADD ("/report/control", test_control);
  ADD ("/report/mmcv", test_mmcv);
  ADD ("/report/missing", test_missing);
  ADD ("/report/text", test_text);
  ADD ("/report/draw", test_draw);
  ADD ("/report/draw/scores", test_draw_scores);
  return g_test_run ();
}
