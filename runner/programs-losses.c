/*
 * programs-losses.c: the values of the losses, from the device to the host.
 *
 * On a device with queues nothing waits for them here: the host goes on to queue the backward pass, and the
 * values are waited for when somebody asks for one.
 */
#include "config.h"

#include "runner/programs-private.h"

#include <math.h>

static RnStatus
queue_value (RnPrograms *p, const void *src, float *value)
{
  const RnDeviceVtbl *vtbl = p->device->vtbl;

  *value = NAN; /* it stays so when the copy is lost */
  return (vtbl->copy_out_later != NULL ? vtbl->copy_out_later : vtbl->copy_out) (p->device, value, src,
                                                                                 sizeof *value);
}

static gboolean
check_copies (const RnPrograms *p, GError **error)
{
  if (p->losses_status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying a loss from the device failed: %s",
               rn_device_fault (p->device, p->losses_status));
  return FALSE;
}

gboolean
rn_programs_queue_losses (RnPrograms *p, const RnProgram *program, GError **error)
{
  p->n_loss_levels = program->n_levels;
  p->losses_status = RN_STATUS_OK;
  p->has_due_losses = TRUE;
  for (int i = 0; rn_model_loss_names (p->model)[i]; i++)
    for (int level = 0; level < program->n_levels && p->losses_status == RN_STATUS_OK; level++)
      p->losses_status = queue_value (p, rn_executor_address (program->executor, program->losses[i][level]),
                                      &p->level_losses[i][level]);
  return check_copies (p, error);
}

gboolean
rn_programs_settle (RnPrograms *p, GError **error)
{
  if (p->has_due_losses && p->device->vtbl->settle != NULL)
    {
      RnStatus status = p->device->vtbl->settle (p->device);
      p->losses_status = p->losses_status == RN_STATUS_OK ? status : p->losses_status;
    }
  p->has_due_losses = FALSE;
  return check_copies (p, error);
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
