/* recompute-segments.c: which forward ops are run again together, for every form of the options. */
#include "config.h"

#include "graph/recompute.h"
#include "runner/base/size.h"

typedef struct
{
  RnGraph *graph;
  RnSegments *segments;
} Choose;

static void
fail (const Choose *c, RnRecomputePart part, const char *text)
{
  static const RnMemoryOption options[RN_PART_COUNT] = {
    [RN_PART_BACKBONE] = RN_OPTION_BACKBONE_CP,
    [RN_PART_HEAD] = RN_OPTION_HEAD_CP,
    [RN_PART_BN_RELU] = RN_OPTION_RECOMPUTE,
    [RN_PART_FROZEN] = RN_OPTION_RECOMPUTE,
  };
  rn_graph_set_option_fault (c->graph, options[part], "%s", text);
}

/* ---- who reads what ---- */

static RnForwardUses
find_uses (const RnGraph *graph)
{
  guint n = graph->values->len;
  RnForwardUses uses = { (int) n, g_new (int, n), g_new (int, n) };
  for (guint v = 0; v < n; v++)
    uses.writer[v] = uses.last_forward[v] = -1;
  for (int i = 0; i < graph->turn; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE)
          uses.last_forward[op->in[s]] = i;
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE)
          uses.writer[op->out[s]] = i;
    }
  return uses;
}

/* Vectors, such as the statistics of a batch norm, are kept: they are small, and sparing them would cost a
 * pass over a map. */
gboolean
rn_segment_may_drop (const RnGraph *graph, const RnForwardUses *uses, const RnSegment *segment, RnValueId v)
{
  const RnValue *value = rn_graph_value (graph, v);
  return value->kind == RN_VALUE_ACTIVATION && value->desc.rank == 4 && !value->is_output && !value->is_kept
         && (segment->with_outputs || uses->last_forward[v] < segment->end)
         && rn_desc_bytes (&value->desc) > segment->larger_than;
}

/* ---- chains ---- */

static gboolean
trains (const RnGraph *graph, const RnGraphOp *op)
{
  return op->out[0] != RN_NO_VALUE && rn_graph_value (graph, op->out[0])->requires_grad;
}

static GPtrArray *
new_chains (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
}

static GArray *
add_chain (GPtrArray *chains)
{
  GArray *chain = g_array_new (FALSE, FALSE, sizeof (RnElement));
  g_ptr_array_add (chains, chain);
  return chain;
}

static RnElement *
element (const GPtrArray *chains, guint chain, guint i)
{
  return &g_array_index ((GArray *) chains->pdata[chain], RnElement, i);
}

/* The residual blocks that train, a chain for each stage. (transfer full) */
static GPtrArray *
find_blocks (const RnGraph *graph)
{
  GPtrArray *chains = new_chains ();
  GArray *chain = NULL;
  int stage = -1, number = -1;
  for (int i = 0; i < graph->turn;)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      RnElement block = { i, i + 1 };
      gboolean is_trained = FALSE;
      for (; i < graph->turn && rn_graph_op (graph, i)->block == op->block; i++)
        is_trained |= trains (graph, rn_graph_op (graph, i));
      block.end = i;
      if (op->block < 0 || !is_trained)
        continue;
      if (op->block == number) /* an op that belongs to no block was between */
        {
          g_array_index (chain, RnElement, chain->len - 1).end = block.end;
          continue;
        }
      if (chain == NULL || op->stage != stage)
        chain = add_chain (chains);
      stage = op->stage;
      number = op->block;
      g_array_append_val (chain, block);
    }
  return chains;
}

/* The convolutions of the head, a chain for each level and branch. (transfer full) */
static GPtrArray *
find_towers (const RnGraph *graph)
{
  GPtrArray *chains = new_chains ();
  GArray *chain = NULL;
  int group = -1;
  for (int i = 0; i < graph->turn; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      gboolean is_new = op->group != group;
      group = op->group;
      if (group < 0 || rn_op_is_loss (op->op))
        continue;
      if (is_new)
        chain = add_chain (chains);
      if (is_new || op->op == RN_OP_CONV2D_FWD)
        {
          RnElement conv = { i, i + 1 };
          g_array_append_val (chain, conv);
        }
      g_array_index (chain, RnElement, chain->len - 1).end = i + 1;
    }
  return chains;
}

