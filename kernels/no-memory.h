/* no-memory.h: the memory of a device that is for plans alone: there is none. */
#ifndef KERNELS_NO_MEMORY_H
#define KERNELS_NO_MEMORY_H

#include "kernels/device.h"

G_BEGIN_DECLS

static inline RnStatus
rn_no_memory_alloc (RnDevice *device, gsize bytes, void **memory)
{
  return RN_STATUS_UNSUPPORTED;
}

static inline void
rn_no_memory_free (RnDevice *device, void *memory, gsize bytes)
{
}

static inline RnStatus
rn_no_memory_copy_in (RnDevice *device, void *dst, const void *host_src, gsize bytes)
{
  return RN_STATUS_UNSUPPORTED;
}

static inline RnStatus
rn_no_memory_copy_out (RnDevice *device, void *host_dst, const void *src, gsize bytes)
{
  return RN_STATUS_UNSUPPORTED;
}

static inline RnStatus
rn_no_memory_fill (RnDevice *device, void *dst, int byte, gsize bytes)
{
  return RN_STATUS_UNSUPPORTED;
}

/* The slots of an RnDeviceVtbl. */
#define RN_NO_MEMORY_SLOTS                                                                            \
  .alloc = rn_no_memory_alloc, .free = rn_no_memory_free, .alloc_host = rn_no_memory_alloc,           \
  .free_host = rn_no_memory_free, .copy_in = rn_no_memory_copy_in, .copy_out = rn_no_memory_copy_out, \
  .fill = rn_no_memory_fill

G_END_DECLS

#endif
