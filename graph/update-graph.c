/* update-graph.c: the update is a graph as the others are, so that its scratch is planned and its kernels are
 * chosen in the same way. */
#include "config.h"

#include "graph/update-graph.h"

int
rn_update_rule_states (const RnUpdateRule *rule, const char *names[RN_PARAM_MAX_STATES])
{
  int n = 0;

  if (rule->kind == RN_UPDATE_SGD && rule->momentum)
    names[n++] = "momentum";
  if (rule->kind == RN_UPDATE_ADAM)
    {
      names[n++] = "exp_avg";
      names[n++] = "exp_avg_sq";
      if (rule->amsgrad)
        names[n++] = "max_exp_avg_sq";
    }
  return n;
}

static RnTensorDesc
flat_state (const RnGraph *graph, int i)
{
  return rn_desc_vector (rn_param_set_state_dtype (graph->params),
                         rn_desc_elements (&rn_param_set_get (graph->params, i)->desc));
}

static RnTensorDesc
flat (const RnGraph *graph, int i)
{
  return rn_desc_vector (RN_F32, rn_desc_elements (&rn_param_set_get (graph->params, i)->desc));
}

static RnTensorDesc
whole (gsize bytes)
{
  return rn_desc_vector (RN_F32, (gint64) (bytes / sizeof (float)));
}

static RnValueId
add_stats (RnGraph *graph)
{
  RnValueId grads = rn_graph_add_value (graph, "grads", whole (rn_param_set_grad_bytes (graph->params)),
                                        RN_VALUE_PARAM_GRAD, -1);
  RnValueId stats = rn_graph_add_value (graph, "grad_stats", rn_desc_vector (RN_F32, RN_STATS_COUNT),
                                        RN_VALUE_ACTIVATION, -1);
  RnGraphOp *op = rn_graph_append_op (graph, RN_OP_GRAD_STATS, "grad_stats");

  op->in[RN_GRAD_STATS_GRAD] = grads;
  op->in[RN_GRAD_STATS_NORM_TYPE] = rn_graph_input (graph, "norm_type", rn_desc_vector (RN_F32, 1));
  op->out[0] = stats;
  rn_graph_mark_output (graph, stats);
  return stats;
}

static void
add_guard (RnGraph *graph, RnValueId stats, RnValueId hyper)
{
  RnGraphOp *op = rn_graph_append_op (graph, RN_OP_STEP_GUARD, "step_guard");

  op->in[0] = stats;
  op->out[0] = hyper;
}

/* SGD and ADAM have gradient, hyper vector and parameter in the same slots, and the states after them. */
G_STATIC_ASSERT ((int) RN_SGD_GRAD == (int) RN_ADAM_GRAD && (int) RN_SGD_HYPER == (int) RN_ADAM_HYPER);
G_STATIC_ASSERT ((int) RN_SGD_PARAM == 0 && (int) RN_ADAM_PARAM == 0);
G_STATIC_ASSERT ((int) RN_SGD_MOMENTUM == 1 && (int) RN_ADAM_EXP_AVG == 1 && (int) RN_ADAM_OUT_COUNT == 4);

static RnOpArgs
step_args (const RnUpdateRule *rule, const RnParamUpdate *update)
{
  double weight_decay = rule->weight_decay * update->decay_mult;

  if (rule->kind == RN_UPDATE_SGD)
    return (RnOpArgs){ .sgd = { .group = update->group,
                                .weight_decay = weight_decay,
                                .dampening = (float) rule->dampening,
                                .nesterov = rule->nesterov } };
  return (RnOpArgs){ .adam = { .group = update->group,
                               .weight_decay = weight_decay,
                               .beta2 = rule->beta2,
                               .eps = rule->eps,
                               .decoupled = rule->decoupled } };
}

static RnValueId
add_state (RnGraph *graph, int param, int k)
{
  const char *name = rn_param_set_get (graph->params, param)->name;
  RnValueId state = rn_graph_add_value (graph, name, flat_state (graph, param), RN_VALUE_STATE, param);
  rn_graph_value (graph, state)->state = k;
  if (rn_param_set_has_host_states (graph->params))
    rn_graph_value (graph, state)->space = RN_SPACE_HOST;
  return state;
}

static void
insert_copy (RnGraph *graph, int position, const char *scope, RnValueId from, RnValueId to)
{
  RnGraphOp *copy = rn_graph_insert_op (graph, position, RN_OP_COPY, scope);
  copy->phase = RN_PHASE_MOVE;
  copy->in[0] = from;
  copy->out[0] = to;
}

/* The states of the step at @position lie in host memory: the step works on values of the arena, which come
 * in front of it and go home behind it. */
