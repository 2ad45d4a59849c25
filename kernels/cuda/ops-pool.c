/* ops-pool.c: max and average pooling and their gradients. */
#include "config.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-pool.h"
#include "kernels/cuda/map.h"

/* Maps of the forward direction. */
typedef struct
{
  RnCudaMap src, dst;
  RnCudaWindow window;
} Pool;

static const char *
pool_init (Pool *pool, const RnOpCall *call)
{
  const RnPoolArgs *args = &call->args.pool;
  gboolean is_fwd = call->op == RN_OP_MAX_POOL_FWD || call->op == RN_OP_AVG_POOL_FWD;
  const char *reason;

  if ((reason = rn_cuda_map (&call->in[0], is_fwd ? &pool->src : &pool->dst)) != NULL
      || (reason = rn_cuda_map (&call->out[0], is_fwd ? &pool->dst : &pool->src)) != NULL)
    return reason;
  for (int i = 0; i < 2; i++)
    {
      pool->window.kernel[i] = args->kernel[i];
      pool->window.stride[i] = args->stride[i];
      pool->window.pad[i] = args->pad[i];
    }
  return NULL;
}

/* Places that windows reach, and the number of cells in one, are computed in 31 bits. */
static gboolean
is_within_31_bits (const Pool *pool)
{
  const int size[2] = { pool->src.h, pool->src.w };

  for (int i = 0; i < 2; i++)
    if ((gint64) size[i] + 2 * (gint64) pool->window.pad[i] + pool->window.stride[i] > G_MAXINT32)
      return FALSE;
  return (gint64) pool->window.kernel[0] * pool->window.kernel[1] <= G_MAXINT32;
}

static RnStatus
prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  Pool pool;

  if ((*reason = pool_init (&pool, call)) != NULL)
    return RN_STATUS_UNSUPPORTED;
  if (!is_within_31_bits (&pool))
    {
      *reason = "a window that needs more than 31 bits";
      return RN_STATUS_UNSUPPORTED;
    }
  return RN_STATUS_OK;
}

static RnStatus
max_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  Pool p;
  pool_init (&p, call);
  return rn_cuda_check (device,
                        rn_cuda_launch_max_pool_fwd (&p.src, &p.dst, &p.window, call->in[0].dtype, in[0],
                                                     out[RN_POOL_DST], out[RN_POOL_INDEX],
                                                     rn_cuda_stream (device)),
                        "max_pool_fwd");
}

static RnStatus
max_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  Pool p;
  pool_init (&p, call);
  return rn_cuda_check (device,
                        rn_cuda_launch_max_pool_bwd (&p.src, &p.dst, &p.window, call->out[0].dtype,
                                                     in[RN_POOL_BWD_DIFF_DST], in[RN_POOL_BWD_INDEX], out[0],
                                                     rn_cuda_stream (device)),
                        "max_pool_bwd");
}

static RnStatus
avg_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  Pool p;
  pool_init (&p, call);
  return rn_cuda_check (device,
                        rn_cuda_launch_avg_pool_fwd (&p.src, &p.dst, &p.window, call->in[0].dtype, in[0],
                                                     out[0], rn_cuda_stream (device)),
                        "avg_pool_fwd");
}

static RnStatus
avg_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  Pool p;
  pool_init (&p, call);
  return rn_cuda_check (device,
                        rn_cuda_launch_avg_pool_bwd (&p.src, &p.dst, &p.window, call->out[0].dtype, in[0],
                                                     out[0], rn_cuda_stream (device)),
                        "avg_pool_bwd");
}

const RnKernel rn_cuda_max_pool_fwd = { .op = RN_OP_MAX_POOL_FWD,
                                        .name = "cuda:max_pool_fwd",
                                        .priority = 100,
                                        .prepare = prepare,
                                        .run = max_pool_fwd };
const RnKernel rn_cuda_max_pool_bwd = { .op = RN_OP_MAX_POOL_BWD,
                                        .name = "cuda:max_pool_bwd",
                                        .priority = 100,
                                        .prepare = prepare,
                                        .run = max_pool_bwd };
const RnKernel rn_cuda_avg_pool_fwd = { .op = RN_OP_AVG_POOL_FWD,
                                        .name = "cuda:avg_pool_fwd",
                                        .priority = 100,
                                        .prepare = prepare,
                                        .run = avg_pool_fwd };
const RnKernel rn_cuda_avg_pool_bwd = { .op = RN_OP_AVG_POOL_BWD,
                                        .name = "cuda:avg_pool_bwd",
                                        .priority = 100,
                                        .prepare = prepare,
                                        .run = avg_pool_bwd };
