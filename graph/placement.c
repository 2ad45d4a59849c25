/*
 * placement.c: gives buffers with known lives their offsets in one arena.
 *
 * The problem (dynamic storage allocation) is NP-hard; detectors are kind to it, since most of what is alive
 * at the peak is born in one order and dies in the reverse one. So: place greedily, each buffer into the
 * smallest gap that is free during its life, in several orders, and keep the best. When the best is above the
 * live bound, the buffers that stick out on top are moved to the front of the order and placed again.
 */
#include "config.h"

#include "graph/plan.h"

#include <string.h>

#define MAX_REPAIRS 48
/* Repairs stop early when the arena is this close to the bound. */
#define GOOD_ENOUGH 1.002

/* What the inner loop needs of a buffer that has its place, side by side in memory. */
typedef struct
{
  int first, last;
  gsize offset, end;
} Slot;

typedef struct
{
  RnBuffer *buffers;
  int n;
  int *order;   /* the order in which buffers are placed */
  int *next;    /* scratch of the same size */
  Slot *placed; /* so far, by offset */
  gsize *best;  /* offsets of the best placement */
} Placer;

static gsize
align_up (gsize bytes)
{
  return (bytes + RN_ARENA_ALIGNMENT - 1) / RN_ARENA_ALIGNMENT * RN_ARENA_ALIGNMENT;
}

/* Places buffers in @p->order; returns the arena's size. */
static gsize
place_in_order (Placer *p)
{
  gsize arena = 0;
  for (int i = 0; i < p->n; i++)
    {
      RnBuffer *b = &p->buffers[p->order[i]];
      gsize need = align_up (b->bytes);
      gsize end = 0; /* of everything below that is alive with b */
      gsize best_offset = 0, best_gap = G_MAXSIZE;
      for (int k = 0; k < i; k++)
        {
          const Slot *other = &p->placed[k];
          if (b->first > other->last || other->first > b->last)
            continue;
          if (other->offset >= end + need && other->offset - end < best_gap)
            {
              best_gap = other->offset - end;
              best_offset = end;
            }
          end = MAX (end, other->end);
        }
      b->offset = best_gap < G_MAXSIZE ? best_offset : end;
      arena = MAX (arena, b->offset + need);

      int k = i;
      for (; k > 0 && p->placed[k - 1].offset > b->offset; k--)
        p->placed[k] = p->placed[k - 1];
      p->placed[k] = (Slot){ b->first, b->last, b->offset, b->offset + need };
    }
  return arena;
}

static int
compare_sizes (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnBuffer *buffers = user_data;
  const RnBuffer *x = &buffers[*(const int *) a], *y = &buffers[*(const int *) b];
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return x->first != y->first ? x->first - y->first : *(const int *) a - *(const int *) b;
}

static int
compare_areas (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnBuffer *buffers = user_data;
  const RnBuffer *x = &buffers[*(const int *) a], *y = &buffers[*(const int *) b];
  double area_x = (double) x->bytes * (x->last - x->first + 1),
         area_y = (double) y->bytes * (y->last - y->first + 1);
  if (area_x != area_y)
    return area_x > area_y ? -1 : 1;
  return *(const int *) a - *(const int *) b;
}

static int
compare_births (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnBuffer *buffers = user_data;
  const RnBuffer *x = &buffers[*(const int *) a], *y = &buffers[*(const int *) b];
  if (x->first != y->first)
    return x->first - y->first;
  return x->last != y->last ? y->last - x->last : *(const int *) a - *(const int *) b;
}

/* What lives longest lies at the bottom, where no gap opens in its life. */
static int
compare_lengths (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnBuffer *buffers = user_data;
  const RnBuffer *x = &buffers[*(const int *) a], *y = &buffers[*(const int *) b];
  int length_x = x->last - x->first, length_y = y->last - y->first;
  if (length_x != length_y)
    return length_y - length_x;
  return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : *(const int *) a - *(const int *) b;
}

/* Moves the buffers that end above @limit to the front of the order, keeping the order among them. TRUE if
 * that changed the order. */
static gboolean
promote_top (Placer *p, gsize limit)
{
  int *next = p->next;
  int n_top = 0, n_rest = 0;
  gboolean changed = FALSE;
  for (int i = 0; i < p->n; i++)
    {
      const RnBuffer *b = &p->buffers[p->order[i]];
      if (b->offset + align_up (b->bytes) > limit)
        {
          changed |= i != n_top;
          next[n_top++] = p->order[i];
        }
    }
  for (int i = 0; i < p->n; i++)
    {
      const RnBuffer *b = &p->buffers[p->order[i]];
      if (b->offset + align_up (b->bytes) <= limit)
        next[n_top + n_rest++] = p->order[i];
    }
  for (int i = 0; i < p->n; i++)
    p->order[i] = next[i];
  return changed;
}

static gsize
live_bound (const RnBuffer *buffers, int n)
{
  int n_ops = 0;
  for (int i = 0; i < n; i++)
    n_ops = MAX (n_ops, buffers[i].last + 1);
  g_autofree gint64 *delta = g_new0 (gint64, n_ops + 1);
  for (int i = 0; i < n; i++)
    {
      delta[buffers[i].first] += (gint64) align_up (buffers[i].bytes);
      delta[buffers[i].last + 1] -= (gint64) align_up (buffers[i].bytes);
    }
  gint64 live = 0, bound = 0;
  for (int i = 0; i < n_ops; i++)
    {
      live += delta[i];
      bound = MAX (bound, live);
    }
  return (gsize) bound;
}

gsize
rn_place_buffers (RnBuffer *buffers, int n)
{
  static int (*const orders[]) (gconstpointer, gconstpointer, gpointer) = { compare_sizes, compare_areas,
                                                                            compare_births, compare_lengths };

  if (n == 0)
    return 0;
  Placer p = { .buffers = buffers, .n = n };
  p.order = g_new (int, n);
  p.next = g_new (int, n);
  p.placed = g_new (Slot, n);
  p.best = g_new (gsize, n);
  gsize bound = live_bound (buffers, n);
  gsize good = (gsize) ((double) bound * GOOD_ENOUGH);
  gsize best = G_MAXSIZE;

  for (guint o = 0; o < G_N_ELEMENTS (orders) && best > good; o++)
    {
      for (int i = 0; i < n; i++)
        p.order[i] = i;
      g_qsort_with_data (p.order, n, sizeof *p.order, orders[o], buffers);
      for (int repair = 0; repair < MAX_REPAIRS && best > good; repair++)
        {
          gsize arena = place_in_order (&p);
          if (arena < best)
            {
              best = arena;
              for (int i = 0; i < n; i++)
                p.best[i] = buffers[i].offset;
            }
          if (!promote_top (&p, bound))
            break;
        }
    }

  for (int i = 0; i < n; i++)
    buffers[i].offset = p.best[i];
  g_free (p.order);
  g_free (p.next);
  g_free (p.placed);
  g_free (p.best);
  return best;
}
