/*
 * arena-check.c: a plan that only allocates what it planned proves nothing; this looks at the bytes.
 *
 * Every byte that holds no living value is POISON: 0xff, which is NaN in every float type and outside the
 * range of the integer types that ops write (pool indices, anchor indices). Before an op its outputs (unless
 * they share storage with an input) and its workspace are poisoned. After it
 *   - every byte that differs from the copy must belong to one of its outputs or its workspace,
 *   - no word of a poisoned output may still be poison,
 *   - buffers that died with it are poisoned.
 */
#include "config.h"

#include "graph/arena-check.h"

#include <string.h>

#define POISON 0xff

struct _RnArenaCheck
{
  const RnPlan *plan;
  guint8 *arena;
  guint8 *copy;
  gsize highest;
};

RnArenaCheck *
rn_arena_check_new (const RnPlan *plan, guint8 *arena, GError **error)
{
  guint8 *copy = g_try_malloc (MAX (plan->arena_bytes, 1));
  if (!copy)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                   "no memory for the checking copy of an arena of %" G_GSIZE_FORMAT " bytes",
                   plan->arena_bytes);
      return NULL;
    }
  RnArenaCheck *check = g_new0 (RnArenaCheck, 1);
  check->plan = plan;
  check->arena = arena;
  check->copy = copy;
  return check;
}

void
rn_arena_check_free (RnArenaCheck *check)
{
  if (!check)
    return;
  g_free (check->copy);
  g_free (check);
}

static void
poison (RnArenaCheck *check, const RnBuffer *b)
{
  memset (check->arena + b->offset, POISON, b->bytes);
  memset (check->copy + b->offset, POISON, b->bytes);
}

static gboolean
is_input (const RnArenaCheck *check, const RnBuffer *b)
{
  return b->value != RN_NO_VALUE && rn_graph_value (check->plan->graph, b->value)->kind == RN_VALUE_INPUT;
}

/* Index of the first poisoned word (byte for a tail) of [p, p + n), or n. */
static gsize
find_poison (const guint8 *p, gsize n)
{
  gsize i = 0;
  for (; i + 4 <= n; i += 4)
    {
      guint32 word;
      memcpy (&word, p + i, 4);
      if (word == G_MAXUINT32)
        return i;
    }
  for (; i < n; i++)
    if (p[i] == POISON)
      return i;
  return n;
}

void
rn_arena_check_start (RnArenaCheck *check)
{
  memset (check->copy, POISON, check->plan->arena_bytes);
  for (int b = 0; b < check->plan->n_buffers; b++)
    {
      const RnBuffer *buffer = &check->plan->buffers[b];
      if (is_input (check, buffer))
        {
          memcpy (check->copy + buffer->offset, check->arena + buffer->offset, buffer->bytes);
          check->highest = MAX (check->highest, buffer->offset + buffer->bytes);
        }
    }
  memcpy (check->arena, check->copy, check->plan->arena_bytes);
}

/* The buffers that op @i may write: outputs, then the workspace. Returns how many; sets *n_fresh to the
 * number of those (placed first) that begin with this op. */
static int
written_buffers (const RnArenaCheck *check, int i, int *buffers, int *n_fresh)
{
  const RnPlan *plan = check->plan;
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  int n = 0;
  for (int fresh = 1; fresh >= 0; fresh--)
    {
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        {
          int b = op->out[s] != RN_NO_VALUE ? plan->buffer_of[op->out[s]] : -1;
          if (b >= 0 && (plan->buffers[b].first == i && !is_input (check, &plan->buffers[b])) == fresh)
            buffers[n++] = b;
        }
      if (fresh)
        *n_fresh = n;
    }
  if (plan->workspace_of[i] >= 0)
    buffers[n++] = plan->workspace_of[i];
  return n;
}

void
rn_arena_check_before (RnArenaCheck *check, int i)
{
  int buffers[RN_OP_MAX_OUT + 1], n_fresh;
  written_buffers (check, i, buffers, &n_fresh);
  for (int k = 0; k < n_fresh; k++)
    poison (check, &check->plan->buffers[buffers[k]]);
  if (check->plan->workspace_of[i] >= 0)
    poison (check, &check->plan->buffers[check->plan->workspace_of[i]]);
}

static gboolean
fail (const RnArenaCheck *check, int i, gsize offset, const char *what, GError **error)
{
  const RnGraphOp *op = rn_graph_op (check->plan->graph, i);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL,
               "%s: op %d (%s, %s) %s at arena byte %" G_GSIZE_FORMAT, op->scope, i, rn_op_name (op->op),
               check->plan->prepared[i].kernel->name, what, offset);
  return FALSE;
}

/* The first byte in [from, to) at which the arena and its copy differ, or @to. */
static gsize
first_difference (const RnArenaCheck *check, gsize from, gsize to)
{
  if (memcmp (check->arena + from, check->copy + from, to - from) == 0)
    return to;
  while (check->arena[from] == check->copy[from])
    from++;
  return from;
}

static int
compare_offsets (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnBuffer *buffers = user_data;
  gsize x = buffers[*(const int *) a].offset, y = buffers[*(const int *) b].offset;
  return x < y ? -1 : x > y;
}

gboolean
rn_arena_check_after (RnArenaCheck *check, int i, GError **error)
{
  const RnPlan *plan = check->plan;
  int buffers[RN_OP_MAX_OUT + 1], n_fresh;
  int n = written_buffers (check, i, buffers, &n_fresh);

  for (int k = 0; k < n_fresh; k++)
    {
      const RnBuffer *b = &plan->buffers[buffers[k]];
      gsize at = find_poison (check->arena + b->offset, b->bytes);
      if (at < b->bytes)
        return fail (check, i, b->offset + at, "left a part of its output unwritten", error);
    }
  for (int k = 0; k < n; k++)
    {
      const RnBuffer *b = &plan->buffers[buffers[k]];
      gsize end = b->bytes;
      while (end > 0 && check->arena[b->offset + end - 1] == POISON)
        end--;
      check->highest = MAX (check->highest, b->offset + end);
    }

  g_qsort_with_data (buffers, n, sizeof *buffers, compare_offsets, plan->buffers);
  gsize from = 0;
  for (int k = 0; k <= n; k++)
    {
      gsize to = k < n ? plan->buffers[buffers[k]].offset : plan->arena_bytes;
      if (to > from)
        {
          gsize at = first_difference (check, from, to);
          if (at < to)
            return fail (check, i, at, "wrote outside its outputs and workspace", error);
        }
      if (k < n)
        {
          const RnBuffer *b = &plan->buffers[buffers[k]];
          memcpy (check->copy + b->offset, check->arena + b->offset, b->bytes);
          from = MAX (from, b->offset + b->bytes);
        }
    }

  if (i + 1 < (int) plan->graph->ops->len) /* after the last op the host reads the outputs */
    for (int b = 0; b < plan->n_buffers; b++)
      if (plan->buffers[b].last == i)
        poison (check, &plan->buffers[b]);
  return TRUE;
}

gsize
rn_arena_check_highest_byte (const RnArenaCheck *check)
{
  return check->highest;
}