static void
fetch_states (RnGraph *graph, int position, int n_states)
{
  RnGraphOp *step = rn_graph_op (graph, position);
  for (int k = 0; k < n_states; k++)
    {
      RnValueId home = step->out[1 + k];
      const RnValue *value = rn_graph_value (graph, home);
      g_autofree char *name = g_strdup_printf ("state%d:%s", k, value->name);
      RnValueId guest = rn_graph_add_value (graph, name, value->desc, RN_VALUE_ACTIVATION, -1);
      step->out[1 + k] = guest;
      insert_copy (graph, position++, step->scope, home, guest); /* in front of the step, which moves */
      insert_copy (graph, position + 1, step->scope, guest, home);
    }
}

void
rn_update_insert_step (RnGraph *graph, int position, const RnUpdateSpec *spec, int param, RnValueId grad,
                       RnValueId hyper)
{
  static const RnParamUpdate plain = { 0, 1 };
  const RnUpdateRule *rule = &spec->rule;
  const char *scope = rn_param_set_get (graph->params, param)->name, *names[RN_PARAM_MAX_STATES];
  int n_states = rn_update_rule_states (rule, names);
  RnGraphOp *op =
      rn_graph_insert_op (graph, position, rule->kind == RN_UPDATE_SGD ? RN_OP_SGD : RN_OP_ADAM, scope);

  op->phase = RN_PHASE_UPDATE;
  op->args = step_args (rule, spec->updates != NULL ? &spec->updates[param] : &plain);
  op->in[RN_SGD_GRAD] = grad;
  op->in[RN_SGD_HYPER] = hyper;
  op->out[RN_SGD_PARAM] = rn_graph_add_value (graph, scope, flat (graph, param), RN_VALUE_PARAM, param);
  for (int k = 0; k < n_states; k++)
    op->out[1 + k] = add_state (graph, param, k);
  if (rn_param_set_has_host_states (graph->params))
    fetch_states (graph, position, n_states);
}

RnValueId
rn_update_add_hyper (RnGraph *graph, const RnUpdateSpec *spec)
{
  gint64 n = RN_HYPER_COUNT + (gint64) spec->n_groups * RN_GROUP_COUNT;
  return rn_graph_input (graph, "hyper", rn_desc_vector (RN_F32, n));
}

static void
add_steps (RnGraph *graph, const RnUpdateSpec *spec, RnValueId hyper)
{
  for (int i = 0; i < rn_param_set_size (graph->params); i++)
    if (rn_param_set_get (graph->params, i)->trainable)
      {
        RnValueId grad = rn_graph_add_value (graph, rn_param_set_get (graph->params, i)->name,
                                             flat (graph, i), RN_VALUE_PARAM_GRAD, i);
        rn_update_insert_step (graph, (int) graph->ops->len, spec, i, grad, hyper);
      }
}

static void
add_means (RnGraph *graph)
{
  RnValueId weights = rn_graph_input (graph, "ema_momentum", rn_desc_vector (RN_F32, 1));
  RnValueId buffers = rn_graph_input (graph, "ema_momentum_buffers", rn_desc_vector (RN_F32, 1));

  for (int i = 0; i < rn_param_set_size (graph->params); i++)
    {
      const RnParam *param = rn_param_set_get (graph->params, i);
      RnGraphOp *op = rn_graph_append_op (graph, RN_OP_EMA_UPDATE, param->name);
      op->in[RN_EMA_SRC] = rn_graph_add_value (graph, param->name, flat (graph, i), RN_VALUE_PARAM, i);
      op->in[RN_EMA_MOMENTUM] = param->kind == RN_PARAM_BUFFER ? buffers : weights;
      op->out[0] = rn_graph_add_value (graph, param->name, flat (graph, i), RN_VALUE_EMA, i);
    }
}

static void
add_swap (RnGraph *graph)
{
  RnTensorDesc desc = whole (rn_param_set_value_bytes (graph->params));
  RnGraphOp *op = rn_graph_append_op (graph, RN_OP_SWAP, "ema");

  op->out[RN_SWAP_A] = rn_graph_add_value (graph, "values", desc, RN_VALUE_PARAM, -1);
  op->out[RN_SWAP_B] = rn_graph_add_value (graph, "ema", desc, RN_VALUE_EMA, -1);
}

RnGraph *
rn_update_graph_new (RnParamSet *params, const RnUpdateSpec *spec, RnUpdateParts *parts)
{
  RnGraph *graph = rn_graph_new (RN_MODE_TRAIN, params);
  RnUpdateParts at = { 0 };

  if (!spec->in_backward)
    {
      RnValueId stats = add_stats (graph), hyper = rn_update_add_hyper (graph, spec);
      add_guard (graph, stats, hyper);
      at.step = (int) graph->ops->len;
      add_steps (graph, spec, hyper);
    }
  at.ema = (int) graph->ops->len;
  if (spec->ema)
    add_means (graph);
  at.swap = (int) graph->ops->len;
  if (spec->ema)
    add_swap (graph);
  at.end = graph->turn = (int) graph->ops->len;
  if (parts != NULL)
    *parts = at;
  return graph;
}
