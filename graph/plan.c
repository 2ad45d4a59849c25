/*
 * plan.c: from a graph to a plan: kernels, storage that values share, lives, and (placement.c) offsets.
 *
 * Not planned here: parameters, their gradients and momentum (params.c), what loaders and loggers allocate,
 * and the code that kernels compile.
 */
#include "config.h"

#include "graph/plan.h"

/* ---- lives and shared storage ---- */

typedef struct
{
  int first, last; /* ops; first is -1 for values that no op uses */
  RnValueId root;  /* the value whose storage this one has; itself if its own */
} Life;

static RnValueId
root_of (const Life *lives, RnValueId v)
{
  while (lives[v].root != v)
    v = lives[v].root;
  return v;
}

static void
find_lives (const RnGraph *graph, Life *lives)
{
  int n_ops = (int) graph->ops->len, n_values = (int) graph->values->len;
  for (RnValueId v = 0; v < n_values; v++)
    lives[v] = (Life){ .first = -1, .last = -1, .root = v };
  for (int i = 0; i < n_ops; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE)
          lives[op->in[s]].last = i;
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE)
          {
            Life *life = &lives[op->out[s]];
            if (life->first < 0)
              life->first = i;
            life->last = i;
          }
    }
  for (RnValueId v = 0; v < n_values; v++)
    {
      const RnValue *value = rn_graph_value (graph, v);
      if (value->kind == RN_VALUE_INPUT)
        {
          lives[v].first = 0; /* the host writes it before the program */
          lives[v].last = MAX (lives[v].last, 0);
        }
      if (value->is_output)
        lives[v].last = n_ops - 1;
      if (value->is_kept) /* no forward op may write over it */
        lives[v].last = MAX (lives[v].last, graph->turn);
    }
}

/* May output @out of op @i take the storage of its input slot @s? */
static gboolean
can_share (const RnGraph *graph, const Life *lives, int i, RnValueId out, int s)
{
  const RnGraphOp *op = rn_graph_op (graph, i);
  RnValueId in = op->in[s];
  if (in == RN_NO_VALUE || in == out || !rn_value_is_in_arena (rn_graph_value (graph, in)))
    return FALSE;
  RnValueId root = root_of (lives, in);
  if (lives[root].last != i || rn_graph_value (graph, in)->space != rn_graph_value (graph, out)->space
      || !rn_desc_equal (&rn_graph_value (graph, in)->desc, &rn_graph_value (graph, out)->desc))
    return FALSE;
  /* another slot of the op that looks at the same storage would see it change */
  for (int k = 0; k < RN_OP_MAX_IN; k++)
    if (k != s && op->in[k] != RN_NO_VALUE && root_of (lives, op->in[k]) == root)
      return FALSE;
  for (int k = 0; k < RN_OP_MAX_OUT; k++)
    if (op->out[k] != RN_NO_VALUE && op->out[k] != out && root_of (lives, op->out[k]) == root)
      return FALSE;
  return TRUE;
}

static void
share_storage (const RnGraph *graph, Life *lives)
{
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      for (int o = 0; o < RN_OP_MAX_OUT; o++)
        {
          RnValueId out = op->out[o];
          if (out == RN_NO_VALUE || !rn_value_is_in_arena (rn_graph_value (graph, out))
              || lives[out].first != i)
            continue;
          guint mask = rn_op_alias_mask (op->op, o);
          for (int s = 0; s < RN_OP_MAX_IN; s++)
            if ((mask >> s & 1) && can_share (graph, lives, i, out, s))
              {
                RnValueId root = root_of (lives, op->in[s]);
                lives[out].root = root;
                lives[root].last = MAX (lives[root].last, lives[out].last);
                break;
              }
        }
    }
}

/* ---- the plan ---- */

/* The buffers of values in @space. */
static void
collect_values (RnPlan *plan, const Life *lives, RnSpace space)
{
  const RnGraph *graph = plan->graph;
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (graph, v);
      if (!rn_value_is_in_arena (value) || value->space != space || lives[v].first < 0 || lives[v].root != v)
        continue;
      plan->buffer_of[v] = plan->n_buffers;
      plan->buffers[plan->n_buffers++] = (RnBuffer){ .bytes = rn_desc_bytes (&value->desc),
                                                     .first = lives[v].first,
                                                     .last = lives[v].last,
                                                     .value = v,
                                                     .op = -1,
                                                     .space = space };
    }
}

