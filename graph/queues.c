/* queues.c: which op waits for which, where there are several queues. */
#include "config.h"

#include "graph/queues.h"

/* ---- what an op touches ---- */

/* A part of an arena, or one tensor of the parameter set. */
typedef struct
{
  RnValueKind kind; /* RN_VALUE_ACTIVATION for all that lies in an arena */
  RnSpace space;
  gsize offset, bytes; /* in the arena */
  int param, state;    /* param -1: all of them */
  gboolean is_written;
} Access;

#define MAX_ACCESSES (RN_OP_MAX_IN + RN_OP_MAX_OUT + 1)

typedef struct
{
  Access all[MAX_ACCESSES];
  int n;
} Accesses;

static void
add_buffer (Accesses *accesses, const RnBuffer *buffer, gboolean is_written)
{
  accesses->all[accesses->n++] = (Access){ .kind = RN_VALUE_ACTIVATION,
                                           .space = buffer->space,
                                           .offset = buffer->offset,
                                           .bytes = buffer->bytes,
                                           .is_written = is_written };
}

static void
add_value (const RnPlan *plan, Accesses *accesses, RnValueId v, gboolean is_written)
{
  if (v == RN_NO_VALUE)
    return;
  const RnValue *value = rn_graph_value (plan->graph, v);
  if (plan->buffer_of[v] >= 0)
    add_buffer (accesses, &plan->buffers[plan->buffer_of[v]], is_written);
  else
    accesses->all[accesses->n++] = (Access){
      .kind = value->kind, .param = value->param, .state = value->state, .is_written = is_written
    };
}

static void
find_accesses (const RnPlan *plan, int i, Accesses *accesses)
{
  const RnGraphOp *op = rn_graph_op (plan->graph, i);

  accesses->n = 0;
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    add_value (plan, accesses, op->in[s], FALSE);
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    add_value (plan, accesses, op->out[s], TRUE);
  if (plan->workspace_of[i] >= 0)
    add_buffer (accesses, &plan->buffers[plan->workspace_of[i]], TRUE);
}

static gboolean
overlap (const Access *a, const Access *b)
{
  if (a->kind != b->kind)
    return FALSE;
  if (a->kind == RN_VALUE_ACTIVATION)
    return a->space == b->space && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
  return a->state == b->state && (a->param == b->param || a->param < 0 || b->param < 0);
}

/* Must the order of the two stay? */
static gboolean
conflict (const Accesses *a, const Accesses *b)
{
  for (int i = 0; i < a->n; i++)
    for (int k = 0; k < b->n; k++)
      if ((a->all[i].is_written || b->all[k].is_written) && overlap (&a->all[i], &b->all[k]))
        return TRUE;
  return FALSE;
}

/* ---- edges ---- */

/* For each queue the last op that is done before something, or -1. */
typedef struct
{
  int done[RN_N_QUEUES];
} Clock;

static RnQueue
choose_queue (const RnGraph *graph, int i)
{
  const RnGraphOp *op = rn_graph_op (graph, i);

  if (op->phase != RN_PHASE_MOVE)
    return RN_QUEUE_COMPUTE;
  return rn_graph_value (graph, op->out[0])->space == RN_SPACE_HOST ? RN_QUEUE_TO_HOST : RN_QUEUE_FROM_HOST;
}

/* The last op of @queue in front of @i, later than @after, that op @i must wait for, or -1. */
static int
find_last (const RnQueues *queues, const Accesses *accesses, int i, RnQueue queue, int after)
{
  for (int earlier = i - 1; earlier > after; earlier--)
    if (queues->queue_of[earlier] == queue && conflict (&accesses[earlier], &accesses[i]))
      return earlier;
  return -1;
}

/* Adds the edges of op @i, and turns @clock from what its queue knows into what is done when it is. @clocks:
 * those of the ops before it. */
