/*
 * executor.c: walks the ops of a plan. All addresses are computed once.
 *
 * On a device with several queues each op is given to its own, behind what it must wait for (queues.h). What
 * the host does between two runs belongs to the compute queue: so at the start of a run the other queues wait
 * for that one, and at its end that one waits for what the others were given.
 */
#include "config.h"

#include "graph/executor.h"
#include "graph/arena-check.h"
#include "graph/queues.h"
#include "runner/base/trace.h"

#include <runner/engine.h>

struct _RnExecutor
{
  RnPlan *plan;        /* lent */
  RnArenas arenas;     /* lent */
  const void **in;     /* [ops][RN_OP_MAX_IN] */
  void **out;          /* [ops][RN_OP_MAX_OUT] */
  void **workspace;    /* [ops] */
  RnQueues *queues;    /* NULL where all ops go to one */
  RnQueue queue;       /* the one in use */
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

/* Lets kernels try what they can choose from, where they will run. */
static gboolean
measure_ops (RnExecutor *executor, GError **error)
{
  RnPlan *plan = executor->plan;
  RnDevice *device = plan->device;
  RnStatus status = RN_STATUS_OK;
  gboolean any = FALSE;

  for (int i = 0; i < (int) plan->graph->ops->len && !plan->measured; i++)
    {
      RnPrepared *prepared = &plan->prepared[i];
      if (prepared->kernel->measure == NULL)
        continue;
      any = TRUE;
      status = prepared->kernel->measure (device, &plan->calls[i], prepared, executor->in + i * RN_OP_MAX_IN,
                                          executor->out + i * RN_OP_MAX_OUT, executor->workspace[i]);
      if (status == RN_STATUS_OK)
        continue;
      g_autofree char *text = rn_op_describe (&plan->calls[i]);
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s: measuring %s in %s failed: %s",
                   rn_graph_op (plan->graph, i)->scope, text, prepared->kernel->name,
                   rn_device_fault (device, status));
      return FALSE;
    }
  plan->measured = TRUE;
  if (any && device->vtbl->keep_choices != NULL)
    status = device->vtbl->keep_choices (device);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, rn_device_fault (device, status));
  return FALSE;
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
  executor->queues = plan->device->vtbl->use_queue != NULL ? rn_queues_new (plan) : NULL;
  if (executor->queues != NULL && executor->queues->is_single)
    g_clear_pointer (&executor->queues, rn_queues_free);
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
  if (!measure_ops (executor, error))
    g_clear_pointer (&executor, rn_executor_free);
  return executor;
}

void
rn_executor_free (RnExecutor *executor)
{
  if (!executor)
    return;
  rn_arena_check_free (executor->check);
  rn_queues_free (executor->queues);
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

gboolean
rn_executor_host_wrote (RnExecutor *executor, RnValueId value, GError **error)
{
  return executor->check == NULL
         || rn_arena_check_host_wrote (executor->check, executor->plan->buffer_of[value], error);
}

/* ---- queues ---- */

/* Goes on in @queue. */
static RnStatus
select_queue (RnExecutor *executor, RnQueue queue)
{
  RnDevice *device = executor->plan->device;

  if (queue == executor->queue)
    return RN_STATUS_OK;
  executor->queue = queue;
  return device->vtbl->use_queue (device, queue);
}

/* The queue and the waits of op @i, in a run that began with op @first: what ran before that is done. */
static RnStatus
enter_op (RnExecutor *executor, int i, int first)
{
  const RnQueues *queues = executor->queues;
  RnDevice *device = executor->plan->device;
  RnStatus status = select_queue (executor, queues->queue_of[i]);

  for (int e = queues->first_edge[i]; e < queues->first_edge[i + 1] && status == RN_STATUS_OK; e++)
    if (queues->edges[e].earlier >= first)
      status = device->vtbl->wait (device, (guint) queues->event_of[queues->edges[e].earlier]);
  return status;
}

static RnStatus
leave_op (RnExecutor *executor, int i)
{
  RnDevice *device = executor->plan->device;
  int event = executor->queues->event_of[i];

  return event >= 0 ? device->vtbl->signal (device, (guint) event) : RN_STATUS_OK;
}

/* Does @queue get one of the ops [first, end)? */
static gboolean
is_used (const RnQueues *queues, RnQueue queue, int first, int end)
{
  for (int i = first; i < end; i++)
    if (queues->queue_of[i] == queue)
      return TRUE;
  return FALSE;
}

/* One queue waits for another, with an event behind those of the ops. */
static RnStatus
wait_for_queue (RnExecutor *executor, RnQueue waiter, RnQueue earlier)
{
  RnDevice *device = executor->plan->device;
  guint event = (guint) executor->queues->n_events;
  RnStatus status = select_queue (executor, earlier);

  if (status == RN_STATUS_OK)
    status = device->vtbl->signal (device, event);
  if (status == RN_STATUS_OK)
    status = select_queue (executor, waiter);
  return status == RN_STATUS_OK ? device->vtbl->wait (device, event) : status;
}

/* The others wait for the compute queue, or with @is_end that one for the others. */
static RnStatus
join_queues (RnExecutor *executor, int first, int end, gboolean is_end)
{
  RnStatus status = RN_STATUS_OK;

  for (int q = 0; q < RN_N_QUEUES && status == RN_STATUS_OK; q++)
    {
      RnQueue queue = (RnQueue) q;
      if (queue == RN_QUEUE_COMPUTE || !is_used (executor->queues, queue, first, end))
        continue;
      status = is_end ? wait_for_queue (executor, RN_QUEUE_COMPUTE, queue)
                      : wait_for_queue (executor, queue, RN_QUEUE_COMPUTE);
    }
  return status;
}

static gboolean
check_queues (const RnExecutor *executor, RnStatus status, GError **error)
{
  RnDevice *device = executor->plan->device;

  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "the queues of device %s failed: %s",
               device->vtbl->name, rn_device_fault (device, status));
  return FALSE;
}

