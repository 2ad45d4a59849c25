/* The JSON lines of a run's log, for `runner report`. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "runner/report.h"
#include "runner/run-log.h"

#include <string.h>

/* Each iteration once, in order. */
static void
check_series (const GPtrArray *all)
{
  for (guint i = 0; i < all->len; i++)
    {
      const RnLogSeries *series = g_ptr_array_index (all, i);

      g_assert_cmpuint (series->points->len, >, 0);
      for (guint k = 1; k < series->points->len; k++)
        g_assert_cmpint (g_array_index (series->points, RnLogPoint, k - 1).iter, <,
                         g_array_index (series->points, RnLogPoint, k).iter);
    }
}

/* Fit for a terminal. */
static void
check_text (const char *text)
{
  if (!g_utf8_validate (text, -1, NULL))
    g_error ("a text that is not UTF-8: %s", g_strescape (text, NULL));
  for (const char *c = text; *c != '\0'; c = g_utf8_next_char (c))
    if (g_unichar_iscntrl (g_utf8_get_char (c)) && *c != '\n')
      g_error ("a text with a control character: %s", g_strescape (text, NULL));
}

/* Lines that cannot be read are noted; a file of such lines only is no error. */
static int
fuzz_log (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRunLog) log = rn_run_log_read (rn_fuzz_file (data, size), &error);
  g_autofree char *report = NULL;

  if (log == NULL)
    return rn_fuzz_check (FALSE, error);
  check_series (log->train);
  check_series (log->val);
  for (guint i = 0; i < log->notes->len; i++)
    check_text (g_ptr_array_index (log->notes, i));
  report = rn_report_text (log);
  check_text (report);
  return log->notes->len == 0;
}

static void
add_seeds (GPtrArray *seeds)
{
  rn_fuzz_add_text (
      seeds,
      "{\"mode\": \"meta\", \"started\": \"20240101_120000\", \"iter\": 0, \"max_iters\": 6, \"seed\": 0}\n"
      "{\"mode\": \"train\", \"iter\": 1, \"lr\": 0.01, \"memory\": 73, \"loss\": 1.5, \"time\": 0.25}\n"
      "{\"mode\": \"train\", \"iter\": 2, \"lr\": 0.02, \"memory\": 73, \"loss\": null, \"time\": 0.25}\n"
      "{\"mode\": \"val\", \"epoch\": 1, \"iter\": 2, \"n_images\": 2, \"AP50\": 0.5, \"mAP\": 0.5}\n");
  rn_fuzz_add_text (
      seeds, "{\"mode\": \"meta\", \"iter\": 4, \"max_iters\": 6}\n\n"
             "{\"mode\": \"train\", \"iter\": 5, \"data_time\": 0.001, \"loss\": 0.1, \"grad_norm\": 2.0}\n"
             "{\"mode\": \"train\", \"iter\": 6, \"loss\": 1e300, \"non_finite\": [], \"x\": [1.0, 2.0]}\n");
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("\n"),           RN_FUZZ_TOKEN ("{\"mode\": \"train\", \"iter\": "),
  RN_FUZZ_TOKEN ("\"iter\": 1,"), RN_FUZZ_TOKEN ("{\"mode\": \"val\", \"iter\": "),
  RN_FUZZ_TOKEN ("\"loss\": "),   RN_FUZZ_TOKEN ("\"mAP\": "),
  RN_FUZZ_TOKEN ("null"),         RN_FUZZ_TOKEN ("1e308"),
  RN_FUZZ_TOKEN ("-1"),           RN_FUZZ_TOKEN ("\\u001b"),
  RN_FUZZ_TOKEN ("\\u0085"),      RN_FUZZ_TOKEN ("}\n"),
  RN_FUZZ_TOKEN ("\"a\": "),      RN_FUZZ_TOKEN ("\0"),
  RN_FUZZ_TOKEN ("\xff"),         { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_log = { "log", fuzz_log, add_seeds, tokens };
