/* device-cuda.h: the CUDA device as its own kernels see it. */
#ifndef KERNELS_CUDA_DEVICE_CUDA_H
#define KERNELS_CUDA_DEVICE_CUDA_H

#include <cuda_runtime_api.h>
#include "kernels/cuda/conv-plan.h"
#include "kernels/cuda/module.h"
#include "kernels/device.h"

G_BEGIN_DECLS

/* Channels in one block: see RnDevice.cblk. */
#define RN_CUDA_IS_NHWC(desc) ((desc)->cblk == (desc)->dims[1] && (desc)->cblk > 1)

/* What alloc_host gave out. */
typedef struct
{
  char *memory;
  gsize bytes;
} RnCudaHostBlock;

typedef struct
{
  RnDevice base; /* first: a pointer to it is a pointer to this */
  RnCudaOptions options;
  gboolean is_plan_only; /* made from a profile: nothing can run */
  int capability;        /* 10 * major + minor: 75, 80, 90 */
  cudaStream_t streams[RN_N_QUEUES];
  RnQueue queue; /* the one that run () uses now */
  RnConvLibrary *conv;
  struct _RnCudaStaging *staging; /* pinned slots of copy_in and copy_out */
  struct _RnCudaResults *results; /* copies out that are waited for later */
  GArray *host_blocks;            /* of RnCudaHostBlock */
  GPtrArray *events;              /* by number */
  char *fault;                    /* text of the last failed call, or NULL */
  gboolean is_dead;               /* a failure that stays: nothing can be had from the device any more */
  gboolean is_synchronous;        /* RN_CUDA_SYNC=1: each op is waited for */
  const char *op_scope;           /* of the op that is being queued; lent */
  const RnOpCall *op_call;        /* likewise */
} RnCudaDevice;

/* The stream that the op goes to. */
static inline cudaStream_t
rn_cuda_stream (RnDevice *device)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  return cuda->streams[cuda->queue];
}

/*
 * rn_cuda_device_new:
 *
 * The device @options->ordinal, which startup found usable; or with @options->profile one for plans alone.
 * Errors: RN_DEVICE_ERROR_MISSING, RN_DEVICE_ERROR_MEMORY.
 */
RnDevice *rn_cuda_device_new (const RnCudaOptions *options, GError **error);

/* RN_STATUS_OK, or RN_STATUS_DEVICE (RN_STATUS_MEMORY for cudaErrorMemoryAllocation) with the fault's text
 * kept: "cudaErrorIllegalAddress (700) in WHAT". */
RnStatus rn_cuda_check (RnDevice *device, cudaError_t error, const char *what);

/* @status, with the text of the convolutions' library kept as the fault, and what the runtime says about
 * work that was queued before. */
RnStatus rn_cuda_check_conv (RnDevice *device, RnStatus status);

/* All kernels of the device, NULL-ended, by priority. */
const RnKernel *const *rn_cuda_kernels (void);

G_END_DECLS

#endif
