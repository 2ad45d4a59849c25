/*
 * recompute-search.c: the lengths of segments that make the peak small, from the sizes of tensors.
 *
 * What a segment does to the sum of living bytes at each place of the list does not depend on the other
 * segments: it takes away what it drops, from the last forward reader to the first backward one, and adds
 * what its copies hold. So each length of each stage is one curve over the list, and the curves of a choice
 * add up to its profile. All choices are tried, but for long stages only one length for each number of
 * segments.
 *
 * Places are numbered 2 * rank + 1 for an op and 2 * rank for what is between it and the op before, where the
 * copies of a segment run; rank is the op's place in the list as it will be run. Workspaces are not counted.
 */
#include "config.h"

#include "graph/recompute.h"

#include <string.h>

typedef struct
{
  const RnGraph *graph;
  const RnForwardUses *uses;
  int n_places;
  int *rank;                         /* [ops] */
  int *birth;                        /* [values]: place, or -1 for what lies in no arena */
  int *forward, *backward;           /* [values]: place behind the last reader of each part, or -1 */
  int *first_backward;               /* [values]: rank of the first reader in the backward part, or -1 */
  int *forward_reader, *back_reader; /* [values]: op of the last reader of each part, or -1 */
  gint64 *macs;                      /* [turn] */
} Lives;

/* ---- lives ---- */

/* The order in which the ops will run. */
static void
find_ranks (Lives *l, RnHeadOrder head)
{
  int turn;
  g_autofree int *order = head == RN_HEAD_DEPTH_FIRST ? rn_depth_first_order (l->graph, &turn) : NULL;

  for (int k = 0; k < (int) l->graph->ops->len; k++)
    l->rank[order != NULL ? order[k] : k] = k;
}

/* The place at which @v is gone, if op @i is its last reader: the op itself when its output may lie there. */
static int
end_of_life (const Lives *l, RnValueId v, int i)
{
  const RnGraphOp *op = rn_graph_op (l->graph, i);
  for (int o = 0; o < rn_op_n_out (op->op); o++)
    for (int s = 0; op->out[o] != RN_NO_VALUE && s < rn_op_n_in (op->op); s++)
      if (op->in[s] == v && (rn_op_alias_mask (op->op, o) >> s & 1)
          && rn_desc_equal (&rn_graph_value (l->graph, v)->desc,
                            &rn_graph_value (l->graph, op->out[o])->desc))
        return 2 * l->rank[i] + 1;
  return 2 * l->rank[i] + 2;
}

static void
note_read (Lives *l, RnValueId v, int i)
{
  int *reader = i < l->graph->turn ? &l->forward_reader[v] : &l->back_reader[v];
  if (*reader < 0 || l->rank[i] > l->rank[*reader])
    *reader = i;
  if (i >= l->graph->turn && (l->first_backward[v] < 0 || l->rank[i] < l->first_backward[v]))
    l->first_backward[v] = l->rank[i];
}

static void
find_lives (Lives *l)
{
  int n_values = (int) l->graph->values->len;
  for (RnValueId v = 0; v < n_values; v++)
    {
      l->birth[v] = rn_graph_value (l->graph, v)->kind == RN_VALUE_INPUT ? 0 : -1;
      l->forward[v] = l->backward[v] = l->first_backward[v] = l->forward_reader[v] = l->back_reader[v] = -1;
    }
  for (int i = 0; i < (int) l->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (l->graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE && rn_value_is_in_arena (rn_graph_value (l->graph, op->in[s])))
          note_read (l, op->in[s], i);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE && rn_value_is_in_arena (rn_graph_value (l->graph, op->out[s])))
          {
            l->birth[op->out[s]] = 2 * l->rank[i] + 1;
            l->forward[op->out[s]] = 2 * l->rank[i] + 2; /* until a reader is found */
          }
    }
  for (RnValueId v = 0; v < n_values; v++)
    {
      if (l->forward_reader[v] >= 0)
        l->forward[v] = end_of_life (l, v, l->forward_reader[v]);
      if (l->back_reader[v] >= 0)
        l->backward[v] = end_of_life (l, v, l->back_reader[v]);
      if (rn_graph_value (l->graph, v)->is_output)
        l->backward[v] = l->n_places;
    }
}

