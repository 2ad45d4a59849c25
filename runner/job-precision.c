/* job-precision.c: from `fp16:` and the parts of the model to the pass amp, and what only the graph can tell
 * of it.
 */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/job-precision.h"

#include "kernels/half.h"

RnAmpOptions
rn_job_amp_options (const RnJob *job)
{
  const RnFp16Config *fp16 = &job->config.fp16;

  return (RnAmpOptions){ .level = fp16->level,
                         .dtype = fp16->dtype,
                         .single_modules = job->single_modules,
                         .half_modules = (const char *const *) fp16->force_half };
}

const char **
rn_job_single_modules (const RnJob *job)
{
  GPtrArray *names = g_ptr_array_new ();

  for (char **name = job->config.fp16.force_fp32; name != NULL && *name != NULL; name++)
    g_ptr_array_add (names, *name);
  for (const char *const *name = rn_model_memory (job->model)->single_modules; *name != NULL; name++)
    g_ptr_array_add (names, (gpointer) *name);
  g_ptr_array_add (names, NULL);
  return (const char **) g_ptr_array_free (names, FALSE);
}

static gboolean
check_names (const RnJob *job, const char *key, char **names, GError **error)
{
  const RnNode *line = rn_node_get (job->root, "fp16");

  for (int i = 0; names != NULL && names[i] != NULL; i++)
    {
      g_autoptr (GError) cause = NULL;
      if (rn_programs_check_module (job->programs, names[i], &cause))
        continue;
      const RnNode *list = rn_node_get (line, key);
      gboolean is_list = rn_node_kind (list) == RN_NODE_LIST;
      return rn_node_error (is_list ? rn_node_item (list, (guint) i) : list, error, "%s", cause->message);
    }
  return TRUE;
}

/* A part that is told both. */
static gboolean
check_conflict (const RnJob *job, GError **error)
{
  char **half = job->config.fp16.force_half;
  const char *const *single = rn_model_memory (job->model)->single_modules;

  for (; half != NULL && *single != NULL; single++)
    if (g_strv_contains ((const char *const *) half, *single))
      return rn_node_error (rn_node_path (job->root, "fp16.force_half"), error,
                            "%s has `fp16_enabled: false`; leave one out", *single);
  return TRUE;
}

static gboolean
has_half (const RnGraph *graph)
{
  for (guint v = 0; v < graph->values->len; v++)
    if (rn_dtype_is_half (rn_graph_value (graph, (RnValueId) v)->desc.dtype))
      return TRUE;
  return FALSE;
}

static gboolean
check_any_half (const RnJob *job, const RnGraph *graph, GError **error)
{
  const RnFp16Config *fp16 = &job->config.fp16;

  if (has_half (graph))
    return TRUE;
  return rn_node_error (
      fp16->is_by_hook ? rn_node_get (job->root, "model") : rn_node_get (job->root, "fp16"), error,
      "no module is left in half precision: all are in force_fp32 or have `fp16_enabled: false`; what works: "
      "fewer of them%s",
      fp16->is_by_hook ? ", or fp16: {opt_level: O0}" : ", or opt_level: O0");
}

gboolean
rn_job_check_precision (const RnJob *job, const RnGraph *graph, GError **error)
{
  const RnFp16Config *fp16 = &job->config.fp16;

  if (fp16->level == RN_AMP_O0)
    return TRUE;
  if (!check_names (job, "force_fp32", fp16->force_fp32, error)
      || !check_names (job, "force_half", fp16->force_half, error) || !check_conflict (job, error)
      || !check_any_half (job, graph, error))
    return FALSE;
  if (!job->is_variant)
    g_message ("precision: %s: activations and the operands of convolutions are half; weights, statistics, "
               "sums and losses are fp32%s",
               rn_fp16_describe (fp16),
               fp16->is_by_hook
                   ? " (the Fp16 optimizer hook asks for it, as in MMCV; `fp16: {opt_level: O0}` "
                     "would leave it at the loss scale)"
                   : "");
  return TRUE;
}