/* Chains one after the other as one. (transfer full) */
static GPtrArray *
join (const GPtrArray *chains)
{
  GPtrArray *joined = new_chains ();
  GArray *all = add_chain (joined);
  for (guint k = 0; k < chains->len; k++)
    {
      const GArray *chain = chains->pdata[k];
      g_array_append_vals (all, chain->data, chain->len);
    }
  return joined;
}

/* ---- segments ---- */

static void
add_segment (const Choose *c, RnSegment segment)
{
  int index = (int) c->segments->segments->len;
  g_array_append_val (c->segments->segments, segment);
  for (int i = segment.first; i < segment.end; i++)
    c->segments->of_op[i] = index;
}

/* Elements [from, to) of a chain. */
static void
cut (const Choose *c, const GPtrArray *chains, guint chain, guint from, guint to, RnRecomputePart part,
     gsize larger_than)
{
  if (from < to)
    add_segment (c, (RnSegment){ .part = part,
                                 .first = element (chains, chain, from)->first,
                                 .end = element (chains, chain, to - 1)->end,
                                 .larger_than = larger_than });
}

/* Segments of @length elements, the last one shorter; 0: none. */
static void
cut_by_length (const Choose *c, const GPtrArray *chains, guint chain, int length, RnRecomputePart part)
{
  guint n = ((GArray *) chains->pdata[chain])->len;
  for (guint from = 0; length > 0 && from < n; from += (guint) length)
    cut (c, chains, chain, from, MIN (from + (guint) length, n), part, 0);
}

/* As checkpoint_sequential: the last of the segments is kept. */
static void
cut_in_segments (const Choose *c, const GPtrArray *chains, int n_segments, RnRecomputePart part)
{
  for (guint k = 0; k < chains->len; k++)
    {
      guint n = ((GArray *) chains->pdata[k])->len, n_parts = (guint) n_segments;
      const char *what = part == RN_PART_BACKBONE ? "blocks that train" : "convolutions in a branch";
      if (n_parts < 2 || n_parts > n)
        {
          g_autofree char *range = n < 2 ? g_strdup ("true") : g_strdup_printf ("{segments: 2 to %u}", n);
          g_autofree char *text =
              g_strdup_printf ("%u segment%s of %u %s, the last of which is kept; what works: %s", n_parts,
                               n_parts == 1 ? "" : "s", n, what, range);
          fail (c, part, text);
          return;
        }
      for (guint i = 0; i + 1 < n_parts; i++)
        cut (c, chains, k, i * n / n_parts, (i + 1) * n / n_parts, part, 0);
    }
}

static void
cut_stages (const Choose *c, const GPtrArray *chains, const RnCpOptions *options)
{
  if ((int) chains->len != options->n_lengths)
    {
      g_autofree char *text = g_strdup_printf ("%d numbers, but %u stages have a block that trains; a number "
                                               "for a checkpoint stage that has no trained block has no "
                                               "effect; what works: %u numbers",
                                               options->n_lengths, chains->len, chains->len);
      fail (c, RN_PART_BACKBONE, text);
      return;
    }
  for (guint k = 0; k < chains->len; k++)
    cut_by_length (c, chains, k, options->lengths[k], RN_PART_BACKBONE);
}

/* Each block, or each branch of the head as a whole. */
static void
cut_all (const Choose *c, const GPtrArray *chains, gsize larger_than, RnRecomputePart part)
{
  for (guint k = 0; k < chains->len; k++)
    {
      guint n = ((GArray *) chains->pdata[k])->len;
      guint step = part == RN_PART_BACKBONE ? 1 : n;
      for (guint i = 0; i < n; i += step)
        cut (c, chains, k, i, i + step, part, larger_than);
    }
}

static void
cut_part (const Choose *c, const GPtrArray *chains, const RnCpOptions *options, RnRecomputePart part)
{
  switch (options->form)
    {
    case RN_CP_NONE:
    case RN_CP_SQRT:
      break;
    case RN_CP_BLOCKS:
    case RN_CP_LARGER_THAN:
      cut_all (c, chains, options->form == RN_CP_BLOCKS ? 0 : options->larger_than, part);
      break;
    case RN_CP_SEGMENTS:
      {
        g_autoptr (GPtrArray) joined = part == RN_PART_BACKBONE ? join (chains) : NULL;
        cut_in_segments (c, joined ? joined : chains, options->n_segments, part);
        break;
      }
    case RN_CP_STAGES:
      if (part == RN_PART_BACKBONE)
        cut_stages (c, chains, options);
      else
        fail (c, part,
              "the head has no stages; what works: true, sqrt, {segments: 2} or {larger_than: 8MiB}");
      break;
    }
}

