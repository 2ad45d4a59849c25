/*
 * launch.h: launchers of our kernels, for C. Each queues one kernel (or a few) on a stream and returns what
 * the launch said; none allocates or waits. Types of floats are given as RnDType; pointers are of the device.
 * Scratch is the caller's: a function *_workspace () of workspace.h says how many bytes.
 */
#ifndef KERNELS_CUDA_LAUNCH_H
#define KERNELS_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <runner/tensor.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

  /* A map of features: N C H W, stored as NHWC or NCHW; no padding channels. */
  typedef struct
  {
    int n, c, h, w;
    int nhwc;
  } RnCudaMap;

#ifdef __cplusplus
}
#endif

#endif