static void
add_edges (const RnQueues *queues, const Accesses *accesses, int i, const Clock *clocks, Clock *clock,
           GArray *edges)
{
  int wanted[RN_N_QUEUES];

  for (int q = 0; q < RN_N_QUEUES; q++)
    wanted[q] =
        q == (int) queues->queue_of[i] ? -1 : find_last (queues, accesses, i, (RnQueue) q, clock->done[q]);
  for (int q = 0; q < RN_N_QUEUES; q++)
    {
      gboolean is_known = wanted[q] < 0;
      for (int other = 0; other < RN_N_QUEUES && !is_known; other++)
        is_known = other != q && wanted[other] >= 0 && clocks[wanted[other]].done[q] >= wanted[q];
      if (is_known)
        continue;
      RnQueueEdge edge = { i, wanted[q] };
      g_array_append_val (edges, edge);
    }
  for (int q = 0; q < RN_N_QUEUES; q++)
    for (int k = 0; wanted[q] >= 0 && k < RN_N_QUEUES; k++)
      clock->done[k] = MAX (clock->done[k], clocks[wanted[q]].done[k]);
  clock->done[queues->queue_of[i]] = i;
}

static void
find_edges (RnQueues *queues, const RnPlan *plan)
{
  int n_ops = (int) plan->graph->ops->len;
  g_autofree Accesses *accesses = g_new (Accesses, n_ops);
  g_autofree Clock *clocks = g_new (Clock, n_ops);
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (RnQueueEdge));
  int last[RN_N_QUEUES] = { -1, -1, -1 };

  for (int i = 0; i < n_ops; i++)
    {
      RnQueue queue = queues->queue_of[i];
      find_accesses (plan, i, &accesses[i]);
      clocks[i] = last[queue] >= 0 ? clocks[last[queue]] : (Clock){ { -1, -1, -1 } };
      queues->first_edge[i] = (int) edges->len;
      add_edges (queues, accesses, i, clocks, &clocks[i], edges);
      last[queue] = i;
    }
  queues->n_edges = queues->first_edge[n_ops] = (int) edges->len;
  queues->edges = (RnQueueEdge *) (void *) g_array_free (edges, FALSE);
}

/* ---- events ---- */

/* Events are noted and waited for in the order of the list, so a number is free behind its last waiter. */
static void
number_events (RnQueues *queues, int n_ops)
{
  g_autofree int *last_waiter = g_new (int, n_ops);
  g_autoptr (GArray) unused = g_array_new (FALSE, FALSE, sizeof (int));

  for (int i = 0; i < n_ops; i++)
    last_waiter[i] = queues->event_of[i] = -1;
  for (int e = 0; e < queues->n_edges; e++)
    last_waiter[queues->edges[e].earlier] = queues->edges[e].op;
  for (int i = 0; i < n_ops; i++)
    {
      for (int e = queues->first_edge[i]; e < queues->first_edge[i + 1]; e++)
        if (last_waiter[queues->edges[e].earlier] == i)
          g_array_append_val (unused, queues->event_of[queues->edges[e].earlier]);
      if (last_waiter[i] < 0)
        continue;
      if (unused->len > 0)
        {
          queues->event_of[i] = g_array_index (unused, int, unused->len - 1);
          g_array_set_size (unused, unused->len - 1);
        }
      else
        queues->event_of[i] = queues->n_events++;
    }
}

RnQueues *
rn_queues_new (const RnPlan *plan)
{
  int n_ops = (int) plan->graph->ops->len;
  RnQueues *queues = g_new0 (RnQueues, 1);

  queues->queue_of = g_new (RnQueue, n_ops);
  queues->first_edge = g_new0 (int, n_ops + 1);
  queues->event_of = g_new (int, n_ops);
  queues->is_single = TRUE;
  for (int i = 0; i < n_ops; i++)
    {
      queues->queue_of[i] = choose_queue (plan->graph, i);
      queues->is_single &= queues->queue_of[i] == RN_QUEUE_COMPUTE;
    }
  if (!queues->is_single)
    find_edges (queues, plan);
  number_events (queues, n_ops);
  return queues;
}

void
rn_queues_free (RnQueues *queues)
{
  if (queues == NULL)
    return;
  g_free (queues->queue_of);
  g_free (queues->edges);
  g_free (queues->first_edge);
  g_free (queues->event_of);
  g_free (queues);
}
