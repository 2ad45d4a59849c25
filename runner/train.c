#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/train.h"

#include "runner/auto-scale-lr.h"
#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/checkpoint.h"
#include "runner/checkpoint-list.h"
#include "runner/config/config.h"
#include "runner/fit.h"
#include "runner/predict.h"
#include "runner/strategies.h"
#include "runner/train-task.h"

/* MMDetection's RetinaNet recipes: 0.01 for 16 images. Far above it, training from the usual weights
 * diverges. */
#define BASE_LR_PER_IMAGE (0.01 / 16)
#define LR_MARGIN 2

static void
describe_data (const RnJob *job)
{
  static const char *const names[] = { "training set", "validation set", "test set",
                                       "validation set, for its loss" };
  G_STATIC_ASSERT (G_N_ELEMENTS (names) == RN_SPLIT_COUNT);

  for (int split = 0; split < RN_SPLIT_COUNT; split++)
    if (job->datasets[split] != NULL)
      {
        g_autofree char *text = rn_dataset_describe (job->datasets[split]);
        g_message ("%s: %s", names[split], text);
      }
}

static gboolean
check_wants (const RnTraining *training, GError **error)
{
  const GArray *activations = training->job->wants->activations;

  for (guint i = 0; i < activations->len; i++)
    {
      const RnWantedActivation *wanted = &g_array_index (activations, RnWantedActivation, i);
      if (!rn_programs_check_module (training->job->programs, wanted->module, error))
        {
          g_prefix_error (error, "%s: ", wanted->hook);
          return FALSE;
        }
    }
  return TRUE;
}

/* Data, model, and programs for every shape that the run can meet. */
static gboolean
open_parts (RnTraining *training, GError **error)
{
  RnJob *job = training->job;
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));

  if (!rn_job_open_data (job, RN_SPLIT_TRAIN, error))
    return FALSE;
  if (job->config.evaluation != NULL && !rn_job_open_data (job, RN_SPLIT_VAL, error))
    return FALSE;
  if (rn_job_has_val_loss (job) && !rn_job_open_data (job, RN_SPLIT_VAL_LOSS, error))
    return FALSE;
  describe_data (job);
  rn_job_add_shapes (job, RN_SPLIT_TRAIN, RN_MODE_TRAIN, shapes);
  guint n_train = shapes->len;
  if (job->datasets[RN_SPLIT_VAL] != NULL)
    rn_job_add_shapes (job, RN_SPLIT_VAL, RN_MODE_INFER, shapes);
  guint n_eval = shapes->len - n_train;
  if (job->datasets[RN_SPLIT_VAL_LOSS] != NULL)
    rn_job_add_shapes (job, RN_SPLIT_VAL_LOSS, RN_MODE_LOSS, shapes);
  g_message ("shapes: %u for training, %u for evaluation, %u for validation loss", n_train, n_eval,
             shapes->len - n_train - n_eval);

  if (!rn_job_open_model (job, error) || !rn_job_open_programs (job, shapes, TRUE, job->check_memory, error)
      || !check_wants (training, error))
    return FALSE;
  return rn_programs_plan (job->programs, rn_job_show_progress, (gpointer) "planning shapes", error);
}

/* The answer to "will it fit" comes before the first step. */
static gboolean
check_memory (RnTraining *training, GError **error)
{
  RnMemory memory = rn_programs_memory (training->job->programs);
  gsize loader_bytes = rn_train_task_loader_bytes (training->task);
  const RnRoom room = rn_room_free (training->job);
  guint64 needed = rn_room_needed (&room, &memory) + (room.counts_host ? loader_bytes : 0),
          available = room.bytes;
  g_autofree char *params = rn_size_format (memory.param_bytes), *grads = rn_size_format (memory.grad_bytes);
  g_autofree char *state = rn_size_format (memory.state_bytes), *arena = rn_size_format (memory.arena_bytes);
  g_autofree char *loaders = rn_size_format (loader_bytes), *total = rn_size_format (needed);
  g_autofree char *ema = rn_size_format (memory.ema_bytes);
  g_autofree char *mean = g_strconcat (", running mean ", ema, NULL);
  g_autofree char *host = rn_size_format (memory.host_bytes);
  g_autofree char *waiting = g_strconcat (", host memory ", host, NULL);
  g_autofree char *free_text = available == G_MAXUINT64 ? g_strdup ("unknown") : rn_size_format (available);

  g_message (
      "memory: parameters %s, gradients %s, optimizer state %s%s, arena %s (worst shape: batch %d, %dx%d)%s, "
      "loaders %s: %s %s; available: %s",
      params, grads, state, memory.ema_bytes > 0 ? mean : "", arena, memory.worst.n, memory.worst.height,
      memory.worst.width, memory.host_bytes > 0 ? waiting : "", loaders, total,
      room.counts_host ? "in all" : "on the device", free_text);
  return rn_job_check_fit (training->job, loader_bytes, error);
}

/* What schedules start from: the optimizer's rate, or the one that OneCycle has instead. */
static double
get_lr (const RnTraining *training)
{
  const RnNode *max_lr = rn_node_path (training->job->root, "lr_config.max_lr");
  gboolean has_max =
      max_lr != NULL && (rn_node_kind (max_lr) == RN_NODE_FLOAT || rn_node_kind (max_lr) == RN_NODE_INT);

  return has_max ? rn_node_as_float (max_lr) : rn_optimizer_lr (training->optimizer);
}

