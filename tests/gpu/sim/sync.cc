/*
 * sync.cc: barriers, shuffles and votes of kernels. Each waits until all whom it names have come, at the same
 * line; what a device leaves undefined is reported.
 */
#include "tests/gpu/sim/fibers.h"
#include <stdio.h>

using namespace sim;

static const char *
op_name (SimWarpOp op)
{
  static const char *const names[] = {
    "__syncwarp",  "__ballot_sync",  "__any_sync",       "__all_sync",
    "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
  };
  return names[op];
}

static bool
is_same_site (const Thread *a, const Thread *b)
{
  return a->line == b->line && (a->file == b->file || strcmp (a->file, b->file) == 0);
}

/* What a thread does, for messages. */
static void
describe (const Thread *thread, char *text, size_t size)
{
  const uint3 i = thread->index;
  int n = snprintf (text, size, "thread (%u,%u,%u) ", i.x, i.y, i.z);
  if (thread->state == AT_BARRIER)
    snprintf (text + n, size - n, "waits in __syncthreads at %s:%d", thread->file, thread->line);
  else if (thread->state == IN_WARP)
    snprintf (text + n, size - n, "waits in %s of mask 0x%x at %s:%d", op_name (thread->op), thread->mask,
              thread->file, thread->line);
  else
    snprintf (text + n, size - n, "has ended");
}

void
sim::report_stuck (void)
{
  const Thread *waiting = NULL, *other = NULL;
  for (int i = 0; i < grid.n_threads && !waiting; i++)
    if (grid.threads[i].state != ENDED)
      waiting = &grid.threads[i];
  for (int i = 0; i < grid.n_threads && !other; i++)
    {
      const Thread *t = &grid.threads[i];
      bool is_awaited = true, is_there;
      if (waiting->state == AT_BARRIER)
        is_there = t->state == AT_BARRIER && is_same_site (t, waiting) && t->barrier == waiting->barrier;
      else
        {
          int first = (int) (waiting - grid.threads) / WARP * WARP;
          is_awaited = i >= first && i < first + WARP && (waiting->mask >> (i - first) & 1);
          is_there = t->state == IN_WARP && is_same_site (t, waiting) && t->op == waiting->op
                     && t->mask == waiting->mask;
        }
      if (is_awaited && !is_there)
        other = t;
    }
  char one[384], two[384];
  describe (waiting, one, sizeof one);
  describe (other, two, sizeof two);
  fail_block ("%s, but %s", one, two);
}

int
sim_barrier (SimBarrier kind, int predicate, const char *file, int line)
{
  Thread *self = grid.current;
  self->state = AT_BARRIER;
  self->barrier = kind;
  self->value = predicate != 0;
  self->file = file;
  self->line = line;
  wait ();
  return (int) self->result;
}

bool
sim::release_barrier (void)
{
  int n = 0;
  for (int i = 0; i < grid.n_threads; i++)
    {
      const Thread *t = &grid.threads[i];
      if (t->state != AT_BARRIER || !is_same_site (t, &grid.threads[0])
          || t->barrier != grid.threads[0].barrier)
        return false;
      n += (int) t->value;
    }
  for (int i = 0; i < grid.n_threads; i++)
    {
      Thread *t = &grid.threads[i];
      t->state = READY;
      t->result = t->barrier == SIM_BARRIER_OR    ? n > 0
                  : t->barrier == SIM_BARRIER_AND ? n == grid.n_threads
                                                  : (uint64_t) n;
    }
  return true;
}

/* The lane that lane @lane reads; itself where CUDA says so. */
static int64_t
source_lane (const Thread *t, int lane)
{
  const int first = lane & ~(t->width - 1), last = first + t->width - 1;
  int64_t source;
  switch (t->op)
    {
    case SIM_WARP_SHUFFLE:
      return first + (t->operand & (t->width - 1));
    case SIM_WARP_SHUFFLE_UP:
      source = (int64_t) lane - (unsigned) t->operand;
      return source < first ? lane : source;
    case SIM_WARP_SHUFFLE_DOWN:
      source = (int64_t) lane + (unsigned) t->operand;
      return source > last ? lane : source;
    default:
      source = (int64_t) lane ^ (unsigned) t->operand;
      return source > last ? lane : source;
    }
}

/* All lanes of @mask have come. */
static void
finish_warp_op (Thread *warp, unsigned mask, SimWarpOp op)
{
  unsigned ballot = 0;
  for (int lane = 0; lane < WARP; lane++)
    if (mask >> lane & 1 && warp[lane].value)
      ballot |= 1u << lane;

  for (int lane = 0; lane < WARP; lane++)
    {
      Thread *t = &warp[lane];
      if (!(mask >> lane & 1))
        continue;
      if (op >= SIM_WARP_SHUFFLE)
        {
          int64_t source = source_lane (t, lane);
          if (!(mask >> source & 1))
            fail ("%s:%d: %s: lane %d reads lane %d, which is not in the mask 0x%x", t->file, t->line,
                  op_name (op), lane, (int) source, mask);
          t->result = warp[source].value;
        }
      else
        t->result = op == SIM_WARP_BALLOT ? ballot : op == SIM_WARP_ANY ? ballot != 0 : ballot == mask;
    }
  for (int lane = 0; lane < WARP; lane++)
    if (mask >> lane & 1)
      warp[lane].state = READY;
}

uint64_t
sim_warp (SimWarpOp op, unsigned mask, uint64_t value, int operand, int width, const char *file, int line)
{
  Thread *self = grid.current;
  const int index = (int) (self - grid.threads), lane = index % WARP, first = index - lane;
  Thread *warp = &grid.threads[first];

  if (!(mask >> lane & 1))
    fail ("%s:%d: %s: lane %d is not in its own mask 0x%x", file, line, op_name (op), lane, mask);
  if (width < 1 || width > WARP || (width & (width - 1)) != 0)
    fail ("%s:%d: %s: a width of %d is no power of 2 up to 32", file, line, op_name (op), width);

  self->op = op;
  self->mask = mask;
  self->value = value;
  self->operand = operand;
  self->width = width;
  self->file = file;
  self->line = line;
  bool all_came = true;
  for (int i = 0; i < WARP; i++)
    if (mask >> i & 1 && i != lane)
      {
        if (first + i >= grid.n_threads)
          fail ("%s:%d: %s: the mask 0x%x holds lane %d, which the block has not", file, line, op_name (op),
                mask, i);
        const Thread *t = &warp[i];
        all_came =
            all_came && t->state == IN_WARP && t->op == op && t->mask == mask && is_same_site (t, self);
      }
  if (all_came)
    finish_warp_op (warp, mask, op);
  else
    {
      self->state = IN_WARP;
      wait ();
    }
  return self->result;
}
