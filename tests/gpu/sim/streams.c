/*
 * streams.c: queues of work, events, and when the work runs.
 *
 * Nothing runs until the host waits for something, or asks whether it is done. Then the schedule says what
 * runs besides what is awaited: as little as possible, so that consumers that do not wait for their producer
 * find nothing; as much as possible, so that producers that do not wait for the last consumer overwrite what
 * it still needs; or anything.
 */
#include "config.h"
#include "tests/gpu/sim/internal.h"
#include <string.h>

/* Milliseconds of a piece of work that does not say how long it takes. */
#define DEFAULT_MILLISECONDS 0.001

typedef struct
{
  SimOp *op;                /* work; NULL: records or waits */
  SimMark *records, *waits; /* at most one of them */
  void (*run) (void *closure);
  void (*destroy) (void *closure);
  void *closure;
  SimRange *ranges; /* NULL: all memory */
  guint n_ranges;
  SimRange *fresh; /* filled with NaN before */
  guint n_fresh;
  double not_before; /* the host's time when it was queued */
} Item;

/* Of all that were ever made: a stale handle is still known. */
static GPtrArray *streams, *events;
static SimClock host_clock;
static double host_time;
static guint64 random_state;

/* What was declared last. */
static char *declared_op;
static GArray *declared, *fresh; /* of SimRange; NULL: nothing */

static SimOp *running;
static GThread *running_thread;
static double running_milliseconds;

/* ---- life ---- */

static void
mark_free (gpointer data)
{
  SimMark *mark = data;
  sim_clock_clear (&mark->clock);
}

static void
mark_unref (SimMark *mark)
{
  if (mark)
    g_rc_box_release_full (mark, mark_free);
}

static void
item_free (gpointer data)
{
  Item *item = data;
  if (item->destroy)
    item->destroy (item->closure);
  sim_op_unref (item->op);
  mark_unref (item->records);
  mark_unref (item->waits);
  g_free (item->ranges);
  g_free (item->fresh);
  g_free (item);
}

static void
stream_free (gpointer data)
{
  SimStream *stream = data;
  g_queue_clear_full (&stream->items, item_free);
  sim_clock_clear (&stream->clock);
  g_free (stream);
}

static void
event_free (gpointer data)
{
  mark_unref (((SimEvent *) data)->mark);
  g_free (data);
}

static void
forget_declared (void)
{
  g_clear_pointer (&declared_op, g_free);
  g_clear_pointer (&declared, g_array_unref);
  g_clear_pointer (&fresh, g_array_unref);
}

void
sim_streams_reset (void)
{
  g_clear_pointer (&streams, g_ptr_array_unref);
  g_clear_pointer (&events, g_ptr_array_unref);
  streams = g_ptr_array_new_with_free_func (stream_free);
  events = g_ptr_array_new_with_free_func (event_free);
  sim_clock_clear (&host_clock);
  host_time = 0;
  random_state = 0;
  forget_declared ();
}

guint
sim_streams_n_live (void)
{
  guint n = 0;
  for (guint i = 0; streams && i < streams->len; i++)
    n += ((SimStream *) streams->pdata[i])->is_live;
  for (guint i = 0; events && i < events->len; i++)
    n += ((SimEvent *) events->pdata[i])->is_live;
  return n;
}

const SimClock *
sim_host_clock (void)
{
  return &host_clock;
}

const SimOp *
sim_running_op (void)
{
  return running_thread == g_thread_self () ? running : NULL;
}

/* ---- handles ---- */

bool
sim_is_stream (cudaStream_t stream)
{
  SIM_LOCK ();
  sim_start ();
  return g_ptr_array_find (streams, stream, NULL) && stream->is_live;
}

