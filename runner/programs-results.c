/*
 * programs-results.c: what the host reads of a step, from the device: the values of the losses, and the
 * statistics of the gradients of a guarded step.
 *
 * On a device with queues nothing waits for them here: the host goes on to queue what comes next, and the
 * values are waited for when somebody asks for one.
 */
#include "config.h"

#include "runner/programs-private.h"

#include <math.h>

static RnStatus
queue_values (RnPrograms *p, RnResults results, const void *src, float *values, guint n)
{
  const RnDeviceVtbl *vtbl = p->device->vtbl;

  for (guint i = 0; i < n; i++)
    values[i] = NAN; /* they stay so when the copy is lost */
  return vtbl->copy_out_later != NULL
             ? vtbl->copy_out_later (p->device, results, values, src, n * sizeof *values)
             : vtbl->copy_out (p->device, values, src, n * sizeof *values);
}

/* Waits for @results if they are *@due. Returns what their copies came to. */
static RnStatus
settle (RnPrograms *p, RnResults results, gboolean *due, RnStatus *status)
{
  if (*due && p->device->vtbl->settle != NULL)
    {
      RnStatus settled = p->device->vtbl->settle (p->device, results);
      *status = *status == RN_STATUS_OK ? settled : *status;
    }
  *due = FALSE;
  return *status;
}

static gboolean
check_copies (const RnPrograms *p, const char *what, RnStatus status, GError **error)
{
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying %s from the device failed: %s", what,
               rn_device_fault (p->device, status));
  return FALSE;
}

/* ---- losses ---- */

gboolean
rn_programs_queue_losses (RnPrograms *p, const RnProgram *program, GError **error)
{
  p->n_loss_levels = program->n_levels;
  p->losses_status = RN_STATUS_OK;
  p->has_due_losses = TRUE;
  for (int i = 0; rn_model_loss_names (p->model)[i]; i++)
    for (int level = 0; level < program->n_levels && p->losses_status == RN_STATUS_OK; level++)
      p->losses_status = queue_values (p, RN_RESULTS_FORWARD,
                                       rn_executor_address (program->executor, program->losses[i][level]),
                                       &p->level_losses[i][level], 1);
  return check_copies (p, "a loss", p->losses_status, error);
}

gboolean
rn_programs_settle (RnPrograms *p, GError **error)
{
  return check_copies (p, "a loss", settle (p, RN_RESULTS_FORWARD, &p->has_due_losses, &p->losses_status),
                       error);
}

/* Levels are summed in order, in float, as MMDetection sums its list. */
static float
sum_levels (const RnPrograms *p, int i)
{
  float sum = 0;

  for (int level = 0; level < p->n_loss_levels; level++)
    sum += p->level_losses[i][level];
  return sum;
}

float
rn_programs_loss (RnPrograms *p, const char *name)
{
  const char *const *names = rn_model_loss_names (p->model);
  float sum = 0;

  rn_programs_settle (p, NULL);
  for (int i = 0; names[i]; i++)
    {
      float loss = sum_levels (p, i);
      if (g_str_equal (names[i], name))
        return loss;
      sum += loss;
    }
  return g_str_equal (name, "loss") ? sum : NAN;
}

/* ---- statistics of the gradients ---- */

gboolean
rn_programs_queue_stats (RnPrograms *p, GError **error)
{
  RnValueId value = rn_graph_find_value (p->update_plan->graph, "grad_stats");

  p->has_due_stats = TRUE;
  p->stats_status = queue_values (p, RN_RESULTS_UPDATE, rn_executor_address (p->update, value), p->grad_stats,
                                  RN_STATS_COUNT);
  return check_copies (p, "a norm", p->stats_status, error);
}

gboolean
rn_programs_settle_update (RnPrograms *p, double *norm, double *max_abs, GError **error)
{
  if (!check_copies (p, "a norm", settle (p, RN_RESULTS_UPDATE, &p->has_due_stats, &p->stats_status), error))
    return FALSE;
  *norm = (double) p->grad_stats[RN_STATS_NORM];
  *max_abs = (double) p->grad_stats[RN_STATS_MAX_ABS];
  return TRUE;
}

void
rn_programs_settle_all (RnPrograms *p)
{
  settle (p, RN_RESULTS_FORWARD, &p->has_due_losses, &p->losses_status);
  settle (p, RN_RESULTS_UPDATE, &p->has_due_stats, &p->stats_status);
}
