/* cudnn-engines.c: the engines of the simulated cuDNN, and in which order its heuristics propose them. */
#include "config.h"

#include "tests/gpu/sim/cudnn-internal.h"

#define NUMERICAL(name) (1u << CUDNN_NUMERICAL_NOTE_##name)
#define ALIGNMENT 16 /* bytes, that the fast engines ask for */

static const SimEngine engines[] = {
  { .index = SIM_ENGINE_GENERIC,
    .numerical_notes = NUMERICAL (STRICT_NAN_PROP),
    .any_alignment = TRUE,
    .speed = 0.5 },
  { .index = SIM_ENGINE_NORMAL, .any_alignment = TRUE, .workspace = 1, .speed = 10 },
  { .index = SIM_ENGINE_RANDOM_ORDER,
    .numerical_notes = NUMERICAL (NONDETERMINISTIC),
    .order = SIM_ORDER_RANDOM,
    .workspace = 1,
    .extra_bytes = 256,
    .speed = 30 },
  { .index = SIM_ENGINE_TENSOR_CORE,
    .numerical_notes = NUMERICAL (TENSOR_CORE),
    .inputs = SIM_ROUND_TF32,
    .order = SIM_ORDER_DESCENDING,
    .workspace = 1,
    .extra_bytes = 4096,
    .speed = 40 },
  { .index = SIM_ENGINE_COMPILED,
    .behavior_notes = 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION,
    .cannot_run = TRUE,
    .speed = 100 },
  { .index = SIM_ENGINE_HUGE, .workspace = 1, .extra_bytes = (gsize) 1 << 40, .speed = 90 },
  { .index = SIM_ENGINE_WRONG, .drops_terms = TRUE, .workspace = 2, .extra_bytes = 256, .speed = 80 },
  { .index = SIM_ENGINE_REDUCED,
    .numerical_notes = NUMERICAL (REDUCED_PRECISION_REDUCTION),
    .rounds_sums = TRUE,
    .workspace = 1,
    .speed = 70 },
  { .index = SIM_ENGINE_DOWN_CONVERT,
    .numerical_notes = NUMERICAL (DOWN_CONVERT_INPUTS),
    .inputs = SIM_ROUND_HALF,
    .workspace = 1,
    .speed = 60 },
  { .index = SIM_ENGINE_NAN, .writes_nan = TRUE, .workspace = 2, .extra_bytes = 512, .speed = 75 },
  { .index = SIM_ENGINE_EARLY, .writes_early = TRUE, .workspace = 1, .speed = 50 },
};

const SimEngine *
sim_engine_find (int64_t index)
{
  for (gsize i = 0; i < G_N_ELEMENTS (engines); i++)
    if (engines[i].index == index)
      return &engines[i];
  return NULL;
}

static gboolean
is_aligned (const SimConv *c)
{
  return c->x.alignment % ALIGNMENT == 0 && c->w.alignment % ALIGNMENT == 0 && c->y.alignment % ALIGNMENT == 0
         && (!c->has_bias || c->bias.alignment % ALIGNMENT == 0)
         && (!c->has_residual || c->residual.alignment % ALIGNMENT == 0);
}

const char *
sim_engine_refusal (const SimEngine *engine, const SimGraph *graph, const SimProfile *profile)
{
  const SimConv *c = &graph->conv;

  if (graph->refusal != NULL)
    return graph->refusal;
  if (c->x.type == CUDNN_DATA_BFLOAT16 && profile->capability < 80)
    return "BFLOAT16 needs compute capability 8.0";
  if (!engine->any_alignment && !is_aligned (c))
    return "the engine needs tensors that are aligned to 16 bytes";
  if (engine->inputs == SIM_ROUND_HALF && c->x.type != CUDNN_DATA_FLOAT)
    return "the engine is for FLOAT";
  if ((engine->writes_nan || engine->rounds_sums) && c->x.type == CUDNN_DATA_FLOAT)
    return "the engine is for half precision";
  if (engine->writes_early && !c->has_residual)
    return "the engine is for a residual";
  return NULL;
}

int64_t
sim_engine_n_knobs (const SimEngine *engine)
{
  return engine->index == SIM_ENGINE_NORMAL ? 2 : 1;
}

gsize
sim_choice_workspace (SimChoice choice, const SimConv *c)
{
  gsize weights = (gsize) (c->w.dims[0] * c->w.dims[1] * c->w.dims[2] * c->w.dims[3]) * sizeof (float);
  gsize bytes = weights * choice.engine->workspace * (gsize) (choice.knob + 1) + choice.engine->extra_bytes;
  return (bytes + 255) / 256 * 256;
}

/* ---- heuristics ---- */

static int64_t left_out = -1;

void
sim_cudnn_leave_out (int64_t engine)
{
  left_out = engine;
}

static unsigned n_until_failure;

void
sim_cudnn_fail_heuristics (unsigned n)
{
  n_until_failure = n;
}

typedef struct
{
  int64_t engine, knob;
} Proposal;

