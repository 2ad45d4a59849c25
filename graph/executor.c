/*
 * executor.c: walks the ops of a plan. All addresses are computed once.
 */
#include "config.h"

#include "graph/executor.h"
#include "graph/arena-check.h"
#include "runner/base/trace.h"

#include <runner/engine.h>

struct _RnExecutor
{
  RnPlan *plan;        /* lent */
  RnArenas arenas;     /* lent */
  const void **in;     /* [ops][RN_OP_MAX_IN] */
  void **out;          /* [ops][RN_OP_MAX_OUT] */
  void **workspace;    /* [ops] */
  RnArenaCheck *check; /* NULL when off */
};

void *
rn_executor_address (const RnExecutor *executor, RnValueId v)
{
  const RnPlan *plan = executor->plan;
  const RnParamSet *params = plan->graph->params;
  const RnValue *value = rn_graph_value (plan->graph, v);
  switch (value->kind)
    {
    case RN_VALUE_PARAM:
      return value->param >= 0 ? rn_param_set_value (params, value->param) : rn_param_set_all_values (params);
    case RN_VALUE_PARAM_GRAD:
      return value->param >= 0 ? rn_param_set_grad (params, value->param) : rn_param_set_all_grads (params);
    case RN_VALUE_STATE:
      return rn_param_set_state (params, value->state, value->param);
    case RN_VALUE_EMA:
      return value->param >= 0 ? rn_param_set_ema (params, value->param) : rn_param_set_all_ema (params);
    case RN_VALUE_INPUT:
    case RN_VALUE_ACTIVATION:
    case RN_VALUE_GRADIENT:
      break;
    }
  int b = plan->buffer_of[v];
  return b >= 0 ? (guint8 *) executor->arenas.memory[plan->buffers[b].space] + plan->buffers[b].offset : NULL;
}

static gboolean
check_arenas (const RnPlan *plan, const RnArenas *arenas, GError **error)
{
  const gsize needed[RN_N_SPACES] = {
    [RN_SPACE_DEVICE] = plan->arena_bytes, [RN_SPACE_HOST] = plan->host_arena_bytes
  };
  for (int space = 0; space < RN_N_SPACES; space++)
    if (arenas->bytes[space] < needed[space])
      {
        g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                     "the plan needs %s arena of %" G_GSIZE_FORMAT " bytes, there are %" G_GSIZE_FORMAT,
                     space == RN_SPACE_HOST ? "a host" : "an", needed[space], arenas->bytes[space]);
        return FALSE;
      }
  return TRUE;
}

RnExecutor *
rn_executor_new (RnPlan *plan, void *arena, gsize arena_bytes, GError **error)
{
  const RnArenas arenas = { { arena }, { arena_bytes } };
  return rn_executor_new_in (plan, &arenas, error);
}

RnExecutor *
rn_executor_new_in (RnPlan *plan, const RnArenas *arenas, GError **error)
{
  if (!check_arenas (plan, arenas, error) || !rn_plan_finalize (plan, error))
    return NULL;

  guint n_ops = plan->graph->ops->len;
  RnExecutor *executor = g_new0 (RnExecutor, 1);
  executor->plan = plan;
  executor->arenas = *arenas;
  executor->in = g_new0 (const void *, n_ops *RN_OP_MAX_IN);
  executor->out = g_new0 (void *, n_ops *RN_OP_MAX_OUT);
  executor->workspace = g_new0 (void *, n_ops);
  for (guint i = 0; i < n_ops; i++)
    {
      const RnGraphOp *op = rn_graph_op (plan->graph, (int) i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE)
          executor->in[i * RN_OP_MAX_IN + s] = rn_executor_address (executor, op->in[s]);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE)
          executor->out[i * RN_OP_MAX_OUT + s] = rn_executor_address (executor, op->out[s]);
      if (plan->workspace_of[i] >= 0)
        executor->workspace[i] =
            (guint8 *) executor->arenas.memory[RN_SPACE_DEVICE] + plan->buffers[plan->workspace_of[i]].offset;
    }
  return executor;
}

void
rn_executor_free (RnExecutor *executor)
{
  if (!executor)
    return;
  rn_arena_check_free (executor->check);
  g_free (executor->in);
  g_free (executor->out);
  g_free (executor->workspace);
  g_free (executor);
}

/* Notes op @i, which began at @start. */
static void
trace_op (const RnExecutor *executor, int i, gint64 start)
{
  const RnPlan *plan = executor->plan;
  gint64 end = rn_trace_clock ();
  g_autofree char *shapes = rn_trace_wants_shapes () ? rn_op_describe (&plan->calls[i]) : NULL;

  rn_trace_add (start, end, RN_TRACE_OP, rn_op_name (plan->calls[i].op), rn_graph_op (plan->graph, i)->scope,
                plan->prepared[i].kernel->name, shapes);
  if (rn_trace_wants_memory ())
    rn_trace_count ("arena bytes in use", (double) rn_plan_live_bytes (plan, i));
}

void
rn_executor_host_wrote (RnExecutor *executor, RnValueId value)
{
  if (executor->check)
    rn_arena_check_host_wrote (executor->check, executor->plan->buffer_of[value]);
}

static gboolean
run_op (RnExecutor *executor, int i, GError **error)
{
  const RnPlan *plan = executor->plan;
  const RnPrepared *prepared = &plan->prepared[i];
  gint64 start = rn_trace_begin ();
  RnStatus status =
      prepared->kernel->run (plan->device, &plan->calls[i], prepared->state, executor->in + i * RN_OP_MAX_IN,
                             executor->out + i * RN_OP_MAX_OUT, executor->workspace[i]);
  if (G_UNLIKELY (start != 0))
    trace_op (executor, i, start);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_autofree char *text = rn_op_describe (&plan->calls[i]);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s: %s failed in %s: %s",
               rn_graph_op (plan->graph, i)->scope, text, prepared->kernel->name, rn_status_name (status));
  return FALSE;
}

gboolean
rn_executor_run (RnExecutor *executor, int first, int end, GError **error)
{
  if (executor->check && first == 0)
    rn_arena_check_start (executor->check);
  for (int i = first; i < end; i++)
    {
      if (executor->check)
        rn_arena_check_before (executor->check, i);
      gint64 start = executor->check ? g_get_monotonic_time () : 0;
      if (!run_op (executor, i, error))
        return FALSE;
      if (executor->check)
        executor->plan->measures[i].seconds = (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC;
      if (executor->check && !rn_arena_check_after (executor->check, i, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_executor_enable_check (RnExecutor *executor, GError **error)
{
  RnPlan *plan = executor->plan;

  if (!plan->measures)
    plan->measures = g_new0 (RnOpMeasure, plan->graph->ops->len);
  if (!executor->check)
    executor->check = rn_arena_check_new (plan, executor->arenas.memory, error);
  return executor->check != NULL;
}

gsize
rn_executor_highest_byte (const RnExecutor *executor)
{
  return executor->check ? rn_arena_check_highest_byte (executor->check, RN_SPACE_DEVICE) : 0;
}

gsize
rn_executor_highest_host_byte (const RnExecutor *executor)
{
  return executor->check ? rn_arena_check_highest_byte (executor->check, RN_SPACE_HOST) : 0;
}
