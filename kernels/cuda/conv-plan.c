/* conv-plan.c: an engine for each convolution, stored or chosen by rank, and its executions. */
#define G_LOG_DOMAIN "rn-kernels"
#include "config.h"

#include "kernels/cuda/conv-plan.h"

#include "kernels/cuda/conv-private.h"

#include <string.h>

/* ---- faults ---- */

RnStatus
rn_conv_fail (RnConvLibrary *library, RnStatus status, const char *format, ...)
{
  va_list args;

  g_free (library->fault);
  va_start (args, format);
  library->fault = g_strdup_vprintf (format, args);
  va_end (args);
  return status;
}

RnStatus
rn_conv_fail_cudnn (RnConvLibrary *library)
{
  g_free (library->fault);
  library->fault = g_strdup (rn_cudnn_fault (library->cudnn));
  return RN_STATUS_DEVICE;
}

const char *
rn_conv_library_fault (const RnConvLibrary *library)
{
  return library->fault;
}

/* ---- choices ---- */

RnConvChoice *
rn_conv_choice_new (RnCudnnPlan *plan, gsize workspace, const char *detail)
{
  RnConvChoice *choice = g_new0 (RnConvChoice, 1);

  choice->n_refs = 1;
  choice->plan = plan;
  choice->workspace = choice->bound = workspace;
  choice->detail = g_strdup (detail);
  return choice;
}

RnConvChoice *
rn_conv_choice_ref (RnConvChoice *choice)
{
  choice->n_refs++;
  return choice;
}

void
rn_conv_choice_unref (RnConvChoice *choice)
{
  if (choice == NULL || --choice->n_refs > 0)
    return;
  rn_cudnn_plan_free (choice->plan);
  g_free (choice->detail);
  g_free (choice);
}

/* ---- the library ---- */

static RnConvLibrary *
library_new (const RnConvOptions *options, GError **error)
{
  RnCudnn *cudnn = rn_cudnn_new (error);

  if (cudnn == NULL)
    return NULL;
  RnConvLibrary *library = g_new0 (RnConvLibrary, 1);
  library->cudnn = cudnn;
  library->by_rank = options->deterministic || cudnnGetVersion () < RN_CUDNN_WRITES_PLANS;
  library->choices =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) rn_conv_choice_unref);
  return library;
}

/* *@damage: what of it could not be read, and is chosen anew; else NULL. */
static RnPlanStore *
open_store (const char *path, char **damage)
{
  RnPlanStore *store = path != NULL ? rn_plan_store_open (path) : NULL;

  if (store != NULL && rn_plan_store_damage (store) != NULL)
    {
      g_autofree char *name = rn_printable (path, FALSE);
      *damage = g_strdup_printf ("%s: %s", name, rn_plan_store_damage (store));
    }
  return store;
}

static gboolean
open_stores (RnConvLibrary *library, int ordinal, const RnConvOptions *options, GError **error)
{
  struct cudaDeviceProp properties;
  g_autofree char *version = rn_cudnn_version_text ();
  cudaError_t status = cudaGetDeviceProperties (&properties, ordinal);

  if (status != cudaSuccess)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, "%s (%d) in cudaGetDeviceProperties",
                   cudaGetErrorName (status), (int) status);
      return FALSE;
    }
  library->machine = g_strdup_printf ("cuDNN %s, %s, %d.%d, %d multiprocessors", version, properties.name,
                                      properties.major, properties.minor, properties.multiProcessorCount);
  g_autofree char *damage = NULL;
  library->run = open_store (options->plan_file, &library->loss);
  library->cache = open_store (options->cache_file, &damage);
  if (damage != NULL)
    g_warning ("%s: the engines of convolutions in it are chosen again", damage);
  return TRUE;
}

