/*
 * shared.cc: the shared memory of a block. Between guard pages: variables from below, with gaps, the dynamic
 * part at the end. All of it is NaN before each block, and the gaps still are afterwards.
 */
#include "tests/gpu/sim/fibers.h"
#include <sys/mman.h>

using namespace sim;

#define GAP 32
#define MAX_VARIABLES 64
#define SHARED_BYTES (MAX_SHARED + 16384)

struct Variable
{
  size_t offset, bytes;
  const char *file;
  int line;
};

static struct
{
  unsigned char *memory;
  size_t used;      /* by variables and gaps */
  size_t variables; /* bytes of variables alone */
  Variable list[MAX_VARIABLES];
  int n;
  bool is_open; /* guard pages can be accessed, since a thread did */
} shared;

static unsigned char *
dynamic_start (void)
{
  return shared.memory + SHARED_BYTES - (grid.shared_bytes + 15) / 16 * 16;
}

__attribute__ ((no_sanitize_address)) static void
fill_with_nan (unsigned char *from, unsigned char *to)
{
  for (volatile unsigned char *p = from; p < to; p++)
    *p = 0xff;
}

__attribute__ ((no_sanitize_address)) static bool
is_nan_filled (const unsigned char *from, const unsigned char *to)
{
  for (const unsigned char *p = from; p < to; p++)
    if (*p != 0xff)
      return false;
  return true;
}

void
sim::shared_begin_grid (void)
{
  if (!shared.memory)
    shared.memory = map_guarded (SHARED_BYTES);
  UNPOISON (shared.memory, SHARED_BYTES);
  shared.used = shared.variables = 0;
  shared.n = 0;
  POISON (dynamic_start () - GAP, GAP);
  POISON (dynamic_start () + grid.shared_bytes,
          shared.memory + SHARED_BYTES - dynamic_start () - grid.shared_bytes);
}

/* After a block. */
static void
check (void)
{
  for (int i = 0; i <= shared.n; i++)
    {
      const Variable *before = i > 0 ? &shared.list[i - 1] : NULL;
      const size_t start = before ? before->offset + before->bytes : 0;
      const size_t end = i < shared.n ? shared.list[i].offset : shared.used;
      if (is_nan_filled (shared.memory + start, shared.memory + end))
        continue;
      if (before)
        fail_block ("%s:%d: a thread wrote past the end of the shared variable", before->file, before->line);
      else
        fail_block ("%s:%d: a thread wrote before the shared variable", shared.list[0].file,
                    shared.list[0].line);
      return;
    }
  if (!is_nan_filled (dynamic_start () + grid.shared_bytes, shared.memory + SHARED_BYTES))
    fail_block ("a thread wrote past the end of %zu bytes of dynamic shared memory", grid.shared_bytes);
  else if (!is_nan_filled (dynamic_start () - GAP, dynamic_start ()))
    fail_block ("a thread wrote before the dynamic shared memory");
}

void
sim::shared_begin_block (void)
{
  fill_with_nan (shared.memory, shared.memory + shared.used);
  fill_with_nan (dynamic_start () - GAP, shared.memory + SHARED_BYTES);
}

void
sim::shared_end_block (void)
{
  if (!grid.has_failed)
    check ();
  if (!shared.is_open)
    return;
  mprotect (shared.memory - page_size (), page_size (), PROT_NONE);
  mprotect (shared.memory + SHARED_BYTES, page_size (), PROT_NONE);
  shared.is_open = false;
}

void *
sim_shared (SimShared *variable, size_t bytes, size_t alignment, const char *file, int line)
{
  if (variable->launch == grid.number)
    return shared.memory + variable->offset;

  /* No better aligned than its type says. */
  size_t offset = (shared.used + GAP + alignment - 1) / alignment * alignment;
  if (offset % (2 * alignment) == 0)
    offset += alignment;
  shared.variables += bytes;
  if (shared.variables + grid.shared_bytes > MAX_SHARED || shared.n == MAX_VARIABLES
      || shared.memory + offset + bytes + GAP > dynamic_start () - GAP)
    fail ("%s:%d: %zu bytes of shared variables and %zu of dynamic shared memory are more than the %zu of a "
          "block",
          file, line, shared.variables, grid.shared_bytes, MAX_SHARED);

  if (shared.n == 0)
    POISON (shared.memory, offset);
  shared.list[shared.n++] = { offset, bytes, file, line };
  fill_with_nan (shared.memory + shared.used, shared.memory + offset + bytes + GAP);
  UNPOISON (shared.memory + offset, bytes);
  shared.used = offset + bytes + GAP;
  POISON (shared.memory + offset + bytes, GAP);
  *variable = { grid.number, offset };
  return shared.memory + offset;
}

void *
sim_dynamic_shared (void)
{
  return dynamic_start ();
}

/* ---- addresses ---- */

bool
sim::shared_segv (const unsigned char *address)
{
  unsigned char *before = shared.memory - page_size (), *after = shared.memory + SHARED_BYTES;
  if (!(address >= before && address < shared.memory)
      && !(address >= after && address < after + page_size ()))
    return false;
  sim_fault ("%s: an access %td bytes from the start of %zu bytes of dynamic shared memory", sim_place (),
             address - dynamic_start (), grid.shared_bytes);
  mprotect (before, page_size (), PROT_READ | PROT_WRITE);
  mprotect (after, page_size (), PROT_READ | PROT_WRITE);
  shared.is_open = grid.has_failed = true;
  return true;
}

void
sim_check_aligned (const void *address, size_t bytes, const char *file, int line)
{
  if (reinterpret_cast<uintptr_t> (address) % bytes != 0)
    fail ("%s:%d: an access of %zu bytes at %p, which is no multiple of that", file, line, bytes, address);
}
