/*
 * ops-conv.c: the three directions of a convolution. Around an execution of the library stand small kernels
 * of ours: in front of it those that write weights and bias as the engine reads them, behind it the one that
 * adds the gradient of the weights to what is there, in F32. All of that lies in the workspace.
 */
#include "config.h"

#include "kernels/cuda/conv-workspace.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-elementwise.h"
#include "kernels/cuda/launch-move.h"
#include "kernels/cuda/launch-sums.h"
#include "kernels/cuda/launch-weights.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/try.h"
#include "kernels/plan-device.h"

typedef struct
{
  RnConvPlan *plan; /* NULL: only sums are asked for */
  RnCudaConvWorkspace workspace;
  RnCudaMap src, dst; /* of the forward direction */
  int n_weights;
} Conv;

/* ---- planning ---- */

/* Ampere. */
#define BF16_CAPABILITY 80

/* The activations of the forward direction. */
static void
find_sides (const RnOpCall *call, const RnTensorDesc **src, const RnTensorDesc **dst)
{
  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
      *src = &call->in[RN_CONV_SRC];
      *dst = &call->out[RN_CONV_DST];
      break;
    case RN_OP_CONV2D_BWD_DATA:
      *src = &call->out[RN_CONV_BD_DIFF_SRC];
      *dst = &call->in[RN_CONV_BD_DIFF_DST];
      break;
    default:
      *src = &call->in[RN_CONV_BW_SRC];
      *dst = &call->in[RN_CONV_BW_DIFF_DST];
      break;
    }
}

/* One channel is both layouts: then it is that of the device. */
static const char *
find_layout (const RnDevice *device, Conv *conv, const RnTensorDesc *src, const RnTensorDesc *dst)
{
  const char *reason = rn_cuda_map (src, &conv->src);

  if (reason == NULL)
    reason = rn_cuda_map (dst, &conv->dst);
  if (reason != NULL)
    return reason;
  if (conv->src.nhwc != conv->dst.nhwc && conv->src.c > 1 && conv->dst.c > 1)
    return "source and destination differ in layout";
  conv->src.nhwc = conv->dst.nhwc =
      conv->src.c > 1 || conv->dst.c > 1 ? conv->src.nhwc || conv->dst.nhwc : device->cblk == RN_CBLK_ALL;
  return NULL;
}

static RnConvProblem
describe (RnDevice *device, const RnOpCall *call, const Conv *conv)
{
  const RnConvArgs *args = &call->args.conv;
  const RnDType type = conv->workspace.type;
  gboolean is_fwd = call->op == RN_OP_CONV2D_FWD;
  RnConvProblem problem = {
    .kind = is_fwd                              ? RN_CONV_FORWARD
            : call->op == RN_OP_CONV2D_BWD_DATA ? RN_CONV_BACKWARD_DATA
                                                : RN_CONV_BACKWARD_WEIGHTS,
    .n = conv->src.n,
    .c = conv->src.c,
    .h = conv->src.h,
    .w = conv->src.w,
    .k = conv->dst.c,
    .oh = conv->dst.h,
    .ow = conv->dst.w,
    .groups = args->groups,
    .dtype = type,
    .nhwc = conv->src.nhwc,
    .tf32 = type == RN_F32 && (args->compute != RN_F32 || ((RnCudaDevice *) device)->options.tf32),
    .bias = is_fwd && rn_cuda_conv_has_bias (call),
    .residual = is_fwd && RN_HAS_IN (call, RN_CONV_RESIDUAL),
    .relu = is_fwd && args->relu,
  };

  for (int i = 0; i < 2; i++)
    {
      problem.kernel[i] = args->kernel[i];
      problem.stride[i] = args->stride[i];
      problem.pad[i] = args->pad[i];
      problem.dilation[i] = args->dilation[i];
    }
  return problem;
}

static void
conv_free (gpointer state)
{
  Conv *conv = state;

  rn_conv_plan_free (conv->plan);
  g_free (conv);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Conv, conv_free)

/* What the engine may take of the limit; FALSE: nothing is left. */
static gboolean
engine_limit (const RnDevice *device, gsize others, gsize *limit)
{
  *limit = RN_PLAN_DEVICE_WORKSPACE;
  if (device->workspace_limit == 0)
    return TRUE;
  *limit = device->workspace_limit - MIN (others, device->workspace_limit);
  return others <= device->workspace_limit;
}

