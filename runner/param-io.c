#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/param-io.h"

#include "kernels/half.h"
#include "runner/base/error.h"
#include "runner/checkpoint.h"

#include <string.h>

/* ---- Where an array lies, and how ---- */

static void *
address_of (RnParamSet *params, RnParamArray array, int i)
{
  switch (array)
    {
    case RN_ARRAY_VALUES:
      return rn_param_set_value (params, i);
    case RN_ARRAY_EMA:
      return rn_param_set_ema (params, i);
    case RN_ARRAY_GRADS:
      return rn_param_set_grad (params, i);
    case RN_ARRAY_STATE:
      break;
    }
  return rn_param_set_state (params, (int) array - RN_ARRAY_STATE, i);
}

static RnDType
dtype_of (const RnParamSet *params, RnParamArray array)
{
  return array >= RN_ARRAY_STATE ? rn_param_set_state_dtype (params) : RN_F32;
}

/* ---- Writing ---- */

/* One tensor of an array, for the writer. */
typedef struct
{
  RnDevice *device;
  const guint8 *data;
} Source;

static gboolean
read_source (gpointer user_data, gsize offset, void *dst, gsize size, GError **error)
{
  const Source *source = user_data;
  RnStatus status = source->device->vtbl->copy_out (source->device, dst, source->data + offset, size);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying weights from the device: %s",
               rn_device_fault (source->device, status));
  return FALSE;
}

static void
add (RnSafetensorsWriter *writer, const char *name, const RnTensorDesc *desc, RnDevice *device,
     const void *data)
{
  Source *source = g_new (Source, 1);
  *source = (Source){ device, data };
  rn_safetensors_writer_add (writer, name, desc, read_source, source, g_free);
}

void
rn_params_add_to (RnParamSet *params, RnDevice *device, RnParamArray array, const char *prefix,
                  RnSafetensorsWriter *writer)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      g_autofree char *name = g_strconcat (prefix, param->name, NULL);
      const void *data = address_of (params, array, i);
      RnTensorDesc desc = param->desc;
      desc.dtype = dtype_of (params, array);
      if (data != NULL)
        add (writer, name, &desc, device, data);
    }
}

/* ---- Reading ---- */

/* The types that a state can be stored in; other arrays are F32. */
static gboolean
find_dtype (const RnStoredTensor *tensor, RnParamArray array, RnDType *dtype)
{
  *dtype = strcmp (tensor->type, "BF16") == 0 ? RN_BF16 : RN_F32;
  return strcmp (tensor->type, "F32") == 0 || (*dtype == RN_BF16 && array >= RN_ARRAY_STATE);
}

static gboolean
has_shape (const RnStoredTensor *tensor, RnParamArray array, const RnTensorDesc *desc)
{
  RnDType dtype;

  if (!find_dtype (tensor, array, &dtype) || tensor->rank != desc->rank)
    return FALSE;
  for (int i = 0; i < desc->rank; i++)
    if (tensor->dims[i] != desc->dims[i])
      return FALSE;
  return TRUE;
}

static gboolean
copy_in (RnDevice *device, void *dst, const void *src, gsize bytes, GError **error)
{
  RnStatus status = device->vtbl->copy_in (device, dst, src, bytes);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying weights to the device: %s",
               rn_device_fault (device, status));
  return FALSE;
}

/* F32 to BF16 or back, in pieces. */
static gboolean
convert_in (RnDevice *device, guint8 *dst, RnDType to, const RnStoredTensor *tensor, RnDType from,
            GError **error)
{
  enum
  {
    PIECE = 4096
  };
  gsize n = tensor->bytes / rn_dtype_size (from);
  float values[PIECE], stored[PIECE];

  for (gsize at = 0; at < n; at += PIECE)
    {
      gsize m = MIN (n - at, PIECE);
      memcpy (stored, (const guint8 *) tensor->data + at * rn_dtype_size (from), m * rn_dtype_size (from));
      rn_floats_from (from, stored, (gint64) m, values);
      rn_floats_to (to, values, (gint64) m, stored);
      if (!copy_in (device, dst + at * rn_dtype_size (to), stored, m * rn_dtype_size (to), error))
        return FALSE;
    }
  return TRUE;
}

/* The tensors of the file for each parameter, or NULL where the set has no place for one. *@found: all. */
static gboolean
find_array (RnParamSet *params, RnParamArray array, const char *prefix, const RnSafetensors *file,
            GPtrArray *tensors, gboolean *found, GError **error)
{
  guint n_wanted = 0, n_found = 0;

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      gboolean is_wanted = address_of (params, array, i) != NULL;
      g_autofree char *name = g_strconcat (prefix, param->name, NULL);
      const RnStoredTensor *tensor = is_wanted ? rn_safetensors_find (file, name) : NULL;
      n_wanted += is_wanted;
      n_found += tensor != NULL && has_shape (tensor, array, &param->desc);
      g_ptr_array_add (tensors, (gpointer) tensor);
    }
  *found = n_wanted > 0 && n_found == n_wanted;
  if (n_found == 0 || n_found == n_wanted)
    return TRUE;
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH, "%s: %s has %u of %u tensors",
               rn_safetensors_path (file), prefix, n_found, n_wanted);
  return FALSE;
}

static gboolean
copy_array (RnParamSet *params, RnDevice *device, RnParamArray array, const char *prefix,
            const RnSafetensors *file, const GPtrArray *tensors, GError **error)
{
  RnDType from = RN_F32, to = dtype_of (params, array);
  gboolean is_rounded = FALSE;

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnStoredTensor *tensor = g_ptr_array_index (tensors, (guint) i);
      if (tensor == NULL)
        continue;
      find_dtype (tensor, array, &from);
      if (from == to ? !copy_in (device, address_of (params, array, i), tensor->data, tensor->bytes, error)
                     : !convert_in (device, address_of (params, array, i), to, tensor, from, error))
        return FALSE;
      is_rounded |= from == RN_F32 && to == RN_BF16;
      rn_safetensors_forget (file, tensor);
    }
  if (is_rounded)
    g_message ("%s: %s* is rounded to bf16, as memory.momentum says: the run does not go on bit for bit",
               rn_safetensors_path (file), prefix);
  return TRUE;
}

gboolean
rn_params_load (RnParamSet *params, RnDevice *device, RnParamArray first, int n, const char *const *prefixes,
                const RnSafetensors *file, gboolean *found, GError **error)
{
  g_autoptr (GPtrArray) arrays = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);

  *found = n > 0;
  for (int k = 0; k < n; k++)
    {
      GPtrArray *tensors = g_ptr_array_new ();
      gboolean has_array;
      g_ptr_array_add (arrays, tensors);
      if (!find_array (params, first + (RnParamArray) k, prefixes[k], file, tensors, &has_array, error))
        return FALSE;
      *found = *found && has_array;
    }
  for (int k = 0; *found && k < n; k++)
    if (!copy_array (params, device, first + (RnParamArray) k, prefixes[k], file,
                     g_ptr_array_index (arrays, (guint) k), error))
      return FALSE;
  return TRUE;
}
