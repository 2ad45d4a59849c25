/* conv-core.c: see conv-core.h. oneDNN overwrites gradients: they stay in the workspace and are added here.
 */
#include "config.h"

#include "kernels/cpu/conv-core.h"

#include <math.h>
#include <string.h>

#define NO_PLACE G_MAXSIZE

/* Below these the transforms cost more than the multiplications that they save (measured, AVX-512). */
#define WINOGRAD_MIN_CHANNELS 64
#define WINOGRAD_MIN_PIXELS 1024 /* of the batch */

gsize
rn_conv_book (RnPrepared *prepared, gsize bytes)
{
  gsize at = (prepared->workspace_bytes + 63) / 64 * 64;
  prepared->workspace_bytes = at + bytes;
  return at;
}

const char *
rn_conv_winograd_refusal (const RnConvArgs *args, const RnTensorDesc *src, const RnTensorDesc *dst)
{
  if (args->kernel[0] != 3 || args->kernel[1] != 3 || args->stride[0] != 1 || args->stride[1] != 1
      || args->dilation[0] != 1 || args->dilation[1] != 1 || args->groups != 1)
    return "not a dense 3x3 of stride 1";
  if (MIN (src->dims[1], dst->dims[1]) < WINOGRAD_MIN_CHANNELS
      || dst->dims[0] * dst->dims[2] * dst->dims[3] < WINOGRAD_MIN_PIXELS)
    return "too small to gain by it";
  return NULL;
}

RnStatus
rn_conv_core_init (RnConvCore *core, RnDevice *device, const RnOnednnConv *conv, gboolean turned,
                   gboolean folded, int64_t channels, RnPrepared *prepared, const char **reason)
{
  static const dnnl_query_t weights_of[] = {
    [RN_ONEDNN_FWD] = dnnl_query_weights_md,
    [RN_ONEDNN_BWD_DATA] = dnnl_query_weights_md,
    [RN_ONEDNN_BWD_WEIGHTS] = dnnl_query_diff_weights_md,
  };
  gboolean gradient = conv->direction == RN_ONEDNN_BWD_WEIGHTS;

  memset (core, 0, sizeof *core);
  core->direction = conv->direction;
  if (rn_onednn_conv_desc_new (((RnCpuDevice *) device)->engine, conv, &core->pd) != dnnl_success)
    {
      *reason = "oneDNN has no implementation";
      return RN_STATUS_UNSUPPORTED;
    }
  if (!rn_weights_map_init (&core->map,
                            dnnl_primitive_desc_query_md (core->pd, weights_of[conv->direction], 0),
                            gradient ? RN_F32 : conv->operands, turned))
    {
      rn_conv_core_clear (core);
      *reason = "the implementation wants weights in a layout that is not made of blocks";
      return RN_STATUS_UNSUPPORTED;
    }

  gsize vector = (gsize) channels * sizeof (float);
  prepared->workspace_bytes = 0;
  rn_conv_book (prepared, dnnl_memory_desc_get_size (
                              dnnl_primitive_desc_query_md (core->pd, dnnl_query_scratchpad_md, 0)));
  core->weights_at = rn_conv_book (prepared, core->map.bytes);
  core->bias_at = conv->bias ? rn_conv_book (prepared, vector) : NO_PLACE;
  core->scale_at = folded ? rn_conv_book (prepared, vector) : NO_PLACE;
  core->dot_at = folded && gradient ? rn_conv_book (prepared, (gsize) channels * sizeof (double)) : NO_PLACE;
  dnnl_primitive_desc_query (core->pd, dnnl_query_impl_info_str, 0, &prepared->detail);
  return RN_STATUS_OK;
}

void
rn_conv_core_clear (RnConvCore *core)
{
  dnnl_memory_t memories[] = { core->src, core->weights, core->bias, core->dst, core->scratchpad };

  for (guint i = 0; i < G_N_ELEMENTS (memories); i++)
    if (memories[i] != NULL)
      dnnl_memory_destroy (memories[i]);
  if (core->primitive != NULL)
    dnnl_primitive_destroy (core->primitive);
  if (core->pd != NULL)
    dnnl_primitive_desc_destroy (core->pd);
  rn_weights_map_clear (&core->map);
  memset (core, 0, sizeof *core);
}

static gboolean
make_memory (const RnConvCore *core, dnnl_engine_t engine, dnnl_query_t what, int index,
             dnnl_memory_t *memory)
{
  return dnnl_memory_create (memory, dnnl_primitive_desc_query_md (core->pd, what, index), engine,
                             DNNL_MEMORY_NONE)
         == dnnl_success;
}

