/*
 * staging.h: copies between the host and the device through two pinned slots. What goes in is written into
 * the slot in use, and its copy is queued behind the compute work; a slot is used again when its copies are
 * done. So the host fills one while the device still works.
 */
#ifndef KERNELS_CUDA_STAGING_H
#define KERNELS_CUDA_STAGING_H

#include "kernels/cuda/device-cuda.h"

G_BEGIN_DECLS

typedef struct _RnCudaStaging RnCudaStaging;

RnStatus rn_cuda_staging_new (RnDevice *device, RnCudaStaging **staging);
void rn_cuda_staging_free (RnCudaStaging *staging);

/* Does @address lie in memory of alloc_host? */
gboolean rn_cuda_is_host_block (const RnCudaDevice *cuda, const void *address);

/* Of RnDeviceVtbl. Either side may be memory of alloc_host too: then it is waited for. */
RnStatus rn_cuda_copy_in (RnDevice *device, void *dst, const void *host_src, gsize bytes);
RnStatus rn_cuda_copy_out (RnDevice *device, void *host_dst, const void *src, gsize bytes);

G_END_DECLS

#endif
