#include "config.h"
#include "runner/base/arena.h"

#include "runner/base/error.h"
#include "runner/base/size.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct _RnArena
{
  void *data;
  gsize size;   /* as asked for */
  gsize mapped; /* whole pages */
};

static gsize
page_size (void)
{
  return (gsize) sysconf (_SC_PAGESIZE);
}

RnArena *
rn_arena_new (const char *name, gsize size, GError **error)
{
  gsize page = page_size (), mapped;
  void *data = MAP_FAILED;
  int code = ENOMEM;

  if (g_size_checked_add (&mapped, MAX (size, 1), page - 1))
    {
      mapped -= mapped % page;
      data = mmap (NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      code = errno;
    }
  if (data == MAP_FAILED)
    {
      g_autofree char *text = rn_size_format (size);
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "%s arena: cannot have %s: %s", name, text,
                   g_strerror (code));
      return NULL;
    }
#ifdef MADV_HUGEPAGE
  madvise (data, mapped, MADV_HUGEPAGE); /* a wish: fewer TLB misses; kernels without huge pages refuse */
#endif

  RnArena *arena = g_new0 (RnArena, 1);
  arena->data = data;
  arena->size = size;
  arena->mapped = mapped;
  return arena;
}

void
rn_arena_free (RnArena *arena)
{
  if (!arena)
    return;
  munmap (arena->data, arena->mapped);
  g_free (arena);
}

void *
rn_arena_data (const RnArena *arena)
{
  return arena->data;
}

gsize
rn_arena_size (const RnArena *arena)
{
  return arena->size;
}

void
rn_arena_touch (RnArena *arena)
{
  volatile char *bytes = arena->data;

  for (gsize i = 0, page = page_size (); i < arena->mapped; i += page)
    bytes[i] = bytes[i]; /* only a write gives the page a frame of its own */
}
