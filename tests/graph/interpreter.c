#include "config.h"

#include "tests/graph/interpreter.h"

#define ALIGNMENT 64

static gboolean
is_own (const RnValue *value)
{
  return value->kind == RN_VALUE_INPUT || value->kind == RN_VALUE_ACTIVATION
         || value->kind == RN_VALUE_GRADIENT;
}

Interpreter *
interpreter_new (RnGraph *graph, RnDevice *device)
{
  Interpreter *self = g_new0 (Interpreter, 1);
  gsize workspace_bytes = 0;
  self->graph = graph;
  self->device = device;
  self->memory = g_new0 (void *, graph->values->len);
  self->calls = g_new0 (RnOpCall, graph->ops->len);
  self->prepared = g_new0 (RnPrepared, graph->ops->len);
  for (guint v = 0; v < graph->values->len; v++)
    if (is_own (rn_graph_value (graph, (RnValueId) v)))
      {
        gsize bytes = rn_desc_bytes (&rn_graph_value (graph, (RnValueId) v)->desc);
        self->memory[v] = g_aligned_alloc0 (1, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, ALIGNMENT);
      }
  for (guint i = 0; i < graph->ops->len; i++)
    {
      g_autoptr (GError) error = NULL;
      rn_graph_call (graph, (int) i, &self->calls[i]);
      rn_device_prepare (device, &self->calls[i], &self->prepared[i], &error);
      g_assert_no_error (error);
      rn_device_finalize (device, &self->calls[i], &self->prepared[i], &error);
      g_assert_no_error (error);
      workspace_bytes = MAX (workspace_bytes, self->prepared[i].workspace_bytes);
    }
  self->workspace = g_aligned_alloc0 (1, workspace_bytes + ALIGNMENT, ALIGNMENT);
  return self;
}

void
interpreter_free (Interpreter *self)
{
  for (guint i = 0; i < self->graph->ops->len; i++)
    rn_prepared_release (&self->prepared[i]);
  for (guint v = 0; v < self->graph->values->len; v++)
    g_aligned_free (self->memory[v]);
  g_aligned_free (self->workspace);
  g_free (self->memory);
  g_free (self->calls);
  g_free (self->prepared);
  g_free (self);
}

void *
interpreter_address (const Interpreter *self, RnValueId v)
{
  if (v == RN_NO_VALUE)
    return NULL;
  const RnValue *value = rn_graph_value (self->graph, v);
  if (is_own (value))
    return self->memory[v];
  return value->kind == RN_VALUE_PARAM ? rn_param_set_value (self->graph->params, value->param)
                                       : rn_param_set_grad (self->graph->params, value->param);
}

void
interpreter_run (Interpreter *self, int first, int end)
{
  for (int i = first; i < end; i++)
    {
      const RnGraphOp *op = rn_graph_op (self->graph, i);
      const RnPrepared *prepared = &self->prepared[i];
      const void *in[RN_OP_MAX_IN];
      void *out[RN_OP_MAX_OUT];
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        in[s] = interpreter_address (self, op->in[s]);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        out[s] = interpreter_address (self, op->out[s]);
      RnStatus status =
          prepared->kernel->run (self->device, &self->calls[i], prepared->state, in, out, self->workspace);
      g_assert_cmpstr (rn_status_name (status), ==, rn_status_name (RN_STATUS_OK));
    }
}
