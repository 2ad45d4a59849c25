#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/task-tensors.h"

#include "runner/base/error.h"
#include "runner/checkpoint.h"
#include "runner/param-io.h"
#include "runner/task.h"
#include "runner/weights/load.h"

#include <string.h>

/* Before the names of the parameters. A weight has no slash in its name. */
#define PREFIX_PENDING "pending/"
#define PREFIX_EMA "ema/"
/* I64 [1]: the steps that made the state of an optimizer to which their number matters. */
#define NAME_STEPS "optimizer/steps"
/* I64 [1]: the same, and that this state has a part of the next step in it already. */
#define NAME_STEPS_AND_PART "optimizer/steps_and_part"
#define MAX_STEPS ((gint64) 1 << 53) /* a double still tells one from the next */

/* ---- writing ---- */

static gboolean
read_bytes (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const guint8 *) source + offset, size);
  return TRUE;
}

static void
add_steps (RnSafetensorsWriter *writer, const char *name, gint64 n_steps)
{
  RnTensorDesc desc = rn_desc_vector (RN_I64, 1);
  gint64 *number = g_new (gint64, 1);

  *number = GINT64_TO_LE (n_steps);
  rn_safetensors_writer_add (writer, name, &desc, read_bytes, number, g_free);
}

/* So that a run goes on with them wherever its checkpoint is taken. */
static void
add_choices (RnDevice *device, RnSafetensorsWriter *writer)
{
  char *text = device->vtbl->choices != NULL ? device->vtbl->choices (device) : NULL;

  if (text == NULL)
    return;
  RnTensorDesc desc = rn_desc_vector (RN_U8, (int64_t) strlen (text));
  rn_safetensors_writer_add (writer, RN_CHECKPOINT_CHOICES, &desc, read_bytes, text, g_free);
}

static void
add_optimizer (RnPrograms *programs, gint64 n_steps, RnSafetensorsWriter *writer)
{
  const RnUpdateRule *rule = rn_programs_rule (programs);
  const char *names[RN_PARAM_MAX_STATES];
  int n = rn_update_rule_states (rule, names);

  for (int k = 0; k < n; k++)
    {
      g_autofree char *prefix = g_strconcat (names[k], "/", NULL);
      rn_params_add_to (rn_programs_params (programs), rn_programs_device (programs),
                        RN_ARRAY_STATE + (RnParamArray) k, prefix, writer);
    }
  if (rule->kind == RN_UPDATE_ADAM)
    add_steps (writer, NAME_STEPS, n_steps);
}

void
rn_task_tensors_add (RnPrograms *programs, gint64 n_steps, guint what, RnSafetensorsWriter *writer)
{
  RnParamSet *params = rn_programs_params (programs);
  RnDevice *device = rn_programs_device (programs);

  gboolean has_part = (what & RN_TENSORS_PENDING) && rn_programs_updates_in_backward (programs);

  rn_params_add_to (params, device, RN_ARRAY_VALUES, "", writer);
  add_choices (device, writer);
  if ((what & RN_TENSORS_OPTIMIZER) && (n_steps > 0 || has_part))
    add_optimizer (programs, n_steps, writer);
  if (has_part)
    add_steps (writer, NAME_STEPS_AND_PART, n_steps);
  else if (what & RN_TENSORS_PENDING)
    rn_params_add_to (params, device, RN_ARRAY_GRADS, PREFIX_PENDING, writer);
  if (what & RN_TENSORS_EMA)
    rn_params_add_to (params, device, RN_ARRAY_EMA, PREFIX_EMA, writer);
}

/* ---- reading ---- */

static gboolean
load_steps (const RnSafetensors *file, const char *name, gint64 min, gint64 *n_steps, GError **error)
{
  const RnStoredTensor *tensor = rn_safetensors_find (file, name);
  gint64 number = GINT64_TO_LE (-1);

  if (tensor != NULL && strcmp (tensor->type, "I64") == 0 && tensor->bytes == sizeof number)
    memcpy (&number, tensor->data, sizeof number);
  *n_steps = GINT64_FROM_LE (number);
  if (*n_steps >= min && *n_steps <= MAX_STEPS)
    return TRUE;
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
               "%s: the optimizer has a state, but %s is no number of steps", rn_safetensors_path (file),
               name);
  return FALSE;
}

