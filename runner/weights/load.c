#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/weights/load.h"

#include "runner/base/error.h"

#include <math.h>
#include <string.h>

#define MAX_NAMED 5 /* names in a message */

void
rn_load_report_clear (RnLoadReport *report)
{
  g_clear_pointer (&report->missing, g_ptr_array_unref);
  g_clear_pointer (&report->misshapen, g_ptr_array_unref);
  g_clear_pointer (&report->misfits, g_ptr_array_unref);
  g_clear_pointer (&report->unexpected, g_ptr_array_unref);
  g_clear_pointer (&report->is_loaded, g_free);
}

/* ---- texts ---- */

static void
append_names (GString *text, const GPtrArray *names, const char *before)
{
  for (guint i = 0; i < MIN (names->len, MAX_NAMED); i++)
    g_string_append_printf (text, "%s%s%s", text->len > 0 ? ", " : "", before,
                            (const char *) g_ptr_array_index (names, i));
  if (names->len > MAX_NAMED)
    g_string_append_printf (text, " and %u more", names->len - MAX_NAMED);
}

/* "a, b, c, d, e and 12 more". (transfer full) */
static char *
name_some (const GPtrArray *names)
{
  GString *text = g_string_new (NULL);
  append_names (text, names, "");
  return g_string_free (text, FALSE);
}

static void
append_shape (GString *text, const char *type, int rank, const int64_t *dims)
{
  if (strcmp (type, "F32") != 0)
    g_string_append_printf (text, "%s ", type);
  if (rank == 0)
    g_string_append (text, "one number");
  for (int i = 0; i < rank; i++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i > 0 ? "x" : "", dims[i]);
}

/* "NAME (720x256x3x3 in the file, 27x256x3x3 in the model)". (transfer full) */
static char *
describe_difference (const RnParam *param, const RnWeight *weight, const RnMappedWeight *tensor)
{
  GString *text = g_string_new (param->name);
  g_string_append (text, " (");
  append_shape (text, weight->type, weight->rank, tensor->dims);
  g_string_append (text, " in the file, ");
  append_shape (text, "F32", param->desc.rank, param->desc.dims);
  g_string_append (text, " in the model)");
  return g_string_free (text, FALSE);
}

/* ---- matching ---- */

/* Integers are no weights: those of a quantised model mean nothing without its scales. */
static gboolean
is_floating (const char *type)
{
  static const char *const types[] = { "F32", "F16", "BF16", "F64", NULL };
  return g_strv_contains (types, type);
}

static gboolean
agrees (const RnParam *param, const RnWeight *weight, const RnMappedWeight *tensor)
{
  if (!is_floating (weight->type) || weight->rank != param->desc.rank)
    return FALSE;
  for (int i = 0; i < weight->rank; i++)
    if (tensor->dims[i] != param->desc.dims[i])
      return FALSE;
  return TRUE;
}

static gboolean
is_wanted (const RnParam *param, const RnLoadOptions *options)
{
  return options->prefix == NULL || g_str_has_prefix (param->name, options->prefix);
}

static gboolean
may_misfit (const RnParam *param, const RnLoadOptions *options)
{
  if (options->may_misfit == NULL)
    return !options->is_strict;
  for (guint i = 0; i < options->may_misfit->len; i++)
    if (g_regex_match (g_ptr_array_index (options->may_misfit, i), param->name, 0, NULL))
      return TRUE;
  return FALSE;
}

/* Fills @report; the tensor of each parameter, or NULL. (transfer container) */
static GPtrArray *
match (const RnNameMap *map, RnParamSet *params, const RnLoadOptions *options, RnLoadReport *report)
{
  GPtrArray *found = g_ptr_array_new ();
  int n = rn_param_set_size (params);

  *report = (RnLoadReport){ .missing = g_ptr_array_new_with_free_func (g_free),
                            .misshapen = g_ptr_array_new_with_free_func (g_free),
                            .misfits = g_ptr_array_new_with_free_func (g_free),
                            .unexpected = g_ptr_array_new_with_free_func (g_free),
                            .is_loaded = g_new0 (gboolean, n) };
  g_ptr_array_set_size (found, n);
  for (guint i = 0; i < map->tensors->len; i++)
    {
      const RnMappedWeight *tensor = rn_name_map_get (map, i);
      int p = rn_param_set_find (params, tensor->name);
      if (p >= 0 && is_wanted (rn_param_set_get (params, p), options))
        g_ptr_array_index (found, (guint) p) = (gpointer) tensor;
      else if (!rn_names_is_dispensable (tensor->name))
        g_ptr_array_add (report->unexpected, g_strdup (rn_weights_get (map->weights, tensor->index)->name));
    }
  for (int p = 0; p < n; p++)
    {
      const RnParam *param = rn_param_set_get (params, p);
      const RnMappedWeight *tensor = g_ptr_array_index (found, (guint) p);
      if (!is_wanted (param, options))
        continue;
      report->n_wanted++;
      if (tensor == NULL)
        g_ptr_array_add (report->missing, g_strdup (param->name));
      else if (agrees (param, rn_weights_get (map->weights, tensor->index), tensor))
        {
          report->n_matched++;
          report->is_loaded[p] = TRUE;
        }
      else
        {
          char *text = describe_difference (param, rn_weights_get (map->weights, tensor->index), tensor);
          g_ptr_array_add (report->misshapen, text);
          if (!may_misfit (param, options))
            g_ptr_array_add (report->misfits, g_strdup (text));
        }
    }
  return found;
}

