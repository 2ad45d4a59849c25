/*
 * pass-offload.c: idle values wait in host memory.
 *
 * A value that no op touches for long is copied out behind its last use before the gap, and copied back, into
 * a value of its own, in front of the next use; whoever reads it behind the gap reads that one. Values of the
 * arena are written once, so the copy on the host stays valid: with several gaps a value goes out once and
 * comes back once a gap. Only bytes move: nothing that is computed changes.
 */
#include "config.h"

#include "graph/passes.h"
#include "graph/plan.h"

/*
 * Smaller values stay. Each transfer has a price of its own, some ten microseconds on a device, in which a
 * link of 12 GB/s would move 120 KiB; and where the largest tensor has tens of MiB, they free nothing. Small
 * graphs have a smaller limit: a part of their largest tensor.
 */
#define MIN_BYTES ((gsize) 1 << 20)
#define MIN_PART 64

/* Between two uses of a value, positions in the list before anything is moved. */
typedef struct
{
  int from, to; /* the op before the gap, -1: the host's writing; the first one behind it */
} Gap;

typedef struct
{
  RnValueId value;
  gsize bytes;
  GArray *gaps; /* of Gap, in order; owned */
  double gain;  /* bytes times ops that they are away */
} Candidate;

static void
candidate_free (gpointer data)
{
  Candidate *candidate = data;
  g_array_unref (candidate->gaps);
  g_free (candidate);
}

/* ---- which values ---- */

static gsize
min_bytes (const RnGraph *graph)
{
  gsize largest = 0;
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    if (rn_value_is_in_arena (rn_graph_value (graph, v)))
      largest = MAX (largest, rn_desc_bytes (&rn_graph_value (graph, v)->desc));
  return MIN (MIN_BYTES, largest / MIN_PART);
}

/* The ops that touch each value, ascending: [values] of GArray of int; and how many of them write it. */
static GArray **
find_uses (const RnGraph *graph, int *n_writers)
{
  GArray **uses = g_new (GArray *, graph->values->len);
  for (guint v = 0; v < graph->values->len; v++)
    uses[v] = g_array_new (FALSE, FALSE, sizeof (int));
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE)
          g_array_append_val (uses[op->in[s]], i);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE)
          {
            g_array_append_val (uses[op->out[s]], i);
            n_writers[op->out[s]]++;
          }
    }
  return uses;
}

static void
free_uses (const RnGraph *graph, GArray **uses)
{
  for (guint v = 0; v < graph->values->len; v++)
    g_array_unref (uses[v]);
  g_free (uses);
}

static int
compare_ints (gconstpointer a, gconstpointer b)
{
  return *(const int *) a - *(const int *) b;
}

/*
 * Written once, in the arena of the device, and not read by the host at the end. An input is written by the
 * host before the first op if a forward op reads it; when it writes the others is not known here.
 */
static gboolean
can_move (const RnGraph *graph, RnValueId v, const GArray *uses, int n_writers)
{
  const RnValue *value = rn_graph_value (graph, v);
  if (!rn_value_is_in_arena (value) || value->space != RN_SPACE_DEVICE || value->is_output || uses->len == 0)
    return FALSE;
  if (value->kind == RN_VALUE_INPUT)
    return n_writers == 0 && g_array_index (uses, int, 0) < graph->turn;
  return n_writers == 1;
}

