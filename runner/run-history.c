#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/run-history.h"

#include "runner/batches.h"
#include "runner/record.h"

#include <string.h>

/* A run that is taken up again and again must not fill its checkpoints. */
#define MAX_RUNS 100
#define MAX_CHANGES 100

void
rn_run_history_load (RnRunner *runner, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text != NULL ? text : "", "\n", -1);
  guint n = g_strv_length (lines);

  g_ptr_array_set_size (runner->history, 0);
  for (guint i = n > MAX_RUNS ? n - MAX_RUNS : 0; i < n; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnRecord) record = rn_record_parse (lines[i], &error);
      if (record != NULL)
        g_ptr_array_add (runner->history, g_strdup (lines[i]));
      else
        g_warning ("resume: run %u in the history of the checkpoint is left out: %s", i + 1, error->message);
    }
}

void
rn_run_history_add_change (RnRunner *runner, const char *change)
{
  if (runner->changes->len < MAX_CHANGES)
    g_ptr_array_add (runner->changes, g_strdup (change));
  else if (runner->changes->len == MAX_CHANGES)
    g_ptr_array_add (runner->changes, g_strdup ("and more"));
}

static void
set_place (RnRecord *record, const RnRunner *runner)
{
  RnBatches batches = rn_batches_of (runner);

  rn_record_set_int (record, "iter", runner->now.iter);
  rn_record_set_int (record, "epoch", runner->now.epoch);
  rn_record_set_int (record, "opt_step", runner->now.opt_step);
  rn_batches_save (&batches, record);
}

void
rn_run_history_begin (RnRunner *runner)
{
  g_autoptr (RnRecord) record = rn_record_new ();

  rn_record_set_string (record, "started", runner->timestamp);
  rn_record_set_string (record, "version", PACKAGE_VERSION);
  rn_record_set_string (record, "device", runner->task->device);
  set_place (record, runner);
  if (runner->resumed_from != NULL)
    rn_record_set_string (record, "checkpoint", runner->resumed_from);
  if (runner->changes->len > 0)
    {
      g_autoptr (GString) text = g_string_new (NULL);
      for (guint i = 0; i < runner->changes->len; i++)
        g_string_append_printf (text, "%s%s", i > 0 ? "\n" : "",
                                (const char *) g_ptr_array_index (runner->changes, i));
      rn_record_set_string (record, "changed", text->str);
    }
  if (runner->history->len == MAX_RUNS)
    g_ptr_array_remove_index (runner->history, 0);
  g_ptr_array_add (runner->history, rn_record_to_json (record, 17));
}

char *
rn_run_history_text (const RnRunner *runner)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < runner->history->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? "\n" : "",
                            (const char *) g_ptr_array_index (runner->history, i));
  return g_string_free (text, text->len == 0);
}