/* ---- curves: differences from place to place ---- */

static void
add (gint64 *curve, int from, int to, gint64 bytes)
{
  if (from < to)
    {
      curve[from] += bytes;
      curve[to] -= bytes;
    }
}

static void
add_plain_step (const Lives *l, gint64 *curve)
{
  for (RnValueId v = 0; v < (int) l->graph->values->len; v++)
    if (l->birth[v] >= 0)
      add (curve, l->birth[v], MAX (l->forward[v], l->backward[v]),
           (gint64) rn_desc_bytes (&rn_graph_value (l->graph, v)->desc));
}

/* What the ops of one segment need of each other. */
typedef struct
{
  const Lives *lives;
  const RnSegment *segment;
  int place;           /* where the copies run */
  gboolean *is_copied; /* [ops of the segment] */
  gboolean *is_wanted; /* [values] */
} Again;

static gboolean
may_drop (const Again *a, RnValueId v)
{
  return rn_segment_may_drop (a->lives->graph, a->lives->uses, a->segment, v);
}

static gboolean
is_inside (const Again *a, RnValueId v)
{
  int writer = a->lives->uses->writer[v];
  return writer >= a->segment->first && writer < a->segment->end;
}

static gint64
bytes_of (const Again *a, RnValueId v)
{
  return (gint64) rn_desc_bytes (&rn_graph_value (a->lives->graph, v)->desc);
}

/* The ops that run again, and where: before the first backward op that reads what they make. Gives their
 * multiply-adds. */
static gint64
find_copies (Again *a)
{
  const Lives *l = a->lives;
  int first_reader = G_MAXINT;
  gint64 macs = 0;
  for (int i = a->segment->end - 1; i >= a->segment->first; i--)
    {
      const RnGraphOp *op = rn_graph_op (l->graph, i);
      gboolean *is_copied = &a->is_copied[i - a->segment->first];
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE && may_drop (a, op->out[s]))
          {
            int reader = l->first_backward[op->out[s]];
            a->is_wanted[op->out[s]] |= reader >= 0;
            *is_copied |= a->is_wanted[op->out[s]];
            if (reader >= 0)
              first_reader = MIN (first_reader, reader);
          }
      if (!*is_copied)
        continue;
      macs += l->macs[i];
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE && is_inside (a, op->in[s]) && may_drop (a, op->in[s]))
          a->is_wanted[op->in[s]] = TRUE;
    }
  a->place = first_reader == G_MAXINT ? -1 : 2 * first_reader;
  return macs;
}

/* The last copy that reads @v, or @i, which writes it. */
static int
last_copy (const Again *a, RnValueId v, int i)
{
  int last = i;
  for (int k = i + 1; k < a->segment->end; k++)
    for (int s = 0; a->is_copied[k - a->segment->first] && s < RN_OP_MAX_IN; s++)
      if (rn_graph_op (a->lives->graph, k)->in[s] == v)
        last = k;
  return last;
}

/* The most bytes that copies hold at one of them. */
static gint64
peak_of_copies (const Again *a)
{
  int n = a->segment->end - a->segment->first;
  g_autofree gint64 *held = g_new0 (gint64, n + 1);
  for (int i = a->segment->first; i < a->segment->end; i++)
    for (int s = 0; a->is_copied[i - a->segment->first] && s < RN_OP_MAX_OUT; s++)
      {
        RnValueId v = rn_graph_op (a->lives->graph, i)->out[s];
        if (v == RN_NO_VALUE || !a->is_wanted[v])
          continue;
        gboolean stays = a->lives->first_backward[v] >= 0;
        add (held, i - a->segment->first, stays ? n : last_copy (a, v, i) + 1 - a->segment->first,
             bytes_of (a, v));
      }
  gint64 peak = 0, sum = 0;
  for (int k = 0; k < n; k++)
    {
      sum += held[k];
      peak = MAX (peak, sum);
    }
  return peak;
}

