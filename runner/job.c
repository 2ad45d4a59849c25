/*
 * job.c: builds the parts of a run from its configuration.
 */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/job.h"

#include "runner/base/error.h"
#include "runner/budget.h"
#include "runner/config/config.h"
#include "runner/config/schema.h"
#include "runner/device-profile.h"
#include "runner/job-precision.h"
#include "runner/open-device.h"
#include "runner/optimizer.h"
#include "runner/plugin.h"
#include "runner/strategies.h"
#include "runner/workflow.h"

#include <string.h>
#include <unistd.h>

static const char *const split_names[] = { "train", "val", "test", "val" };
G_STATIC_ASSERT (G_N_ELEMENTS (split_names) == RN_SPLIT_COUNT);

static const char *const on_error_names[] = { "fail", "skip", NULL };

#define SPLIT(field, help_) RN_KEY (RnDataConfig, field, RN_KEY_NODE, NULL, help_, .flags = RN_KEY_NULLABLE)

static const RnKeySpec data_keys[] = {
  RN_KEY (RnDataConfig, samples_per_gpu, RN_KEY_INT, "2", "images per training batch", .min = 1, .max = 4096),
  RN_KEY (RnDataConfig, workers_per_gpu, RN_KEY_INT, "2", "loader threads; 0: load in the main thread",
          .min = 0, .max = 256),
  RN_KEY (RnDataConfig, prefetch, RN_KEY_INT, "0",
          "batches that wait, ready; 0: two, or one per loader thread", .min = 0, .max = 256),
  RN_KEY (RnDataConfig, on_error, RN_KEY_ENUM, "fail",
          "an unreadable image or XML ends the run, or is left out", .names = on_error_names),
  SPLIT (train, "training set"),
  SPLIT (val, "validation set, used while training"),
  SPLIT (test, "test set, used by `runner eval`"),
  { .name = "train_dataloader", .type = RN_KEY_UNUSED, .help = "no meaning here" },
  { .name = "val_dataloader", .type = RN_KEY_UNUSED, .help = "no meaning here" },
  { .name = "test_dataloader", .type = RN_KEY_UNUSED, .help = "no meaning here" },
  RN_KEY_END,
};

/* ---- jobs ---- */

typedef enum
{
  TO_RUN,
  TO_TRAIN,
  TO_PLAN,
} Purpose;

static RnJob *
new_job (RnNode *root, Purpose purpose, const char *profile, GError **error)
{
  g_autoptr (RnJob) job = g_new0 (RnJob, 1);
  job->root = root;
  rn_datasets_register ();
  if (!rn_models_register (error) || !rn_plugins_load (root, error)
      || !rn_run_config_parse (root, &job->config, error)
      || !rn_strategies_check (root, &job->config, NULL, error)
      || !rn_keys_parse (data_keys, job->config.data, &job->data, NULL, error))
    return NULL;
  job->is_for_plan = purpose == TO_PLAN && rn_device_is_cuda (job->config.device);
  job->profile = g_strdup (profile);
  if (profile == NULL && rn_device_is_cuda (job->config.device))
    job->profile = rn_device_profile (&job->config);
  if (job->is_for_plan)
    job->plan_memory =
        profile != NULL ? rn_device_profile_memory (profile) : rn_device_free_memory (&job->config, NULL);
  job->device = job->is_for_plan ? rn_open_device_for_plans (&job->config, job->profile, error)
                                 : rn_open_device (root, &job->config, purpose == TO_TRAIN, error);
  return job->device ? g_steal_pointer (&job) : NULL;
}

RnJob *
rn_job_new (RnNode *root, GError **error)
{
  return new_job (root, TO_RUN, NULL, error);
}

RnJob *
rn_job_new_for_training (RnNode *root, GError **error)
{
  return new_job (root, TO_TRAIN, NULL, error);
}

RnJob *
rn_job_new_for_plan (RnNode *root, GError **error)
{
  return new_job (root, TO_PLAN, NULL, error);
}

RnJob *
rn_job_new_for_profile (RnNode *root, const char *profile, GError **error)
{
  return new_job (root, TO_PLAN, profile, error);
}

gboolean
rn_job_is_for_plan (const RnJob *job)
{
  return job->is_for_plan;
}

