/* params.c: the parameter set: an ordered list of names and shapes, and flat arrays on a device. */
#include "config.h"

#include "graph/params.h"
#include "runner/base/error.h"
#include "runner/base/rng.h"

#include <string.h>

#define ALIGNMENT 64 /* bytes: a cache line, and the widest vector register */

struct _RnParamSet
{
  GPtrArray *params;                 /* of RnParam */
  GHashTable *by_name;               /* name -> index */
  RnDevice *device;                  /* lent; NULL until rn_param_set_allocate */
  char *values, *ema;                /* device memory, value_bytes each */
  char *grads;                       /* grad_bytes each */
  char *states[RN_PARAM_MAX_STATES]; /* state_bytes each; host memory with RN_MOMENTUM_HOST */
  RnMomentumForm state_form;
  gsize value_bytes, grad_bytes, state_bytes; /* of the arrays, as allocated */
};

static void
param_free (gpointer data)
{
  RnParam *param = data;
  g_free (param->name);
  g_free (param);
}

RnParamSet *
rn_param_set_new (void)
{
  RnParamSet *set = g_new0 (RnParamSet, 1);
  set->params = g_ptr_array_new_with_free_func (param_free);
  set->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  return set;
}

static void
free_array (RnParamSet *set, char *memory, gsize bytes)
{
  if (memory)
    set->device->vtbl->free (set->device, memory, bytes);
}

static void
free_arrays (RnParamSet *set)
{
  free_array (set, set->values, set->value_bytes);
  free_array (set, set->grads, set->grad_bytes);
  free_array (set, set->ema, set->value_bytes);
  set->values = set->grads = set->ema = NULL;
  for (int k = 0; k < RN_PARAM_MAX_STATES; k++)
    {
      if (set->states[k] && rn_param_set_has_host_states (set))
        set->device->vtbl->free_host (set->device, set->states[k], set->state_bytes);
      else
        free_array (set, set->states[k], set->state_bytes);
      set->states[k] = NULL;
    }
}

void
rn_param_set_free (RnParamSet *set)
{
  if (!set)
    return;
  free_arrays (set);
  g_hash_table_unref (set->by_name);
  g_ptr_array_unref (set->params);
  g_free (set);
}

/* ---- the list ---- */

int
rn_param_set_size (const RnParamSet *set)
{
  return (int) set->params->len;
}

RnParam *
rn_param_set_edit (RnParamSet *set, int i)
{
  g_return_val_if_fail (i >= 0 && i < rn_param_set_size (set), NULL);
  return g_ptr_array_index (set->params, i);
}

const RnParam *
rn_param_set_get (const RnParamSet *set, int i)
{
  g_return_val_if_fail (i >= 0 && i < rn_param_set_size (set), NULL);
  return g_ptr_array_index (set->params, i);
}

int
rn_param_set_find (const RnParamSet *set, const char *name)
{
  gpointer index;
  return g_hash_table_lookup_extended (set->by_name, name, NULL, &index) ? GPOINTER_TO_INT (index) : -1;
}

int
rn_param_set_intern (RnParamSet *set, const char *name, RnParamKind kind, const RnTensorDesc *desc,
                     gboolean trainable, RnInit init)
{
  int found = rn_param_set_find (set, name);
  if (found >= 0)
    {
      const RnParam *known = rn_param_set_get (set, found);
      g_return_val_if_fail (known->kind == kind && rn_desc_equal (&known->desc, desc), -1);
      return found;
    }
  g_return_val_if_fail (set->device == NULL && desc->dtype == RN_F32, -1);

  RnParam *param = g_new0 (RnParam, 1);
  param->name = g_strdup (name);
  param->kind = kind;
  param->desc = *desc;
  param->trainable = trainable && kind == RN_PARAM_WEIGHT;
  param->init = init;
  int index = rn_param_set_size (set);
  g_ptr_array_add (set->params, param);
  g_hash_table_insert (set->by_name, param->name, GINT_TO_POINTER (index));
  return index;
}

/* ---- sizes ---- */