/* Adds what @segment changes to @curve. Gives the multiply-adds that are done again. */
static gint64
add_segment (const Lives *l, const RnSegment *segment, gint64 *curve)
{
  g_autofree gboolean *is_copied = g_new0 (gboolean, segment->end - segment->first);
  g_autofree gboolean *is_wanted = g_new0 (gboolean, l->graph->values->len);
  Again a = { l, segment, -1, is_copied, is_wanted };
  gint64 macs = find_copies (&a);
  if (a.place < 0)
    return 0;

  add (curve, a.place, a.place + 1, peak_of_copies (&a));
  for (int i = segment->first; i < segment->end; i++)
    {
      const RnGraphOp *op = rn_graph_op (l->graph, i);
      for (int s = 0; is_copied[i - segment->first] && s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE && is_wanted[op->out[s]] && l->first_backward[op->out[s]] >= 0)
          {
            add (curve, l->forward[op->out[s]], l->backward[op->out[s]], -bytes_of (&a, op->out[s]));
            add (curve, a.place + 1, l->backward[op->out[s]], bytes_of (&a, op->out[s]));
          }
      for (int s = 0; is_copied[i - segment->first] && s < RN_OP_MAX_IN; s++)
        {
          RnValueId v = op->in[s];
          if (v == RN_NO_VALUE || l->birth[v] < 0 || is_wanted[v])
            continue;
          add (curve, MAX (l->forward[v], l->backward[v]), a.place + 1, bytes_of (&a, v));
        }
    }
  return macs;
}

/* ---- the choice ---- */

/* One length of one stage. */
typedef struct
{
  gint64 *curve; /* [places] */
  gint64 macs;
} Effect;

typedef struct
{
  const Lives *lives;
  int n_lengths;
  Effect *effects[RN_CP_MAX_STAGES + 1]; /* [lengths][longest + 1] */
  int longest[RN_CP_MAX_STAGES + 1];
  gint64 *profile[RN_CP_MAX_STAGES + 2]; /* of the stages that are chosen so far */
  int chosen[RN_CP_MAX_STAGES + 1], best[RN_CP_MAX_STAGES + 1];
  gint64 best_peak, best_macs;
} Search;

static void
sum_up (gint64 *curve, int n)
{
  for (int p = 1; p < n; p++)
    curve[p] += curve[p - 1];
}

static Effect
measure (const Lives *l, const RnSegmentLength *stage, int length)
{
  Effect effect = { g_new0 (gint64, l->n_places + 1), 0 };
  for (guint k = 0; length > 0 && k < stage->chains->len; k++)
    {
      const GArray *chain = stage->chains->pdata[k];
      for (guint from = 0; from < chain->len; from += (guint) length)
        {
          guint to = MIN (from + (guint) length, chain->len);
          RnSegment segment = { .part = stage->part,
                                .first = g_array_index (chain, RnElement, from).first,
                                .end = g_array_index (chain, RnElement, to - 1).end };
          effect.macs += add_segment (l, &segment, effect.curve);
        }
    }
  sum_up (effect.curve, l->n_places);
  return effect;
}

static gint64
peak_of (const gint64 *profile, int n)
{
  gint64 peak = 0;
  for (int p = 0; p < n; p++)
    peak = MAX (peak, profile[p]);
  return peak;
}

#define LONG_STAGE 8

/* In a long stage: does a shorter length give as many segments? They are nearer to each other in size then.
 */
static gboolean
is_left_out (int n, int length)
{
  return n > LONG_STAGE && length > 1 && (n + length - 1) / length == (n + length - 2) / (length - 1);
}