RnJob *
rn_job_new_variant (const RnJob *job, RnNode *root, RnCallCache *calls, GError **error)
{
  g_autoptr (RnJob) variant = g_new0 (RnJob, 1);

  variant->root = root;
  variant->is_variant = TRUE;
  if (!rn_run_config_parse (root, &variant->config, error)
      || !rn_keys_parse (data_keys, variant->config.data, &variant->data, NULL, error))
    return NULL;
  variant->data.samples_per_gpu = job->data.samples_per_gpu;
  variant->wants = job->wants;
  memcpy (variant->datasets, job->datasets, sizeof variant->datasets);
  memcpy (variant->samplers, job->samplers, sizeof variant->samplers);
  variant->device = rn_open_device_for_plans (&variant->config, job->profile, error);
  if (variant->device == NULL)
    return NULL;
  variant->device->calls = calls;
  return g_steal_pointer (&variant);
}

void
rn_job_free (RnJob *job)
{
  if (!job)
    return;
  g_clear_pointer (&job->programs, rn_programs_free);
  g_clear_pointer (&job->shapes, g_array_unref);
  g_clear_pointer (&job->budget, rn_budget_free);
  g_free (job->keep);
  g_free (job->single_modules);
  if (!job->is_variant)
    rn_wants_free (job->wants);
  g_clear_pointer (&job->model, rn_model_free);
  for (int split = 0; split < RN_SPLIT_COUNT && !job->is_variant; split++)
    {
      g_clear_pointer (&job->samplers[split], rn_sampler_free);
      g_clear_pointer (&job->datasets[split], rn_dataset_free);
    }
  g_clear_pointer (&job->device, rn_device_free);
  g_free (job->profile);
  rn_keys_clear (data_keys, &job->data);
  rn_run_config_clear (&job->config);
  rn_node_free (job->root);
  g_free (job);
}

/* ---- data ---- */

void
rn_job_show_progress (int done, int total, gpointer what)
{
  if (!isatty (STDERR_FILENO))
    return;
  g_printerr ("\r%s %d/%d%s", (const char *) what, done, total, done == total ? "\n" : "");
}

static void
show_scan (const char *what, int64_t done, int64_t total, gpointer user_data)
{
  g_autofree char *text = g_strdup_printf ("reading %s:", what);
  rn_job_show_progress ((int) done, (int) total, text);
}

gboolean
rn_job_has_val_loss (const RnJob *job)
{
  g_autoptr (GArray) workflow = rn_workflow_parse (job->config.workflow, NULL);
  return workflow != NULL && rn_workflow_has_val (workflow);
}

/* The first pipeline in a data set of data sets. Their depth was bounded when they were opened. */
static const RnNode *
find_pipeline (const RnNode *dataset)
{
  static const char *const inner[] = { "dataset", "datasets" };
  const RnNode *found = rn_node_get (dataset, "pipeline");

  for (gsize i = 0; found == NULL && i < G_N_ELEMENTS (inner); i++)
    if (rn_node_get (dataset, inner[i]) != NULL)
      found = find_pipeline (rn_node_get (dataset, inner[i]));
  for (guint i = 0; found == NULL && rn_node_kind (dataset) == RN_NODE_LIST && i < rn_node_size (dataset);
       i++)
    found = find_pipeline (rn_node_item (dataset, i));
  return found;
}

/* Full batches as in training; with validation losses each image once, in order, to be comparable. */
static RnSampler *
make_sampler (const RnJob *job, RnSplit split)
{
  gboolean is_training = split == RN_SPLIT_TRAIN;
  int batch_size = is_training || split == RN_SPLIT_VAL_LOSS ? (int) job->data.samples_per_gpu : 1;

  return rn_sampler_new (is_training ? RN_SAMPLER_GROUP : RN_SAMPLER_SEQUENTIAL, job->datasets[split],
                         batch_size, (guint64) job->config.seed);
}

gboolean
rn_job_open_data (RnJob *job, RnSplit split, GError **error)
{
  if (job->datasets[split])
    return TRUE;
  const RnNode *nodes[] = { job->data.train, job->data.val, job->data.test, job->data.val };
  G_STATIC_ASSERT (G_N_ELEMENTS (nodes) == RN_SPLIT_COUNT);
  if (!nodes[split] && split == RN_SPLIT_VAL_LOSS)
    return rn_node_error (job->config.workflow, error,
                          "there is no data.val for its val; what works: data.val, or [[train, 1]]");
  if (!nodes[split])
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "%s: there is no data.%s",
                   rn_node_origin (job->config.data ? job->config.data : job->root), split_names[split]);
      return FALSE;
    }
  RnDatasetOptions options = {
    .data_root = job->config.data_root,
    .classes = job->config.classes,
    .class_source = split == RN_SPLIT_TRAIN ? NULL : job->datasets[RN_SPLIT_TRAIN],
    .num_classes = job->model ? rn_model_num_classes (job->model) : 0,
    .test_mode = split != RN_SPLIT_TRAIN && split != RN_SPLIT_VAL_LOSS,
    .pipeline = split == RN_SPLIT_VAL_LOSS ? find_pipeline (job->data.train) : NULL,
    .on_error = (RnOnError) job->data.on_error,
    .cache_dir = job->config.work_dir,
    .progress = show_scan,
  };
  job->datasets[split] = rn_dataset_new (nodes[split], &options, error);
  if (!job->datasets[split])
    return FALSE;
  job->samplers[split] = make_sampler (job, split);
  return TRUE;
}