void
sim_engines_rank (cudnnBackendHeurMode_t mode, const SimGraph *graph, const SimProfile *profile,
                  GArray *choices)
{
  /* What the notes and the limit of the workspace should drop comes first; what only measuring can find comes
   * after an engine that is good. */
  static const Proposal best[] = {
    { SIM_ENGINE_COMPILED, 0 },     { SIM_ENGINE_HUGE, 0 },         { SIM_ENGINE_REDUCED, 0 },
    { SIM_ENGINE_DOWN_CONVERT, 0 }, { SIM_ENGINE_RANDOM_ORDER, 0 }, { SIM_ENGINE_TENSOR_CORE, 0 },
    { SIM_ENGINE_NORMAL, 0 },       { SIM_ENGINE_NORMAL, 1 },       { SIM_ENGINE_WRONG, 0 },
    { SIM_ENGINE_NAN, 0 },          { SIM_ENGINE_EARLY, 0 },
  };
  static const Proposal searched[] = {
    { SIM_ENGINE_NORMAL, 1 }, { SIM_ENGINE_TENSOR_CORE, 0 }, { SIM_ENGINE_RANDOM_ORDER, 0 },
    { SIM_ENGINE_NAN, 0 },    { SIM_ENGINE_WRONG, 0 },       { SIM_ENGINE_NORMAL, 0 },
  };
  static const Proposal fallback[] = { { SIM_ENGINE_NORMAL, 0 }, { SIM_ENGINE_GENERIC, 0 } };
  const Proposal *list = NULL;
  gsize n = 0;

  switch ((int) mode)
    {
    case CUDNN_HEUR_MODE_INSTANT:
    case CUDNN_HEUR_MODE_A:
      list = best;
      n = G_N_ELEMENTS (best);
      break;
    case CUDNN_HEUR_MODE_B:
      list = searched;
      n = G_N_ELEMENTS (searched);
      break;
    case CUDNN_HEUR_MODE_FALLBACK:
      list = fallback;
      n = G_N_ELEMENTS (fallback);
      break;
    default:
      sim_fault ("heuristics of mode %d", (int) mode);
      break;
    }
  for (gsize i = 0; i < n; i++)
    {
      SimChoice choice = { sim_engine_find (list[i].engine), list[i].knob };
      if (list[i].engine != left_out && sim_engine_refusal (choice.engine, graph, profile) == NULL)
        g_array_append_val (choices, choice);
    }
}

static void
take (SimDescriptor *d, int graph, int profile)
{
  SimDescriptor *of_graph = sim_value_descriptor (d, graph, 0),
                *of_profile = sim_value_descriptor (d, profile, 0);

  if (of_graph != NULL)
    d->graph = sim_descriptor_ref (of_graph);
  if (of_profile != NULL)
    d->profile = sim_descriptor_ref (of_profile);
}

cudnnStatus_t
sim_finalize_heuristics (SimDescriptor *d)
{
  int mode = CUDNN_HEUR_MODE_INSTANT;

  if (n_until_failure > 0 && --n_until_failure == 0)
    return sim_refuse (CUDNN_STATUS_INTERNAL_ERROR, "the heuristics fail");
  if (sim_value_descriptor (d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0) == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "nullptr == opset_ptr");
  if (!sim_value_enum (d, CUDNN_ATTR_ENGINEHEUR_MODE, &mode))
    sim_fault ("heuristics lack their mode; cuDNN takes a default");
  d->mode = (cudnnBackendHeurMode_t) mode;
  take (d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- engines that are asked for by number ---- */

cudnnStatus_t
sim_finalize_engine (SimDescriptor *d)
{
  int64_t index = -1;

  if (sim_value_descriptor (d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0) == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "nullptr == opset_ptr");
  sim_value_int64 (d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &index);
  const SimEngine *engine = sim_engine_find (index);
  if (engine == NULL)
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED, "no engine %" G_GINT64_FORMAT, index);
  if (sim_value_descriptor (d, CUDNN_ATTR_ENGINE_DEVICEPROP, 0) == NULL)
    {
      sim_fault ("an engine has no device");
      return sim_refuse (CUDNN_STATUS_NOT_INITIALIZED, "no device");
    }
  const char *refusal =
      sim_engine_refusal (engine, sim_value_descriptor (d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0)->as_graph,
                          &sim_value_descriptor (d, CUDNN_ATTR_ENGINE_DEVICEPROP, 0)->as_profile);
  if (refusal != NULL)
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED, "%s", refusal);
  take (d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_DEVICEPROP);
  d->choice = (SimChoice){ engine, 0 };
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_finalize_config (SimDescriptor *d)
{
  SimDescriptor *engine = sim_value_descriptor (d, CUDNN_ATTR_ENGINECFG_ENGINE, 0);

  if (engine == NULL)
    {
      sim_fault ("an engine configuration has no engine; cuDNN crashes");
      return sim_refuse (CUDNN_STATUS_BAD_PARAM, "no engine");
    }
  d->choice = engine->choice;
  d->graph = sim_descriptor_ref (engine->graph);
  d->profile = sim_descriptor_ref (engine->profile);
  return CUDNN_STATUS_SUCCESS;
}