/* The outputs of residual blocks: for each block the last one that forward ops outside it read. [values] */
static gboolean *
find_block_outputs (const RnGraph *graph)
{
  gboolean *is_output = g_new0 (gboolean, graph->values->len);
  g_autofree int *writers = rn_graph_find_writers (graph);
  g_autoptr (GHashTable) last = g_hash_table_new (NULL, NULL); /* block to value */

  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *reader = rn_graph_op (graph, i);
      for (int s = 0; s < RN_OP_MAX_IN && reader->phase == RN_PHASE_FORWARD; s++)
        {
          RnValueId v = reader->in[s];
          if (v == RN_NO_VALUE || writers[v] < 0)
            continue;
          const RnGraphOp *writer = rn_graph_op (graph, writers[v]);
          if (writer->block < 0 || writer->block == reader->block)
            continue;
          gpointer block = GINT_TO_POINTER (writer->block), known;
          if (g_hash_table_lookup_extended (last, block, NULL, &known)
              && writers[GPOINTER_TO_INT (known)] >= writers[v])
            continue;
          g_hash_table_insert (last, block, GINT_TO_POINTER (v));
        }
    }
  GHashTableIter iter;
  gpointer v;
  g_hash_table_iter_init (&iter, last);
  while (g_hash_table_iter_next (&iter, NULL, &v))
    is_output[GPOINTER_TO_INT (v)] = TRUE;
  return is_output;
}

/* ---- which gaps ---- */

/* Ops inside a gap while which the value is away: with a window it is on its way back for a part of it. */
static int
idle_ops (const Gap *gap, int window)
{
  return gap->to - gap->from - 1 - window;
}

/* All gaps of more than @idle ops. */
static GArray *
find_gaps (const RnGraph *graph, RnValueId v, const GArray *uses, int idle, int window)
{
  const RnValue *value = rn_graph_value (graph, v);
  GArray *gaps = g_array_new (FALSE, FALSE, sizeof (Gap));
  g_autoptr (GArray) times = g_array_copy ((GArray *) uses);

  if (value->kind == RN_VALUE_INPUT)
    g_array_prepend_vals (times, &(int){ -1 }, 1);
  if (value->is_kept) /* the host reads it when the forward ops have run */
    g_array_append_vals (times, &(int){ graph->turn }, 1);
  g_array_sort (times, compare_ints);
  for (guint k = 1; k < times->len; k++)
    {
      Gap gap = { g_array_index (times, int, k - 1), g_array_index (times, int, k) };
      /* a kept value stays where it is until the turn */
      if ((value->is_kept && gap.from < graph->turn) || idle_ops (&gap, 0) <= idle
          || idle_ops (&gap, window) < 1)
        continue;
      g_array_append_val (gaps, gap);
    }
  return gaps;
}

/* Keeps the longest gap, the first of equal ones. */
static void
keep_longest (GArray *gaps)
{
  for (guint k = 1; k < gaps->len;)
    {
      guint shorter =
          idle_ops (&g_array_index (gaps, Gap, k), 0) > idle_ops (&g_array_index (gaps, Gap, 0), 0) ? 0 : k;
      g_array_remove_index (gaps, shorter);
    }
}

static int
compare_gains (gconstpointer pa, gconstpointer pb)
{
  const Candidate *a = *(Candidate *const *) pa, *b = *(Candidate *const *) pb;
  if (a->gain != b->gain)
    return a->gain > b->gain ? -1 : 1;
  return a->value - b->value;
}

/* What may go, that which frees most first. (transfer full) */
static GPtrArray *
find_candidates (const RnGraph *graph, const RnOffloadOptions *options)
{
  GPtrArray *candidates = g_ptr_array_new_with_free_func (candidate_free);
  gboolean only_blocks = options->form == RN_OFFLOAD_BLOCK_OUTPUTS;
  g_autofree int *n_writers = g_new0 (int, graph->values->len);
  g_autofree gboolean *is_block_output = only_blocks ? find_block_outputs (graph) : NULL;
  GArray **uses = find_uses (graph, n_writers);
  gsize least = min_bytes (graph);

  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      gsize bytes = rn_desc_bytes (&rn_graph_value (graph, v)->desc);
      if (bytes < least || (only_blocks && !is_block_output[v])
          || !can_move (graph, v, uses[v], n_writers[v]))
        continue;
      g_autoptr (GArray) gaps =
          find_gaps (graph, v, uses[v], only_blocks ? 0 : options->idle, options->window);
      if (only_blocks) /* the way through the rest of the network, not the few ops to the end of the next
                          block */
        keep_longest (gaps);
      if (gaps->len == 0)
        continue;
      Candidate *candidate = g_new0 (Candidate, 1);
      candidate->value = v;
      candidate->bytes = bytes;
      for (guint k = 0; k < gaps->len; k++)
        candidate->gain += (double) bytes * idle_ops (&g_array_index (gaps, Gap, k), options->window);
      candidate->gaps = g_steal_pointer (&gaps);
      g_ptr_array_add (candidates, candidate);
    }
  free_uses (graph, uses);
  g_ptr_array_sort (candidates, compare_gains);
  return candidates;
}

