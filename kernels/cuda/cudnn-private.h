/* cudnn-private.h: what the parts of cudnn.h share: cudnn.c and cudnn-descriptors.c. */
#ifndef KERNELS_CUDA_CUDNN_PRIVATE_H
#define KERNELS_CUDA_CUDNN_PRIVATE_H

#include "kernels/cuda/cudnn.h"

G_BEGIN_DECLS

/* Is @status success? Else it is kept as the fault, with what the library says about it. Every call that can
 * fail goes through it. @what: "making a tensor". */
gboolean rn_cudnn_check (RnCudnn *cudnn, cudnnStatus_t status, const char *what);

/* Keeps a fault. @reason: may be "". */
void rn_cudnn_keep_fault (RnCudnn *cudnn, cudnnStatus_t status, const char *what, const char *reason);

G_END_DECLS

#endif
