/*
 * conv.c: convolutions in single precision by oneDNN, on the activations where they lie.
 *
 * Large 3x3 convolutions of stride 1 go by Winograd's algorithm, F(4x4, 3x3) of Lavin and Gray 2015 (arXiv
 * 1509.09308), where oneDNN has it (2.x with AVX-512): a quarter of the multiplications, for much scratch.
 * Forward and backward-data work image by image where a whole batch would need too much of it.
 */
#include "config.h"

#include "kernels/cpu/conv-core.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernel-table.h"

#include <string.h>

typedef struct
{
  RnConvCore core;
  int n_slices;             /* executions, each of an equal part of the batch */
  gsize src_step, dst_step; /* bytes from slice to slice */
} ConvState;

static void
conv_release (gpointer data)
{
  ConvState *s = data;

  rn_conv_core_clear (&s->core);
  g_free (s);
}

/*
 * Describes @conv for @images of the batch at a time, and books the workspace. @folded: the call has the
 * vectors of a batch norm.
 */
static RnStatus
describe (RnDevice *device, RnOnednnConv *conv, int64_t images, const RnTensorDesc *src,
          const RnTensorDesc *dst, gboolean folded, RnPrepared *prepared, const char **reason)
{
  ConvState *s = g_new0 (ConvState, 1);

  conv->src.dims[0] = conv->dst.dims[0] = images;
  RnStatus status = rn_conv_core_init (&s->core, device, conv, FALSE, folded, dst->dims[1], prepared, reason);
  if (status != RN_STATUS_OK)
    {
      g_free (s);
      return status;
    }
  s->n_slices = (int) (src->dims[0] / images);
  s->src_step = rn_desc_bytes (src) / (gsize) s->n_slices;
  s->dst_step = rn_desc_bytes (dst) / (gsize) s->n_slices;
  prepared->state = s;
  return RN_STATUS_OK;
}

/*
 * In the fewest slices, all images at once or one at a time, whose workspace stays below the limit. Weight
 * gradients are never cut: their sum over the batch is the library's.
 */
static RnStatus
describe_winograd (RnDevice *device, RnOnednnConv *conv, const RnTensorDesc *src, const RnTensorDesc *dst,
                   gboolean folded, RnPrepared *prepared, const char **reason)
{
  gsize limit = device->workspace_limit > 0 ? MIN (device->workspace_limit, RN_WINOGRAD_WORKSPACE)
                                            : RN_WINOGRAD_WORKSPACE;
  const int64_t images[] = { src->dims[0], 1 };

  for (int i = 0; i < (conv->direction == RN_ONEDNN_BWD_WEIGHTS ? 1 : 2); i++)
    {
      RnStatus status = describe (device, conv, images[i], src, dst, folded, prepared, reason);
      if (status != RN_STATUS_OK || prepared->workspace_bytes <= limit)
        return status;
      conv_release (prepared->state);
    }
  *reason = "needs too much workspace";
  return RN_STATUS_UNSUPPORTED;
}

/* What the prepare functions share. @conv comes with what they differ in. */
static RnStatus
conv_prepare (RnDevice *device, const RnOpCall *call, RnOnednnConv *conv, const RnTensorDesc *src,
              const RnTensorDesc *dst, gboolean folded, RnPrepared *prepared, const char **reason)
{
  const RnConvArgs *args = &call->args.conv;

  if (args->compute != RN_F32)
    {
      *reason = "computes in single precision";
      return RN_STATUS_UNSUPPORTED;
    }
  if (!rn_onednn_map_init (&conv->src, src) || !rn_onednn_map_init (&conv->dst, dst))
    {
      *reason = "oneDNN does not know the layout";
      return RN_STATUS_UNSUPPORTED;
    }
  conv->groups = args->groups;
  conv->operands = RN_F32;
  memcpy (conv->kernel, args->kernel, sizeof conv->kernel);
  memcpy (conv->stride, args->stride, sizeof conv->stride);
  memcpy (conv->pad, args->pad, sizeof conv->pad);
  memcpy (conv->pad_end, args->pad, sizeof conv->pad_end);
  memcpy (conv->dilation, args->dilation, sizeof conv->dilation);
  if (!conv->winograd)
    return describe (device, conv, src->dims[0], src, dst, folded, prepared, reason);
  *reason = rn_conv_winograd_refusal (args, src, dst);
  if (*reason != NULL)
    return RN_STATUS_UNSUPPORTED;
  return describe_winograd (device, conv, src, dst, folded, prepared, reason);
}