/* ---- the moves ---- */

typedef struct
{
  int position;     /* in front of this op of the list as it is */
  gboolean is_back; /* in front of the same op, ways out come first */
  int candidate;
  guint gap; /* of those of the candidate; it goes out with the first one */
} Move;

static int
compare_moves (gconstpointer pa, gconstpointer pb)
{
  const Move *a = pa, *b = pb;
  if (a->position != b->position)
    return a->position - b->position;
  if (a->is_back != b->is_back)
    return a->is_back - b->is_back;
  return a->candidate != b->candidate ? a->candidate - b->candidate : (int) a->gap - (int) b->gap;
}

/* Of the first @n candidates, in the order of the list: move k becomes op position + k. (transfer full) */
static GArray *
find_moves (const GPtrArray *candidates, int n, int window)
{
  GArray *moves = g_array_new (FALSE, FALSE, sizeof (Move));
  for (int c = 0; c < n; c++)
    {
      const Candidate *candidate = g_ptr_array_index (candidates, (guint) c);
      Move out = { g_array_index (candidate->gaps, Gap, 0).from + 1, FALSE, c, 0 };
      g_array_append_val (moves, out);
      for (guint k = 0; k < candidate->gaps->len; k++)
        {
          const Gap *gap = &g_array_index (candidate->gaps, Gap, k);
          Move back = { MAX (gap->to - window, gap->from + 1), TRUE, c, k };
          g_array_append_val (moves, back);
        }
    }
  g_array_sort (moves, compare_moves);
  return moves;
}

/* The host's arena with the first @n candidates: the buffers are those that the plan will have, so it is
 * exact. */
static gsize
host_arena_bytes (const GPtrArray *candidates, int n, int window)
{
  g_autofree RnBuffer *buffers = g_new0 (RnBuffer, n);
  g_autoptr (GArray) moves = find_moves (candidates, n, window);

  for (int k = 0; k < (int) moves->len; k++)
    {
      const Move *move = &g_array_index (moves, Move, k);
      RnBuffer *buffer = &buffers[move->candidate];
      buffer->bytes = ((const Candidate *) g_ptr_array_index (candidates, (guint) move->candidate))->bytes;
      buffer->last = move->position + k;
      if (!move->is_back)
        buffer->first = move->position + k;
    }
  return rn_place_buffers (buffers, n);
}

/* Takes candidates as long as the host's arena stays within @limit; those that do not fit are removed. */
static void
respect_limit (GPtrArray *candidates, gsize limit, int window)
{
  for (guint k = 0; k < candidates->len;)
    if (host_arena_bytes (candidates, (int) k + 1, window) > limit)
      g_ptr_array_remove_index (candidates, k);
    else
      k++;
}

static RnValueId
add_copy (RnGraph *graph, RnValueId v, const char *prefix, RnSpace space)
{
  const RnValue *value = rn_graph_value (graph, v);
  RnValueKind kind = value->kind == RN_VALUE_GRADIENT ? RN_VALUE_GRADIENT : RN_VALUE_ACTIVATION;
  g_autofree char *name = g_strconcat (prefix, value->name, NULL);
  RnValueId copy = rn_graph_add_value (graph, name, value->desc, kind, -1);
  rn_graph_value (graph, copy)->space = space;
  return copy;
}