static int
feature_sizes (gpointer model, int height, int width, int (*sizes)[2])
{
  return rn_model_feature_sizes (model, height, width, sizes);
}

RnLoader *
rn_job_loader (RnJob *job, RnSplit split, GError **error)
{
  RnTargetSpec targets = {
    .anchors = *rn_model_anchors (job->model),
    .assigner = *rn_model_assigner (job->model),
    .coder = *rn_model_coder (job->model),
    .num_classes = rn_model_num_classes (job->model),
    .feature_sizes = feature_sizes,
    .model = job->model,
  };
  RnLoaderOptions options = {
    .n_workers = (int) job->data.workers_per_gpu,
    .prefetch = (int) job->data.prefetch,
    .seed = (guint64) job->config.seed,
    .on_error = (RnOnError) job->data.on_error,
    .targets = split == RN_SPLIT_TRAIN || split == RN_SPLIT_VAL_LOSS ? &targets : NULL,
  };
  return rn_loader_new (job->datasets[split], job->samplers[split], &options, error);
}

/* Batches in order are full but for the last one, and for unreadable images that are left out. */
static gboolean
can_have_size (const RnJob *job, RnSplit split, int size)
{
  int full = rn_sampler_batch_size (job->samplers[split]);
  int64_t n = rn_dataset_size (job->datasets[split]);

  if (rn_sampler_kind (job->samplers[split]) != RN_SAMPLER_SEQUENTIAL)
    return size == full;
  return (size == full ? n >= full : n % full == size)
         || (job->data.on_error == RN_ON_ERROR_SKIP && size <= n);
}

void
rn_job_add_shapes (RnJob *job, RnSplit split, RnMode mode, GArray *shapes)
{
  guint n;
  gboolean is_rounded;
  g_autofree RnBatchShape *found =
      rn_sampler_batch_shapes (job->samplers[split], job->datasets[split], &n, &is_rounded);

  if (is_rounded)
    g_message ("%s: sizes are random: batches are padded up to one of %u shape%s", split_names[split], n,
               n == 1 ? "" : "s");
  for (guint i = n; i > 0; i--) /* the largest first: it decides the arena */
    for (int size = rn_sampler_batch_size (job->samplers[split]); size > 0; size--)
      if (can_have_size (job, split, size))
        {
          RnShape shape = { mode, size, found[i - 1].height, found[i - 1].width };
          g_array_append_val (shapes, shape);
        }
}

/* ---- model and programs ---- */

static int
known_num_classes (const RnJob *job)
{
  for (int split = 0; split < RN_SPLIT_COUNT; split++)
    if (job->datasets[split])
      return rn_dataset_n_classes (job->datasets[split]);
  if (job->config.classes && rn_node_kind (job->config.classes) == RN_NODE_LIST)
    return (int) rn_node_size (job->config.classes);
  return 0;
}

gboolean
rn_job_open_model (RnJob *job, GError **error)
{
  if (job->model)
    return TRUE;
  const RnNode *node = rn_run_config_need (job->root, "model", error);
  if (!node)
    return FALSE;
  job->model = rn_model_new (node, known_num_classes (job), error);
  if (job->model == NULL)
    return FALSE;
  g_free (job->single_modules);
  job->single_modules = rn_job_single_modules (job);
  return TRUE;
}

gboolean
rn_job_change (RnJob *job, const char *const *lines, GError **error)
{
  g_auto (RnRunConfig) changed = { 0 };

  for (int i = 0; lines[i] != NULL; i++)
    if (!rn_config_override (job->root, lines[i], error))
      return FALSE;
  if (!rn_run_config_parse (job->root, &changed, error))
    return FALSE;
  job->config.memory = changed.memory; /* all that it points to is the tree's */
  job->device->workspace_limit = changed.memory.workspace_bytes;
  g_clear_pointer (&job->model, rn_model_free);
  return rn_job_open_model (job, error);
}

