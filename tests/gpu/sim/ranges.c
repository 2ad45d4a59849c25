/*
 * ranges.c: the race detector. Every stream and the host have a vector clock: how far each stream has got, as
 * they know it from events and waits. For every range of memory the last write and the reads since then are
 * kept. Two accesses of which one writes, neither known to the other, are a race, in whatever order they ran.
 *
 * Fidge 1988, Mattern 1989 (vector clocks); Flanagan and Freund 2009, "FastTrack" (the last write is one
 * epoch). Accesses of the host need no place of their own: what the host queues later comes after them.
 */
#include "config.h"
#include "tests/gpu/sim/internal.h"

/* ---- clocks ---- */

guint64
sim_clock_at (const SimClock *clock, guint index)
{
  return index < clock->n ? clock->at[index] : 0;
}

static void
grow (SimClock *clock, guint n)
{
  if (n <= clock->n)
    return;
  clock->at = g_renew (guint64, clock->at, n);
  for (; clock->n < n; clock->n++)
    clock->at[clock->n] = 0;
}

void
sim_clock_join (SimClock *clock, const SimClock *other)
{
  grow (clock, other->n);
  for (guint i = 0; i < other->n; i++)
    clock->at[i] = MAX (clock->at[i], other->at[i]);
}

guint64
sim_clock_tick (SimClock *clock, guint index)
{
  grow (clock, index + 1);
  return ++clock->at[index];
}

void
sim_clock_clear (SimClock *clock)
{
  g_free (clock->at);
  *clock = (SimClock){ 0 };
}

/* ---- ops ---- */

SimOp *
sim_op_new (const char *what, guint stream, guint64 at)
{
  SimOp *op = g_rc_box_new0 (SimOp);
  *op = (SimOp){ .what = g_strdup (what), .stream = stream, .at = at };
  return op;
}

static SimOp *
op_ref (SimOp *op)
{
  return g_rc_box_acquire (op);
}

static void
op_clear (gpointer op)
{
  g_free (((SimOp *) op)->what);
}

void
sim_op_unref (SimOp *op)
{
  if (op)
    g_rc_box_release_full (op, op_clear);
}

/* ---- segments ---- */

/* A range whose bytes have the same history. */
typedef struct
{
  guintptr start, end;
  SimOp *writer;      /* NULL: none */
  GPtrArray *readers; /* of SimOp, since the writer; one for a stream, its last; NULL: none */
} Segment;

static GArray *segments; /* sorted, disjoint */

static void
segment_clear (gpointer data)
{
  Segment *s = data;
  sim_op_unref (s->writer);
  g_clear_pointer (&s->readers, g_ptr_array_unref);
}

void
sim_ranges_reset (void)
{
  g_clear_pointer (&segments, g_array_unref);
  segments = g_array_new (FALSE, FALSE, sizeof (Segment));
  g_array_set_clear_func (segments, segment_clear);
}

static Segment *
segment (guint i)
{
  return &g_array_index (segments, Segment, i);
}

/* The first segment that ends after @address. */
static guint
lower_bound (guintptr address)
{
  guint low = 0, high = segments->len;
  while (low < high)
    {
      guint middle = (low + high) / 2;
      if (segment (middle)->end > address)
        high = middle;
      else
        low = middle + 1;
    }
  return low;
}

static gpointer
copy_reader (gconstpointer op, gpointer data G_GNUC_UNUSED)
{
  return op_ref ((SimOp *) op);
}

/* Lets a boundary between segments lie at @address. */
static void
split (guintptr address)
{
  guint i = lower_bound (address);
  if (i == segments->len || segment (i)->start >= address)
    return;
  Segment *left = segment (i);
  Segment right = { address, left->end, left->writer ? op_ref (left->writer) : NULL,
                    left->readers ? g_ptr_array_copy (left->readers, copy_reader, NULL) : NULL };
  left->end = address;
  g_array_insert_val (segments, i + 1, right);
}

static bool
knows (const SimClock *clock, const SimOp *op)
{
  return sim_clock_at (clock, op->stream) >= op->at;
}

