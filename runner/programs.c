/*
 * programs.c: which plans a run needs, and the memory that they share.
 */
#include "config.h"

#include "runner/programs-private.h"

#include <string.h>

static void
program_free (gpointer data)
{
  RnProgram *program = data;
  rn_executor_free (program->executor);
  rn_plan_free (program->plan);
  g_free (program);
}

/* ---- plans ---- */

static gboolean
shapes_equal (RnShape a, RnShape b)
{
  return a.mode == b.mode && a.n == b.n && a.height == b.height && a.width == b.width;
}

static void
find_host_values (RnPrograms *p, RnProgram *program)
{
  const RnGraph *graph = program->plan->graph;
  int sizes[RN_MAX_LEVELS][2];

  program->pixels = rn_graph_find_value (graph, "pixels");
  program->sizes = rn_graph_find_value (graph, "sizes");
  program->table = rn_graph_find_value (graph, "table");
  program->labels = rn_graph_find_value (graph, "labels");
  program->positives = rn_graph_find_value (graph, "positives");
  program->n_positives = rn_graph_find_value (graph, "n_positives");
  program->avg_factor = rn_graph_find_value (graph, "avg_factor");
  program->grad_scale = rn_graph_find_value (graph, "grad_scale");
  program->hyper = rn_graph_find_value (graph, "hyper");
  program->n_levels = rn_model_feature_sizes (p->model, program->shape.height, program->shape.width, sizes);

  const char *const *names = rn_model_loss_names (p->model);
  static const char *const topk_names[] = { "index", "logits", "deltas" };
  G_STATIC_ASSERT (G_N_ELEMENTS (topk_names) == RN_TOPK_OUT_COUNT);
  for (int level = 0; level < program->n_levels; level++)
    {
      for (int i = 0; names[i]; i++)
        {
          g_autofree char *name = g_strdup_printf ("%s.%d", names[i], level);
          program->losses[i][level] = rn_graph_find_value (graph, name);
        }
      for (int i = 0; i < RN_TOPK_OUT_COUNT; i++)
        {
          g_autofree char *name = g_strdup_printf ("level%d.%s", level, topk_names[i]);
          program->topk[level][i] = rn_graph_find_value (graph, name);
        }
    }
}

static RnProgram *
program_new (RnPrograms *p, RnShape shape, GError **error)
{
  g_autoptr (RnGraph) graph =
      rn_model_build (p->model, p->params, shape.mode, shape.n, shape.height, shape.width, error);
  RnPassOptions passes = p->options.passes;
  passes.recompute.may_be_idle = !shapes_equal (shape, p->shapes[0]);
  if (!graph || !rn_passes_run (graph, &passes, NULL, NULL, error))
    return NULL;
  RnPlan *(*make_plan) (RnGraph *, RnDevice *, gboolean, GError **) =
      p->options.bounds_only ? rn_plan_new_bounds : rn_plan_new;
  RnPlan *plan = make_plan (g_steal_pointer (&graph), p->device, p->options.passes.inplace, error);
  if (!plan)
    return NULL;
  RnProgram *program = g_new0 (RnProgram, 1);
  program->shape = shape;
  program->plan = plan;
  find_host_values (p, program);
  return program;
}

static void
forget_oldest (RnPrograms *p)
{
  guint oldest = 0;
  for (guint i = 1; i < p->cache->len; i++)
    if (((RnProgram *) p->cache->pdata[i])->last_use < ((RnProgram *) p->cache->pdata[oldest])->last_use)
      oldest = i;
  if (p->cache->pdata[oldest] == p->current)
    p->current = NULL;
  g_ptr_array_remove_index_fast (p->cache, oldest);
}

static RnProgram *
get_program (RnPrograms *p, RnShape shape, GError **error)
{
  for (guint i = 0; i < p->cache->len; i++)
    {
      RnProgram *program = p->cache->pdata[i];
      if (shapes_equal (program->shape, shape))
        {
          program->last_use = ++p->clock;
          return program;
        }
    }
  RnProgram *program = program_new (p, shape, error);
  if (!program)
    return NULL;
  while (p->cache->len >= (guint) p->options.plan_cache)
    forget_oldest (p);
  program->last_use = ++p->clock;
  g_ptr_array_add (p->cache, program);
  return program;
}

const RnPlan *
rn_programs_get_plan (RnPrograms *p, RnShape shape, GError **error)
{
  RnProgram *program = get_program (p, shape, error);
  return program ? program->plan : NULL;
}