/* Tries all lengths of the stages from @d on. Short ones first, so that of equal choices the one that keeps
 * more wins. */
static void
try_lengths (Search *search, int d, gint64 macs)
{
  int n = search->lives->n_places;
  if (d == search->n_lengths)
    {
      gint64 peak = peak_of (search->profile[d], n);
      if (peak > search->best_peak || (peak == search->best_peak && macs >= search->best_macs))
        return;
      search->best_peak = peak;
      search->best_macs = macs;
      memcpy (search->best, search->chosen, sizeof search->best);
      return;
    }
  for (int length = 0; length <= search->longest[d]; length++)
    {
      if (is_left_out (search->longest[d], length))
        continue;
      const Effect *effect = &search->effects[d][length];
      search->chosen[d] = length;
      for (int p = 0; p < n; p++)
        search->profile[d + 1][p] = search->profile[d][p] + effect->curve[p];
      try_lengths (search, d + 1, macs + effect->macs);
    }
}

static void
search_lengths (const Lives *l, const GArray *fixed, RnSegmentLength *lengths, int n_lengths)
{
  Search search = { .lives = l, .n_lengths = n_lengths, .best_peak = G_MAXINT64 };
  for (int d = 0; d <= n_lengths; d++)
    search.profile[d] = g_new0 (gint64, l->n_places + 1);
  add_plain_step (l, search.profile[0]);
  for (guint s = 0; s < fixed->len; s++)
    {
      const RnSegment *segment = &g_array_index (fixed, RnSegment, s);
      if (segment->part != RN_PART_FROZEN)
        add_segment (l, segment, search.profile[0]);
    }
  sum_up (search.profile[0], l->n_places);
  for (int d = 0; d < n_lengths; d++)
    {
      for (guint k = 0; k < lengths[d].chains->len; k++)
        search.longest[d] = MAX (search.longest[d], (int) ((GArray *) lengths[d].chains->pdata[k])->len);
      search.effects[d] = g_new (Effect, search.longest[d] + 1);
      for (int length = 0; length <= search.longest[d]; length++)
        search.effects[d][length] = measure (l, &lengths[d], length);
    }

  try_lengths (&search, 0, 0);

  for (int d = 0; d < n_lengths; d++)
    {
      lengths[d].length = search.best[d];
      for (int length = 0; length <= search.longest[d]; length++)
        g_free (search.effects[d][length].curve);
      g_free (search.effects[d]);
    }
  for (int d = 0; d <= n_lengths; d++)
    g_free (search.profile[d]);
}

void
rn_recompute_search (const RnGraph *graph, const RnForwardUses *uses, RnHeadOrder order, const GArray *fixed,
                     RnSegmentLength *lengths, int n_lengths)
{
  g_return_if_fail (n_lengths <= RN_CP_MAX_STAGES + 1);

  int n_ops = (int) graph->ops->len, n_values = (int) graph->values->len;
  g_autofree int *rank = g_new (int, n_ops), *of_values = g_new (int, 6 * n_values);
  g_autofree gint64 *macs = g_new (gint64, graph->turn);
  Lives lives = { .graph = graph,
                  .uses = uses,
                  .n_places = 2 * n_ops + 1,
                  .rank = rank,
                  .birth = of_values,
                  .forward = of_values + n_values,
                  .backward = of_values + 2 * n_values,
                  .first_backward = of_values + 3 * n_values,
                  .forward_reader = of_values + 4 * n_values,
                  .back_reader = of_values + 5 * n_values,
                  .macs = macs };
  for (int i = 0; i < graph->turn; i++)
    {
      RnOpCall call;
      rn_graph_call (graph, i, &call);
      macs[i] = rn_op_cost (&call).macs;
    }
  find_ranks (&lives, order);
  find_lives (&lives);
  search_lengths (&lives, fixed, lengths, n_lengths);
}