/* The readers of @v from op @first on read @copy. */
static void
move_readers (RnGraph *graph, RnValueId v, int first, RnValueId copy)
{
  for (int i = first; i < (int) graph->ops->len; i++)
    for (int s = 0; s < RN_OP_MAX_IN; s++)
      {
        RnValueId *in = &rn_graph_op (graph, i)->in[s];
        if (*in == v)
          *in = copy;
      }
}

/* The copy on the host, and behind it in @copies that of each gap. */
static void
add_copies (RnGraph *graph, const Candidate *candidate, GArray *copies)
{
  RnValueId copy = add_copy (graph, candidate->value, "host:", RN_SPACE_HOST), last = candidate->value;
  g_array_append_val (copies, copy);
  for (guint k = 0; k < candidate->gaps->len; k++)
    {
      copy = add_copy (graph, candidate->value, "back:", RN_SPACE_DEVICE);
      g_array_append_val (copies, copy);
      move_readers (graph, last, g_array_index (candidate->gaps, Gap, k).to, copy);
      last = copy;
    }
}

static void
move (RnGraph *graph, const GPtrArray *candidates, int window)
{
  g_autoptr (GArray) moves = find_moves (candidates, (int) candidates->len, window);
  g_autoptr (GPtrArray) copies = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  RnPhase phase = graph->phase;

  for (guint c = 0; c < candidates->len; c++)
    {
      g_ptr_array_add (copies, g_array_new (FALSE, FALSE, sizeof (RnValueId)));
      add_copies (graph, g_ptr_array_index (candidates, c), g_ptr_array_index (copies, c));
    }
  graph->phase = RN_PHASE_MOVE;
  for (guint k = moves->len; k-- > 0;) /* from the back: positions in front stay */
    {
      const Move *m = &g_array_index (moves, Move, k);
      const GArray *values = g_ptr_array_index (copies, (guint) m->candidate);
      RnValueId device = ((const Candidate *) g_ptr_array_index (candidates, (guint) m->candidate))->value,
                host = g_array_index (values, RnValueId, 0);
      RnGraphOp *op =
          rn_graph_insert_op (graph, m->position, RN_OP_COPY, rn_graph_value (graph, device)->name);
      op->in[0] = m->is_back ? host : device;
      op->out[0] = m->is_back ? g_array_index (values, RnValueId, 1 + m->gap) : host;
    }
  graph->phase = phase;
}

static void
nothing_to_do (RnGraph *graph, const RnOffloadOptions *options)
{
  if (options->form == RN_OFFLOAD_BLOCK_OUTPUTS)
    rn_graph_set_option_fault (graph, RN_OPTION_OFFLOAD,
                               "offload has no effect: no output of a residual block waits for its next "
                               "reader; what works: none, or idle>N");
  else
    rn_graph_set_option_fault (graph, RN_OPTION_OFFLOAD,
                               "offload has no effect: no large tensor is idle for more than %d ops; what "
                               "works: a smaller number, or none",
                               options->idle);
}

void
rn_pass_offload (RnGraph *graph, const RnOffloadOptions *options)
{
  g_autoptr (GPtrArray) candidates = find_candidates (graph, options);

  if (candidates->len == 0)
    {
      nothing_to_do (graph, options);
      return;
    }
  if (options->pinned_limit > 0)
    respect_limit (candidates, options->pinned_limit, options->window);
  if (candidates->len == 0)
    rn_graph_set_option_fault (graph, RN_OPTION_OFFLOAD,
                               "offload has no effect: no idle tensor fits into the pinned_limit of "
                               "%" G_GSIZE_FORMAT " bytes; what works: a larger limit, or offload: none",
                               options->pinned_limit);
  move (graph, candidates, options->window);
}
