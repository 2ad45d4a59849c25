#define G_LOG_DOMAIN "rn-kernels"
#include "config.h"

#include "kernels/cuda/conv-engines.h"

#define NOTE(name) (1U << CUDNN_NUMERICAL_NOTE_##name)
#define BEHAVIOR(name) (1U << CUDNN_BEHAVIOR_NOTE_##name)

void
rn_conv_engine_free (RnConvEngine *engine)
{
  if (engine == NULL)
    return;
  rn_cudnn_config_free (engine->config);
  g_free (engine);
}

const char *
rn_conv_engine_refusal (const RnCudnnConfigInfo *info, const RnConvFilter *filter)
{
  if (info->behavior_notes & BEHAVIOR (RUNTIME_COMPILATION))
    return "it is compiled at run time";
  if (info->behavior_notes
      & (BEHAVIOR (REQUIRES_FILTER_INT8x32_REORDER) | BEHAVIOR (REQUIRES_BIAS_INT8x32_REORDER)))
    return "it wants its operands in another order";
  if (info->numerical_notes & NOTE (REDUCED_PRECISION_REDUCTION))
    return "its sums are in reduced precision";
  if (info->numerical_notes & NOTE (DOWN_CONVERT_INPUTS))
    return "it rounds what it reads";
  if (filter->single && !filter->tf32 && (info->numerical_notes & NOTE (TENSOR_CORE)))
    return "its tensor cores round single precision";
  if (info->numerical_notes & NOTE (NONDETERMINISTIC))
    return "it gives other bits each time";
  if (info->workspace > filter->workspace_limit)
    return "it needs more workspace than the limit";
  return NULL;
}

char *
rn_conv_engine_detail (const RnCudnnConfigInfo *info)
{
  guint notes = info->numerical_notes;

  return g_strdup_printf ("engine %" G_GINT64_FORMAT "%s%s%s", info->engine,
                          info->engine == 0 ? ", generic" : "",
                          notes & NOTE (TENSOR_CORE) ? ", tensor cores" : "",
                          notes & NOTE (FFT)        ? ", FFT"
                          : notes & NOTE (WINOGRAD) ? ", Winograd"
                                                    : "");
}

gboolean
rn_conv_engines_ask (RnCudnn *cudnn, const RnCudnnDevice *device, const RnCudnnGraph *graph,
                     cudnnBackendHeurMode_t mode, const RnConvFilter *filter, GPtrArray *engines,
                     RnConvEngine **generic, const char **reason)
{
  g_autoptr (GPtrArray) configs = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_cudnn_config_free);

  if (!rn_cudnn_heuristics (cudnn, graph, device, mode, configs))
    return FALSE;
  for (guint i = 0; i < configs->len; i++)
    {
      RnCudnnConfigInfo info;
      if (!rn_cudnn_config_describe (cudnn, configs->pdata[i], &info))
        return FALSE;
      const char *refusal = rn_conv_engine_refusal (&info, filter);
      if (refusal != NULL)
        {
          *reason = refusal;
          rn_cudnn_trace (cudnn, "engine %" G_GINT64_FORMAT ", workspace %" G_GSIZE_FORMAT ": no: %s",
                          info.engine, info.workspace, refusal);
          continue;
        }
      g_autoptr (RnConvEngine) engine = g_new0 (RnConvEngine, 1);
      engine->config = g_steal_pointer (&configs->pdata[i]);
      engine->info = info;
      if (info.engine != 0)
        g_ptr_array_add (engines, g_steal_pointer (&engine));
      else if (generic != NULL && *generic == NULL)
        *generic = g_steal_pointer (&engine);
    }
  return TRUE;
}

gboolean
rn_conv_engines_ask_all (RnCudnn *cudnn, const RnCudnnDevice *device, const RnCudnnGraph *graph,
                         const RnConvFilter *filter, GPtrArray *engines, RnConvEngine **generic,
                         const char **reason)
{
  static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK,
                                                  CUDNN_HEUR_MODE_B };

  for (gsize i = 0; i < G_N_ELEMENTS (modes); i++)
    if (!rn_conv_engines_ask (cudnn, device, graph, modes[i], filter, engines, generic, reason))
      return FALSE;
  return TRUE;
}
