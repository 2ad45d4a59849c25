#include "config.h"

#include "hooks/text-line.h"

#include <string.h>

gboolean
rn_log_is_time (const char *name)
{
  return strcmp (name, "time") == 0 || g_str_has_suffix (name, "_time");
}

/* The floats of @values but times, with four digits, counts and scales as they are; @separator before the
 * first. */
static void
append_values (GString *line, const RnRunner *runner, const RnRecord *values, const char *separator)
{
  for (guint i = 0; i < rn_record_size (values); i++)
    {
      const char *name = rn_record_name (values, i);
      if (!rn_record_is_float (values, name) || rn_log_is_time (name))
        continue;
      double value = rn_record_float (values, name, 0);
      g_string_append_printf (line, rn_runner_is_log_latest (runner, name) ? "%s%s: %.9g" : "%s%s: %.4f",
                              separator, name, value);
      separator = ", ";
    }
}

char *
rn_text_line_train (const RnRunner *runner, const RnRecord *means, gboolean by_epoch, double eta_s,
                    guint64 peak)
{
  GString *line = g_string_new (NULL);
  g_autofree char *eta = rn_format_duration (eta_s);

  if (by_epoch)
    g_string_append_printf (line, "Epoch [%" G_GINT64_FORMAT "][%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "]\t",
                            rn_runner_epoch (runner) + 1, rn_runner_inner_iter (runner) + 1,
                            rn_runner_epoch_length (runner));
  else
    g_string_append_printf (line, "Iter [%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "]\t",
                            rn_runner_iter (runner) + 1, rn_runner_max_iters (runner));
  g_string_append_printf (line, "lr: %.3e, eta: %s", rn_runner_lr (runner), eta);
  if (rn_record_is_float (means, "time"))
    g_string_append_printf (line, ", time: %.3f, data_time: %.3f", rn_record_float (means, "time", 0),
                            rn_record_float (means, "data_time", 0));
  g_string_append_printf (line, ", memory: %" G_GUINT64_FORMAT, peak >> 20);
  append_values (line, runner, means, ", ");
  return g_string_free (line, FALSE);
}

char *
rn_text_line_val (const RnRunner *runner, const RnRecord *values, gboolean by_epoch, gint64 epoch,
                  gint64 iter, gint64 count)
{
  GString *line = g_string_new (NULL);

  if (by_epoch)
    g_string_append_printf (line, "Epoch(val) [%" G_GINT64_FORMAT "][%" G_GINT64_FORMAT "]", epoch, count);
  else
    g_string_append_printf (line, "Iter(val) [%" G_GINT64_FORMAT "]", iter);
  append_values (line, runner, values, "\t");
  return g_string_free (line, FALSE);
}