/* A length for each stage, and one for all towers. */
static void
cut_by_search (const Choose *c, GPtrArray *blocks, GPtrArray *towers, const RnRecomputeOptions *options)
{
  RnSegmentLength lengths[RN_CP_MAX_STAGES + 1];
  g_autoptr (GPtrArray) stages = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  int n = 0;

  if (options->backbone.form == RN_CP_SQRT)
    for (guint k = 0; k < blocks->len && n < RN_CP_MAX_STAGES; k++)
      {
        GPtrArray *stage = new_chains ();
        g_ptr_array_add (stage, g_array_ref (blocks->pdata[k]));
        g_ptr_array_add (stages, stage);
        lengths[n++] = (RnSegmentLength){ RN_PART_BACKBONE, stage, 0 };
      }
  if (options->head.form == RN_CP_SQRT && towers->len > 0)
    lengths[n++] = (RnSegmentLength){ RN_PART_HEAD, towers, 0 };
  if (n == 0)
    return;
  rn_recompute_search (c->graph, &c->segments->uses, options->order, c->segments->segments, lengths, n);
  for (int d = 0; d < n; d++)
    for (guint k = 0; k < lengths[d].chains->len; k++)
      cut_by_length (c, lengths[d].chains, k, lengths[d].length, lengths[d].part);
}

/* ---- bn_relu, frozen ---- */

/* What backward reads of a batch norm that learns comes from the convolution's output, which it reads as
 * well. */
static void
add_norms (const Choose *c)
{
  RnSegments *segments = c->segments;
  for (int i = 0; i < c->graph->turn; i++)
    {
      const RnGraphOp *op = rn_graph_op (c->graph, i);
      if (op->op == RN_OP_BATCH_NORM_FWD && op->args.norm.training && segments->of_op[i] < 0)
        add_segment (c,
                     (RnSegment){ .part = RN_PART_BN_RELU, .first = i, .end = i + 1, .with_outputs = TRUE });
    }
}

/* Forward ops in front of everything that trains. The segment was reserved as the first one. */
static void
fill_frozen (const Choose *c)
{
  RnSegments *segments = c->segments;
  for (int i = 0; i < c->graph->turn; i++)
    {
      const RnGraphOp *op = rn_graph_op (c->graph, i);
      if (segments->of_op[i] < 0 && !rn_op_is_loss (op->op) && !trains (c->graph, op))
        segments->of_op[i] = 0;
    }
}

/* ---- all of it ---- */

static void
find_dropped (const Choose *c, gboolean bn_relu)
{
  RnSegments *segments = c->segments;
  const RnSegment norm = { .part = RN_PART_BN_RELU, .with_outputs = TRUE };
  for (RnValueId v = 0; v < (int) c->graph->values->len; v++)
    {
      int writer = segments->uses.writer[v], s = writer < 0 ? -1 : segments->of_op[writer];
      segments->dropped_by[v] = -1;
      if (s < 0)
        continue;
      const RnGraphOp *op = rn_graph_op (c->graph, writer);
      const RnSegment *segment = &g_array_index (segments->segments, RnSegment, s);
      if (rn_segment_may_drop (c->graph, &segments->uses, segment, v))
        segments->dropped_by[v] = s;
      else if (bn_relu && op->op == RN_OP_BATCH_NORM_FWD && op->args.norm.training
               && rn_segment_may_drop (c->graph, &segments->uses, &norm, v))
        { /* too small for its segment, or read behind it */
          segments->dropped_by[v] = s;
          segments->has_norms_inside = TRUE;
        }
    }
}

