/*
 * conv.c: convolutions by oneDNN. Parameters are kept once, in plain OIHW; each run packs them into the
 * layout of the primitive, in the workspace, with the scale a = gamma / sqrt (var + eps) of a folded batch
 * norm on the way. Packing takes about a nanosecond per weight and thread: a hundredth of a step.
 *
 * Workspace: [scratchpad of the primitive][packed weights][bias, per channel][scale, per channel][dot, per
 * channel], those that are needed.
 *
 * Large 3x3 convolutions of stride 1 go by Winograd's algorithm, F(4x4, 3x3) of Lavin and Gray 2015 (arXiv
 * 1509.09308), where oneDNN has it (2.x with AVX-512): a quarter of the multiplications, for much scratch.
 * Forward and backward-data work image by image where a whole batch would need too much of it.
 */
#include "config.h"

#include "kernels/cpu/device-cpu.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/weights-map.h"
#include "kernels/kernel-table.h"

#include <math.h>
#include <string.h>

#define NO_PLACE G_MAXSIZE

/* Most workspace of a Winograd convolution, in bytes; memory.workspace_limit may ask for less. */
#define WINOGRAD_WORKSPACE ((gsize) 64 << 20)
/* Below these the transforms cost more than the multiplications that they save (measured, AVX-512). */
#define WINOGRAD_MIN_CHANNELS 64
#define WINOGRAD_MIN_PIXELS 1024 /* of the batch */

typedef struct
{
  dnnl_primitive_desc_t pd;
  dnnl_primitive_t primitive;
  RnOnednnDirection direction;
  RnWeightsMap map;
  /* Named as in the forward direction; without a buffer until run () gives one. */
  dnnl_memory_t src, weights, bias, dst, scratchpad;
  gsize weights_at, bias_at, scale_at, dot_at; /* bytes in the workspace, or NO_PLACE */
  int n_slices;                                /* executions, each of an equal part of the batch */
  gsize src_step, dst_step;                    /* bytes from slice to slice */
} ConvState;

static void
conv_release (gpointer data)
{
  ConvState *s = data;
  dnnl_memory_t memories[] = { s->src, s->weights, s->bias, s->dst, s->scratchpad };

  for (guint i = 0; i < G_N_ELEMENTS (memories); i++)
    if (memories[i] != NULL)
      dnnl_memory_destroy (memories[i]);
  if (s->primitive != NULL)
    dnnl_primitive_destroy (s->primitive);
  if (s->pd != NULL)
    dnnl_primitive_desc_destroy (s->pd);
  rn_weights_map_clear (&s->map);
  g_free (s);
}

/* Books @bytes at the end of the workspace, aligned for vector loads. */
static gsize
book (RnPrepared *prepared, gsize bytes)
{
  gsize at = (prepared->workspace_bytes + 63) / 64 * 64;
  prepared->workspace_bytes = at + bytes;
  return at;
}

static const char *
winograd_refusal (const RnConvArgs *args, const RnTensorDesc *src, const RnTensorDesc *dst)
{
  if (args->kernel[0] != 3 || args->kernel[1] != 3 || args->stride[0] != 1 || args->stride[1] != 1
      || args->dilation[0] != 1 || args->dilation[1] != 1 || args->groups != 1)
    return "not a dense 3x3 of stride 1";
  if (MIN (src->dims[1], dst->dims[1]) < WINOGRAD_MIN_CHANNELS
      || dst->dims[0] * dst->dims[2] * dst->dims[3] < WINOGRAD_MIN_PIXELS)
    return "too small to gain by it";
  return NULL;
}

/*
 * Describes @conv for @images of the batch at a time, and books the workspace. @folded: the call has the
 * vectors of a batch norm.
 */