/* The plan against itself now, and against what is really written from now on. */
static gboolean
check_program (RnProgram *program, GError **error)
{
  g_autofree char *fault = rn_plan_check (program->plan);
  if (fault)
    {
      g_set_error_literal (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED, fault);
      return FALSE;
    }
  return rn_executor_enable_check (program->executor, error);
}

RnProgram *
rn_programs_prepare (RnPrograms *p, RnShape shape, GError **error)
{
  RnProgram *program = get_program (p, shape, error);
  if (!program)
    return NULL;
  if (!program->executor)
    {
      program->executor = rn_executor_new_in (program->plan, &p->arenas, error);
      if (!program->executor)
        {
          g_prefix_error (error, "shape %dx%d, batch %d: ", shape.height, shape.width, shape.n);
          return NULL;
        }
      if (p->options.check && !check_program (program, error))
        return NULL;
    }
  return program;
}

/* ---- life ---- */

RnPrograms *
rn_programs_new (RnModel *model, RnDevice *device, const RnProgramsOptions *options, const RnShape *shapes,
                 int n_shapes, GError **error)
{
  g_return_val_if_fail (n_shapes > 0 && options->plan_cache > 0, NULL);

  g_autoptr (RnPrograms) p = g_new0 (RnPrograms, 1);
  p->model = model;
  p->device = device;
  p->options = *options;
  p->options.passes.normalize = TRUE; /* a batch has bytes */
  p->shapes = g_memdup2 (shapes, sizeof *shapes * (gsize) n_shapes);
  p->n_shapes = n_shapes;
  p->params = rn_param_set_new ();
  rn_param_set_store_states (p->params, options->momentum);
  p->lr_mults = g_array_new (FALSE, FALSE, sizeof (double));
  p->cache = g_ptr_array_new_with_free_func (program_free);
  if (!get_program (p, shapes[0], error))
    return NULL;
  p->multipliers = g_new (RnParamMultipliers, rn_param_set_size (p->params));
  for (int i = 0; i < rn_param_set_size (p->params); i++)
    p->multipliers[i] = (RnParamMultipliers){ 1, 1 };
  return g_steal_pointer (&p);
}

void
rn_programs_free (RnPrograms *p)
{
  if (!p)
    return;
  rn_programs_settle_all (p); /* nothing is copied to them any more */
  g_ptr_array_unref (p->cache);
  rn_executor_free (p->update);
  rn_plan_free (p->update_plan);
  if (p->arenas.memory[RN_SPACE_DEVICE])
    p->device->vtbl->free (p->device, p->arenas.memory[RN_SPACE_DEVICE], p->arenas.bytes[RN_SPACE_DEVICE]);
  if (p->arenas.memory[RN_SPACE_HOST])
    p->device->vtbl->free_host (p->device, p->arenas.memory[RN_SPACE_HOST], p->arenas.bytes[RN_SPACE_HOST]);
  rn_param_set_free (p->params);
  g_array_unref (p->lr_mults);
  g_free ((gpointer) p->update_spec.updates);
  g_free (p->multipliers);
  g_free (p->shapes);
  g_free (p);
}

RnModel *
rn_programs_model (RnPrograms *p)
{
  return p->model;
}

const RnUpdateRule *
rn_programs_rule (RnPrograms *p)
{
  return &p->options.rule;
}

gboolean
rn_programs_updates_in_backward (RnPrograms *p)
{
  return p->options.update_in_backward;
}

const RnPlan *
rn_programs_update_plan (RnPrograms *p)
{
  return p->update_plan;
}

RnDevice *
rn_programs_device (RnPrograms *p)
{
  return p->device;
}

RnParamSet *
rn_programs_params (RnPrograms *p)
{
  return p->params;
}

void
rn_programs_set_multipliers (RnPrograms *p, int param, RnParamMultipliers multipliers)
{
  g_return_if_fail (!p->planned && param >= 0 && param < rn_param_set_size (p->params));
  p->multipliers[param] = multipliers;
}

guint
rn_programs_groups (RnPrograms *p, const double **lr_mults)
{
  *lr_mults = (const double *) (gconstpointer) p->lr_mults->data;
  return p->lr_mults->len;
}

static guint
find_group (RnPrograms *p, double lr_mult)
{
  for (guint i = 0; i < p->lr_mults->len; i++)
    if (g_array_index (p->lr_mults, double, i) == lr_mult)
      return i;
  g_array_append_val (p->lr_mults, lr_mult);
  return p->lr_mults->len - 1;
}

/* ---- memory ---- */

int
rn_programs_n_states (const RnPrograms *p)
{
  const char *names[RN_PARAM_MAX_STATES];
  return rn_update_rule_states (&p->options.rule, names);
}

