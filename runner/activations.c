/* activations.c: outputs of modules, as a hook wants them: looked for by name, read after a forward pass. */
#include "config.h"

#include "runner/programs-private.h"

#include "kernels/half.h"
#include "runner/base/error.h"
#include "runner/base/registry.h"

#include <string.h>

/* Of a training shape if there is one: modules run once a level in all of them, and losses only there. */
static const RnProgram *
find_program (const RnPrograms *p)
{
  for (guint i = 0; i < p->cache->len; i++)
    if (((const RnProgram *) p->cache->pdata[i])->shape.mode == RN_MODE_TRAIN)
      return p->cache->pdata[i];
  return p->cache->pdata[0];
}

/* Its parameters are there, but a pass made it a part of another op. */
static gboolean
has_params (const RnParamSet *params, const char *module)
{
  g_autofree char *prefix = g_strconcat (module, ".", NULL);
  for (int i = 0; i < rn_param_set_size (params); i++)
    if (g_str_has_prefix (rn_param_set_get (params, i)->name, prefix))
      return TRUE;
  return FALSE;
}

gboolean
rn_programs_check_module (RnPrograms *p, const char *module, GError **error)
{
  const RnGraph *graph = find_program (p)->plan->graph;

  if (rn_graph_module_output (graph, module) != RN_NO_VALUE)
    return TRUE;
  g_auto (GStrv) names = rn_graph_module_names (graph);
  const char *nearest = rn_suggest (module, (const char *const *) names);
  g_autofree char *hint = nearest != NULL ? g_strdup_printf ("; nearest: \"%s\"", nearest) : g_strdup ("");
  if (has_params (p->params, module))
    rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                  "the module \"%s\" has no output of its own here: it is computed together with the one in "
                  "front of it%s",
                  module, hint);
  else
    rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "the model has no module \"%s\"%s", module,
                  hint);
  return FALSE;
}

/* From blocks of channels and half precision to NCHW and float. */
static float *
unblock (const RnTensorDesc *desc, const void *stored)
{
  float *values = g_new (float, rn_desc_elements (desc)), *next = values;
  const int64_t *d = desc->dims;

  if (desc->rank != 4)
    {
      rn_floats_from (desc->dtype, stored, rn_desc_elements (desc), values);
      return values;
    }
  for (int64_t n = 0; n < d[0]; n++)
    for (int64_t c = 0; c < d[1]; c++)
      for (int64_t y = 0; y < d[2]; y++)
        for (int64_t x = 0; x < d[3]; x++)
          *next++ = rn_float_get (desc->dtype, stored, rn_desc_index (desc, n, c, y, x));
  return values;
}

gboolean
rn_programs_read_activation (RnPrograms *p, const char *module, RnTensorDesc *desc, float **values,
                             GError **error)
{
  if (p->current == NULL || p->current->shape.mode != RN_MODE_TRAIN)
    {
      g_set_error_literal (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
                           "activations are there between a forward pass and what follows it");
      return FALSE;
    }
  const RnGraph *graph = p->current->plan->graph;
  RnValueId id = rn_graph_module_output (graph, module);
  const RnValue *value = id != RN_NO_VALUE ? rn_graph_value (graph, id) : NULL;
  if (value == NULL || !value->is_kept || !rn_dtype_is_float (value->desc.dtype))
    {
      rn_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
                    "the output of \"%s\" is not kept; a hook asks for it in prepare, with "
                    "rn_wants_activation",
                    module);
      return FALSE;
    }
  g_autofree void *stored = g_malloc (rn_desc_bytes (&value->desc));
  RnStatus status = p->device->vtbl->copy_out (
      p->device, stored, rn_executor_address (p->current->executor, id), rn_desc_bytes (&value->desc));
  if (status != RN_STATUS_OK)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying the output of %s: %s", module,
                   rn_device_fault (p->device, status));
      return FALSE;
    }
  *desc = value->desc;
  *values = unblock (&value->desc, stored);
  return TRUE;
}