static void
check_lr (const RnTraining *training)
{
  double lr = get_lr (training);
  double n = (double) training->task->batch_size * (double) rn_iters_of_step (&training->job->config);
  const RnNode *hook = rn_optimizer_hook_config (&training->job->config);
  const RnNode *clip = hook != NULL ? rn_node_get (hook, "grad_clip") : NULL;

  if (lr == 0)
    g_warning ("the learning rate is 0: the weights will stay as they are");
  if (rn_optimizer_rule (training->optimizer).kind != RN_UPDATE_SGD) /* Adam's means something else */
    return;
  if (!rn_node_is_null (clip)) /* a step is at most lr times max_norm long */
    return;
  if (lr / n > LR_MARGIN * BASE_LR_PER_IMAGE)
    g_warning ("the learning rate is %g for the %g images of a step; the usual recipe (0.01 for 16) would "
               "give %g: a larger one may diverge, unless optimizer_config.grad_clip bounds the step",
               lr, n, n * BASE_LR_PER_IMAGE);
}

static RnOptimizer *
make_optimizer (const RnJob *job, GError **error)
{
  const RnNode *node = rn_run_config_need (job->root, "optimizer", error);
  return node != NULL ? rn_optimizer_new (node, error) : NULL;
}

static gboolean
read_runner (const RnJob *job, RnRunnerOptions *options, GError **error)
{
  const RnNode *node = rn_run_config_need (job->root, "runner", error);
  return node != NULL && rn_runner_options_parse (node, options, error);
}

static gboolean
load_start (RnTraining *training, GError **error)
{
  if (training->start != NULL && !rn_start_weights_load (training->start, training->job, error))
    return FALSE;
  g_clear_pointer (&training->start, rn_start_weights_free);
  return TRUE;
}

/*
 * What the device of the run had chosen, before anything is planned: it decides how much workspace there is.
 * What is wrong with the file is said, and ends the run, when the rest of it is loaded.
 */
static void
take_choices (const RnJob *job)
{
  RnDevice *device = job->device;
  const char *work_dir = job->config.work_dir;

  if (device->vtbl->take_choices == NULL || work_dir == NULL)
    return;
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (work_dir, NULL);
  g_autoptr (RnSafetensors) file =
      list != NULL ? rn_checkpoint_open_resumed (work_dir, job->config.resume_from, list, TRUE, NULL) : NULL;
  if (file == NULL)
    return;
  const RnStoredTensor *choices = rn_safetensors_find (file, RN_CHECKPOINT_CHOICES);
  if (choices != NULL)
    device->vtbl->take_choices (device, (const char *) choices->data, choices->bytes);
  else if (g_strcmp0 (rn_safetensors_metadata (file, RN_CHECKPOINT_DEVICE), device->description) == 0)
    device->vtbl->take_choices (device, NULL, 0);
}

/* What needs the file alone comes first: nobody waits for a large data set to learn of a misspelt key. */
static gboolean
build (RnTraining *training, const char *timestamp, gboolean is_resumed, GError **error)
{
  RnJob *job = training->job;
  RnRunnerOptions options = { .work_dir = job->config.work_dir, .timestamp = timestamp };
  g_autoptr (RnHookList) hooks = NULL;

  if (!rn_run_config_check_training (job->root, is_resumed, error)
      || (training->optimizer = make_optimizer (job, error)) == NULL || !read_runner (job, &options, error)
      || (hooks = rn_training_hooks_new (&job->config, &options.log_interval, error)) == NULL
      || !rn_auto_scale_lr (&job->config, job->data.samples_per_gpu, training->optimizer, error)
      || (!is_resumed && (training->start = rn_start_weights_new (job->root, error)) == NULL)
      || !rn_hook_list_prepare (hooks, job->wants, error)
      || !rn_strategies_check (job->root, &job->config, job->wants, error))
    return FALSE;
  if (is_resumed)
    take_choices (job);
  if (!open_parts (training, error) || (training->task = rn_train_task_new (job, error)) == NULL)
    return FALSE;
  g_autoptr (GArray) workflow = rn_workflow_parse (job->config.workflow, error);
  if (workflow == NULL)
    return FALSE;
  g_autofree char *config_text = rn_config_dump (job->root, FALSE); /* with what a budget chose */
  options.config_text = config_text;
  options.workflow = workflow;
  options.optimizer = training->optimizer;
  options.allow_batch_change = job->config.resume.allow_batch_change;
  options.hooks = g_steal_pointer (&hooks);
  training->runner = rn_runner_new (training->task, &options);
  if (!rn_runner_init (training->runner, error) || !check_memory (training, error))
    return FALSE;
  check_lr (training);
  if (is_resumed && job->config.load_from != NULL)
    g_message ("load_from is not read: the weights come from the checkpoint that the run is resumed from");
  return rn_programs_reserve (job->programs, error)
         && rn_param_set_init (rn_programs_params (job->programs), (guint64) job->config.seed, error)
         && load_start (training, error);
}

RnTraining *
rn_training_new (RnJob *job, const char *timestamp, gboolean is_resumed, GError **error)
{
  g_autoptr (RnTraining) training = g_new0 (RnTraining, 1);

  training->job = job;
  job->wants = rn_wants_new ();
  if (!build (training, timestamp, is_resumed, error))
    return NULL;
  return g_steal_pointer (&training);
}

void
rn_training_free (RnTraining *training)
{
  if (training == NULL)
    return;
  rn_runner_free (training->runner);
  rn_train_task_free (training->task);
  rn_start_weights_free (training->start);
  rn_optimizer_free (training->optimizer);
  rn_job_free (training->job);
  g_free (training);
}