RnConvLibrary *
rn_conv_library_new (int ordinal, cudaStream_t stream, const RnConvOptions *options, GError **error)
{
  g_autoptr (RnConvLibrary) library = library_new (options, error);

  if (library == NULL)
    return NULL;
  library->device = rn_cudnn_device_new (library->cudnn, ordinal);
  if (library->device == NULL || !rn_cudnn_open (library->cudnn, stream))
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, "cuDNN cannot use the device: %s",
                   rn_cudnn_fault (library->cudnn));
      return NULL;
    }
  library->stream = stream;
  if (library->by_rank && !options->deterministic)
    {
      g_autofree char *version = rn_cudnn_version_text ();
      g_message (
          "cuDNN %s cannot write down which engines it takes, so they are taken as it ranks them; what "
          "measures them and keeps the fastest: cuDNN %d.%d or later",
          version, RN_CUDNN_WRITES_PLANS / 10000, RN_CUDNN_WRITES_PLANS % 10000 / 100);
    }
  if (!library->by_rank && !open_stores (library, ordinal, options, error))
    return NULL;
  return g_steal_pointer (&library);
}

RnConvLibrary *
rn_conv_library_new_for_profile (const char *json, const RnConvOptions *options, GError **error)
{
  g_autoptr (RnConvLibrary) library = library_new (options, error);

  if (library == NULL)
    return NULL;
  library->is_plan_only = TRUE;
  library->device = rn_cudnn_device_new_from_json (library->cudnn, json);
  if (library->device == NULL)
    {
      rn_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
                    "cuDNN does not take the profile of the device: %s", rn_cudnn_fault (library->cudnn));
      return NULL;
    }
  return g_steal_pointer (&library);
}

RnStatus
rn_conv_library_save (RnConvLibrary *library)
{
  g_autoptr (GError) error = NULL, cache_error = NULL;

  /* What the machine keeps spares time and changes no bits: the run goes on without. */
  if (library->cache != NULL && !rn_plan_store_save (library->cache, TRUE, &cache_error))
    {
      g_warning ("the choice of engines is not kept for other runs: %s", cache_error->message);
      g_clear_pointer (&library->cache, rn_plan_store_free);
    }
  if (library->run != NULL && !rn_plan_store_save (library->run, FALSE, &error))
    return rn_conv_fail (library, RN_STATUS_DEVICE, "the choice of engines cannot be kept: %s",
                         error->message);
  return RN_STATUS_OK;
}

char *
rn_conv_library_choices (const RnConvLibrary *library)
{
  if (library->run == NULL)
    return NULL;
  g_autoptr (RnPlanStore) used = rn_plan_store_new_from_text ("", 0);
  for (guint i = 0; i < rn_plan_store_size (library->run); i++)
    {
      const RnStoredPlan *plan = rn_plan_store_get (library->run, i);
      if (strcmp (plan->machine, library->machine) == 0
          && g_hash_table_contains (library->choices, plan->problem))
        rn_plan_store_put (used, plan);
    }
  return rn_plan_store_size (used) > 0 ? rn_plan_store_text (used) : NULL;
}

void
rn_conv_library_take_choices (RnConvLibrary *library, const char *text, gsize size)
{
  if (library->run == NULL)
    return;
  g_autoptr (RnPlanStore) taken = rn_plan_store_new_from_text (text, text != NULL ? size : 0);
  for (guint i = 0; i < rn_plan_store_size (taken); i++)
    rn_plan_store_put (library->run, rn_plan_store_get (taken, i));
  const char *damage = rn_plan_store_damage (taken);
  g_clear_pointer (&library->loss, g_free); /* that of the file matters no more */
  if (text != NULL && damage == NULL)
    return;
  library->loss = text == NULL ? g_strdup ("what the run had chosen is not in the checkpoint")
                               : g_strdup_printf ("what the run had chosen, in the checkpoint: %s", damage);
}

void
rn_conv_library_free (RnConvLibrary *library)
{
  if (library == NULL)
    return;
  rn_plan_store_free (library->run);
  rn_plan_store_free (library->cache);
  g_free (library->machine);
  g_free (library->loss);
  g_hash_table_unref (library->choices);
  rn_cudnn_device_free (library->device);
  rn_cudnn_free (library->cudnn);
  g_free (library->fault);
  g_free (library);
}

RnStatus
rn_conv_library_set_stream (RnConvLibrary *library, cudaStream_t stream)
{
  if (library->is_plan_only)
    return rn_conv_fail (library, RN_STATUS_DEVICE, "a device that is not there has no streams");
  if (stream == library->stream)
    return RN_STATUS_OK;
  if (!rn_cudnn_set_stream (library->cudnn, stream))
    return rn_conv_fail_cudnn (library);
  library->stream = stream;
  return RN_STATUS_OK;
}

