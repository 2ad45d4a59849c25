#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/param-io.h"

#include "runner/base/error.h"
#include "runner/checkpoint.h"

#include <string.h>

/* One array on the device, for the writer. */
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
               rn_status_name (status));
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

void
rn_params_add_to (RnParamSet *params, RnDevice *device, RnParamArray array, const char *prefix,
                  RnSafetensorsWriter *writer)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      g_autofree char *name = g_strconcat (prefix, param->name, NULL);
      const void *data = address_of (params, array, i);
      if (data != NULL)
        add (writer, name, &param->desc, device, data);
    }
}

static gboolean
has_shape (const RnStoredTensor *tensor, const RnTensorDesc *desc)
{
  if (strcmp (tensor->type, "F32") != 0 || tensor->rank != desc->rank)
    return FALSE;
  for (int i = 0; i < desc->rank; i++)
    if (tensor->dims[i] != desc->dims[i])
      return FALSE;
  return TRUE;
}

static gboolean
copy_in (RnDevice *device, void *dst, const RnStoredTensor *tensor, GError **error)
{
  RnStatus status = device->vtbl->copy_in (device, dst, tensor->data, tensor->bytes);

  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying weights to the device: %s",
               rn_status_name (status));
  return FALSE;
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
      n_found += tensor != NULL && has_shape (tensor, &param->desc);
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
copy_array (RnParamSet *params, RnDevice *device, RnParamArray array, const RnSafetensors *file,
            const GPtrArray *tensors, GError **error)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnStoredTensor *tensor = g_ptr_array_index (tensors, (guint) i);
      if (tensor == NULL)
        continue;
      if (!copy_in (device, address_of (params, array, i), tensor, error))
        return FALSE;
      rn_safetensors_forget (file, tensor);
    }
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
    if (!copy_array (params, device, first + (RnParamArray) k, file, g_ptr_array_index (arrays, (guint) k),
                     error))
      return FALSE;
  return TRUE;
}
