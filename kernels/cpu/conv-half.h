/* conv-half.h: what is known of convolutions in half precision outside of conv-half.c. */
#ifndef KERNELS_CPU_CONV_HALF_H
#define KERNELS_CPU_CONV_HALF_H

#include "kernels/device.h"

G_BEGIN_DECLS

/* Most bytes of copies of one convolution. */
#define RN_CONV_HALF_COPIES ((gsize) 16 << 20)

/* Bytes of copies, in its workspace, of a prepared convolution in half precision; 0 for other kernels. */
gsize rn_conv_half_copies (const RnPrepared *prepared);

G_END_DECLS

#endif