RnSegments *
rn_segments_new (RnGraph *graph, const RnRecomputeOptions *options)
{
  RnSegments *segments = g_new0 (RnSegments, 1);
  Choose c = { graph, segments };
  g_autoptr (GPtrArray) blocks = find_blocks (graph), towers = find_towers (graph);

  segments->graph = graph;
  segments->uses = find_uses (graph);
  segments->segments = g_array_new (FALSE, FALSE, sizeof (RnSegment));
  segments->of_op = g_new (int, graph->turn);
  segments->dropped_by = g_new (int, graph->values->len);
  for (int i = 0; i < graph->turn; i++)
    segments->of_op[i] = -1;
  if (options->frozen)
    {
      const RnSegment frozen = { .part = RN_PART_FROZEN, .end = graph->turn, .with_outputs = TRUE };
      g_array_append_val (segments->segments, frozen);
    }
  cut_part (&c, blocks, &options->backbone, RN_PART_BACKBONE);
  cut_part (&c, towers, &options->head, RN_PART_HEAD);
  cut_by_search (&c, blocks, towers, options);
  if (options->bn_relu)
    add_norms (&c);
  if (options->frozen)
    fill_frozen (&c);
  find_dropped (&c, options->bn_relu);
  return segments;
}

void
rn_segments_free (RnSegments *segments)
{
  if (!segments)
    return;
  g_array_unref (segments->segments);
  g_free (segments->uses.writer);
  g_free (segments->uses.last_forward);
  g_free (segments->of_op);
  g_free (segments->dropped_by);
  g_free (segments);
}

/* ---- options without effect ---- */

/* The largest output that a segment of @part would drop without a limit. */
static gsize
largest_inside (const RnSegments *segments, RnRecomputePart part)
{
  gsize largest = 0;
  for (RnValueId v = 0; v < segments->uses.n_values; v++)
    {
      int writer = segments->uses.writer[v], s = writer < 0 ? -1 : segments->of_op[writer];
      if (s < 0)
        continue;
      RnSegment segment = g_array_index (segments->segments, RnSegment, s);
      segment.larger_than = 0;
      if (segment.part == part && rn_segment_may_drop (segments->graph, &segments->uses, &segment, v))
        largest = MAX (largest, rn_desc_bytes (&rn_graph_value (segments->graph, v)->desc));
    }
  return largest;
}

static void
check_cp (const Choose *c, const RnCpOptions *options, RnRecomputePart part, gboolean may_be_idle)
{
  const char *inside = part == RN_PART_BACKBONE ? "a residual block that trains" : "a branch of the head";
  g_autofree char *text = NULL;

  switch (options->form)
    {
    case RN_CP_NONE:
      return;
    case RN_CP_SQRT:
      if (may_be_idle)
        return;
      text = g_strdup ("no segments lower the peak, so this has no effect; what works: false");
      break;
    case RN_CP_LARGER_THAN:
      {
        if (may_be_idle)
          return;
        gsize largest = largest_inside (c->segments, part);
        g_autofree char *limit = rn_size_format (options->larger_than), *size = rn_size_format (largest);
        text = largest == 0
                   ? g_strdup_printf ("backward needs nothing inside %s; what works: false", inside)
                   : g_strdup_printf ("no tensor inside %s is larger than %s; what works: a limit below %s",
                                      inside, limit, size);
        break;
      }
    case RN_CP_SEGMENTS:
      text = g_strdup_printf ("segments of one op each keep everything; what works: fewer segments, or true");
      break;
    case RN_CP_BLOCKS:
    case RN_CP_STAGES:
      text = g_strdup_printf ("backward needs nothing inside %s, so this has no effect; what works: false",
                              inside);
      break;
    }
  fail (c, part, text);
}

void
rn_segments_check_use (const RnSegments *segments, RnGraph *graph, const RnRecomputeOptions *options,
                       const gboolean *is_used)
{
  const Choose c = { graph, (RnSegments *) segments };

  if (!is_used[RN_PART_BACKBONE])
    check_cp (&c, &options->backbone, RN_PART_BACKBONE, options->may_be_idle);
  if (!is_used[RN_PART_HEAD])
    check_cp (&c, &options->head, RN_PART_HEAD, options->may_be_idle);
  if (options->bn_relu && !is_used[RN_PART_BN_RELU] && !segments->has_norms_inside)
    fail (&c, RN_PART_BN_RELU,
          rn_graph_has_live_batch_norm (graph)
              ? "bn_relu drops nothing that with_cp does not drop already; what works: recompute without it"
              : "no batch norm takes its statistics from the batch, so bn_relu has no effect: those on fixed "
                "statistics keep nothing of their own; what works: recompute without it, or norm_eval: "
                "false");
  if (options->frozen && !is_used[RN_PART_FROZEN])
    fail (&c, RN_PART_FROZEN,
          "backward reads no output of a frozen stage, so frozen has no effect; what works: recompute "
          "without it, or frozen_stages of 0 or more");
}