static RnStatus
describe (RnDevice *device, RnOnednnConv *conv, int64_t images, const RnTensorDesc *src,
          const RnTensorDesc *dst, gboolean folded, RnPrepared *prepared, const char **reason)
{
  static const dnnl_query_t weights_of[] = {
    [RN_ONEDNN_FWD] = dnnl_query_weights_md,
    [RN_ONEDNN_BWD_DATA] = dnnl_query_weights_md,
    [RN_ONEDNN_BWD_WEIGHTS] = dnnl_query_diff_weights_md,
  };
  dnnl_primitive_desc_t pd = NULL;

  conv->src.dims[0] = conv->dst.dims[0] = images;
  if (rn_onednn_conv_desc_new (((RnCpuDevice *) device)->engine, conv, &pd) != dnnl_success)
    {
      *reason = "oneDNN has no implementation";
      return RN_STATUS_UNSUPPORTED;
    }

  ConvState *s = g_new0 (ConvState, 1);
  s->pd = pd;
  s->direction = conv->direction;
  s->n_slices = (int) (src->dims[0] / images);
  s->src_step = rn_desc_bytes (src) / (gsize) s->n_slices;
  s->dst_step = rn_desc_bytes (dst) / (gsize) s->n_slices;
  if (!rn_weights_map_init (&s->map, dnnl_primitive_desc_query_md (pd, weights_of[conv->direction], 0)))
    {
      conv_release (s);
      *reason = "the implementation wants weights in a layout that is not made of blocks";
      return RN_STATUS_UNSUPPORTED;
    }
  gsize vector = (gsize) dst->dims[1] * sizeof (float);
  prepared->workspace_bytes = 0;
  book (prepared, dnnl_memory_desc_get_size (dnnl_primitive_desc_query_md (pd, dnnl_query_scratchpad_md, 0)));
  s->weights_at = book (prepared, s->map.bytes);
  s->bias_at = conv->bias ? book (prepared, vector) : NO_PLACE;
  s->scale_at = folded ? book (prepared, vector) : NO_PLACE;
  gboolean dot = folded && conv->direction == RN_ONEDNN_BWD_WEIGHTS;
  s->dot_at = dot ? book (prepared, (gsize) dst->dims[1] * sizeof (double)) : NO_PLACE;
  dnnl_primitive_desc_query (pd, dnnl_query_impl_info_str, 0, &prepared->detail);
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
  gsize limit =
      device->workspace_limit > 0 ? MIN (device->workspace_limit, WINOGRAD_WORKSPACE) : WINOGRAD_WORKSPACE;
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

  if (!rn_onednn_map_init (&conv->src, src) || !rn_onednn_map_init (&conv->dst, dst))
    {
      *reason = "oneDNN does not know the layout";
      return RN_STATUS_UNSUPPORTED;
    }
  conv->groups = args->groups;
  memcpy (conv->kernel, args->kernel, sizeof conv->kernel);
  memcpy (conv->stride, args->stride, sizeof conv->stride);
  memcpy (conv->pad, args->pad, sizeof conv->pad);
  memcpy (conv->dilation, args->dilation, sizeof conv->dilation);
  if (!conv->winograd)
    return describe (device, conv, src->dims[0], src, dst, folded, prepared, reason);
  *reason = winograd_refusal (args, src, dst);
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
  gboolean sums = RN_HAS_OUT (call, RN_CONV_BW_DIFF_BIAS) || RN_HAS_OUT (call, RN_CONV_BW_DIFF_GAMMA)
                  || RN_HAS_OUT (call, RN_CONV_BW_DIFF_BETA);
  RnOnednnConv conv = { .direction = RN_ONEDNN_BWD_WEIGHTS, .bias = sums, .winograd = winograd };
  return conv_prepare (device, call, &conv, &call->in[RN_CONV_BW_SRC], &call->in[RN_CONV_BW_DIFF_DST],
                       RN_HAS_IN (call, RN_CONV_BW_GAMMA), prepared, reason);
}

static gboolean
make_memory (const ConvState *s, dnnl_engine_t engine, dnnl_query_t what, int index, dnnl_memory_t *memory)
{
  return dnnl_memory_create (memory, dnnl_primitive_desc_query_md (s->pd, what, index), engine,
                             DNNL_MEMORY_NONE)
         == dnnl_success;
}

static RnStatus
conv_finalize (RnDevice *device, const RnOpCall *call, RnPrepared *prepared)
{
  static const struct
  {
    dnnl_query_t src, weights, dst;
  } roles[] = {
    [RN_ONEDNN_FWD] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
    [RN_ONEDNN_BWD_DATA] = { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md },
    [RN_ONEDNN_BWD_WEIGHTS] = { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md },
  };
  ConvState *s = prepared->state;
  dnnl_engine_t engine = ((RnCpuDevice *) device)->engine;

  if (dnnl_primitive_create (&s->primitive, s->pd) != dnnl_success)
    return RN_STATUS_DEVICE;
  if (!make_memory (s, engine, roles[s->direction].src, 0, &s->src)
      || !make_memory (s, engine, roles[s->direction].weights, 0, &s->weights)
      || !make_memory (s, engine, roles[s->direction].dst, 0, &s->dst)
      || !make_memory (s, engine, dnnl_query_scratchpad_md, 0, &s->scratchpad)
      || (s->bias_at != NO_PLACE && !make_memory (s, engine, roles[s->direction].weights, 1, &s->bias)))
    return RN_STATUS_DEVICE;
  return RN_STATUS_OK;
}