/* "momentum" for "momentum/neck.conv.weight"; NULL for what is not of an optimizer. (transfer full) */
static char *
optimizer_state (const char *name)
{
  const char *slash = strchr (name, '/');

  if (slash == NULL || g_str_has_prefix (name, PREFIX_PENDING) || g_str_has_prefix (name, PREFIX_EMA)
      || strcmp (name, NAME_STEPS) == 0 || strcmp (name, NAME_STEPS_AND_PART) == 0
      || strcmp (name, RN_CHECKPOINT_CHOICES) == 0)
    return NULL;
  return g_strndup (name, (gsize) (slash - name));
}

/* "exp_avg, exp_avg_sq", or NULL for none. (transfer full) */
static char *
list_optimizer_states (const RnSafetensors *file)
{
  g_autoptr (GPtrArray) states = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      g_autofree char *state = optimizer_state (rn_safetensors_get (file, i)->name);
      if (state != NULL && !g_ptr_array_find_with_equal_func (states, state, g_str_equal, NULL))
        g_ptr_array_add (states, g_steal_pointer (&state));
    }
  if (states->len == 0)
    return NULL;
  g_ptr_array_add (states, NULL);
  return g_strjoinv (", ", (char **) states->pdata);
}

static gboolean
load_optimizer (RnPrograms *programs, const RnSafetensors *file, gint64 *n_steps, gboolean *found,
                gboolean *has_part, GError **error)
{
  const RnUpdateRule *rule = rn_programs_rule (programs);
  const char *names[RN_PARAM_MAX_STATES];
  int n = rn_update_rule_states (rule, names);
  g_auto (GStrv) prefixes = g_new0 (char *, RN_PARAM_MAX_STATES + 1);

  for (int k = 0; k < n; k++)
    prefixes[k] = g_strconcat (names[k], "/", NULL);
  if (!rn_params_load (rn_programs_params (programs), rn_programs_device (programs), RN_ARRAY_STATE, n,
                       (const char *const *) prefixes, file, found, error))
    return FALSE;
  if (*found)
    {
      *has_part = rn_safetensors_find (file, NAME_STEPS_AND_PART) != NULL;
      if (*has_part)
        return load_steps (file, NAME_STEPS_AND_PART, 0, n_steps, error);
      *n_steps = 1; /* SGD asks only whether there was one */
      return rule->kind != RN_UPDATE_ADAM || load_steps (file, NAME_STEPS, 1, n_steps, error);
    }
  g_autofree char *others = list_optimizer_states (file);
  if (others != NULL)
    g_warning ("%s has the state of another optimizer (%s): it is not taken", rn_safetensors_path (file),
               others);
  return TRUE;
}

gboolean
rn_task_tensors_load (RnJob *job, const RnSafetensors *file, gint64 *n_steps, guint *found, GError **error)
{
  RnParamSet *params = rn_programs_params (job->programs);
  RnDevice *device = rn_programs_device (job->programs);
  static const char *const pending[] = { PREFIX_PENDING }, *const ema[] = { PREFIX_EMA };
  gboolean has_optimizer, has_part = FALSE, has_pending, has_ema;
  g_autoptr (RnWeights) weights = rn_weights_from_safetensors (file, error);

  if (weights == NULL || !rn_job_load_weights (job, weights, error)
      || !load_optimizer (job->programs, file, n_steps, &has_optimizer, &has_part, error)
      || !rn_params_load (params, device, RN_ARRAY_GRADS, 1, pending, file, &has_pending, error)
      || !rn_params_load (params, device, RN_ARRAY_EMA, 1, ema, file, &has_ema, error))
    return FALSE;
  *found = (has_optimizer && *n_steps > 0 ? RN_TENSORS_OPTIMIZER : 0)
           | (has_part ? RN_TENSORS_PART_OF_STEP : 0) | (has_pending ? RN_TENSORS_PENDING : 0)
           | (has_ema ? RN_TENSORS_EMA : 0);
  return TRUE;
}