/* What the update needs to know of `optimizer:`; a model without one can still be planned, as plain SGD. */
static void
describe_update (const RnJob *job, const RnOptimizer *optimizer, RnProgramsOptions *options)
{
  options->rule = rn_optimizer_scheduled_rule (optimizer, job->config.momentum_config);
  options->momentum = (RnMomentumForm) job->config.memory.momentum;
}

static void
set_multipliers (const RnJob *job, const RnOptimizer *optimizer)
{
  RnParamSet *params = rn_programs_params (job->programs);

  for (int i = 0; i < rn_param_set_size (params); i++)
    rn_programs_set_multipliers (job->programs, i,
                                 rn_optimizer_multipliers (optimizer, rn_param_set_get (params, i)));
}

RnPassOptions
rn_job_pass_options (const RnJob *job)
{
  const RnMemoryConfig *memory = &job->config.memory;
  const RnModelMemory *model = rn_model_memory (job->model);

  return (RnPassOptions){
    .fold_frozen_bn = memory->fold_frozen_bn != RN_FOLD_FALSE,
    .must_fold = memory->fold_frozen_bn == RN_FOLD_TRUE,
    .inplace = memory->inplace,
    .cblk = job->device->cblk,
    .mask_sums = job->device->masks_with_sums,
    .amp = rn_job_amp_options (job),
    .recompute = { .backbone = model->backbone,
                   .head = model->head,
                   .bn_relu = memory->bn_relu,
                   .frozen = memory->frozen },
    .head = (RnHeadOrder) memory->head,
    .offload = memory->offload,
  };
}

/* What a pass says of an option is an error of the key that it comes from. @cause: (transfer full). */
static gboolean
blame_key (const RnJob *job, GError *cause, GError **error)
{
  static const char *const keys[] = {
    [RN_OPTION_FOLD] = "memory.fold_frozen_bn",
    [RN_OPTION_BACKBONE_CP] = "model.backbone.with_cp",
    [RN_OPTION_HEAD_CP] = "model.bbox_head.with_cp",
    [RN_OPTION_RECOMPUTE] = "memory.recompute",
    [RN_OPTION_HEAD] = "memory.head",
    [RN_OPTION_OFFLOAD] = "memory.offload",
  };
  G_STATIC_ASSERT (G_N_ELEMENTS (keys) == RN_OPTION_COUNT);
  const RnNode *node = cause->domain == RN_PASS_ERROR ? rn_node_path (job->root, keys[cause->code]) : NULL;

  if (node == NULL)
    {
      g_propagate_error (error, cause);
      return FALSE;
    }
  rn_node_error (node, error, "%s", cause->message);
  g_error_free (cause);
  return FALSE;
}

gboolean
rn_job_open_programs (RnJob *job, const GArray *shapes, gboolean training, gboolean check, GError **error)
{
  g_autoptr (RnOptimizer) optimizer = NULL;
  g_clear_pointer (&job->shapes, g_array_unref);
  job->shapes = g_array_copy ((GArray *) shapes);
  if (training && !job->is_variant && job->config.memory.budget != RN_BUDGET_NONE
      && !rn_budget_apply (job, shapes, error))
    return FALSE;
  RnProgramsOptions options = {
    .training = training,
    .passes = rn_job_pass_options (job),
    .update_in_backward = training && job->config.memory.update == RN_UPDATE_IN_BACKWARD,
    .plan_cache = (int) job->config.memory.plan_cache,
    .bounds_only = job->bounds_only,
    .check = check,
  };
  if (training && job->wants != NULL)
    {
      options.ema = (job->wants->needs & RN_NEEDS_EMA) != 0;
      g_free (job->keep);
      options.passes.keep = job->keep = rn_wants_modules (job->wants);
    }
  if (training && job->config.optimizer != NULL)
    {
      optimizer = rn_optimizer_new (job->config.optimizer, error);
      if (optimizer == NULL)
        return FALSE;
      describe_update (job, optimizer, &options);
    }
  g_autoptr (GError) local = NULL;
  job->programs = rn_programs_new (job->model, job->device, &options,
                                   (const RnShape *) (const void *) shapes->data, (int) shapes->len, &local);
  if (job->programs == NULL)
    return blame_key (job, g_steal_pointer (&local), error);
  if (optimizer != NULL)
    set_multipliers (job, optimizer);
  const RnPlan *plan = rn_programs_get_plan (job->programs, g_array_index (shapes, RnShape, 0), error);
  return plan != NULL && rn_job_check_precision (job, plan->graph, error);
}