/* ---- stored choices ---- */

/* NULL where the library does not take it. */
static RnConvChoice *
load (RnConvLibrary *library, const RnStoredPlan *stored, gsize limit)
{
  gsize workspace = 0;
  g_autoptr (RnCudnnPlan) plan = rn_cudnn_plan_new_from_json (library->cudnn, library->device, stored->plan);

  if (plan == NULL || !rn_cudnn_plan_workspace (library->cudnn, plan, &workspace) || workspace > limit)
    return NULL;
  RnConvChoice *choice = rn_conv_choice_new (g_steal_pointer (&plan), workspace, stored->engine);
  choice->is_measured = TRUE;
  return choice;
}

/* Once: the run has no choice for @key that it can go on with, but it had one as far as can be known. @own:
 * what the library refuses, or NULL. */
static void
warn_of_loss (RnConvLibrary *library, const char *key, const RnStoredPlan *own)
{
  gboolean is_other = own != NULL || rn_plan_store_has_other (library->run, key, library->machine);

  if (library->has_warned || (!is_other && library->loss == NULL))
    return;
  if (is_other)
    g_warning ("the run had chosen engines for convolutions with another version of cuDNN or on another "
               "device: they are chosen again, and bits will differ");
  else
    g_warning ("%s: engines of convolutions are chosen again, and bits will differ", library->loss);
  library->has_warned = TRUE;
}

/* The run's own choice, else the machine's, which becomes the run's. NULL: there is none that can be used. */
static RnConvChoice *
load_stored (RnConvLibrary *library, const char *key, gsize limit)
{
  const RnStoredPlan *own =
      library->run != NULL ? rn_plan_store_find (library->run, key, library->machine) : NULL;
  RnConvChoice *choice = own != NULL ? load (library, own, limit) : NULL;

  if (choice != NULL)
    return choice;
  if (library->run != NULL)
    warn_of_loss (library, key, own);
  const RnStoredPlan *common =
      library->cache != NULL ? rn_plan_store_find (library->cache, key, library->machine) : NULL;
  choice = common != NULL ? load (library, common, limit) : NULL;
  if (choice != NULL && library->run != NULL)
    rn_plan_store_put (library->run, common);
  return choice;
}

gboolean
rn_conv_plan_adopt (RnConvPlan *plan)
{
  RnConvChoice *choice = g_hash_table_lookup (plan->library->choices, plan->key);

  if (choice == NULL || !choice->is_measured)
    return FALSE;
  if (choice != plan->choice)
    {
      g_clear_pointer (&plan->pack, rn_cudnn_pack_free);
      rn_conv_choice_unref (plan->choice);
      plan->choice = rn_conv_choice_ref (choice);
    }
  return TRUE;
}

void
rn_conv_plan_take (RnConvPlan *plan, RnConvChoice *choice, const char *json, double seconds)
{
  RnConvLibrary *library = plan->library;
  const RnStoredPlan stored = { .problem = plan->key,
                                .machine = library->machine,
                                .engine = choice->detail,
                                .plan = json,
                                .workspace = (gint64) choice->workspace,
                                .nanoseconds = (gint64) (seconds * 1e9) };

  if (library->run != NULL)
    rn_plan_store_put (library->run, &stored);
  if (library->cache != NULL)
    rn_plan_store_put (library->cache, &stored);
  choice->bound = MAX (choice->bound, plan->choice->bound);
  g_hash_table_replace (library->choices, g_strdup (plan->key), choice);
  rn_conv_plan_adopt (plan);
}

/* ---- choosing ---- */

RnConvFilter
rn_conv_filter (const RnConvLibrary *library, const RnConvProblem *problem, gsize workspace_limit)
{
  return (RnConvFilter){ .tf32 = problem->tf32,
                         .single = problem->dtype == RN_F32,
                         .workspace_limit = workspace_limit };
}