RnStatus
rn_conv_core_finalize (RnConvCore *core, RnDevice *device)
{
  static const struct
  {
    dnnl_query_t src, weights, dst;
  } roles[] = {
    [RN_ONEDNN_FWD] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
    [RN_ONEDNN_BWD_DATA] = { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md },
    [RN_ONEDNN_BWD_WEIGHTS] = { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md },
  };
  dnnl_engine_t engine = ((RnCpuDevice *) device)->engine;
  dnnl_query_t weights = roles[core->direction].weights;

  if (dnnl_primitive_create (&core->primitive, core->pd) != dnnl_success)
    return RN_STATUS_DEVICE;
  if (!make_memory (core, engine, roles[core->direction].src, 0, &core->src)
      || !make_memory (core, engine, weights, 0, &core->weights)
      || !make_memory (core, engine, roles[core->direction].dst, 0, &core->dst)
      || !make_memory (core, engine, dnnl_query_scratchpad_md, 0, &core->scratchpad)
      || (core->bias_at != NO_PLACE && !make_memory (core, engine, weights, 1, &core->bias)))
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

const float *
rn_conv_core_load_fwd (const RnConvCore *core, const RnOpCall *call, const void *const *in, void *workspace)
{
  const int64_t channels = call->out[RN_CONV_DST].dims[1];
  const float *beta = in[RN_CONV_BETA], *mean = in[RN_CONV_MEAN], *bias = in[RN_CONV_BIAS];
  float *scale = place (workspace, core->scale_at);

  if (scale != NULL)
    {
      float *shift = place (workspace, core->bias_at);
      fold_scale (call, channels, in[RN_CONV_GAMMA], in[RN_CONV_VAR], scale);
      for (int64_t c = 0; c < channels; c++)
        shift[c] = beta[c] - scale[c] * mean[c];
      bias = shift;
    }
  rn_weights_pack (&core->map, in[RN_CONV_WEIGHTS], scale, call->args.conv.compute,
                   place (workspace, core->weights_at));
  return bias;
}

void
rn_conv_core_load_bwd_data (const RnConvCore *core, const RnOpCall *call, const void *const *in,
                            void *workspace)
{
  float *scale = place (workspace, core->scale_at);

  if (scale != NULL)
    fold_scale (call, call->in[RN_CONV_BD_DIFF_DST].dims[1], in[RN_CONV_BD_GAMMA], in[RN_CONV_BD_VAR], scale);
  rn_weights_pack (&core->map, in[RN_CONV_BD_WEIGHTS], scale, call->args.conv.compute,
                   place (workspace, core->weights_at));
}

RnStatus
rn_conv_core_execute (const RnConvCore *core, RnDevice *device, const void *src, const float *bias,
                      const void *dst, void *workspace)
{
  static const struct
  {
    int src, weights, dst, bias;
  } names[] = {
    [RN_ONEDNN_FWD] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS },
    [RN_ONEDNN_BWD_DATA] = { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_BIAS },
    [RN_ONEDNN_BWD_WEIGHTS] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_BIAS },
  };
  dnnl_stream_t stream = ((RnCpuDevice *) device)->stream;
  const dnnl_exec_arg_t args[] = { { names[core->direction].src, core->src },
                                   { names[core->direction].weights, core->weights },
                                   { names[core->direction].dst, core->dst },
                                   { DNNL_ARG_SCRATCHPAD, core->scratchpad },
                                   { names[core->direction].bias, core->bias } };
  int n_args = core->bias != NULL ? G_N_ELEMENTS (args) : G_N_ELEMENTS (args) - 1;

  if (core->bias != NULL && bias == NULL)
    bias = place (workspace, core->bias_at);
  /* Handles are not const, but a primitive writes only to its outputs. */
  if (dnnl_memory_set_data_handle (core->src, (void *) src) != dnnl_success
      || dnnl_memory_set_data_handle (core->weights, place (workspace, core->weights_at)) != dnnl_success
      || dnnl_memory_set_data_handle (core->dst, (void *) dst) != dnnl_success
      || dnnl_memory_set_data_handle (core->scratchpad, workspace) != dnnl_success
      || (core->bias != NULL && dnnl_memory_set_data_handle (core->bias, (void *) bias) != dnnl_success)
      || dnnl_primitive_execute (core->primitive, stream, n_args, args) != dnnl_success
      || dnnl_stream_wait (stream) != dnnl_success)
    return RN_STATUS_DEVICE;
  return RN_STATUS_OK;
}

void
rn_conv_core_add_gradients (const RnConvCore *core, const RnOpCall *call, const void *const *in,
                            void *const *out, void *workspace)
{
  const float *packed = place (workspace, core->weights_at);
  const float *sum = in[RN_CONV_BW_SUMS] != NULL ? in[RN_CONV_BW_SUMS] : place (workspace, core->bias_at);
  const float *mean = in[RN_CONV_BW_MEAN], *var = in[RN_CONV_BW_VAR];
  float *diff_bias = out[RN_CONV_BW_DIFF_BIAS], *diff_gamma = out[RN_CONV_BW_DIFF_GAMMA],
        *diff_beta = out[RN_CONV_BW_DIFF_BETA];
  float *scale = place (workspace, core->scale_at);
  double *dot = place (workspace, core->dot_at);
  int64_t channels = call->in[RN_CONV_BW_DIFF_DST].dims[1];

  if (scale != NULL)
    fold_scale (call, channels, in[RN_CONV_BW_GAMMA], var, scale);
  if (out[RN_CONV_BW_DIFF_WEIGHTS] != NULL)
    rn_weights_unpack_add (&core->map, packed, scale, out[RN_CONV_BW_DIFF_WEIGHTS]);
  if (diff_gamma != NULL)
    rn_weights_dot (&core->map, packed, in[RN_CONV_BW_WEIGHTS], dot);
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
