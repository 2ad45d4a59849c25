/*
 * conv-core.h: a convolution of oneDNN with its packed weights and the vectors of a folded batch norm: what
 * the kernels in conv.c and conv-half.c share.
 *
 * Parameters are kept once, in plain OIHW; each run packs them into the layout of the primitive, in the
 * workspace, with the scale a = gamma / sqrt (var + eps) of a folded batch norm on the way. Packing takes
 * about a nanosecond per weight and thread: a hundredth of a step.
 *
 * Workspace: [scratchpad of the primitive][packed weights][bias, per channel][scale, per channel][dot, per
 * channel], those that are needed.
 */
#ifndef KERNELS_CPU_CONV_CORE_H
#define KERNELS_CPU_CONV_CORE_H

#include "kernels/cpu/device-cpu.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/weights-map.h"

G_BEGIN_DECLS

/* Most workspace of a Winograd convolution, in bytes; memory.workspace_limit may ask for less. */
#define RN_WINOGRAD_WORKSPACE ((gsize) 64 << 20)

typedef struct
{
  dnnl_primitive_desc_t pd;
  dnnl_primitive_t primitive;
  RnOnednnDirection direction;
  RnWeightsMap map;
  /* Named as in the forward direction; without a buffer until a run gives one. */
  dnnl_memory_t src, weights, bias, dst, scratchpad;
  gsize weights_at, bias_at, scale_at, dot_at; /* bytes in the workspace, or G_MAXSIZE where there is none */
} RnConvCore;

/* Books @bytes at the end of the workspace, aligned for vector loads, and returns where. */
gsize rn_conv_book (RnPrepared *prepared, gsize bytes);

/*
 * Takes the description and books the workspace, from its start; @channels: outputs of the convolution of
 * @call. @turned: see rn_weights_map_init (). After a refusal, which sets *reason, there is nothing to clear.
 */
RnStatus rn_conv_core_init (RnConvCore *core, RnDevice *device, const RnOnednnConv *conv, gboolean turned,
                            gboolean folded, int64_t channels, RnPrepared *prepared, const char **reason);
RnStatus rn_conv_core_finalize (RnConvCore *core, RnDevice *device);
void rn_conv_core_clear (RnConvCore *core);

/* Whether Winograd's algorithm can do the call, and pays: NULL, or why not. */
const char *rn_conv_winograd_refusal (const RnConvArgs *args, const RnTensorDesc *src,
                                      const RnTensorDesc *dst);

/* Packs the weights of a call of CONV2D_FWD; returns the bias for rn_conv_core_execute (), or NULL. */
const float *rn_conv_core_load_fwd (const RnConvCore *core, const RnOpCall *call, const void *const *in,
                                    void *workspace);
/* Packs the weights of a call of CONV2D_BWD_DATA. */
void rn_conv_core_load_bwd_data (const RnConvCore *core, const RnOpCall *call, const void *const *in,
                                 void *workspace);
/* @src and @dst are read or written, by the direction. @bias: NULL for that in the workspace. */
RnStatus rn_conv_core_execute (const RnConvCore *core, RnDevice *device, const void *src, const float *bias,
                               const void *dst, void *workspace);
/* Adds what an execution of CONV2D_BWD_WEIGHTS left in the workspace to the gradients. */
void rn_conv_core_add_gradients (const RnConvCore *core, const RnOpCall *call, const void *const *in,
                                 void *const *out, void *workspace);

/*
 * A kernel of one direction (fwd, bwd_data, bwd_weights) and way to do it: @direction_prepare takes @way
 * beside what a kernel's prepare takes; @family names the other functions of the file.
 */
#define RN_CONV_KERNEL(variable, OP, op_, family, direction, suffix, priority_, way)                \
  static RnStatus variable##_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, \
                                      const char **reason)                                          \
  {                                                                                                 \
    return direction##_prepare (device, call, way, prepared, reason);                               \
  }                                                                                                 \
  const RnKernel variable = {                                                                       \
    .op = RN_OP_##OP,                                                                               \
    .name = "cpu:" op_ ":" suffix,                                                                  \
    .priority = priority_,                                                                          \
    .prepare = variable##_prepare,                                                                  \
    .finalize = family##_finalize,                                                                  \
    .run = family##_##direction##_run,                                                              \
    .release = family##_release,                                                                    \
  };

G_END_DECLS

#endif
