/* kernels.c: all kernels of the CUDA device in one table. They have one priority: there is one for each op.
 */
#include "config.h"

#include "kernels/cuda/kernels.h"

#include "kernels/cuda/device-cuda.h"

static const RnKernel *const table[] = {
#define RN_OP(ID, name, args, n_in, n_out) &rn_cuda_##name,
#include "kernels/ops.def"
#undef RN_OP
  NULL
};

const RnKernel *const *
rn_cuda_kernels (void)
{
  return table;
}
