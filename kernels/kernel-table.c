/*
 * kernel-table.c: all kernels in one table, by priority. An explicit table, because constructors in a static
 * archive get lost.
 */
#include "config.h"

#include "kernels/kernel-table.h"

static const RnKernel *const table[] = {
#ifdef HAVE_ONEDNN
  &rn_bf16_conv2d_fwd,
  &rn_bf16_conv2d_bwd_data,
  &rn_winograd_conv2d_fwd,
  &rn_winograd_conv2d_bwd_data,
  &rn_winograd_conv2d_bwd_weights,
  &rn_half_winograd_conv2d_fwd,
  &rn_half_winograd_conv2d_bwd_data,
  &rn_half_winograd_conv2d_bwd_weights,
  &rn_onednn_conv2d_fwd,
  &rn_onednn_conv2d_bwd_data,
  &rn_onednn_conv2d_bwd_weights,
  &rn_half_conv2d_fwd,
  &rn_half_conv2d_bwd_data,
  &rn_half_conv2d_bwd_weights,
#endif
  &rn_cpu_batch_norm_fwd,
  &rn_cpu_batch_norm_bwd,
  &rn_cpu_relu_fwd,
  &rn_cpu_relu_bwd,
  &rn_cpu_add,
  &rn_cpu_max_pool_fwd,
  &rn_cpu_max_pool_bwd,
  &rn_cpu_avg_pool_fwd,
  &rn_cpu_avg_pool_bwd,
  &rn_cpu_upsample_fwd,
  &rn_cpu_upsample_bwd,
  &rn_cpu_reorder,
  &rn_cpu_copy,
  &rn_cpu_zero,
  &rn_cpu_normalize,
  &rn_cpu_focal_loss,
  &rn_cpu_box_loss,
  &rn_cpu_topk,
  &rn_cpu_grad_stats,
  &rn_cpu_sgd,
  &rn_cpu_adam,
  &rn_cpu_ema_update,
  &rn_cpu_swap,
#define RN_OP(ID, name, args, n_in, n_out) &rn_ref_##name,
#include "kernels/ops.def"
#undef RN_OP
  NULL
};

const RnKernel *const *
rn_kernels_all (void)
{
  return table;
}

const RnKernel *const *
rn_kernels_ref (void)
{
  return table + G_N_ELEMENTS (table) - 1 - RN_OP_COUNT;
}
