/* graph.c: the lists of values and ops, scopes, and what passes ask about them. */
#include "config.h"

#include "graph/graph.h"

#include <string.h>

static void
value_free (gpointer data)
{
  RnValue *value = data;
  g_free (value->name);
  g_free (value);
}

static void
op_free (gpointer data)
{
  RnGraphOp *op = data;
  g_free (op->scope);
  g_free (op);
}

RnGraph *
rn_graph_new (RnMode mode, RnParamSet *params)
{
  RnGraph *graph = g_new0 (RnGraph, 1);
  graph->mode = mode;
  graph->params = params;
  graph->values = g_ptr_array_new_with_free_func (value_free);
  graph->ops = g_ptr_array_new_with_free_func (op_free);
  graph->group = graph->stage = graph->block = -1;
  graph->scope = g_string_new (NULL);
  graph->scope_marks = g_array_new (FALSE, FALSE, sizeof (gsize));
  graph->param_values = g_array_new (FALSE, FALSE, sizeof (RnValueId));
  return graph;
}

void
rn_graph_free (RnGraph *graph)
{
  if (!graph)
    return;
  g_ptr_array_unref (graph->ops);
  g_ptr_array_unref (graph->values);
  g_array_unref (graph->param_values);
  g_array_unref (graph->scope_marks);
  g_string_free (graph->scope, TRUE);
  g_free (graph->fault);
  g_free (graph);
}

static void G_GNUC_PRINTF (3, 0)
    note_fault (RnGraph *graph, RnMemoryOption option, const char *format, va_list args)
{
  if (graph->fault)
    return;
  graph->fault = g_strdup_vprintf (format, args);
  graph->fault_option = option;
}

void
rn_graph_set_fault (RnGraph *graph, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  note_fault (graph, RN_OPTION_NONE, format, args);
  va_end (args);
}

void
rn_graph_set_option_fault (RnGraph *graph, RnMemoryOption option, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  note_fault (graph, option, format, args);
  va_end (args);
}

/* ---- scopes ---- */

void
rn_graph_push_scope (RnGraph *graph, const char *format, ...)
{
  gsize mark = graph->scope->len;
  g_array_append_val (graph->scope_marks, mark);
  if (mark > 0)
    g_string_append_c (graph->scope, '.');
  va_list args;
  va_start (args, format);
  g_string_append_vprintf (graph->scope, format, args);
  va_end (args);
}

void
rn_graph_pop_scope (RnGraph *graph)
{
  g_return_if_fail (graph->scope_marks->len > 0);
  guint last = graph->scope_marks->len - 1;
  g_string_truncate (graph->scope, g_array_index (graph->scope_marks, gsize, last));
  g_array_set_size (graph->scope_marks, last);
}

gboolean
rn_scope_is_in (const char *scope, const char *module)
{
  gsize length = strlen (module);
  return strncmp (scope, module, length) == 0 && (scope[length] == '\0' || scope[length] == '.');
}

/* ---- values ---- */

static gboolean
is_sane_size (const RnTensorDesc *desc)
{
  gint64 bytes = (gint64) rn_dtype_size (desc->dtype);
  if (desc->rank < 0 || desc->rank > RN_MAX_DIMS)
    return FALSE;
  for (int i = 0; i < desc->rank; i++)
    if (desc->dims[i] < 1 || __builtin_mul_overflow (bytes, desc->dims[i], &bytes)
        || bytes >= RN_MAX_TENSOR_BYTES)
      return FALSE;
  return bytes > 0;
}

RnValueId
rn_graph_add_value (RnGraph *graph, const char *name, RnTensorDesc desc, RnValueKind kind, int param)
{
  if (!is_sane_size (&desc))
    {
      rn_graph_set_fault (graph, "%s: the tensor would be empty or 1 TiB or more", name);
      return RN_NO_VALUE;
    }
  RnValue *value = g_new0 (RnValue, 1);
  value->name = g_strdup (name);
  value->desc = desc;
  value->kind = kind;
  value->param = param;
  value->gradient = RN_NO_VALUE;
  g_ptr_array_add (graph->values, value);
  return (RnValueId) graph->values->len - 1;
}