static void *
place (void *workspace, gsize at)
{
  return at != NO_PLACE ? (guint8 *) workspace + at : NULL;
}

/* Per output channel: scale = gamma / sqrt (var + eps). */
static void
fold_scale (const RnOpCall *call, int64_t channels, const float *gamma, const float *var, float *scale)
{
  for (int64_t c = 0; c < channels; c++)
    scale[c] = gamma[c] / sqrtf (var[c] + call->args.conv.eps);
}

static RnStatus
execute (RnDevice *device, const ConvState *s, const dnnl_exec_arg_t *args, int n_args, const void *src,
         const void *weights, const void *bias, const void *dst, void *workspace)
{
  dnnl_stream_t stream = ((RnCpuDevice *) device)->stream;

  if (s->bias == NULL)
    n_args--;
  /* Handles are not const, but a primitive writes only to its outputs. */
  if (dnnl_memory_set_data_handle (s->weights, (void *) weights) != dnnl_success
      || dnnl_memory_set_data_handle (s->scratchpad, workspace) != dnnl_success
      || (s->bias != NULL && dnnl_memory_set_data_handle (s->bias, (void *) bias) != dnnl_success))
    return RN_STATUS_DEVICE;
  for (gsize i = 0; i < (gsize) s->n_slices; i++)
    if (dnnl_memory_set_data_handle (s->src, (guint8 *) src + i * s->src_step) != dnnl_success
        || dnnl_memory_set_data_handle (s->dst, (guint8 *) dst + i * s->dst_step) != dnnl_success
        || dnnl_primitive_execute (s->primitive, stream, n_args, args) != dnnl_success
        || dnnl_stream_wait (stream) != dnnl_success)
      return RN_STATUS_DEVICE;
  return RN_STATUS_OK;
}

static RnStatus
conv_fwd_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const ConvState *s = state;
  const RnTensorDesc *dd = &call->out[RN_CONV_DST];
  const float *beta = in[RN_CONV_BETA], *mean = in[RN_CONV_MEAN];
  const float *bias = in[RN_CONV_BIAS];
  float *weights = place (workspace, s->weights_at), *scale = place (workspace, s->scale_at);

  if (scale != NULL)
    {
      float *shift = place (workspace, s->bias_at);
      fold_scale (call, dd->dims[1], in[RN_CONV_GAMMA], in[RN_CONV_VAR], scale);
      for (int64_t c = 0; c < dd->dims[1]; c++)
        shift[c] = beta[c] - scale[c] * mean[c];
      bias = shift;
    }
  rn_weights_pack (&s->map, in[RN_CONV_WEIGHTS], scale, weights);
  if (in[RN_CONV_RESIDUAL] != NULL && in[RN_CONV_RESIDUAL] != out[RN_CONV_DST])
    rn_parallel_copy (out[RN_CONV_DST], in[RN_CONV_RESIDUAL], rn_desc_bytes (dd));

  const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, s->src },
                                   { DNNL_ARG_WEIGHTS, s->weights },
                                   { DNNL_ARG_DST, s->dst },
                                   { DNNL_ARG_SCRATCHPAD, s->scratchpad },
                                   { DNNL_ARG_BIAS, s->bias } };
  return execute (device, s, args, G_N_ELEMENTS (args), in[RN_CONV_SRC], weights, bias, out[RN_CONV_DST],
                  workspace);
}

static RnStatus
conv_bwd_data_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                   void *const *out, void *workspace)
{
  const ConvState *s = state;
  float *weights = place (workspace, s->weights_at), *scale = place (workspace, s->scale_at);

  if (scale != NULL)
    fold_scale (call, call->in[RN_CONV_BD_DIFF_DST].dims[1], in[RN_CONV_BD_GAMMA], in[RN_CONV_BD_VAR], scale);
  rn_weights_pack (&s->map, in[RN_CONV_BD_WEIGHTS], scale, weights);

  const dnnl_exec_arg_t args[] = { { DNNL_ARG_DIFF_SRC, s->src },
                                   { DNNL_ARG_WEIGHTS, s->weights },
                                   { DNNL_ARG_DIFF_DST, s->dst },
                                   { DNNL_ARG_SCRATCHPAD, s->scratchpad },
                                   { DNNL_ARG_BIAS, s->bias } };
  return execute (device, s, args, G_N_ELEMENTS (args), out[RN_CONV_BD_DIFF_SRC], weights, NULL,
                  in[RN_CONV_BD_DIFF_DST], workspace);
}

