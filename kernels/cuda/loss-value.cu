/* loss-value.cu: a loss from the sums of its parts. */
#include "kernels/cuda/launch-loss.h"
#include "kernels/cuda/pack.cuh"

namespace
{

__global__ void
RN_BOUNDS (RN_BLOCK) loss_value (const float *parts, int64_t n, float weight, const float *avg, float *value)
{
  RN_SHARED (double, shared, [32]);
  double sum = 0;

  for (int64_t i = threadIdx.x; i < n; i += RN_BLOCK)
    sum += parts[i];
  sum = rn_block_sum (sum, shared);
  if (threadIdx.x == 0)
    *value = (float) (sum * (weight / (double) *avg));
}

}

extern "C" cudaError_t
rn_cuda_launch_loss_value (const float *parts, int64_t n, float weight, const float *avg, float *value,
                           cudaStream_t stream)
{
  return RN_LAUNCH (loss_value, 1, RN_BLOCK, 0, stream, parts, n, weight, avg, value);
}