static gsize
pad (gsize bytes)
{
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static gsize
padded_bytes (const RnParam *param)
{
  return pad (rn_desc_bytes (&param->desc));
}

static gsize
padded_state_bytes (const RnParamSet *set, const RnParam *param)
{
  return pad ((gsize) rn_desc_elements (&param->desc) * rn_dtype_size (rn_param_set_state_dtype (set)));
}

gint64
rn_param_set_n_elements (const RnParamSet *set, gboolean trainable_only)
{
  gint64 n = 0;
  for (int i = 0; i < rn_param_set_size (set); i++)
    {
      const RnParam *param = rn_param_set_get (set, i);
      if (param->kind == RN_PARAM_WEIGHT && (param->trainable || !trainable_only))
        n += rn_desc_elements (&param->desc);
    }
  return n;
}

int
rn_param_set_n_weights (const RnParamSet *set)
{
  int n = 0;
  for (int i = 0; i < rn_param_set_size (set); i++)
    n += rn_param_set_get (set, i)->kind == RN_PARAM_WEIGHT;
  return n;
}

gsize
rn_param_set_value_bytes (const RnParamSet *set)
{
  gsize bytes = 0;
  for (int i = 0; i < rn_param_set_size (set); i++)
    bytes += padded_bytes (rn_param_set_get (set, i));
  return bytes;
}

gsize
rn_param_set_grad_bytes (const RnParamSet *set)
{
  gsize bytes = 0;
  for (int i = 0; i < rn_param_set_size (set); i++)
    if (rn_param_set_get (set, i)->trainable)
      bytes += padded_bytes (rn_param_set_get (set, i));
  return bytes;
}

gsize
rn_param_set_state_bytes (const RnParamSet *set)
{
  gsize bytes = 0;
  for (int i = 0; i < rn_param_set_size (set); i++)
    if (rn_param_set_get (set, i)->trainable)
      bytes += padded_state_bytes (set, rn_param_set_get (set, i));
  return bytes;
}

void
rn_param_set_store_states (RnParamSet *set, RnMomentumForm form)
{
  g_return_if_fail (set->device == NULL);
  set->state_form = form;
}

RnDType
rn_param_set_state_dtype (const RnParamSet *set)
{
  return set->state_form == RN_MOMENTUM_BF16 ? RN_BF16 : RN_F32;
}

gboolean
rn_param_set_has_host_states (const RnParamSet *set)
{
  return set->state_form == RN_MOMENTUM_HOST;
}

/* ---- the arrays ---- */

static void
place_params (RnParamSet *set)
{
  gsize value = 0, grad = 0, state = 0;
  for (int i = 0; i < rn_param_set_size (set); i++)
    {
      RnParam *param = rn_param_set_edit (set, i);
      param->value_offset = value;
      value += padded_bytes (param);
      param->grad_offset = grad;
      param->state_offset = state;
      if (param->trainable)
        {
          grad += padded_bytes (param);
          state += padded_state_bytes (set, param);
        }
    }
  set->value_bytes = value;
  set->grad_bytes = grad;
  set->state_bytes = state;
}

static gboolean
allocate_array (RnDevice *device, gsize bytes, const char *what, char **array, GError **error)
{
  void *memory = NULL;
  if (bytes == 0)
    return TRUE;
  RnStatus status = device->vtbl->alloc (device, bytes, &memory);
  if (status != RN_STATUS_OK)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                   "no memory for %s: %" G_GSIZE_FORMAT " bytes: %s", what, bytes,
                   rn_device_fault (device, status));
      return FALSE;
    }
  *array = memory;
  status = device->vtbl->fill (device, memory, 0, bytes);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "cannot clear the memory of %s: %s", what,
               rn_device_fault (device, status));
  return FALSE;
}

static gboolean
allocate_host_state (RnParamSet *set, char **array, GError **error)
{
  void *memory = NULL;
  if (set->state_bytes == 0)
    return TRUE;
  RnStatus status = set->device->vtbl->alloc_host (set->device, set->state_bytes, &memory);
  if (status != RN_STATUS_OK)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                   "no host memory for the optimizer's state: %" G_GSIZE_FORMAT " bytes: %s",
                   set->state_bytes, rn_device_fault (set->device, status));
      return FALSE;
    }
  *array = memory;
  memset (memory, 0, set->state_bytes);
  return TRUE;
}

static gboolean
allocate_states (RnParamSet *set, int n_states, GError **error)
{
  for (int k = 0; k < n_states; k++)
    if (rn_param_set_has_host_states (set)
            ? !allocate_host_state (set, &set->states[k], error)
            : !allocate_array (set->device, set->state_bytes, "the optimizer's state", &set->states[k],
                               error))
      return FALSE;
  return TRUE;
}

