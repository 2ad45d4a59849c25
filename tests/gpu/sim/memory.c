/*
 * memory.c: the memory of the simulated device, and pinned memory of the host.
 *
 * All of it lies in one reservation of addresses. An allocation has a page before and after it that nothing
 * can touch, begins filled with NaN, and ends as near to the guard page as its alignment allows; the bytes
 * between are checked. Device memory is closed except while queued work runs, and then only what the work has
 * declared is open: anything else is a fault that names allocation and offset. Addresses are not used again
 * until the reservation is through, so that a stale pointer is found as well.
 */
#include "config.h"
#include "tests/gpu/sim/internal.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define RESERVED_BYTES ((gsize) 1 << 40)
#define ALIGNMENT 256   /* of cudaMalloc */
#define NAN_BYTE 0xff   /* NaN in every type of floats, -1 in integers */
#define GUARD_BYTE 0xa5 /* of bytes beside an allocation, in its own pages */
#define MAX_STRAYS 256
#define MAX_RELEASED 4096

static guint8 *reserved;
static gsize page, cursor;
static GPtrArray *live;                /* of SimAllocation */
static GQueue released = G_QUEUE_INIT; /* likewise, the last ones, for messages */
static guint n_numbers;                /* of allocations */
static gsize bytes_now, bytes_peak;    /* of the device */
static unsigned long n_device_allocations;

/* What is open now: all, or the pages of these ranges. */
static bool is_open;
static GArray *open_ranges; /* of SimRange; NULL while all is open */

/* Pages that a fault has opened, for the access to go on. */
static guint8 *strays[MAX_STRAYS];
static guint n_strays;

static struct sigaction action_before;

static void
protect (guint8 *address, gsize bytes, int protection)
{
  if (mprotect (address, bytes, protection) != 0)
    g_error ("simulated CUDA device: mprotect: %s", g_strerror (errno));
}