/* The first that the library makes a plan of. */
static RnConvChoice *
first_of (RnConvLibrary *library, RnConvEngine *const *engines, guint n, gsize limit, const char **reason)
{
  for (guint i = 0; i < n; i++)
    {
      gsize workspace = 0;
      g_autoptr (RnCudnnPlan) plan = rn_cudnn_plan_new (library->cudnn, engines[i]->config);
      if (plan == NULL || !rn_cudnn_plan_workspace (library->cudnn, plan, &workspace))
        {
          *reason = "cuDNN makes no plan of the engine";
          continue;
        }
      if (workspace > limit)
        {
          *reason = "it needs more workspace than the limit";
          continue;
        }
      g_autofree char *detail = rn_conv_engine_detail (&engines[i]->info);
      return rn_conv_choice_new (g_steal_pointer (&plan), workspace, detail);
    }
  return NULL;
}

/* For a measurement: room for each engine that it may choose. */
static RnStatus
widen (RnConvLibrary *library, const RnCudnnGraph *graph, const RnConvFilter *filter, RnConvChoice *choice)
{
  g_autoptr (GPtrArray) engines = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_conv_engine_free);
  const char *reason;

  if (!rn_conv_engines_ask_all (library->cudnn, library->device, graph, filter, engines, NULL, &reason))
    return rn_conv_fail_cudnn (library);
  for (guint i = 0; i < engines->len; i++)
    choice->bound = MAX (choice->bound, ((const RnConvEngine *) engines->pdata[i])->info.workspace);
  return RN_STATUS_OK;
}

/*
 * By rank: mode A, then what the library falls back to, then the generic engine. Both modes are asked before
 * the generic engine is taken: for strict single precision mode A often has none.
 */
static RnStatus
choose (RnConvLibrary *library, const RnConvProblem *problem, gsize limit, RnConvChoice **choice,
        const char **reason)
{
  static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
  const RnConvFilter filter = rn_conv_filter (library, problem, limit);
  g_autoptr (RnCudnnGraph) graph = rn_conv_graph_new (library->cudnn, problem);
  g_autoptr (RnConvEngine) generic = NULL;

  *reason = "cuDNN has no engine for it";
  if (graph == NULL)
    {
      if (!rn_cudnn_is_unsupported (rn_cudnn_status (library->cudnn)))
        return rn_conv_fail_cudnn (library);
      *reason = "cuDNN does not support such a convolution";
      return RN_STATUS_UNSUPPORTED;
    }
  for (gsize i = 0; i < G_N_ELEMENTS (modes) && *choice == NULL; i++)
    {
      g_autoptr (GPtrArray) engines = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_conv_engine_free);
      if (!rn_conv_engines_ask (library->cudnn, library->device, graph, modes[i], &filter, engines, &generic,
                                reason))
        return rn_conv_fail_cudnn (library);
      *choice = first_of (library, (RnConvEngine **) engines->pdata, engines->len, limit, reason);
    }
  if (*choice == NULL && generic != NULL)
    *choice = first_of (library, &generic, 1, limit, reason);
  if (*choice == NULL)
    return RN_STATUS_UNSUPPORTED;
  return library->by_rank ? RN_STATUS_OK : widen (library, graph, &filter, *choice);
}

RnStatus
rn_conv_plan_new (RnConvLibrary *library, const RnConvProblem *problem, gsize workspace_limit,
                  RnConvPlan **plan, const char **reason)
{
  *plan = NULL;
  *reason = rn_conv_problem_check (problem);
  if (*reason != NULL)
    return RN_STATUS_UNSUPPORTED;
  g_autofree char *text = rn_conv_problem_text (problem);
  g_autofree char *key = g_strdup_printf ("%s, workspace %" G_GSIZE_FORMAT, text, workspace_limit);
  RnConvChoice *choice = g_hash_table_lookup (library->choices, key);
  if (choice == NULL)
    {
      rn_cudnn_trace (library->cudnn, "%s", key);
      choice = load_stored (library, key, workspace_limit);
      RnStatus status =
          choice != NULL ? RN_STATUS_OK : choose (library, problem, workspace_limit, &choice, reason);
      if (status != RN_STATUS_OK)
        {
          g_clear_pointer (&choice, rn_conv_choice_unref);
          if (status != RN_STATUS_UNSUPPORTED)
            *reason = library->fault; /* not that of an engine that was left out before */
          return status;
        }
      rn_cudnn_trace (library->cudnn, "%s: %s, workspace %" G_GSIZE_FORMAT, text, choice->detail,
                      choice->workspace);
      g_hash_table_insert (library->choices, g_strdup (key), choice);
    }
  *plan = g_new0 (RnConvPlan, 1);
  (*plan)->library = library;
  (*plan)->problem = *problem;
  (*plan)->workspace_limit = workspace_limit;
  (*plan)->key = g_steal_pointer (&key);
  (*plan)->choice = rn_conv_choice_ref (choice);
  *reason = NULL;
  return RN_STATUS_OK;
}

