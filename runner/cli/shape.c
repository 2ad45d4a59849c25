#include "config.h"

#include "runner/cli/shape.h"

#include "runner/base/error.h"
#include "runner/runner.h"

#include <stdio.h>

#define MAX_SIDE 65536

gboolean
rn_shape_parse (const char *text, int *height, int *width, GError **error)
{
  int h, w, end = 0;
  if (sscanf (text, "%5dx%5d%n", &h, &w, &end) == 2 && text[end] == '\0' && h >= 1 && w >= 1 && h <= MAX_SIDE
      && w <= MAX_SIDE)
    {
      *height = h;
      *width = w;
      return TRUE;
    }
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
               "--shape %s: not HEIGHTxWIDTH, such as 608x1024", text);
  return FALSE;
}

/* What the hooks of a training of this file want counts too. */
static gboolean
ask_hooks (RnJob *job, GError **error)
{
  gint64 log_interval;
  g_autoptr (RnHookList) hooks = rn_training_hooks_new (&job->config, &log_interval, error);

  job->wants = rn_wants_new ();
  return hooks != NULL && rn_hook_list_prepare (hooks, job->wants, error);
}

gboolean
rn_job_open_shapes (RnJob *job, const char *text, int batch, gboolean evaluation, gboolean check,
                    GError **error)
{
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));
  if (batch < 0)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--batch must not be negative");
      return FALSE;
    }
  if (batch > 0)
    job->data.samples_per_gpu = batch;
  if (text)
    {
      RnShape shape = { .mode = RN_MODE_TRAIN, .n = (int) job->data.samples_per_gpu };
      if (!rn_shape_parse (text, &shape.height, &shape.width, error))
        return FALSE;
      g_array_append_val (shapes, shape);
    }
  else
    {
      if (!rn_job_open_data (job, RN_SPLIT_TRAIN, error)
          || (evaluation && job->data.val && !rn_job_open_data (job, RN_SPLIT_VAL, error)))
        {
          /* Behind, so that the message still begins with file and line. */
          if (error != NULL)
            {
              g_autofree char *message = g_steal_pointer (&(*error)->message);
              (*error)->message = g_strdup_printf ("%s\n(--shape HxW needs no data set)", message);
            }
          return FALSE;
        }
      if (job->data.val != NULL && rn_job_has_val_loss (job)
          && !rn_job_open_data (job, RN_SPLIT_VAL_LOSS, error))
        return FALSE;
      rn_job_add_shapes (job, RN_SPLIT_TRAIN, RN_MODE_TRAIN, shapes);
      if (job->datasets[RN_SPLIT_VAL_LOSS] != NULL)
        rn_job_add_shapes (job, RN_SPLIT_VAL_LOSS, RN_MODE_LOSS, shapes);
      if (evaluation && job->data.val)
        rn_job_add_shapes (job, RN_SPLIT_VAL, RN_MODE_INFER, shapes);
    }
  return ask_hooks (job, error) && rn_job_open_model (job, error)
         && rn_job_open_programs (job, shapes, TRUE, check, error)
         && rn_programs_plan (job->programs, rn_job_show_progress, (gpointer) "planning shapes", error);
}
