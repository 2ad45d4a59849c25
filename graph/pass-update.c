/*
 * pass-update.c: the optimizer in the backward program.
 *
 * The gradient of a parameter is a value of the arena, zero in front of the op that adds to it first, and
 * gone behind the optimizer's op. That one stands as early as it may: behind the last op that adds to the
 * gradient, behind the last that reads the parameter, and behind the turn, since the forward program must be
 * repeatable and a batch may go without its backward program.
 */
#include "config.h"

#include "graph/passes.h"

/* Of one parameter. */
typedef struct
{
  int param;
  RnValueId gradient; /* RN_NO_VALUE: no op adds to it */
  int first_write;    /* op that adds to the gradient; -1: none */
  int last_use;       /* op that reads the parameter or adds to the gradient; -1: none */
} Use;

/* Something to put in front of op @position. */
typedef struct
{
  int position;
  gboolean is_step; /* else what clears the gradient */
  const Use *use;
} Insertion;

/* Of all parameters. (transfer full) */
static Use *
find_uses (const RnGraph *graph)
{
  int n = rn_param_set_size (graph->params);
  Use *uses = g_new (Use, n);

  for (int i = 0; i < n; i++)
    uses[i] = (Use){ .param = i, .gradient = RN_NO_VALUE, .first_write = -1, .last_use = -1 };
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        {
          const RnValue *value = op->in[s] != RN_NO_VALUE ? rn_graph_value (graph, op->in[s]) : NULL;
          if (value != NULL && value->kind == RN_VALUE_PARAM)
            uses[value->param].last_use = i;
        }
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        {
          const RnValue *value = op->out[s] != RN_NO_VALUE ? rn_graph_value (graph, op->out[s]) : NULL;
          if (value == NULL || value->kind != RN_VALUE_PARAM_GRAD)
            continue;
          Use *use = &uses[value->param];
          use->gradient = op->out[s];
          use->last_use = i;
          if (use->first_write < 0)
            use->first_write = i;
        }
    }
  return uses;
}

static void
insert_clear (RnGraph *graph, int position, const Use *use)
{
  RnGraphOp *op =
      rn_graph_insert_op (graph, position, RN_OP_ZERO, rn_param_set_get (graph->params, use->param)->name);

  op->phase = RN_PHASE_BACKWARD;
  op->out[0] = use->gradient;
}

/* A parameter that no gradient reaches has one of zeros: weight decay and momentum move it all the same. */
static void
append_unreached (RnGraph *graph, const RnUpdateSpec *spec, Use *use, RnValueId hyper)
{
  const RnParam *param = rn_param_set_get (graph->params, use->param);
  g_autofree char *name = g_strconcat ("d:", param->name, NULL);

  use->gradient = rn_graph_add_value (graph, name, param->desc, RN_VALUE_GRADIENT, use->param);
  insert_clear (graph, (int) graph->ops->len, use);
  rn_update_insert_step (graph, (int) graph->ops->len, spec, use->param, use->gradient, hyper);
}

static void
add_insertions (const RnGraph *graph, const Use *use, GArray *insertions)
{
  Insertion clear = { use->first_write, FALSE, use };
  Insertion step = { MAX (use->last_use + 1, graph->turn), TRUE, use };

  g_array_append_val (insertions, clear);
  g_array_append_val (insertions, step);
}

/* The last place first, so that the others hold. At one place steps come later: they then stand in front of
 * what clears the next gradients. */
static int
compare_insertions (gconstpointer pa, gconstpointer pb)
{
  const Insertion *a = pa, *b = pb;

  if (a->position != b->position)
    return a->position > b->position ? -1 : 1;
  if (a->is_step != b->is_step)
    return a->is_step ? 1 : -1;
  return a->use->param > b->use->param ? -1 : a->use->param < b->use->param;
}

void
rn_pass_update (RnGraph *graph, const RnUpdateSpec *spec)
{
  g_autofree Use *uses = find_uses (graph);
  g_autoptr (GArray) insertions = g_array_new (FALSE, FALSE, sizeof (Insertion));
  RnValueId hyper = rn_update_add_hyper (graph, spec);

  for (int i = 0; i < rn_param_set_size (graph->params); i++)
    if (uses[i].gradient != RN_NO_VALUE)
      {
        rn_graph_value (graph, uses[i].gradient)->kind = RN_VALUE_GRADIENT;
        add_insertions (graph, &uses[i], insertions);
      }
    else if (rn_param_set_get (graph->params, i)->trainable)
      append_unreached (graph, spec, &uses[i], hyper);
  g_array_sort (insertions, compare_insertions);
  for (guint k = 0; k < insertions->len; k++)
    {
      const Insertion *insertion = &g_array_index (insertions, Insertion, k);
      const Use *use = insertion->use;
      if (insertion->is_step)
        rn_update_insert_step (graph, insertion->position, spec, use->param, use->gradient, hyper);
      else
        insert_clear (graph, insertion->position, use);
    }
}