static void
account (RnPrograms *p, const RnPlan *plan, RnShape shape)
{
  if (plan->arena_bytes > p->memory.arena_bytes)
    {
      p->memory.arena_bytes = plan->arena_bytes;
      p->memory.live_bound_bytes = plan->live_bound_bytes;
      p->memory.worst = shape;
    }
  p->memory.host_arena_bytes = MAX (p->memory.host_arena_bytes, plan->host_arena_bytes);
  p->memory.workspace_bytes = MAX (p->memory.workspace_bytes, plan->workspace_bytes);
}

/* What the multipliers make of the rule. Plans that were made without it are forgotten if it belongs there.
 */
static void
specify_update (RnPrograms *p)
{
  int n = rn_param_set_size (p->params);
  RnParamUpdate *updates = g_new0 (RnParamUpdate, n);

  for (int i = 0; i < n; i++)
    if (rn_param_set_get (p->params, i)->trainable)
      updates[i] =
          (RnParamUpdate){ (int) find_group (p, p->multipliers[i].lr_mult), p->multipliers[i].decay_mult };
  if (p->lr_mults->len == 0) /* all is frozen */
    find_group (p, 1);
  g_free ((gpointer) p->update_spec.updates);
  p->update_spec = (RnUpdateSpec){ .rule = p->options.rule,
                                   .updates = updates,
                                   .n_groups = (int) p->lr_mults->len,
                                   .ema = p->options.ema,
                                   .in_backward = p->options.update_in_backward };
  if (!p->options.update_in_backward)
    return;
  p->options.passes.update = &p->update_spec;
  p->current = NULL;
  g_ptr_array_set_size (p->cache, 0);
}

/* What the arenas must hold: all shapes, and the update if it is planned already. */
static gboolean
plan_arenas (RnPrograms *p, RnProgress progress, gpointer user_data, GError **error)
{
  p->memory = (RnMemory){ 0 };
  p->is_bound = FALSE;
  for (int i = 0; i < p->n_shapes; i++)
    {
      const RnPlan *plan = rn_programs_get_plan (p, p->shapes[i], error);
      if (!plan)
        return FALSE;
      account (p, plan, p->shapes[i]);
      p->is_bound |= plan->is_bound;
      if (progress)
        progress (i + 1, p->n_shapes, user_data);
    }
  if (p->update_plan != NULL)
    account (p, p->update_plan, p->memory.worst);
  return TRUE;
}

static gboolean
plan_update (RnPrograms *p, GError **error)
{
  if (p->options.update_in_backward && !p->options.ema)
    return TRUE;
  RnGraph *graph = rn_update_graph_new (p->params, &p->update_spec, &p->update_parts);
  p->update_plan = rn_plan_new (graph, p->device, TRUE, error);
  if (p->update_plan == NULL)
    return FALSE;
  account (p, p->update_plan, p->memory.worst);
  return TRUE;
}

/* What is there beside the arenas, and the sums. */
static void
sum_memory (RnPrograms *p)
{
  if (p->options.training)
    {
      gsize state_bytes = (gsize) rn_programs_n_states (p) * rn_param_set_state_bytes (p->params);
      p->memory.grad_bytes = p->options.update_in_backward ? 0 : rn_param_set_grad_bytes (p->params);
      if (p->options.momentum == RN_MOMENTUM_HOST)
        p->memory.host_state_bytes = state_bytes;
      else
        p->memory.state_bytes = state_bytes;
      p->memory.ema_bytes = p->options.ema ? rn_param_set_value_bytes (p->params) : 0;
    }
  p->memory.param_bytes = rn_param_set_value_bytes (p->params);
  p->memory.total_bytes = p->memory.param_bytes + p->memory.grad_bytes + p->memory.state_bytes
                          + p->memory.ema_bytes + p->memory.arena_bytes;
  p->memory.host_bytes = p->memory.host_arena_bytes + p->memory.host_state_bytes;
}

gboolean
rn_programs_plan (RnPrograms *p, RnProgress progress, gpointer user_data, GError **error)
{
  if (p->options.training)
    specify_update (p);
  if (!plan_arenas (p, progress, user_data, error) || (p->options.training && !plan_update (p, error)))
    return FALSE;
  sum_memory (p);
  p->planned = TRUE;
  return TRUE;
}

gboolean
rn_programs_plan_again (RnPrograms *p, GError **error)
{
  p->current = NULL;
  g_ptr_array_set_size (p->cache, 0);
  if (!plan_arenas (p, NULL, NULL, error))
    return FALSE;
  sum_memory (p);
  return TRUE;
}
