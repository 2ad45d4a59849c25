/* conv-engines.h: which engines may compute a convolution, by what the library says about them. */
#ifndef KERNELS_CUDA_CONV_ENGINES_H
#define KERNELS_CUDA_CONV_ENGINES_H

#include "kernels/cuda/conv-graph.h"

G_BEGIN_DECLS

typedef struct
{
  gboolean tf32;         /* of a problem in F32: tensor cores may round what they multiply */
  gboolean single;       /* the problem is in F32 */
  gsize workspace_limit; /* bytes */
} RnConvFilter;

typedef struct
{
  RnCudnnConfig *config;
  RnCudnnConfigInfo info;
} RnConvEngine;

void rn_conv_engine_free (RnConvEngine *engine);

/* NULL, or the static reason why the engine is not taken. */
const char *rn_conv_engine_refusal (const RnCudnnConfigInfo *info, const RnConvFilter *filter);

/* "engine 41, tensor cores, Winograd". (transfer full) */
char *rn_conv_engine_detail (const RnCudnnConfigInfo *info);

/*
 * Appends those that a mode of the heuristics proposes and that pass, best first, to @engines (of
 * RnConvEngine); the generic engine is set aside in @generic (nullable) instead. @reason: becomes a static
 * reason of one that did not pass.
 */
gboolean rn_conv_engines_ask (RnCudnn *cudnn, const RnCudnnDevice *device, const RnCudnnGraph *graph,
                              cudnnBackendHeurMode_t mode, const RnConvFilter *filter, GPtrArray *engines,
                              RnConvEngine **generic, const char **reason);

/* The same of all modes that a measurement looks at: A, what the library falls back to, B. */
gboolean rn_conv_engines_ask_all (RnCudnn *cudnn, const RnCudnnDevice *device, const RnCudnnGraph *graph,
                                  const RnConvFilter *filter, GPtrArray *engines, RnConvEngine **generic,
                                  const char **reason);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnConvEngine, rn_conv_engine_free)

G_END_DECLS

#endif