static RnStatus
prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const RnConvArgs *args = &call->args.conv;
  const RnTensorDesc *src, *dst;
  g_autoptr (Conv) conv = g_new0 (Conv, 1);
  gsize limit;

  find_sides (call, &src, &dst);
  *reason = find_layout (device, conv, src, dst);
  if (*reason != NULL)
    return RN_STATUS_UNSUPPORTED;
  int64_t n_weights = dst->dims[1] * (src->dims[1] / args->groups) * args->kernel[0] * args->kernel[1];
  if (n_weights > RN_CUDA_MAX_COUNT)
    {
      *reason = "more weights than 31 bits count";
      return RN_STATUS_UNSUPPORTED;
    }
  conv->n_weights = (int) n_weights;
  conv->workspace = rn_cuda_conv_workspace (call, conv->src.nhwc);
  prepared->workspace_bytes = conv->workspace.bytes + RN_CUDA_CONV_SLACK;
  if (!engine_limit (device, prepared->workspace_bytes, &limit))
    {
      *reason = "the weights as its engine reads them need more workspace than the limit";
      return RN_STATUS_UNSUPPORTED;
    }
  if (conv->workspace.type == RN_BF16 && ((RnCudaDevice *) device)->capability < BF16_CAPABILITY)
    {
      *reason = "bf16 needs compute capability 8.0, which the device has not; what works: fp16";
      return RN_STATUS_UNSUPPORTED;
    }
  if (call->op != RN_OP_CONV2D_BWD_WEIGHTS || rn_cuda_conv_has_diff_weights (call))
    {
      const RnConvProblem problem = describe (device, call, conv);
      RN_TRY (rn_conv_plan_new (((RnCudaDevice *) device)->conv, &problem, limit, &conv->plan, reason));
      prepared->workspace_bytes +=
          device->plans_bounds ? rn_conv_plan_bound (conv->plan) : rn_conv_plan_workspace (conv->plan);
      prepared->is_bound = rn_conv_plan_is_bound (conv->plan);
      prepared->detail = rn_conv_plan_detail (conv->plan);
    }
  prepared->state = g_steal_pointer (&conv);
  return RN_STATUS_OK;
}

/* ---- running ---- */

/* The first aligned address; the bytes in front of it were planned too. */
static char *
base (void *workspace)
{
  guintptr address = (guintptr) workspace;
  return (char *) workspace
         + ((address + RN_CUDA_CONV_ALIGNMENT - 1) / RN_CUDA_CONV_ALIGNMENT * RN_CUDA_CONV_ALIGNMENT
            - address);
}

static void *
at (void *workspace, RnCudaPart part)
{
  return part.bytes > 0 ? base (workspace) + part.at : NULL;
}

/* @n values, whatever they are, in another type. */
static RnStatus
cast (RnDevice *device, int64_t n, RnDType from, const void *src, RnDType to, void *dst)
{
  const RnCudaMap row = { 1, 1, 1, (int) n, 0 };

  return rn_cuda_check (device, rn_cuda_launch_reorder (&row, from, src, 0, to, dst, rn_cuda_stream (device)),
                        "a cast");
}

/* *@factor: the activation as the engine reads it. */
static RnStatus
cast_factor (RnDevice *device, const RnOpCall *call, const Conv *conv, const RnCudaMap *map, RnDType stored,
             const RnCudaFactor *parts, void *workspace, const void **factor)
{
  RnDType type = stored;
  const RnDType types[] = { call->args.conv.compute, conv->workspace.type };
  const RnCudaPart targets[] = { parts->rounded, parts->stored };

  for (int i = 0; i < 2; i++)
    {
      void *target = at (workspace, targets[i]);
      if (target == NULL)
        continue;
      RN_TRY (rn_cuda_check (
          device,
          rn_cuda_launch_reorder (map, type, *factor, map->nhwc, types[i], target, rn_cuda_stream (device)),
          "a cast"));
      *factor = target;
      type = types[i];
    }
  return RN_STATUS_OK;
}

static RnCudaFilter
filter_of (const RnOpCall *call, const Conv *conv, RnDType type)
{
  const RnConvArgs *args = &call->args.conv;

  return (RnCudaFilter){ .k = conv->dst.c,
                         .c = conv->src.c / args->groups,
                         .r = args->kernel[0],
                         .s = args->kernel[1],
                         .krsc = conv->src.nhwc,
                         .t = type };
}

/* Weights and bias as the engine reads them. Where it computes in F32 what is half, weights are rounded, but
 * the bias is not. */
