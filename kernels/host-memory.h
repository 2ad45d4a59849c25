/* host-memory.h: the memory slots of RnDeviceVtbl for devices whose memory is the process's own. */
#ifndef KERNELS_HOST_MEMORY_H
#define KERNELS_HOST_MEMORY_H

#include "kernels/device.h"

G_BEGIN_DECLS

/* Anonymous pages: zeroed, aligned to a page. @bytes 0 takes one page. */
RnStatus rn_host_alloc (RnDevice *device, gsize bytes, void **memory);
void rn_host_free (RnDevice *device, void *memory, gsize bytes);
gsize rn_host_trim (RnDevice *device, void *memory, gsize bytes);
RnStatus rn_host_copy (RnDevice *device, void *dst, const void *src, gsize bytes);
RnStatus rn_host_fill (RnDevice *device, void *dst, int byte, gsize bytes);

G_END_DECLS

#endif