static void
report (const SimOp *op, bool writes, const SimOp *other, bool other_writes, guintptr start, guintptr end)
{
  g_autofree char *where = sim_memory_describe ((const void *) start);
  sim_fault ("race: '%s' (stream %u) %s %zu bytes of %s that '%s' (stream %u) %s, and nothing orders the two",
             op->what, op->stream, writes ? "writes" : "reads", (size_t) (end - start), where, other->what,
             other->stream, other_writes ? "writes" : "reads");
}

static void
check (const SimOp *op, const SimClock *clock, const SimRange *range)
{
  guintptr start = (guintptr) range->address, end = start + range->bytes;
  for (guint i = lower_bound (start); i < segments->len && segment (i)->start < end; i++)
    {
      const Segment *s = segment (i);
      guintptr from = MAX (start, s->start), to = MIN (end, s->end);
      if (s->writer && !knows (clock, s->writer))
        report (op, range->writes, s->writer, true, from, to);
      for (guint r = 0; range->writes && s->readers && r < s->readers->len; r++)
        if (!knows (clock, s->readers->pdata[r]))
          report (op, true, s->readers->pdata[r], false, from, to);
    }
}

static void
add_reader (Segment *s, SimOp *op)
{
  if (!s->readers)
    s->readers = g_ptr_array_new_with_free_func ((GDestroyNotify) sim_op_unref);
  for (guint r = 0; r < s->readers->len; r++)
    if (((SimOp *) s->readers->pdata[r])->stream == op->stream)
      {
        sim_op_unref (s->readers->pdata[r]);
        s->readers->pdata[r] = op_ref (op);
        return;
      }
  g_ptr_array_add (s->readers, op_ref (op));
}

static void
record_read (SimOp *op, guintptr start, guintptr end)
{
  split (start);
  split (end);
  for (guint i = lower_bound (start); start < end; i++)
    {
      if (i == segments->len || segment (i)->start > start)
        {
          guintptr next = i == segments->len ? end : MIN (end, segment (i)->start);
          Segment gap = { start, next, NULL, NULL };
          g_array_insert_val (segments, i, gap);
        }
      add_reader (segment (i), op);
      start = segment (i)->end;
    }
}

void
sim_ranges_forget (const void *address, gsize bytes)
{
  guintptr start = (guintptr) address, end = start + bytes;
  split (start);
  split (end);
  guint first = lower_bound (start), last = first;
  while (last < segments->len && segment (last)->start < end)
    last++;
  if (last > first)
    g_array_remove_range (segments, first, last - first);
}

static void
record_write (SimOp *op, guintptr start, guintptr end)
{
  sim_ranges_forget ((const void *) start, end - start);
  Segment written = { start, end, op_ref (op), NULL };
  g_array_insert_val (segments, lower_bound (start), written);
}

void
sim_ranges_access (SimOp *op, const SimClock *clock, const SimRange *ranges, guint n_ranges)
{
  for (guint i = 0; i < n_ranges; i++)
    check (op, clock, &ranges[i]);
  /* Reads first: of a range that the op both reads and writes, the write is what counts. */
  for (guint i = 0; i < n_ranges; i++)
    if (!ranges[i].writes)
      record_read (op, (guintptr) ranges[i].address, (guintptr) ranges[i].address + ranges[i].bytes);
  for (guint i = 0; i < n_ranges; i++)
    if (ranges[i].writes)
      record_write (op, (guintptr) ranges[i].address, (guintptr) ranges[i].address + ranges[i].bytes);
}

const SimOp *
sim_ranges_pending (const SimClock *host, const void *address, gsize bytes, bool also_reads)
{
  guintptr start = (guintptr) address, end = start + bytes;
  for (guint i = lower_bound (start); i < segments->len && segment (i)->start < end; i++)
    {
      const Segment *s = segment (i);
      if (s->writer && !knows (host, s->writer))
        return s->writer;
      for (guint r = 0; also_reads && s->readers && r < s->readers->len; r++)
        if (!knows (host, s->readers->pdata[r]))
          return s->readers->pdata[r];
    }
  return NULL;
}