/* Closed, and without contents. */
static void
unmap (guint8 *address, gsize bytes)
{
  UNPOISON (address, bytes);
  if (mmap (address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
      == MAP_FAILED)
    g_error ("simulated CUDA device: mmap: %s", g_strerror (errno));
}

/* ---- finding ---- */

static bool
is_reserved (const void *address)
{
  return reserved && (const guint8 *) address >= reserved
         && (const guint8 *) address < reserved + RESERVED_BYTES;
}

const SimAllocation *
sim_memory_find (const void *address)
{
  if (!is_reserved (address))
    return NULL;
  for (guint i = 0; i < live->len; i++)
    {
      const SimAllocation *a = live->pdata[i];
      if ((const guint8 *) address >= a->address && (const guint8 *) address < a->address + a->bytes)
        return a;
    }
  return NULL;
}

static bool
is_range (const void *address, gsize bytes, bool is_pinned)
{
  SIM_LOCK ();
  const SimAllocation *a = sim_memory_find (address);
  return a && a->is_pinned == is_pinned
         && bytes <= (gsize) (a->address + a->bytes - (const guint8 *) address);
}

bool
sim_is_device_range (const void *address, size_t bytes)
{
  return is_range (address, bytes, false);
}

bool
sim_is_pinned_range (const void *address, size_t bytes)
{
  return is_range (address, bytes, true);
}

/* Whether @address lies in the pages of @a, or in the guard pages. */
static bool
is_near (const SimAllocation *a, const guint8 *address)
{
  return address >= a->pages - page && address < a->pages + a->pages_bytes + page;
}

static char *
describe (const SimAllocation *a, const guint8 *address, const char *state)
{
  gint64 offset = address - a->address;
  return g_strdup_printf ("%s%sallocation %u (%zu bytes) at offset %" G_GINT64_FORMAT "%s", state,
                          a->is_pinned ? "pinned " : "", a->number, a->bytes, offset,
                          offset < 0                    ? ", before its start"
                          : offset >= (gint64) a->bytes ? ", past its end"
                                                        : "");
}

char *
sim_memory_describe (const void *address)
{
  for (guint i = 0; live && i < live->len; i++)
    if (is_near (live->pdata[i], address))
      return describe (live->pdata[i], address, "");
  for (GList *l = released.tail; l; l = l->prev)
    if (is_near (l->data, address))
      return describe (l->data, address, "released ");
  return g_strdup_printf ("%p, which is no allocation", address);
}

/* ---- opening ---- */

static void
page_range (const void *address, gsize bytes, guint8 **start, gsize *length)
{
  guintptr first = (guintptr) address & ~(page - 1);
  guintptr end = ((guintptr) address + bytes + page - 1) & ~(page - 1);
  *start = (guint8 *) first;
  *length = end - first;
}

static void
protect_range (const SimRange *range, int protection)
{
  guint8 *start;
  gsize length;
  page_range (range->address, range->bytes, &start, &length);
  protect (start, length, protection);
}

static void
protect_all (int protection)
{
  for (guint i = 0; i < live->len; i++)
    {
      const SimAllocation *a = live->pdata[i];
      if (!a->is_pinned)
        protect (a->pages, a->pages_bytes, protection);
    }
}

#ifdef __SANITIZE_ADDRESS__
/* For the instrumented kernels: what is not in the ranges, to the byte. */
static void
poison_all (bool poison)
{
  for (guint i = 0; i < live->len; i++)
    {
      const SimAllocation *a = live->pdata[i];
      if (!a->is_pinned && poison)
        POISON (a->address, a->bytes);
      else if (!a->is_pinned)
        UNPOISON (a->address, a->bytes);
    }
}
#else
  #define poison_all(poison)
#endif

void
sim_memory_open (const SimRange *ranges, guint n_ranges)
{
  if (is_open && !ranges && !open_ranges)
    return;
  sim_memory_close ();
  is_open = true;
  if (!ranges)
    {
      protect_all (PROT_READ | PROT_WRITE);
      return;
    }
  open_ranges = g_array_sized_new (FALSE, FALSE, sizeof (SimRange), n_ranges);
  for (guint i = 0; i < n_ranges; i++)
    if (sim_is_device_range (ranges[i].address, ranges[i].bytes))
      g_array_append_val (open_ranges, ranges[i]);
  poison_all (true);
  /* Reads first: a page that holds both can be written. */
  for (int writes = 0; writes < 2; writes++)
    for (guint i = 0; i < open_ranges->len; i++)
      {
        const SimRange *range = &g_array_index (open_ranges, SimRange, i);
        if (range->writes != (writes == 1))
          continue;
        protect_range (range, writes ? PROT_READ | PROT_WRITE : PROT_READ);
        UNPOISON (range->address, range->bytes);
      }
}

void
sim_memory_close (void)
{
  sim_memory_close_strays ();
  if (!is_open)
    return;
  if (!open_ranges)
    protect_all (PROT_NONE);
  else
    {
      for (guint i = 0; i < open_ranges->len; i++)
        protect_range (&g_array_index (open_ranges, SimRange, i), PROT_NONE);
      poison_all (false);
    }
  g_clear_pointer (&open_ranges, g_array_unref);
  is_open = false;
}

/* ---- faults ---- */

void
sim_memory_close_strays (void)
{
  while (n_strays > 0)
    {
      guint8 *address = strays[--n_strays];
      const SimAllocation *a = sim_memory_find (address);
      if (!a || !a->is_pinned)
        protect (address, page, PROT_NONE);
    }
}

static bool
is_write (const void *context)
{
#ifdef __x86_64__
  return ((const ucontext_t *) context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
  (void) context;
  return false;
#endif
}

/* Comes back only when faults are expected: then the access goes on, in memory that is opened for it. */
static void
on_segv (int signal_number, siginfo_t *info, void *context)
{
  guint8 *address = info->si_addr;
  if (sim_kernel_segv (address))
    return;
  if (!is_reserved (address) || n_strays == MAX_STRAYS)
    {
      sigaction (signal_number, &action_before, NULL);
      return; /* the access faults again, for whoever was there before */
    }
  const SimOp *op = sim_running_op ();
  g_autofree char *where = sim_memory_describe (address);
  const char *access = is_write (context) ? "writes" : "reads";
  if (!op)
    sim_fault ("the host %s what is not open to it: %s", access, where);
  else
    {
      const SimAllocation *a = sim_memory_find (address);
      const char *place = sim_place ();
      sim_fault ("'%s' %s %s%s%s%s", op->what, access, where, a ? ", which it has not declared" : "",
                 place ? ": " : "", place ? place : "");
      sim_set_sticky_error (cudaErrorIllegalAddress);
    }
  guint8 *start = (guint8 *) ((guintptr) address & ~(page - 1));
  protect (start, page, PROT_READ | PROT_WRITE);
  strays[n_strays++] = start;
}

static void
handle_faults (void)
{
  /* Fibers have small stacks, and one that overflows has none. */
  stack_t stack;
  sigaltstack (NULL, &stack);
  if (stack.ss_flags & SS_DISABLE)
    {
      static guint8 memory[1 << 16];
      stack = (stack_t){ .ss_sp = memory, .ss_size = sizeof memory };
      sigaltstack (&stack, NULL);
    }
  struct sigaction action = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
  sigemptyset (&action.sa_mask);
  sigaction (SIGSEGV, &action, &action_before);
}

/* ---- guards ---- */

/* The first byte of @bytes at @address that is no guard byte, or NULL. */
__attribute__ ((no_sanitize ("address"))) static const guint8 *
first_written (const guint8 *address, gsize bytes)
{
  for (gsize i = 0; i < bytes; i++)
    if (address[i] != GUARD_BYTE)
      return address + i;
  return NULL;
}

__attribute__ ((no_sanitize ("address"))) static void
fill_guard (guint8 *address, gsize bytes)
{
  for (gsize i = 0; i < bytes; i++)
    ((volatile guint8 *) address)[i] = GUARD_BYTE;
}

/* Guard bytes that lie in the pages from @start to @end. */
static void
check_guards (const SimAllocation *a, const guint8 *start, const guint8 *end, const char *what)
{
  guint8 *after = a->address + a->bytes, *pages_end = a->pages + a->pages_bytes;
  const guint8 *written = NULL;
  /* Both are shorter than a page. */
  if (start <= a->pages)
    written = first_written (a->pages, a->address - a->pages);
  if (!written && end >= pages_end)
    written = first_written (after, pages_end - after);
  if (!written)
    return;
  g_autofree char *where = describe (a, written, "");
  sim_fault ("%s wrote to %s", what, where);
  if (start <= a->pages)
    fill_guard (a->pages, a->address - a->pages);
  if (end >= pages_end)
    fill_guard (after, pages_end - after);
}

void
sim_memory_check_guards (const char *what)
{
  g_autofree char *quoted = g_strdup_printf ("'%s'", what);
  for (guint i = 0; i < live->len; i++)
    {
      const SimAllocation *a = live->pdata[i];
      if (a->is_pinned)
        check_guards (a, a->pages, a->pages + a->pages_bytes, "something");
      else if (!open_ranges)
        check_guards (a, a->pages, a->pages + a->pages_bytes, quoted);
    }
  for (guint i = 0; open_ranges && i < open_ranges->len; i++)
    {
      const SimRange *range = &g_array_index (open_ranges, SimRange, i);
      guint8 *start;
      gsize length;
      page_range (range->address, range->bytes, &start, &length);
      if (range->writes)
        check_guards (sim_memory_find (range->address), start, start + length, quoted);
    }
}

/* ---- life ---- */

static void
map_all (void)
{
  page = sysconf (_SC_PAGESIZE);
  reserved = mmap (NULL, RESERVED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    g_error ("simulated CUDA device: no addresses: %s", g_strerror (errno));
  live = g_ptr_array_new_with_free_func (g_free);
  handle_faults ();
}

void
sim_memory_reset (void)
{
  if (!reserved)
    map_all ();
  sim_memory_close ();
  for (guint i = 0; i < live->len; i++)
    {
      const SimAllocation *a = live->pdata[i];
      unmap (a->pages, a->pages_bytes);
    }
  g_ptr_array_set_size (live, 0);
  g_queue_clear_full (&released, g_free);
  cursor = 0;
  n_numbers = 0;
  bytes_now = bytes_peak = 0;
  n_device_allocations = 0;
}

/* Addresses that no live allocation has, @bytes of them. */
static guint8 *
find_addresses (gsize bytes)
{
  for (guint i = 0; i <= live->len; i++)
    {
      if (bytes > RESERVED_BYTES - cursor)
        cursor = 0;
      const SimAllocation *in_the_way = NULL;
      for (guint k = 0; k < live->len && !in_the_way; k++)
        {
          const SimAllocation *a = live->pdata[k];
          gsize start = a->pages - page - reserved, end = start + a->pages_bytes + 2 * page;
          if (start < cursor + bytes && end > cursor)
            in_the_way = a;
        }
      if (!in_the_way)
        {
          cursor += bytes;
          return reserved + cursor - bytes;
        }
      cursor = in_the_way->pages + in_the_way->pages_bytes + page - reserved;
    }
  return NULL;
}

void *
sim_memory_allocate (gsize bytes, bool is_pinned)
{
  if (bytes > RESERVED_BYTES / 2 || (!is_pinned && bytes > sim_config ()->memory_bytes - bytes_now))
    return NULL;
  gsize pages_bytes = (bytes + page - 1) & ~(page - 1);
  guint8 *addresses = find_addresses (pages_bytes + 2 * page);
  if (!addresses)
    return NULL;
  SimAllocation *a = g_new (SimAllocation, 1);
  gsize spare = pages_bytes - bytes;
  *a = (SimAllocation){ .address = addresses + page + (spare & ~(gsize) (ALIGNMENT - 1)),
                        .bytes = bytes,
                        .is_pinned = is_pinned,
                        .number = ++n_numbers,
                        .pages = addresses + page,
                        .pages_bytes = pages_bytes };
  protect (a->pages, pages_bytes, PROT_READ | PROT_WRITE);
  fill_guard (a->pages, a->address - a->pages);
  memset (a->address, NAN_BYTE, bytes);
  fill_guard (a->address + bytes, a->pages + pages_bytes - a->address - bytes);
  POISON (a->pages, a->address - a->pages);
  POISON (a->address + bytes, a->pages + pages_bytes - a->address - bytes);
  g_ptr_array_add (live, a);
  if (is_pinned)
    return a->address;
  protect (a->pages, pages_bytes, PROT_NONE);
  bytes_now += bytes;
  bytes_peak = MAX (bytes_peak, bytes_now);
  n_device_allocations++;
  return a->address;
}

void
sim_memory_release (const SimAllocation *allocation)
{
  guint i;
  if (!g_ptr_array_find (live, allocation, &i))
    g_error ("simulated CUDA device: allocation %u is released twice", allocation->number);
  if (allocation->is_pinned)
    check_guards (allocation, allocation->pages, allocation->pages + allocation->pages_bytes, "something");
  else
    bytes_now -= allocation->bytes;
  SimAllocation *a = g_ptr_array_steal_index (live, i);
  unmap (a->pages, a->pages_bytes);
  g_queue_push_tail (&released, a);
  if (released.length > MAX_RELEASED)
    g_free (g_queue_pop_head (&released));
}

guint
sim_memory_n_live (void)
{
  return live ? live->len : 0;
}

size_t
sim_bytes (void)
{
  return bytes_now;
}

size_t
sim_peak_bytes (void)
{
  return bytes_peak;
}

unsigned long
sim_n_allocations (void)
{
  return n_device_allocations;
}