static RnStatus
write_weights (RnDevice *device, const RnOpCall *call, const Conv *conv, const float *weights,
               const RnCudaFold *fold, const float *bias, void *workspace)
{
  const RnCudaConvWorkspace *w = &conv->workspace;
  const RnDType compute = call->args.conv.compute;
  const RnCudaFilter filter = filter_of (call, conv, w->type), rounded = filter_of (call, conv, compute);
  cudaStream_t stream = rn_cuda_stream (device);
  void *rounded_weights = at (workspace, w->rounded_weights), *bias_dst = at (workspace, w->bias);

  if (rounded_weights == NULL)
    return rn_cuda_check (device,
                          rn_cuda_launch_weights_fwd (&filter, weights, fold, bias,
                                                      at (workspace, w->weights), bias_dst, stream),
                          "weights of a convolution");
  RN_TRY (rn_cuda_check (
      device, rn_cuda_launch_weights_fwd (&rounded, weights, fold, NULL, rounded_weights, NULL, stream),
      "weights of a convolution"));
  RN_TRY (cast (device, conv->n_weights, compute, rounded_weights, w->type, at (workspace, w->weights)));
  if (bias_dst == NULL)
    return RN_STATUS_OK;
  return rn_cuda_check (device,
                        rn_cuda_launch_weights_fwd (&filter, weights, fold, bias, NULL, bias_dst, stream),
                        "bias of a convolution");
}

/* Where the engine finds everything, in whatever direction. */
static RnConvPointers
find_pointers (const RnOpCall *call, const Conv *conv, const void *const *in, void *const *out,
               void *workspace)
{
  const RnCudaConvWorkspace *w = &conv->workspace;
  const void *src = at (workspace, w->src.stored), *diff_dst = at (workspace, w->diff_dst.stored);
  RnConvPointers pointers = { .workspace = rn_conv_plan_workspace (conv->plan) > 0
                                               ? base (workspace) + w->bytes
                                               : NULL };

  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
      pointers.x = src != NULL ? src : in[RN_CONV_SRC];
      pointers.w = at (workspace, w->weights);
      pointers.bias = at (workspace, w->bias);
      pointers.z = in[RN_CONV_RESIDUAL];
      pointers.y = out[RN_CONV_DST];
      break;
    case RN_OP_CONV2D_BWD_DATA:
      pointers.dy = diff_dst != NULL ? diff_dst : in[RN_CONV_BD_DIFF_DST];
      pointers.w = at (workspace, w->weights);
      pointers.dx = out[RN_CONV_BD_DIFF_SRC];
      break;
    default:
      pointers.x = src != NULL ? src : in[RN_CONV_BW_SRC];
      pointers.dy = diff_dst != NULL ? diff_dst : in[RN_CONV_BW_DIFF_DST];
      pointers.dw = at (workspace, w->diff_weights);
      break;
    }
  return pointers;
}

static RnStatus
execute (RnDevice *device, const RnOpCall *call, const Conv *conv, const void *const *in, void *const *out,
         void *workspace)
{
  const RnConvPointers pointers = find_pointers (call, conv, in, out, workspace);

  RN_TRY (rn_cuda_check_conv (
      device, rn_conv_library_set_stream (((RnCudaDevice *) device)->conv, rn_cuda_stream (device))));
  return rn_cuda_check_conv (device, rn_conv_plan_run (conv->plan, &pointers));
}

static RnStatus
conv2d_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const Conv *conv = state;
  const RnCudaFold fold = { in[RN_CONV_GAMMA], in[RN_CONV_BETA], in[RN_CONV_MEAN], in[RN_CONV_VAR],
                            call->args.conv.eps };
  const void *src = in[RN_CONV_SRC];

  RN_TRY (write_weights (device, call, conv, in[RN_CONV_WEIGHTS], &fold, in[RN_CONV_BIAS], workspace));
  RN_TRY (cast_factor (device, call, conv, &conv->src, call->in[RN_CONV_SRC].dtype, &conv->workspace.src,
                       workspace, &src));
  return execute (device, call, conv, in, out, workspace);
}

static RnStatus
conv2d_bwd_data (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                 void *const *out, void *workspace)
{
  const Conv *conv = state;
  const RnCudaFold fold = { .gamma = in[RN_CONV_BD_GAMMA],
                            .var = in[RN_CONV_BD_VAR],
                            .eps = call->args.conv.eps };
  const void *diff_dst = in[RN_CONV_BD_DIFF_DST];

  RN_TRY (write_weights (device, call, conv, in[RN_CONV_BD_WEIGHTS], &fold, NULL, workspace));
  RN_TRY (cast_factor (device, call, conv, &conv->dst, call->in[RN_CONV_BD_DIFF_DST].dtype,
                       &conv->workspace.diff_dst, workspace, &diff_dst));
  return execute (device, call, conv, in, out, workspace);
}

