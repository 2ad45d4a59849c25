/* plan-device.h: a device that is not there, for plans alone. */
#ifndef KERNELS_PLAN_DEVICE_H
#define KERNELS_PLAN_DEVICE_H

#include "kernels/device.h"

G_BEGIN_DECLS

/* What the engine of a convolution may take where workspace_limit is 0. */
#define RN_PLAN_DEVICE_WORKSPACE ((gsize) 64 << 20)

/*
 * rn_device_new_plan_cuda:
 *
 * A CUDA device as plans see it: values without channel blocks, and for every convolution a workspace of
 * exactly workspace_limit (or what an engine may take, and the weights as it reads them), since only the
 * library on a real device knows what it takes. So a plan's total is an upper bound. No memory can be had
 * from it, and none of its kernels runs.
 */
RnDevice *rn_device_new_plan_cuda (void);

G_END_DECLS

#endif
