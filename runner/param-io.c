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

void
rn_params_add_to (RnParamSet *params, RnDevice *device, gboolean with_momentum, RnSafetensorsWriter *writer)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      add (writer, param->name, &param->desc, device, rn_param_set_value (params, i));
      const void *momentum = with_momentum ? rn_param_set_momentum (params, i) : NULL;
      g_autofree char *name = g_strconcat (RN_CHECKPOINT_MOMENTUM, param->name, NULL);
      if (momentum != NULL)
        add (writer, name, &param->desc, device, momentum);
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

gboolean
rn_params_load_momentum (RnParamSet *params, RnDevice *device, const RnSafetensors *file, gboolean *found,
                         GError **error)
{
  g_autoptr (GPtrArray) tensors = g_ptr_array_new ();
  guint n_wanted = 0, n_found = 0;

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      g_autofree char *name = g_strconcat (RN_CHECKPOINT_MOMENTUM, param->name, NULL);
      const RnStoredTensor *tensor =
          rn_param_set_momentum (params, i) != NULL ? rn_safetensors_find (file, name) : NULL;
      n_wanted += rn_param_set_momentum (params, i) != NULL;
      n_found += tensor != NULL && has_shape (tensor, &param->desc);
      g_ptr_array_add (tensors, (gpointer) tensor);
    }
  *found = n_wanted > 0 && n_found == n_wanted;
  if (n_found != 0 && n_found != n_wanted)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
                   "%s: momentum of %u of %u trainable tensors", rn_safetensors_path (file), n_found,
                   n_wanted);
      return FALSE;
    }
  for (int i = 0; *found && i < rn_param_set_size (params); i++)
    {
      const RnStoredTensor *tensor = g_ptr_array_index (tensors, (guint) i);
      if (tensor == NULL)
        continue;
      if (!copy_in (device, rn_param_set_momentum (params, i), tensor, error))
        return FALSE;
      rn_safetensors_forget (file, tensor);
    }
  return TRUE;
}
