/* kernel-table.h: the kernels that are compiled in. */
#ifndef KERNELS_KERNEL_TABLE_H
#define KERNELS_KERNEL_TABLE_H

#include "kernels/device.h"

G_BEGIN_DECLS

/* Priorities: the first kernel that takes the call is used. */
enum
{
  RN_PRIORITY_REF = 0,
  RN_PRIORITY_OPENMP = 100,
  RN_PRIORITY_ONEDNN = 200,
  RN_PRIORITY_WINOGRAD = 300,
  RN_PRIORITY_TILES = 400,
};

/* The reference kernels among rn_kernels_all (): NULL-ended. Lent. */
const RnKernel *const *rn_kernels_ref (void);

/* Every op has a reference kernel: a missing one does not link. */
#define RN_OP(ID, name, args, n_in, n_out) extern const RnKernel rn_ref_##name;
#include "kernels/ops.def"
#undef RN_OP

extern const RnKernel rn_winograd_conv2d_fwd, rn_winograd_conv2d_bwd_data, rn_winograd_conv2d_bwd_weights;
extern const RnKernel rn_onednn_conv2d_fwd, rn_onednn_conv2d_bwd_data, rn_onednn_conv2d_bwd_weights;
extern const RnKernel rn_half_winograd_conv2d_fwd, rn_half_winograd_conv2d_bwd_data;
extern const RnKernel rn_half_winograd_conv2d_bwd_weights;
extern const RnKernel rn_half_conv2d_fwd, rn_half_conv2d_bwd_data, rn_half_conv2d_bwd_weights;
extern const RnKernel rn_bf16_conv2d_fwd, rn_bf16_conv2d_bwd_data;

extern const RnKernel rn_cpu_batch_norm_fwd, rn_cpu_batch_norm_bwd;
extern const RnKernel rn_cpu_relu_fwd, rn_cpu_relu_bwd, rn_cpu_add;
extern const RnKernel rn_cpu_max_pool_fwd, rn_cpu_max_pool_bwd, rn_cpu_avg_pool_fwd, rn_cpu_avg_pool_bwd;
extern const RnKernel rn_cpu_upsample_fwd, rn_cpu_upsample_bwd, rn_cpu_reorder, rn_cpu_copy, rn_cpu_zero;
extern const RnKernel rn_cpu_normalize;
extern const RnKernel rn_cpu_focal_loss, rn_cpu_box_loss;
extern const RnKernel rn_cpu_topk;
extern const RnKernel rn_cpu_grad_stats, rn_cpu_sgd, rn_cpu_adam, rn_cpu_ema_update, rn_cpu_swap;

G_END_DECLS

#endif