void
rn_conv_plan_free (RnConvPlan *plan)
{
  if (plan == NULL)
    return;
  rn_cudnn_pack_free (plan->pack);
  rn_conv_choice_unref (plan->choice);
  g_free (plan->key);
  g_free (plan);
}

gsize
rn_conv_plan_workspace (const RnConvPlan *plan)
{
  return rn_conv_plan_is_bound (plan) ? plan->choice->bound : plan->choice->workspace;
}

gboolean
rn_conv_plan_is_bound (const RnConvPlan *plan)
{
  return !plan->library->by_rank && !plan->choice->is_measured;
}

gsize
rn_conv_plan_bound (const RnConvPlan *plan)
{
  return plan->choice->bound;
}

const char *
rn_conv_plan_detail (const RnConvPlan *plan)
{
  return plan->choice->detail;
}

/* ---- running ---- */

RnCudnnPack *
rn_conv_pack_new (RnConvLibrary *library, const RnConvProblem *problem, const RnConvPointers *pointers,
                  gsize workspace)
{
  int64_t ids[RN_CONV_MAX_TENSORS];
  void *addresses[RN_CONV_MAX_TENSORS];
  int n = rn_conv_graph_bind (problem, pointers, ids, addresses);
  const void *output = rn_conv_output (problem, pointers);
  int n_same = 0;

  if (workspace > 0 && pointers->workspace == NULL)
    {
      rn_conv_fail (library, RN_STATUS_DEVICE,
                    "a convolution has no workspace and needs %" G_GSIZE_FORMAT " bytes", workspace);
      return NULL;
    }
  /* The output itself, and a residual that it replaces. */
  for (int i = 0; i < n; i++)
    n_same += addresses[i] == output;
  if (n_same > 1 + (problem->residual && pointers->z == output))
    {
      rn_conv_fail (library, RN_STATUS_DEVICE, "a convolution would overwrite what it reads");
      return NULL;
    }
  RnCudnnPack *pack =
      rn_cudnn_pack_new (library->cudnn, ids, addresses, n, workspace > 0 ? pointers->workspace : NULL);
  if (pack == NULL)
    rn_conv_fail_cudnn (library);
  return pack;
}

static gboolean
are_same (const RnConvPointers *a, const RnConvPointers *b)
{
  return a->x == b->x && a->w == b->w && a->bias == b->bias && a->z == b->z && a->dy == b->dy && a->y == b->y
         && a->dx == b->dx && a->dw == b->dw && a->workspace == b->workspace;
}

RnStatus
rn_conv_plan_run (RnConvPlan *plan, const RnConvPointers *pointers)
{
  RnConvLibrary *library = plan->library;

  if (library->is_plan_only)
    return rn_conv_fail (library, RN_STATUS_DEVICE, "a device that is not there runs nothing");
  if (plan->pack == NULL || !are_same (&plan->pointers, pointers))
    {
      g_clear_pointer (&plan->pack, rn_cudnn_pack_free);
      plan->pack = rn_conv_pack_new (library, &plan->problem, pointers, plan->choice->workspace);
      if (plan->pack == NULL)
        return RN_STATUS_DEVICE;
      plan->pointers = *pointers;
    }
  return rn_cudnn_execute (library->cudnn, plan->choice->plan, plan->pack) ? RN_STATUS_OK
                                                                           : rn_conv_fail_cudnn (library);
}
