/*
 * results.h: small results that the host does not wait for: copies to pinned blocks, queued behind the
 * compute work. Those of each program have a block, and an event that says when the last of them has arrived.
 */
#ifndef KERNELS_CUDA_RESULTS_H
#define KERNELS_CUDA_RESULTS_H

#include "kernels/cuda/device-cuda.h"

G_BEGIN_DECLS

typedef struct _RnCudaResults RnCudaResults;

RnStatus rn_cuda_results_new (RnDevice *device, RnCudaResults **results);
void rn_cuda_results_free (RnCudaResults *results);

/* Of RnDeviceVtbl. When the block is full, those that lie in it are waited for; what is larger than the block
 * is copied by rn_cuda_copy_out. */
RnStatus rn_cuda_copy_out_later (RnDevice *device, RnResults results, void *host_dst, const void *src,
                                 gsize bytes);
RnStatus rn_cuda_settle (RnDevice *device, RnResults results);

G_END_DECLS

#endif
