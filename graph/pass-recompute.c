/*
 * pass-recompute.c: forward ops once more in the backward part, instead of outputs that are kept.
 *
 * The copies of a segment's ops stand in front of the first op of the backward part that reads one of its
 * dropped values, and the readers are moved to what the copies write. Only what is needed is copied: neither
 * the end of a segment, whose output is kept, nor an op whose output backward does not look at. The same
 * kernel gets the same numbers, so the bits are the same. A batch norm takes its statistics again from the
 * same numbers and leaves the running ones alone.
 *
 * Segments are taken from the last to the first: what a copy reads of an earlier segment is then a reader
 * like any other.
 */
#include "config.h"

#include "graph/recompute.h"

typedef struct
{
  RnGraph *graph;
  const RnSegments *segments;
  int n_values;     /* before the pass */
  gboolean *wanted; /* [n_values]: of the segment at work */
  RnValueId *copy;  /* [n_values]: what holds the value again */
} Recompute;

static gboolean
is_dropped_by (const Recompute *r, RnValueId v, int segment)
{
  return v != RN_NO_VALUE && v < r->n_values && r->segments->dropped_by[v] == segment;
}

/* Marks the values of @segment that the backward part reads. Gives the first op that does, or -1. */
static int
find_readers (Recompute *r, int segment)
{
  int first = -1;
  for (int i = r->graph->turn; i < (int) r->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (r->graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (is_dropped_by (r, op->in[s], segment))
          {
            r->wanted[op->in[s]] = TRUE;
            if (first < 0)
              first = i;
          }
    }
  return first;
}

static gboolean
is_wanted (const Recompute *r, const RnGraphOp *op)
{
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    if (op->out[s] != RN_NO_VALUE && op->out[s] < r->n_values && r->wanted[op->out[s]])
      return TRUE;
  return FALSE;
}

/* The forward ops that must run again, in reverse. (transfer container) */
static GPtrArray *
find_ops (Recompute *r, int segment)
{
  const RnSegment *s = &g_array_index (r->segments->segments, RnSegment, segment);
  GPtrArray *ops = g_ptr_array_new ();
  for (int i = s->end - 1; i >= s->first; i--)
    {
      RnGraphOp *op = rn_graph_op (r->graph, i);
      if (r->segments->of_op[i] != segment || !is_wanted (r, op))
        continue;
      g_ptr_array_add (ops, op);
      for (int slot = 0; slot < RN_OP_MAX_IN; slot++)
        if (is_dropped_by (r, op->in[slot], segment))
          r->wanted[op->in[slot]] = TRUE;
    }
  return ops;
}

/* Where the copy of an op writes what the op writes to @v. */
static RnValueId
copy_value (Recompute *r, RnValueId v)
{
  const RnValue *value = rn_graph_value (r->graph, v);
  g_autofree char *name = g_strconcat ("r:", value->name, NULL);
  RnValueId copy = rn_graph_add_value (r->graph, name, value->desc, RN_VALUE_ACTIVATION, -1);
  if (r->wanted[v])
    r->copy[v] = copy;
  return copy;
}

static void
insert_copy (Recompute *r, int position, const RnGraphOp *op)
{
  RnGraphOp *copy = rn_graph_insert_op (r->graph, position, op->op, op->scope);
  copy->args = op->args;
  copy->phase = RN_PHASE_RECOMPUTE;
  copy->group = op->group;
  copy->stage = op->stage;
  copy->block = op->block;
  if (op->op == RN_OP_BATCH_NORM_FWD)
    copy->args.norm.recompute = TRUE;
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    {
      RnValueId v = op->in[s];
      copy->in[s] = v != RN_NO_VALUE && v < r->n_values && r->copy[v] != RN_NO_VALUE ? r->copy[v] : v;
    }
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    {
      RnValueId v = op->out[s];
      gboolean is_update = (rn_op_update_mask (op->op) >> s) & 1; /* running statistics */
      if (v == RN_NO_VALUE || is_update)
        continue;
      gboolean is_needless = op->op == RN_OP_MAX_POOL_FWD && s == RN_POOL_INDEX && !r->wanted[v];
      if (!is_needless)
        copy->out[s] = copy_value (r, v);
    }
}

static void
move_readers (Recompute *r, int first)
{
  for (int i = first; i < (int) r->graph->ops->len; i++)
    {
      RnGraphOp *op = rn_graph_op (r->graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        {
          RnValueId v = op->in[s];
          if (v != RN_NO_VALUE && v < r->n_values && r->copy[v] != RN_NO_VALUE)
            op->in[s] = r->copy[v];
        }
    }
}

/* FALSE: backward needs nothing of it. */
static gboolean
rewrite (Recompute *r, int segment)
{
  for (RnValueId v = 0; v < r->n_values; v++)
    {
      r->wanted[v] = FALSE;
      r->copy[v] = RN_NO_VALUE;
    }
  int position = find_readers (r, segment);
  if (position < 0)
    return FALSE;
  g_autoptr (GPtrArray) ops = find_ops (r, segment);
  for (guint i = ops->len; i > 0; i--)
    insert_copy (r, position++, ops->pdata[i - 1]);
  move_readers (r, position);

  for (guint i = 0; i < ops->len; i++) /* where the maxima were is written by the copy alone */
    {
      RnGraphOp *op = ops->pdata[i];
      if (op->op == RN_OP_MAX_POOL_FWD && op->out[RN_POOL_INDEX] != RN_NO_VALUE
          && r->copy[op->out[RN_POOL_INDEX]] != RN_NO_VALUE)
        op->out[RN_POOL_INDEX] = RN_NO_VALUE;
    }
  return TRUE;
}

static int
compare_places (gconstpointer pa, gconstpointer pb, gpointer user_data)
{
  const GArray *segments = user_data;
  int a = *(const int *) pa, b = *(const int *) pb;
  int first_a = g_array_index (segments, RnSegment, a).first,
      first_b = g_array_index (segments, RnSegment, b).first;
  return first_a != first_b ? first_a - first_b : a - b;
}

/* Indices of the segments in the order of their ops. (transfer full) */
static int *
order_segments (const GArray *segments)
{
  int *order = g_new (int, segments->len);
  for (guint s = 0; s < segments->len; s++)
    order[s] = (int) s;
  g_qsort_with_data (order, (int) segments->len, sizeof *order, compare_places, (gpointer) segments);
  return order;
}

void
rn_pass_recompute (RnGraph *graph, const RnRecomputeOptions *options)
{
  g_autoptr (RnSegments) segments = rn_segments_new (graph, options);
  if (graph->fault)
    return;
  int n_values = (int) graph->values->len;
  g_autofree gboolean *wanted = g_new (gboolean, n_values);
  g_autofree RnValueId *copy = g_new (RnValueId, n_values);
  Recompute r = { graph, segments, n_values, wanted, copy };

  gboolean is_used[RN_PART_COUNT] = { FALSE };

  g_autofree int *order = order_segments (segments->segments);

  for (guint k = segments->segments->len; k > 0; k--)
    if (rewrite (&r, order[k - 1]))
      is_used[g_array_index (segments->segments, RnSegment, order[k - 1]).part] = TRUE;
  rn_segments_check_use (segments, graph, options, is_used);
}