static void
collect_workspaces (RnPlan *plan)
{
  for (int i = 0; i < (int) plan->graph->ops->len; i++)
    {
      gsize bytes = plan->prepared[i].workspace_bytes;
      plan->workspace_of[i] = -1;
      if (bytes == 0)
        continue;
      plan->workspace_bytes = MAX (plan->workspace_bytes, bytes);
      plan->workspace_of[i] = plan->n_buffers;
      plan->buffers[plan->n_buffers++] =
          (RnBuffer){ .bytes = bytes, .first = i, .last = i, .value = RN_NO_VALUE, .op = i };
    }
}

static void
collect_buffers (RnPlan *plan, const Life *lives)
{
  const RnGraph *graph = plan->graph;
  int n_ops = (int) graph->ops->len, n_values = (int) graph->values->len;
  plan->buffers = g_new0 (RnBuffer, n_values + n_ops);
  plan->buffer_of = g_new (int, n_values);
  plan->workspace_of = g_new (int, n_ops);

  for (RnValueId v = 0; v < n_values; v++)
    plan->buffer_of[v] = -1;
  collect_values (plan, lives, RN_SPACE_DEVICE);
  collect_workspaces (plan);
  plan->n_device_buffers = plan->n_buffers;
  collect_values (plan, lives, RN_SPACE_HOST);
  for (RnValueId v = 0; v < n_values; v++)
    if (rn_value_is_in_arena (rn_graph_value (graph, v)) && lives[v].first >= 0 && lives[v].root != v)
      plan->buffer_of[v] = plan->buffer_of[root_of (lives, v)];
}

static gsize
live_bytes (const RnPlan *plan, int from, int to, int i)
{
  gsize live = 0;
  for (int b = from; b < to; b++)
    if (plan->buffers[b].first <= i && i <= plan->buffers[b].last)
      live += plan->buffers[b].bytes;
  return live;
}

gsize
rn_plan_live_bytes (const RnPlan *plan, int i)
{
  return live_bytes (plan, 0, plan->n_device_buffers, i);
}

gsize
rn_plan_host_live_bytes (const RnPlan *plan, int i)
{
  return live_bytes (plan, plan->n_device_buffers, plan->n_buffers, i);
}

/* Largest sum of living bytes over the buffers [from, to); *@op: the first op that has it. */
static gsize
find_bound (const RnPlan *plan, int from, int to, int *op)
{
  int n_ops = (int) plan->graph->ops->len;
  g_autofree gint64 *change = g_new0 (gint64, n_ops + 1);
  gint64 live = 0, bound = 0;

  for (int b = from; b < to; b++)
    {
      change[plan->buffers[b].first] += (gint64) plan->buffers[b].bytes;
      change[plan->buffers[b].last + 1] -= (gint64) plan->buffers[b].bytes;
    }
  for (int i = 0; i < n_ops; i++)
    {
      live += change[i];
      if (live > bound)
        {
          bound = live;
          *op = i;
        }
    }
  return (gsize) bound;
}

static void
find_peak (RnPlan *plan)
{
  int host_op = 0;

  plan->live_bound_bytes = find_bound (plan, 0, plan->n_device_buffers, &plan->peak_op);
  plan->host_live_bound_bytes = find_bound (plan, plan->n_device_buffers, plan->n_buffers, &host_op);
}

RnPlan *
rn_plan_new_bounds (RnGraph *graph, RnDevice *device, gboolean inplace, GError **error)
{
  int n_ops = (int) graph->ops->len;
  g_autoptr (RnPlan) plan = g_new0 (RnPlan, 1);
  plan->graph = graph;
  plan->device = device;
  plan->calls = g_new0 (RnOpCall, n_ops);
  plan->prepared = g_new0 (RnPrepared, n_ops);
  for (int i = 0; i < n_ops; i++)
    {
      rn_graph_call (graph, i, &plan->calls[i]);
      if (!rn_device_prepare (device, &plan->calls[i], &plan->prepared[i], error))
        {
          g_prefix_error (error, "%s: ", rn_graph_op (graph, i)->scope);
          return NULL;
        }
      plan->is_bound |= plan->prepared[i].is_bound;
      if (rn_graph_op (graph, i)->phase == RN_PHASE_FORWARD)
        plan->macs += rn_op_cost (&plan->calls[i]).macs;
    }

  g_autofree Life *lives = g_new (Life, graph->values->len);
  find_lives (graph, lives);
  if (inplace)
    share_storage (graph, lives);
  collect_buffers (plan, lives);
  find_peak (plan);
  plan->arena_bytes = plan->live_bound_bytes;
  plan->host_arena_bytes = plan->host_live_bound_bytes;
  return g_steal_pointer (&plan);
}