gboolean
rn_param_set_allocate (RnParamSet *set, RnDevice *device, gboolean gradients, int n_states, GError **error)
{
  g_return_val_if_fail (set->device == NULL && n_states >= 0 && n_states <= RN_PARAM_MAX_STATES, FALSE);
  place_params (set);
  set->device = device;
  if (allocate_array (device, set->value_bytes, "parameters", &set->values, error)
      && (!gradients || allocate_array (device, set->grad_bytes, "gradients", &set->grads, error))
      && allocate_states (set, n_states, error))
    return TRUE;
  free_arrays (set);
  set->device = NULL;
  return FALSE;
}

gboolean
rn_param_set_allocate_ema (RnParamSet *set, GError **error)
{
  g_return_val_if_fail (set->device != NULL && set->ema == NULL, FALSE);
  return allocate_array (set->device, set->value_bytes, "the running mean of the weights", &set->ema, error);
}

void *
rn_param_set_value (const RnParamSet *set, int i)
{
  return set->values ? set->values + rn_param_set_get (set, i)->value_offset : NULL;
}

void *
rn_param_set_grad (const RnParamSet *set, int i)
{
  const RnParam *param = rn_param_set_get (set, i);
  return set->grads && param->trainable ? set->grads + param->grad_offset : NULL;
}

void *
rn_param_set_state (const RnParamSet *set, int state, int i)
{
  g_return_val_if_fail (state >= 0 && state < RN_PARAM_MAX_STATES, NULL);
  const RnParam *param = rn_param_set_get (set, i);
  char *array = set->states[state];
  return array && param->trainable ? array + param->state_offset : NULL;
}

void *
rn_param_set_ema (const RnParamSet *set, int i)
{
  return set->ema ? set->ema + rn_param_set_get (set, i)->value_offset : NULL;
}

void *
rn_param_set_all_values (const RnParamSet *set)
{
  return set->values;
}

void *
rn_param_set_all_grads (const RnParamSet *set)
{
  return set->grads;
}

void *
rn_param_set_all_ema (const RnParamSet *set)
{
  return set->ema;
}

gboolean
rn_param_set_zero_grads (RnParamSet *set, GError **error)
{
  RnStatus status =
      set->grads ? set->device->vtbl->fill (set->device, set->grads, 0, set->grad_bytes) : RN_STATUS_OK;
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "cannot clear the gradients: %s",
               rn_device_fault (set->device, status));
  return FALSE;
}

/* ---- initial values ---- */

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static guint64
hash_name (const char *name)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (; *name; name++)
    hash = (hash ^ (guint8) *name) * G_GUINT64_CONSTANT (0x100000001b3);
  return hash;
}

static void
draw_values (const RnParam *param, guint64 seed, float *values)
{
  guint64 hash = hash_name (param->name);
  const RnInit *init = &param->init;
  RnRng rng;
  rn_rng_init (&rng, seed, RN_STREAM_INIT, (guint32) hash, (guint32) (hash >> 32));

  gint64 n = rn_desc_elements (&param->desc);
  switch (init->kind)
    {
    case RN_INIT_CONSTANT:
      for (gint64 k = 0; k < n; k++)
        values[k] = (float) init->a;
      break;
    case RN_INIT_NORMAL:
      for (gint64 k = 0; k < n; k++)
        values[k] = (float) (init->a + init->b * rn_rng_normal (&rng));
      break;
    case RN_INIT_UNIFORM:
      for (gint64 k = 0; k < n; k++)
        values[k] = (float) (init->a + (init->b - init->a) * rn_rng_uniform (&rng));
      break;
    }
}

gboolean
rn_param_set_init (RnParamSet *set, guint64 seed, GError **error)
{
  g_return_val_if_fail (set->device != NULL, FALSE);
  for (int i = 0; i < rn_param_set_size (set); i++)
    {
      const RnParam *param = rn_param_set_get (set, i);
      gsize bytes = rn_desc_bytes (&param->desc);
      g_autofree float *values = g_try_malloc (bytes);
      if (!values)
        {
          g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "%s: no memory for initial values",
                       param->name);
          return FALSE;
        }
      draw_values (param, seed, values);
      RnStatus status = set->device->vtbl->copy_in (set->device, rn_param_set_value (set, i), values, bytes);
      if (status != RN_STATUS_OK)
        {
          g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s: cannot write initial values: %s",
                       param->name, rn_device_fault (set->device, status));
          return FALSE;
        }
    }
  return TRUE;
}
