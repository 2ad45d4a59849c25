/*
 * host-memory.c: memory of the host devices, and the device that has nothing but that and the reference
 * kernels.
 */
#include "config.h"

#include "kernels/host-memory.h"

#include "kernels/kernel-table.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

RnStatus
rn_host_alloc (RnDevice *device, gsize bytes, void **memory)
{
  void *pages = mmap (NULL, MAX (bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return RN_STATUS_MEMORY;
#ifdef MADV_HUGEPAGE
  madvise (pages, bytes, MADV_HUGEPAGE); /* only a wish */
#endif
  *memory = pages;
  return RN_STATUS_OK;
}

void
rn_host_free (RnDevice *device, void *memory, gsize bytes)
{
  if (memory != NULL)
    munmap (memory, MAX (bytes, 1));
}

/* Bytes of [start, end), whole pages, that have memory behind them. */
static gsize
resident_bytes (char *start, char *end, gsize page)
{
  enum
  {
    CHUNK = 4096 /* pages at a time */
  };
  unsigned char state[CHUNK];
  gsize found = 0;

  for (char *at = start; at < end;)
    {
      gsize n = MIN ((gsize) (end - at) / page, CHUNK);
      if (mincore (at, n * page, state) != 0)
        break;
      for (gsize i = 0; i < n; i++)
        found += state[i] & 1;
      at += n * page;
    }
  return found * page;
}

gsize
rn_host_trim (RnDevice *device, void *memory, gsize bytes)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE);
  char *start = (char *) memory + (page - (gsize) memory % page) % page;
  char *end = (char *) memory + bytes;

  end -= (gsize) end % page;
  if (end <= start)
    return 0;
  gsize found = resident_bytes (start, end, page);
  return madvise (start, (gsize) (end - start), MADV_DONTNEED) == 0 ? found : 0;
}

RnStatus
rn_host_copy (RnDevice *device, void *dst, const void *src, gsize bytes)
{
  memcpy (dst, src, bytes);
  return RN_STATUS_OK;
}

RnStatus
rn_host_fill (RnDevice *device, void *dst, int byte, gsize bytes)
{
  memset (dst, byte, bytes);
  return RN_STATUS_OK;
}

static void
ref_destroy (RnDevice *device)
{
  g_free (device->description);
  g_free (device);
}

static const RnDeviceVtbl ref_vtbl = {
  .name = "cpu",
  .alloc = rn_host_alloc,
  .free = rn_host_free,
  .alloc_host = rn_host_alloc,
  .free_host = rn_host_free,
  .trim = rn_host_trim,
  .copy_in = rn_host_copy,
  .copy_out = rn_host_copy,
  .fill = rn_host_fill,
  .destroy = ref_destroy,
};

RnDevice *
rn_device_new_ref (void)
{
  RnDevice *device = g_new0 (RnDevice, 1);
  device->vtbl = &ref_vtbl;
  device->cblk = 1;
  device->n_threads = 1;
  device->kernels = rn_kernels_ref ();
  device->description = g_strdup ("reference kernels");
  return device;
}
