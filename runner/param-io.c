#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/param-io.h"

#include "runner/base/error.h"

#include <math.h>
#include <string.h>

#define MOMENTUM "momentum/"
#define MAX_NAMED 5 /* names in a message */

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
      g_autofree char *name = g_strconcat (MOMENTUM, param->name, NULL);
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

/* What a file has and lacks. */
typedef struct
{
  guint n_matched, n_missing, n_unexpected, n_shape;
  GString *names; /* the first few that do not match */
} Report;

static void
report_name (Report *report, const char *what, const char *name)
{
  if (report->n_missing + report->n_shape <= MAX_NAMED)
    g_string_append_printf (report->names, "%s%s %s", report->names->len > 0 ? ", " : "", what, name);
}

static void
compare (RnParamSet *params, const RnSafetensors *file, Report *report)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      const RnStoredTensor *tensor = rn_safetensors_find (file, param->name);
      if (tensor == NULL)
        {
          report->n_missing++;
          report_name (report, "missing", param->name);
        }
      else if (!has_shape (tensor, &param->desc))
        {
          report->n_shape++;
          report_name (report, "other shape of", param->name);
        }
      else
        report->n_matched++;
    }
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      const char *name = rn_safetensors_get (file, i)->name;
      if (!g_str_has_prefix (name, MOMENTUM) && rn_param_set_find (params, name) < 0)
        report->n_unexpected++;
    }
}

static gboolean
is_finite (const RnStoredTensor *tensor)
{
  for (gsize i = 0; i < tensor->bytes; i += sizeof (float))
    {
      float value;
      memcpy (&value, tensor->data + i, sizeof value); /* a file of others may not be aligned */
      if (!isfinite (value))
        return FALSE;
    }
  return TRUE;
}

/* Such weights find nothing and learn nothing, without any error. */
static void
warn_of_divergence (RnParamSet *params, const RnSafetensors *file)
{
  const char *first = NULL;
  guint n = 0;

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const char *name = rn_param_set_get (params, i)->name;
      if (is_finite (rn_safetensors_find (file, name)))
        continue;
      first = first != NULL ? first : name;
      n++;
    }
  if (n > 0)
    g_warning ("%s: %u tensors hold infinities or no numbers (the first is %s): the training had diverged",
               rn_safetensors_path (file), n, first);
}

gboolean
rn_params_load (RnParamSet *params, RnDevice *device, const RnSafetensors *file, GError **error)
{
  g_autoptr (GString) names = g_string_new (NULL);
  Report report = { .names = names };

  compare (params, file, &report);
  if (report.n_missing + report.n_shape > 0)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
                   "%s: not the weights of this model: %u tensors match, %u are missing, %u have another "
                   "shape, %u are unexpected (%s%s)",
                   rn_safetensors_path (file), report.n_matched, report.n_missing, report.n_shape,
                   report.n_unexpected, names->str,
                   report.n_missing + report.n_shape > MAX_NAMED ? ", ..." : "");
      return FALSE;
    }
  if (report.n_unexpected > 0)
    g_message ("%s: %u tensors match, %u are unexpected and left out", rn_safetensors_path (file),
               report.n_matched, report.n_unexpected);
  warn_of_divergence (params, file);
  for (int i = 0; i < rn_param_set_size (params); i++)
    if (!copy_in (device, rn_param_set_value (params, i),
                  rn_safetensors_find (file, rn_param_set_get (params, i)->name), error))
      return FALSE;
  return TRUE;
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
      g_autofree char *name = g_strconcat (MOMENTUM, param->name, NULL);
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
    if (g_ptr_array_index (tensors, (guint) i) != NULL
        && !copy_in (device, rn_param_set_momentum (params, i), g_ptr_array_index (tensors, (guint) i),
                     error))
      return FALSE;
  return TRUE;
}