/* ---- ops ---- */

static RnStatus
queue_op (RnExecutor *executor, int i)
{
  const RnPlan *plan = executor->plan;
  RnDevice *device = plan->device;
  const RnPrepared *prepared = &plan->prepared[i];
  const void *const *in = executor->in + i * RN_OP_MAX_IN;
  void *const *out = executor->out + i * RN_OP_MAX_OUT;

  if (device->vtbl->begin_op != NULL)
    device->vtbl->begin_op (device, rn_graph_op (plan->graph, i)->scope, &plan->calls[i], in, out,
                            executor->workspace[i], prepared->workspace_bytes);
  RnStatus status =
      prepared->kernel->run (device, &plan->calls[i], prepared->state, in, out, executor->workspace[i]);
  RnStatus ended = device->vtbl->end_op != NULL ? device->vtbl->end_op (device) : RN_STATUS_OK;
  return status == RN_STATUS_OK ? ended : status;
}

static gboolean
run_op (RnExecutor *executor, int i, int first, GError **error)
{
  const RnPlan *plan = executor->plan;
  RnDevice *device = plan->device;
  gint64 start = rn_trace_begin ();
  RnStatus status = executor->queues != NULL ? enter_op (executor, i, first) : RN_STATUS_OK;

  if (status == RN_STATUS_OK)
    status = queue_op (executor, i);
  if (status == RN_STATUS_OK && executor->queues != NULL)
    status = leave_op (executor, i);
  if (G_UNLIKELY (start != 0))
    trace_op (executor, i, start);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_autofree char *text = rn_op_describe (&plan->calls[i]);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s: %s failed in %s: %s",
               rn_graph_op (plan->graph, i)->scope, text, plan->prepared[i].kernel->name,
               rn_device_fault (device, status));
  return FALSE;
}

/* Op @i as the checking mode runs it: compared, and timed with all that it queued. */
static gboolean
run_checked (RnExecutor *executor, int i, int first, GError **error)
{
  RnPlan *plan = executor->plan;
  RnDevice *device = plan->device;

  if (!rn_arena_check_before (executor->check, i, error))
    return FALSE;
  gint64 start = g_get_monotonic_time ();
  if (!run_op (executor, i, first, error))
    return FALSE;
  if (device->vtbl->synchronize != NULL
      && !check_queues (executor, device->vtbl->synchronize (device), error))
    return FALSE;
  plan->measures[i].seconds = (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC;
  return rn_arena_check_after (executor->check, i, error);
}

static gboolean
run_ops (RnExecutor *executor, int first, int end, GError **error)
{
  for (int i = first; i < end; i++)
    if (executor->check != NULL ? !run_checked (executor, i, first, error)
                                : !run_op (executor, i, first, error))
      return FALSE;
  return TRUE;
}

gboolean
rn_executor_run (RnExecutor *executor, int first, int end, GError **error)
{
  if (executor->check && first == 0 && !rn_arena_check_start (executor->check, error))
    return FALSE;
  if (executor->queues == NULL)
    return run_ops (executor, first, end, error);
  if (!check_queues (executor, join_queues (executor, first, end, FALSE), error))
    return FALSE;
  gboolean is_ok = run_ops (executor, first, end, error);
  RnStatus status = is_ok ? join_queues (executor, first, end, TRUE) : RN_STATUS_OK;
  RnStatus selected = select_queue (executor, RN_QUEUE_COMPUTE); /* where it is left, also after a failure */
  return is_ok && check_queues (executor, status == RN_STATUS_OK ? selected : status, error);
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
