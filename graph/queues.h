/*
 * queues.h: for a device that does work later, in several queues: which queue each op of a plan goes to, and
 * where one queue must wait for another.
 *
 * A plan's order is that of one queue, and its buffers share memory on that ground. Copies of offload go to
 * queues of their own; an op must then wait for an earlier one of another queue when one of both writes bytes
 * that the other touches. The edges here are the fewest that say so: an op waits for the last such op of
 * each queue, unless its own queue, or what it waits for besides, has waited for that already.
 */
#ifndef GRAPH_QUEUES_H
#define GRAPH_QUEUES_H

#include "graph/plan.h"

G_BEGIN_DECLS

/* An op waits for an earlier one, of another queue. */
typedef struct
{
  int op, earlier;
} RnQueueEdge;

typedef struct
{
  RnQueue *queue_of;  /* [ops] */
  RnQueueEdge *edges; /* by op */
  int n_edges;
  int *first_edge;    /* [ops + 1]: the edges of op i are [first_edge[i], first_edge[i + 1]) */
  int *event_of;      /* [ops]: the event that is noted behind the op, or -1 */
  int n_events;       /* a number is used again when all have waited for it that do */
  gboolean is_single; /* all ops are in RN_QUEUE_COMPUTE */
} RnQueues;

RnQueues *rn_queues_new (const RnPlan *plan);
void rn_queues_free (RnQueues *queues);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnQueues, rn_queues_free)

G_END_DECLS

#endif