bool
sim_streams_check (cudaStream_t stream, const char *entry_point)
{
  if (sim_is_stream (stream))
    return true;
  if (stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    sim_fault ("%s: the default stream is used; every piece of work needs a stream of its own", entry_point);
  else if (g_ptr_array_find (streams, stream, NULL))
    sim_fault ("%s: stream %u is destroyed", entry_point, stream->index);
  else
    sim_fault ("%s: %p is no stream", entry_point, (void *) stream);
  return false;
}

bool
sim_events_check (cudaEvent_t event, const char *entry_point)
{
  bool is_known = g_ptr_array_find (events, event, NULL);
  if (is_known && event->is_live)
    return true;
  sim_fault ("%s: %p is %s", entry_point, (void *) event, is_known ? "a destroyed event" : "no event");
  return false;
}

/* ---- running ---- */

bool
sim_mark_is_reached (const SimMark *mark)
{
  return mark->stream->n_run >= mark->position;
}

static void
fill_fresh (const Item *item)
{
  if (item->n_fresh == 0)
    return;
  sim_memory_open (item->fresh, item->n_fresh);
  for (guint i = 0; i < item->n_fresh; i++)
    memset ((void *) item->fresh[i].address, 0xff, item->fresh[i].bytes);
}

static double
run_work (Item *item)
{
  fill_fresh (item);
  sim_memory_open (item->ranges, item->n_ranges);
  running = item->op;
  running_thread = g_thread_self ();
  running_milliseconds = 0;
  item->run (item->closure);
  running = NULL;
  sim_memory_check_guards (item->op->what);
  if (item->ranges)
    sim_memory_close ();
  return running_milliseconds > 0 ? running_milliseconds : DEFAULT_MILLISECONDS;
}

/* Whether the next item of @stream can run now. */
static bool
can_run (SimStream *stream)
{
  const Item *item = g_queue_peek_head (&stream->items);
  return item && (!item->waits || sim_mark_is_reached (item->waits));
}

static void
run_next (SimStream *stream)
{
  Item *item = g_queue_pop_head (&stream->items);
  stream->time = MAX (stream->time, item->not_before);
  if (item->waits)
    stream->time = MAX (stream->time, item->waits->time);
  if (item->op && !sim_sticky_error ())
    stream->time += run_work (item);
  if (item->records)
    item->records->time = stream->time;
  stream->n_run++;
  item_free (item);
}

/* SplitMix64: Steele, Lea, Flood 2014. */
static guint
random_below (guint n)
{
  guint64 z = (random_state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (guint) ((z ^ (z >> 31)) >> 33) % n;
}

/* One item of @stream, or of the stream that it waits for. */
static void
step_late (SimStream *stream)
{
  while (!can_run (stream))
    stream = ((Item *) g_queue_peek_head (&stream->items))->waits->stream;
  run_next (stream);
}

/* Everything but @stream, as far as it can go. */
static void
run_others (const SimStream *stream)
{
  for (bool has_run = true; has_run;)
    {
      has_run = false;
      for (guint i = 0; i < streams->len; i++)
        while (streams->pdata[i] != stream && can_run (streams->pdata[i]))
          {
            run_next (streams->pdata[i]);
            has_run = true;
          }
    }
}

/* FALSE: there is nothing that can run. */
static bool
step_random (void)
{
  guint n = 0;
  for (guint i = 0; i < streams->len; i++)
    n += can_run (streams->pdata[i]);
  if (n == 0)
    return false;
  guint chosen = random_below (n);
  for (guint i = 0; i < streams->len; i++)
    if (can_run (streams->pdata[i]) && chosen-- == 0)
      {
        run_next (streams->pdata[i]);
        break;
      }
  return true;
}

void
sim_streams_run (SimStream *stream, guint64 position, bool is_query)
{
  /* What waits is always later, in the order of the host, than what it waits for: something can run. */
  g_assert (!running);
  switch (sim_config ()->schedule)
    {
    case SIM_LATE:
      while (stream->n_run < position)
        {
          step_late (stream);
          if (is_query)
            break;
        }
      break;
    case SIM_EARLY:
      run_others (stream);
      while (stream->n_run < position)
        {
          if (can_run (stream))
            run_next (stream);
          run_others (stream);
        }
      break;
    case SIM_RANDOM:
      if (random_state == 0)
        random_state = sim_config ()->seed + (guint64) 1;
      while (stream->n_run < position && step_random ())
        if (is_query && random_below (2) == 0)
          break;
      while (random_below (2) == 1 && step_random ())
        ;
      break;
    }
  sim_memory_close ();
}

void
sim_streams_finish_all (void)
{
  for (guint i = 0; i < streams->len; i++)
    sim_streams_run (streams->pdata[i], ((SimStream *) streams->pdata[i])->n_queued, false);
}

/* ---- queuing ---- */

static void
add (SimStream *stream, Item *item)
{
  item->not_before = host_time;
  g_queue_push_tail (&stream->items, item);
  stream->n_queued++;
}

SimStream *
sim_streams_new (void)
{
  SimStream *stream = g_new0 (SimStream, 1);
  stream->index = streams->len;
  stream->is_live = true;
  g_ptr_array_add (streams, stream);
  return stream;
}

SimEvent *
sim_events_new (bool has_timing)
{
  SimEvent *event = g_new0 (SimEvent, 1);
  event->is_live = true;
  event->has_timing = has_timing;
  g_ptr_array_add (events, event);
  return event;
}

void
sim_streams_record (SimStream *stream, SimEvent *event)
{
  SimMark *mark = g_rc_box_new0 (SimMark);
  sim_clock_join (&stream->clock, &host_clock);
  sim_clock_join (&mark->clock, &stream->clock);
  Item *item = g_new0 (Item, 1);
  item->records = g_rc_box_acquire (mark);
  add (stream, item);
  mark->stream = stream;
  mark->position = stream->n_queued;
  mark_unref (event->mark);
  event->mark = mark;
}

void
sim_streams_wait (SimStream *stream, SimMark *mark)
{
  Item *item = g_new0 (Item, 1);
  item->waits = g_rc_box_acquire (mark);
  sim_clock_join (&stream->clock, &mark->clock);
  add (stream, item);
}

void
sim_host_waited (const SimClock *clock, double time)
{
  sim_clock_join (&host_clock, clock);
  host_time = MAX (host_time, time);
  /* Where the host knows all that was queued, no work that follows can conflict with it. */
  for (guint i = 0; i < streams->len; i++)
    if (sim_clock_at (&((SimStream *) streams->pdata[i])->clock, i) > sim_clock_at (&host_clock, i))
      return;
  sim_ranges_reset ();
}

const GPtrArray *
sim_streams_all (void)
{
  return streams;
}

static bool
check_ranges (const char *what, const SimRange *ranges, guint n_ranges)
{
  for (guint i = 0; i < n_ranges; i++)
    {
      if (sim_is_device_range (ranges[i].address, ranges[i].bytes)
          || sim_is_pinned_range (ranges[i].address, ranges[i].bytes))
        continue;
      g_autofree char *where = sim_memory_describe (ranges[i].address);
      sim_fault ("%s: range %u, %zu bytes, is not inside one allocation: %s", what, i, ranges[i].bytes,
                 where);
      return false;
    }
  return true;
}

/* Ranges without the empty ones. */
static GArray *
copy_ranges (const SimRange *ranges, guint n_ranges, bool only_fresh)
{
  GArray *copy = g_array_new (FALSE, FALSE, sizeof (SimRange));
  for (guint i = 0; i < n_ranges; i++)
    if (ranges[i].address && ranges[i].bytes > 0 && (ranges[i].fresh || !only_fresh))
      g_array_append_val (copy, ranges[i]);
  return copy;
}

void
sim_declare_ranges (const char *op, const SimRange *ranges, int n_ranges)
{
  SIM_LOCK ();
  sim_start ();
  forget_declared ();
  if (!ranges)
    return;
  declared = copy_ranges (ranges, n_ranges, false);
  fresh = copy_ranges (ranges, n_ranges, true);
  for (guint i = 0; i < fresh->len; i++)
    g_array_index (fresh, SimRange, i).writes = true;
  declared_op = g_strdup (op);
  if (!check_ranges (op, (const SimRange *) declared->data, declared->len))
    forget_declared ();
}

cudaError_t
sim_streams_add (cudaStream_t stream, const char *what, const SimRange *ranges, guint n_ranges,
                 void (*run) (void *), void *closure, void (*destroy) (void *))
{
  g_autoptr (GArray) own = ranges ? copy_ranges (ranges, n_ranges, false) : NULL;
  if (!sim_streams_check (stream, what)
      || (own && !check_ranges (what, (const SimRange *) own->data, own->len)))
    {
      if (destroy)
        destroy (closure);
      return sim_return (cudaErrorInvalidValue);
    }
  const GArray *touched = own ? own : declared;
  Item *item = g_new0 (Item, 1);
  item->run = run;
  item->closure = closure;
  item->destroy = destroy;
  sim_clock_join (&stream->clock, &host_clock);
  guint64 at = sim_clock_tick (&stream->clock, stream->index);
  item->op = sim_op_new (what, stream->index, at);
  if (fresh)
    {
      gsize n = 0;
      item->fresh = g_array_steal (fresh, &n);
      item->n_fresh = (guint) n;
      sim_ranges_access (item->op, &stream->clock, item->fresh, item->n_fresh);
    }
  if (touched)
    {
      item->n_ranges = touched->len;
      /* Never NULL: that is all memory. */
      item->ranges = g_malloc ((touched->len + 1) * sizeof (SimRange));
      for (guint i = 0; i < touched->len; i++)
        item->ranges[i] = g_array_index (touched, SimRange, i);
      sim_ranges_access (item->op, &stream->clock, item->ranges, item->n_ranges);
    }
  add (stream, item);
  return cudaSuccess;
}

cudaError_t
sim_enqueue (cudaStream_t stream, const char *what, const SimRange *ranges, int n_ranges,
             void (*run) (void *closure), void *closure, void (*destroy) (void *closure))
{
  SIM_LOCK ();
  cudaError_t error = sim_call (what);
  if (error == cudaSuccess && sim_config ()->startup_error == cudaErrorNoKernelImageForDevice)
    error = sim_return (cudaErrorNoKernelImageForDevice);
  g_autofree char *name = declared_op ? g_strconcat (declared_op, ": ", what, NULL) : g_strdup (what);
  if (error == cudaSuccess)
    return sim_streams_add (stream, name, ranges, n_ranges, run, closure, destroy);
  if (destroy)
    destroy (closure);
  return error;
}

void
sim_spend (double milliseconds)
{
  running_milliseconds += milliseconds;
}
