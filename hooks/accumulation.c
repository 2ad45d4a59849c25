#include "config.h"

#include "hooks/accumulation.h"

RnWindow
rn_accumulation_window (const RnAccumulation *a, gint64 iter)
{
  g_return_val_if_fail (iter >= 0 && iter < a->max_iters, (RnWindow){ 0 });
  gint64 base = a->flush_at_epoch_end ? iter - iter % a->epoch_length : 0;
  gint64 limit =
      a->flush_at_epoch_end && a->max_iters - base > a->epoch_length ? base + a->epoch_length : a->max_iters;
  RnWindow window = { .begin = iter - (iter - base) % a->n_iters };

  window.end = limit - window.begin > a->n_iters ? window.begin + a->n_iters : limit;
  gint64 whole = window.end - window.begin;
  window.is_tail = whole < a->n_iters;
  window.is_dropped = window.is_tail && a->tail == RN_TAIL_DROP;
  if (window.begin < a->cut_at && a->cut_at <= iter)
    window.begin = a->cut_at;

  if (window.is_tail && a->tail == RN_TAIL_SCALE)
    window.factor = a->n_iters;
  else if (a->is_mmcv) /* not those that a resume leaves of it */
    window.factor = whole;
  else
    window.factor = window.end - window.begin;
  return window;
}

/* Of @n iterations that begin with a window. */
static gint64
count_steps (const RnAccumulation *a, gint64 n)
{
  return n / a->n_iters + (n % a->n_iters > 0 && a->tail != RN_TAIL_DROP);
}

gint64
rn_accumulation_n_steps (const RnAccumulation *a)
{
  if (!a->flush_at_epoch_end)
    return count_steps (a, a->max_iters);
  return a->max_iters / a->epoch_length * count_steps (a, a->epoch_length)
         + count_steps (a, a->max_iters % a->epoch_length);
}
