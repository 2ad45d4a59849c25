/* kernels.h: the kernels of the CUDA device, one for each op: rn_cuda_<name of the op>. */
#ifndef KERNELS_CUDA_KERNELS_H
#define KERNELS_CUDA_KERNELS_H

#include "kernels/device.h"

G_BEGIN_DECLS

#define RN_OP(ID, name, args, n_in, n_out) extern const RnKernel rn_cuda_##name;
#include "kernels/ops.def"
#undef RN_OP

G_END_DECLS

#endif