RnValueId
rn_graph_param_value (RnGraph *graph, int param)
{
  const RnValueId none = RN_NO_VALUE;
  while ((int) graph->param_values->len <= param)
    g_array_append_val (graph->param_values, none);
  RnValueId *known = &g_array_index (graph->param_values, RnValueId, param);
  if (*known == RN_NO_VALUE)
    {
      const RnParam *p = rn_param_set_get (graph->params, param);
      *known = rn_graph_add_value (graph, p->name, p->desc, RN_VALUE_PARAM, param);
    }
  return *known;
}

RnValueId
rn_graph_find_value (const RnGraph *graph, const char *name)
{
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (graph, v);
      if ((value->kind == RN_VALUE_INPUT || value->kind == RN_VALUE_ACTIVATION)
          && g_str_equal (value->name, name))
        return v;
    }
  return RN_NO_VALUE;
}

void
rn_graph_mark_output (RnGraph *graph, RnValueId value)
{
  if (value != RN_NO_VALUE)
    rn_graph_value (graph, value)->is_output = TRUE;
}

/* ---- ops ---- */

RnGraphOp *
rn_graph_insert_op (RnGraph *graph, int position, RnOp op, const char *scope)
{
  RnGraphOp *o = g_new0 (RnGraphOp, 1);
  o->op = op;
  o->scope = g_strdup (scope);
  o->group = graph->group;
  o->stage = graph->stage;
  o->block = graph->block;
  o->phase = graph->phase;
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    o->in[s] = RN_NO_VALUE;
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    o->out[s] = RN_NO_VALUE;
  g_ptr_array_insert (graph->ops, position, o);
  if (position < graph->turn)
    graph->turn++;
  return o;
}

RnGraphOp *
rn_graph_append_op (RnGraph *graph, RnOp op, const char *scope)
{
  return rn_graph_insert_op (graph, (int) graph->ops->len, op, scope);
}

void
rn_graph_drop_op (RnGraph *graph, int i)
{
  rn_graph_op (graph, i)->op = RN_OP_COUNT;
}

void
rn_graph_sweep (RnGraph *graph)
{
  gpointer *ops = graph->ops->pdata;
  guint kept = 0;
  int turn = graph->turn;
  for (guint i = 0; i < graph->ops->len; i++)
    {
      RnGraphOp *op = ops[i];
      if (op->op == RN_OP_COUNT)
        {
          if ((int) i < turn)
            graph->turn--;
          continue;
        }
      /* exchange, so that the dropped ones gather at the end, where set_size frees them */
      ops[i] = ops[kept];
      ops[kept++] = op;
    }
  g_ptr_array_set_size (graph->ops, (int) kept);
}

int *
rn_graph_count_reads (const RnGraph *graph)
{
  int *reads = g_new0 (int, graph->values->len);
  for (guint v = 0; v < graph->values->len; v++)
    reads[v] = rn_graph_value (graph, (RnValueId) v)->is_output;
  for (guint i = 0; i < graph->ops->len; i++)
    for (int s = 0; s < RN_OP_MAX_IN; s++)
      {
        RnValueId v = rn_graph_op (graph, (int) i)->in[s];
        if (v != RN_NO_VALUE)
          reads[v]++;
      }
  return reads;
}

int *
rn_graph_find_writers (const RnGraph *graph)
{
  int *writers = g_new (int, graph->values->len);
  for (guint v = 0; v < graph->values->len; v++)
    writers[v] = -1;
  for (guint i = 0; i < graph->ops->len; i++)
    for (int s = 0; s < RN_OP_MAX_OUT; s++)
      {
        RnValueId v = rn_graph_op (graph, (int) i)->out[s];
        if (v != RN_NO_VALUE && writers[v] < 0)
          writers[v] = (int) i;
      }
  return writers;
}

gboolean
rn_graph_has_live_batch_norm (const RnGraph *graph)
{
  for (int i = 0; i < graph->turn; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (op->op == RN_OP_BATCH_NORM_FWD && op->args.norm.training)
        return TRUE;
    }
  return FALSE;
}

void
rn_graph_call (const RnGraph *graph, int i, RnOpCall *call)
{
  const RnGraphOp *op = rn_graph_op (graph, i);
  *call = (RnOpCall){ .op = op->op, .args = op->args };
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    if (op->in[s] != RN_NO_VALUE)
      {
        call->in_present |= 1u << s;
        call->in[s] = rn_graph_value (graph, op->in[s])->desc;
      }
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    if (op->out[s] != RN_NO_VALUE)
      {
        call->out_present |= 1u << s;
        call->out[s] = rn_graph_value (graph, op->out[s])->desc;
      }
}