RnPlan *
rn_plan_new (RnGraph *graph, RnDevice *device, gboolean inplace, GError **error)
{
  RnPlan *plan = rn_plan_new_bounds (graph, device, inplace, error);
  if (!plan)
    return NULL;
  plan->arena_bytes = rn_place_buffers (plan->buffers, plan->n_device_buffers);
  plan->host_arena_bytes =
      rn_place_buffers (plan->buffers + plan->n_device_buffers, plan->n_buffers - plan->n_device_buffers);
  return plan;
}

void
rn_plan_free (RnPlan *plan)
{
  if (!plan)
    return;
  if (plan->prepared)
    for (guint i = 0; i < plan->graph->ops->len; i++)
      rn_prepared_release (&plan->prepared[i]);
  g_free (plan->calls);
  g_free (plan->prepared);
  g_free (plan->measures);
  g_free (plan->buffers);
  g_free (plan->buffer_of);
  g_free (plan->workspace_of);
  rn_graph_free (plan->graph);
  g_free (plan);
}

gboolean
rn_plan_finalize (RnPlan *plan, GError **error)
{
  if (plan->finalized)
    return TRUE;
  for (guint i = 0; i < plan->graph->ops->len; i++)
    if (!rn_device_finalize (plan->device, &plan->calls[i], &plan->prepared[i], error))
      {
        g_prefix_error (error, "%s: ", rn_graph_op (plan->graph, (int) i)->scope);
        return FALSE;
      }
  plan->finalized = TRUE;
  return TRUE;
}

/* ---- check ---- */

static char *
describe_buffer (const RnPlan *plan, const RnBuffer *b)
{
  const char *name = b->value != RN_NO_VALUE ? rn_graph_value (plan->graph, b->value)->name
                                             : rn_graph_op (plan->graph, b->op)->scope;
  return g_strdup_printf ("%s%s [%" G_GSIZE_FORMAT ", %" G_GSIZE_FORMAT ")%s ops %d..%d",
                          b->value != RN_NO_VALUE ? "" : "workspace of ", name, b->offset,
                          b->offset + b->bytes, b->space == RN_SPACE_HOST ? " of the host" : "", b->first,
                          b->last);
}

char *
rn_plan_check (const RnPlan *plan)
{
  for (int i = 0; i < plan->n_buffers; i++)
    {
      const RnBuffer *a = &plan->buffers[i];
      gsize arena = a->space == RN_SPACE_HOST ? plan->host_arena_bytes : plan->arena_bytes;
      if (a->offset % RN_ARENA_ALIGNMENT != 0 || a->offset + a->bytes > arena)
        {
          g_autofree char *text = describe_buffer (plan, a);
          return g_strdup_printf ("%s is misaligned or outside the arena of %" G_GSIZE_FORMAT " bytes", text,
                                  arena);
        }
      for (int k = 0; k < i; k++)
        {
          const RnBuffer *b = &plan->buffers[k];
          if (a->space == b->space && a->first <= b->last && b->first <= a->last
              && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
            {
              g_autofree char *text_a = describe_buffer (plan, a), *text_b = describe_buffer (plan, b);
              return g_strdup_printf ("%s overlaps %s", text_a, text_b);
            }
        }
    }

  /* the value that each buffer holds, as the program goes on: a read must find the value that it names */
  g_autofree RnValueId *holds = g_new (RnValueId, plan->n_buffers);
  for (int b = 0; b < plan->n_buffers; b++)
    holds[b] = RN_NO_VALUE;
  for (guint v = 0; v < plan->graph->values->len; v++)
    if (rn_graph_value (plan->graph, (RnValueId) v)->kind == RN_VALUE_INPUT && plan->buffer_of[v] >= 0)
      holds[plan->buffer_of[v]] = (RnValueId) v;
  for (guint i = 0; i < plan->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (plan->graph, (int) i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE && plan->buffer_of[op->in[s]] >= 0
            && holds[plan->buffer_of[op->in[s]]] != op->in[s])
          return g_strdup_printf (
              "op %u (%s of %s) reads %s after its storage was given away or before it was written", i,
              rn_op_name (op->op), op->scope, rn_graph_value (plan->graph, op->in[s])->name);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE && plan->buffer_of[op->out[s]] >= 0)
          holds[plan->buffer_of[op->out[s]]] = op->out[s];
    }
  return NULL;
}