/* oneDNN overwrites: its result stays in the workspace and is added here. */
static void
add_gradients (const RnOpCall *call, const ConvState *s, const void *const *in, void *const *out,
               void *workspace)
{
  const float *packed = place (workspace, s->weights_at), *sum = place (workspace, s->bias_at);
  const float *mean = in[RN_CONV_BW_MEAN], *var = in[RN_CONV_BW_VAR];
  float *diff_bias = out[RN_CONV_BW_DIFF_BIAS], *diff_gamma = out[RN_CONV_BW_DIFF_GAMMA],
        *diff_beta = out[RN_CONV_BW_DIFF_BETA];
  float *scale = place (workspace, s->scale_at);
  double *dot = place (workspace, s->dot_at);
  int64_t channels = call->in[RN_CONV_BW_DIFF_DST].dims[1];

  if (scale != NULL)
    fold_scale (call, channels, in[RN_CONV_BW_GAMMA], var, scale);
  if (out[RN_CONV_BW_DIFF_WEIGHTS] != NULL)
    rn_weights_unpack_add (&s->map, packed, scale, out[RN_CONV_BW_DIFF_WEIGHTS]);
  if (diff_gamma != NULL)
    rn_weights_dot (&s->map, packed, in[RN_CONV_BW_WEIGHTS], dot);
  for (int64_t c = 0; c < channels; c++)
    {
      if (diff_bias != NULL)
        diff_bias[c] += sum[c];
      if (diff_beta != NULL)
        diff_beta[c] += sum[c];
      if (diff_gamma != NULL)
        diff_gamma[c] +=
            (float) ((dot[c] - (double) mean[c] * sum[c]) / sqrt ((double) var[c] + call->args.conv.eps));
    }
}

static RnStatus
conv_bwd_weights_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                      void *const *out, void *workspace)
{
  const ConvState *s = state;
  const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, s->src },
                                   { DNNL_ARG_DIFF_WEIGHTS, s->weights },
                                   { DNNL_ARG_DIFF_DST, s->dst },
                                   { DNNL_ARG_SCRATCHPAD, s->scratchpad },
                                   { DNNL_ARG_DIFF_BIAS, s->bias } };
  RnStatus status =
      execute (device, s, args, G_N_ELEMENTS (args), in[RN_CONV_BW_SRC], place (workspace, s->weights_at),
               place (workspace, s->bias_at), in[RN_CONV_BW_DIFF_DST], workspace);
  if (status == RN_STATUS_OK)
    add_gradients (call, s, in, out, workspace);
  return status;
}

/*
 * A kernel per direction and algorithm. They differ in what prepare asks the library for.
 */
#define CONV_KERNEL(variable, OP, op_, direction, suffix, priority_, is_winograd)                   \
  static RnStatus variable##_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, \
                                      const char **reason)                                          \
  {                                                                                                 \
    return direction##_prepare (device, call, is_winograd, prepared, reason);                       \
  }                                                                                                 \
  const RnKernel variable = {                                                                       \
    .op = RN_OP_##OP,                                                                               \
    .name = "cpu:" op_ ":" suffix,                                                                  \
    .priority = priority_,                                                                          \
    .prepare = variable##_prepare,                                                                  \
    .finalize = conv_finalize,                                                                      \
    .run = conv_##direction##_run,                                                                  \
    .release = conv_release,                                                                        \
  };

#define CONV_KERNELS(op_, OP, direction)                                                  \
  CONV_KERNEL (rn_onednn_##op_, OP, #op_, direction, "onednn", RN_PRIORITY_ONEDNN, FALSE) \
  CONV_KERNEL (rn_winograd_##op_, OP, #op_, direction, "winograd", RN_PRIORITY_WINOGRAD, TRUE)

CONV_KERNELS (conv2d_fwd, CONV2D_FWD, fwd)
CONV_KERNELS (conv2d_bwd_data, CONV2D_BWD_DATA, bwd_data)
CONV_KERNELS (conv2d_bwd_weights, CONV2D_BWD_WEIGHTS, bwd_weights)