/* The first name that is asked for. */
static const char *
example (RnParamSet *params, const RnLoadOptions *options)
{
  for (int p = 0; p < rn_param_set_size (params); p++)
    if (is_wanted (rn_param_set_get (params, p), options))
      return rn_param_set_get (params, p)->name;
  return "nothing";
}

static gboolean
check_report (const RnNameMap *map, RnParamSet *params, const RnLoadOptions *options,
              const RnLoadReport *report, GError **error)
{
  gboolean is_complete = report->misfits->len == 0 && (!options->is_strict || report->missing->len == 0);
  if (is_complete && (report->n_matched > 0 || report->n_wanted == 0))
    return TRUE;

  g_autoptr (GString) names = g_string_new (NULL);
  const char *path = rn_weights_path (map->weights);
  if (report->n_matched == 0 && report->misshapen->len == 0)
    {
      append_names (names, report->unexpected, "");
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
                   "%s: not the weights of %s: none of its tensors is in the file, which has %s, where the "
                   "model has such names as %s",
                   path, options->what, names->len > 0 ? names->str : "none for a model",
                   example (params, options));
      return FALSE;
    }
  append_names (names, report->n_matched == 0 ? report->misshapen : report->misfits, "other shape of ");
  if (options->is_strict || report->n_matched == 0)
    append_names (names, report->missing, "missing ");
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
               "%s: not the weights of %s: %u tensors match, %u are missing, %u have another shape, %u are "
               "unexpected (%s)",
               path, options->what, report->n_matched, report->missing->len, report->misshapen->len,
               report->unexpected->len, names->str);
  return FALSE;
}

static void
log_report (const RnNameMap *map, const RnLoadOptions *options, const RnLoadReport *report)
{
  const char *path = rn_weights_path (map->weights);
  g_autofree char *unexpected = name_some (report->unexpected);
  g_autofree char *missing = name_some (report->missing);
  g_autofree char *misshapen = name_some (report->misshapen);

  g_message ("%s: %u of %u tensors of %s loaded", path, report->n_matched, report->n_wanted, options->what);
  if (report->unexpected->len > 0)
    g_message ("%s: %u tensors are not used: %s", path, report->unexpected->len, unexpected);
  if (report->missing->len > 0)
    g_warning ("%s: %u tensors of %s are not in the file and keep their first values: %s", path,
               report->missing->len, options->what, missing);
  if (report->misshapen->len > 0)
    g_warning ("%s: %u tensors of %s have another shape and keep their first values: %s", path,
               report->misshapen->len, options->what, misshapen);
}

/* ---- copying ---- */

static gboolean
is_finite (const float *values, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (!isfinite (values[i]))
      return FALSE;
  return TRUE;
}

static gboolean
copy_in (RnParamSet *params, int p, RnDevice *device, const float *values, GError **error)
{
  RnStatus status = device->vtbl->copy_in (device, rn_param_set_value (params, p), values,
                                           rn_desc_bytes (&rn_param_set_get (params, p)->desc));
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying weights to the device: %s",
               rn_device_fault (device, status));
  return FALSE;
}

/* Such weights find nothing and learn nothing, without any error. */
static void
warn_of_divergence (const RnNameMap *map, guint n, const char *first)
{
  if (n > 0)
    g_warning ("%s: %u tensors hold infinities or no numbers (the first is %s): the training had diverged",
               rn_weights_path (map->weights), n, first);
}

static gboolean
copy_all (const RnNameMap *map, RnParamSet *params, RnDevice *device, const GPtrArray *found,
          const RnLoadReport *report, GError **error)
{
  const char *first = NULL;
  guint n_not_finite = 0;

  for (int p = 0; p < rn_param_set_size (params); p++)
    {
      const RnMappedWeight *tensor = g_ptr_array_index (found, (guint) p);
      if (!report->is_loaded[p])
        continue;
      /* As large as the parameter, so the size is the model's and not the file's. */
      g_autofree float *values = g_new (float, MAX (tensor->n, 1));
      if (!rn_mapped_read_f32 (map, tensor, values, error) || !copy_in (params, p, device, values, error))
        return FALSE;
      if (is_finite (values, tensor->n))
        continue;
      first = first != NULL ? first : tensor->name;
      n_not_finite++;
    }
  warn_of_divergence (map, n_not_finite, first);
  return TRUE;
}

gboolean
rn_load_params (const RnNameMap *map, RnParamSet *params, RnDevice *device, const RnLoadOptions *options,
                RnLoadReport *report, GError **error)
{
  g_autoptr (GPtrArray) found = match (map, params, options, report);

  if (!check_report (map, params, options, report, error)
      || !copy_all (map, params, device, found, report, error))
    return FALSE;
  log_report (map, options, report);
  return TRUE;
}