static RnStatus
fwd_prepare (RnDevice *device, const RnOpCall *call, gboolean winograd, RnPrepared *prepared,
             const char **reason)
{
  gboolean folded = RN_HAS_IN (call, RN_CONV_GAMMA);
  RnOnednnConv conv = {
    .direction = RN_ONEDNN_FWD,
    .bias = folded || RN_HAS_IN (call, RN_CONV_BIAS),
    .sum = RN_HAS_IN (call, RN_CONV_RESIDUAL),
    .relu = call->args.conv.relu,
    .winograd = winograd,
  };
  return conv_prepare (device, call, &conv, &call->in[RN_CONV_SRC], &call->out[RN_CONV_DST], folded, prepared,
                       reason);
}

static RnStatus
bwd_data_prepare (RnDevice *device, const RnOpCall *call, gboolean winograd, RnPrepared *prepared,
                  const char **reason)
{
  RnOnednnConv conv = { .direction = RN_ONEDNN_BWD_DATA, .winograd = winograd };
  return conv_prepare (device, call, &conv, &call->out[RN_CONV_BD_DIFF_SRC], &call->in[RN_CONV_BD_DIFF_DST],
                       RN_HAS_IN (call, RN_CONV_BD_GAMMA), prepared, reason);
}

static RnStatus
bwd_weights_prepare (RnDevice *device, const RnOpCall *call, gboolean winograd, RnPrepared *prepared,
                     const char **reason)
{
  RnOnednnConv conv = { .direction = RN_ONEDNN_BWD_WEIGHTS,
                        .bias = rn_conv_adds_up (call),
                        .winograd = winograd };
  return conv_prepare (device, call, &conv, &call->in[RN_CONV_BW_SRC], &call->in[RN_CONV_BW_DIFF_DST],
                       RN_HAS_IN (call, RN_CONV_BW_GAMMA), prepared, reason);
}

static RnStatus
conv_finalize (RnDevice *device, const RnOpCall *call, RnPrepared *prepared)
{
  return rn_conv_core_finalize (&((ConvState *) prepared->state)->core, device);
}

static RnStatus
execute (RnDevice *device, const ConvState *s, const void *src, const float *bias, const void *dst,
         void *workspace)
{
  RnStatus status = RN_STATUS_OK;

  for (gsize i = 0; i < (gsize) s->n_slices && status == RN_STATUS_OK; i++)
    status = rn_conv_core_execute (&s->core, device, (const guint8 *) src + i * s->src_step, bias,
                                   (const guint8 *) dst + i * s->dst_step, workspace);
  return status;
}

static RnStatus
conv_fwd_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const ConvState *s = state;
  const float *bias = rn_conv_core_load_fwd (&s->core, call, in, workspace);

  if (in[RN_CONV_RESIDUAL] != NULL && in[RN_CONV_RESIDUAL] != out[RN_CONV_DST])
    rn_parallel_copy (out[RN_CONV_DST], in[RN_CONV_RESIDUAL], rn_desc_bytes (&call->out[RN_CONV_DST]));
  return execute (device, s, in[RN_CONV_SRC], bias, out[RN_CONV_DST], workspace);
}

static RnStatus
conv_bwd_data_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                   void *const *out, void *workspace)
{
  const ConvState *s = state;

  rn_conv_core_load_bwd_data (&s->core, call, in, workspace);
  return execute (device, s, out[RN_CONV_BD_DIFF_SRC], NULL, in[RN_CONV_BD_DIFF_DST], workspace);
}

static RnStatus
conv_bwd_weights_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                      void *const *out, void *workspace)
{
  const ConvState *s = state;
  RnStatus status = execute (device, s, in[RN_CONV_BW_SRC], NULL, in[RN_CONV_BW_DIFF_DST], workspace);

  if (status == RN_STATUS_OK)
    rn_conv_core_add_gradients (&s->core, call, in, out, workspace);
  return status;
}

/* They differ in what prepare asks the library for. */
#define CONV_KERNELS(op_, OP, direction)                                                           \
  RN_CONV_KERNEL (rn_onednn_##op_, OP, #op_, conv, direction, "onednn", RN_PRIORITY_ONEDNN, FALSE) \
  RN_CONV_KERNEL (rn_winograd_##op_, OP, #op_, conv, direction, "winograd", RN_PRIORITY_WINOGRAD, TRUE)

CONV_KERNELS (conv2d_fwd, CONV2D_FWD, fwd)
CONV_KERNELS (conv2d_bwd_data, CONV2D_BWD_DATA, bwd_data)
CONV_KERNELS (conv2d_bwd_weights, CONV2D_BWD_WEIGHTS, bwd_weights)