/* Adds @sums, which were given, to the gradient of the bias. */
static RnStatus
add_given_sums (RnDevice *device, const Conv *conv, const float *sums, float *diff)
{
  if (diff == NULL)
    return RN_STATUS_OK;
  return rn_cuda_check (
      device, rn_cuda_launch_add (RN_F32, conv->dst.c, diff, sums, FALSE, diff, rn_cuda_stream (device)),
      "sums of a convolution's gradient");
}

/* *@sums: the sum of the gradient over each channel, if it is needed; and what that is added to. */
static RnStatus
sum_channels (RnDevice *device, const RnOpCall *call, const Conv *conv, const void *diff_dst,
              void *const *out, void *workspace, const float **sums)
{
  float *diff = out[RN_CONV_BW_DIFF_BIAS] != NULL ? out[RN_CONV_BW_DIFF_BIAS] : out[RN_CONV_BW_DIFF_BETA];
  const RnCudaConvWorkspace *w = &conv->workspace;
  const RnDType type = w->diff_dst.stored.bytes > 0 ? w->type : call->in[RN_CONV_BW_DIFF_DST].dtype;

  if (!rn_conv_adds_up (call))
    return rn_conv_needs_sums (call) ? add_given_sums (device, conv, *sums, diff) : RN_STATUS_OK;
  float *own = at (workspace, w->sums);
  *sums = own;
  return rn_cuda_check (device,
                        rn_cuda_launch_channel_sums (&conv->dst, type, diff_dst, own, diff,
                                                     at (workspace, w->partials), rn_cuda_stream (device)),
                        "sums of a convolution's gradient");
}

static RnStatus
conv2d_bwd_weights (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                    void *const *out, void *workspace)
{
  const Conv *conv = state;
  const RnCudaConvWorkspace *w = &conv->workspace;
  const RnCudaFold fold = { .gamma = in[RN_CONV_BW_GAMMA],
                            .mean = in[RN_CONV_BW_MEAN],
                            .var = in[RN_CONV_BW_VAR],
                            .eps = call->args.conv.eps };
  const RnCudaFilter filter = filter_of (call, conv, w->type);
  const void *diff_dst = in[RN_CONV_BW_DIFF_DST], *src = in[RN_CONV_BW_SRC];
  const float *sums = in[RN_CONV_BW_SUMS];

  RN_TRY (cast_factor (device, call, conv, &conv->dst, call->in[RN_CONV_BW_DIFF_DST].dtype, &w->diff_dst,
                       workspace, &diff_dst));
  RN_TRY (sum_channels (device, call, conv, diff_dst, out, workspace, &sums));
  if (conv->plan == NULL)
    return RN_STATUS_OK;
  RN_TRY (
      cast_factor (device, call, conv, &conv->src, call->in[RN_CONV_BW_SRC].dtype, &w->src, workspace, &src));
  RN_TRY (execute (device, call, conv, in, out, workspace));
  return rn_cuda_check (device,
                        rn_cuda_launch_weights_bwd (&filter, at (workspace, w->diff_weights),
                                                    in[RN_CONV_BW_WEIGHTS], &fold, sums,
                                                    out[RN_CONV_BW_DIFF_WEIGHTS], out[RN_CONV_BW_DIFF_GAMMA],
                                                    rn_cuda_stream (device)),
                        "gradient of a convolution's weights");
}

/* ---- measuring ---- */

/* What was planned is enough for each engine within the limit, or for the one that was stored. */
static RnStatus
measure (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const void *const *in,
         void *const *out, void *workspace)
{
  Conv *conv = prepared->state;

  if (conv->plan == NULL)
    return RN_STATUS_OK;
  gsize limit = prepared->workspace_bytes - conv->workspace.bytes - RN_CUDA_CONV_SLACK;
  RnConvPointers pointers = find_pointers (call, conv, in, out, workspace);
  RN_TRY (rn_cuda_check_conv (device, rn_conv_plan_measure (conv->plan, &pointers, limit)));
  prepared->detail = rn_conv_plan_detail (conv->plan);
  return RN_STATUS_OK;
}

#define CONV(ID, NAME)                                     \
  const RnKernel rn_cuda_##NAME = { .op = RN_OP_##ID,      \
                                    .name = "cuda:" #NAME, \
                                    .priority = 100,       \
                                    .takes_limit = TRUE,   \
                                    .prepare = prepare,    \
                                    .measure = measure,    \
                                    .run = NAME,           \
                                    .release = conv_free }

CONV (CONV2D_FWD, conv2d_fwd);
CONV (CONV2D_BWD_DATA, conv2d_bwd_data);
CONV (CONV2D_BWD_WEIGHTS, conv2d_bwd_weights);
