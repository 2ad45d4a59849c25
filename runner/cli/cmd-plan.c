/* cmd-plan.c: `runner plan`: the memory of a run, exactly, before it runs and without its data. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/check.h"
#include "runner/cli/common.h"
#include "runner/cli/plan-report.h"
#include "runner/cli/shape.h"
#include "runner/device-profile.h"

static void
print_pass (const char *pass, const RnGraph *graph, gpointer user_data)
{
  g_autofree char *text = rn_graph_print (graph);
  g_print ("---- after %s: %u ops ----\n%s\n", pass, graph->ops->len, text);
}

/* The worst shape's graph once more, printed after every pass. */
static gboolean
print_passes (RnJob *job, GError **error)
{
  RnMemory m = rn_programs_memory (job->programs);
  RnPassOptions options = rn_job_pass_options (job);
  options.normalize = TRUE; /* as in the programs */
  g_autoptr (RnGraph) graph = rn_model_build (job->model, rn_programs_params (job->programs), m.worst.mode,
                                              m.worst.n, m.worst.height, m.worst.width, error);
  if (!graph)
    return FALSE;
  print_pass ("the model", graph, NULL);
  return rn_passes_run (graph, &options, print_pass, NULL, error);
}

typedef struct
{
  char *shape, *batch, *budget, *png, *profile_name;
  char *profile; /* the JSON of that name, or NULL */
  gboolean json, passes, measure;
} PlanOptions;

static void
plan_options_clear (PlanOptions *options)
{
  g_free (options->shape);
  g_free (options->batch);
  g_free (options->budget);
  g_free (options->png);
  g_free (options->profile_name);
  g_free (options->profile);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PlanOptions, plan_options_clear)

static gboolean
wants_largest (const PlanOptions *plan)
{
  return g_strcmp0 (plan->batch, "auto") == 0;
}

/* @batch: of --batch; 0: that of the file. */
static RnJob *
open_job (const RnOptions *options, const PlanOptions *plan, int batch, GError **error)
{
  RnNode *root = rn_options_load_with_budget (options, plan->budget, error);
  g_autoptr (RnJob) job = root == NULL            ? NULL
                          : plan->measure         ? rn_job_new (root, error)
                          : plan->profile != NULL ? rn_job_new_for_profile (root, plan->profile, error)
                                                  : rn_job_new_for_plan (root, error);
  if (job == NULL || !rn_job_check (job, error)
      || !rn_job_open_shapes (job, plan->shape, batch, TRUE, plan->measure, error))
    return NULL;
  return g_steal_pointer (&job);
}

/* Those that a budget may choose, or the file as it is. */
static GPtrArray *
lines_to_try (const RnJob *job)
{
  static char *no_lines[] = { NULL };

  if (job->budget != NULL)
    return rn_budget_front (job->budget);
  GPtrArray *sets = g_ptr_array_new ();
  g_ptr_array_add (sets, no_lines);
  return sets;
}

/*
 * A job with the largest batch that fits. The candidates of a budget are those of one batch; they are made
 * anew for the answer until it stays.
 */
static RnJob *
open_largest (const RnOptions *options, const PlanOptions *plan, RnLargestBatch *largest, GError **error)
{
  g_autoptr (RnJob) job = open_job (options, plan, 1, error);

  while (job != NULL)
    {
      RnRoom room;
      if (!rn_room_of (job, "--batch auto", &room, error))
        return NULL;
      g_autoptr (RnPredictor) own = job->budget == NULL ? rn_predictor_new (job, job->shapes) : NULL;
      RnPredictor *predictor = own != NULL ? own : rn_budget_predictor (job->budget);
      int batch = rn_predictor_largest (predictor).n;
      g_autoptr (GPtrArray) sets = lines_to_try (job);
      rn_largest_batch (predictor, sets, &room, largest);
      if (largest->batch == batch)
        break;
      if (largest->batch == 0)
        {
          g_autofree char *needed = rn_size_format (rn_room_needed (&room, &largest->too_much.memory));
          g_autofree char *bytes = rn_size_format (room.bytes);
          g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                       "not even a batch of one image fits: it needs %s and there are %s", needed, bytes);
          return NULL;
        }
      g_clear_pointer (&own, rn_predictor_free); /* it looks at the job */
      g_clear_pointer (&job, rn_job_free);
      job = open_job (options, plan, largest->batch, error);
    }
  return g_steal_pointer (&job);
}

static gboolean
read_batch (const PlanOptions *plan, int *batch, GError **error)
{
  guint64 value = 0;

  *batch = 0;
  if (plan->batch == NULL || wants_largest (plan))
    return TRUE;
  if (!g_ascii_string_to_unsigned (plan->batch, 10, 1, 4096, &value, NULL))
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   "--batch %s: neither a number from 1 to 4096 nor auto", plan->batch);
      return FALSE;
    }
  *batch = (int) value;
  return TRUE;
}

/* The profile, and the device that it means. */
static gboolean
read_profile (PlanOptions *plan, RnOptions *options, GError **error)
{
  const char *conflict = plan->measure ? "--measure runs a step, which only a device that is there can"
                         : options->device != NULL && !g_str_has_prefix (options->device, "cuda")
                             ? "it is of a CUDA device, and --device says another"
                             : NULL;

  if (plan->profile_name == NULL)
    return TRUE;
  if (conflict != NULL)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--device-profile: %s", conflict);
      return FALSE;
    }
  if (options->device == NULL)
    options->device = g_strdup ("cuda");
  plan->profile = rn_device_profile_load (plan->profile_name, error);
  return plan->profile != NULL;
}

/* What was planned must be what is written. */
static gboolean
check_measure (const RnPlanMeasure *measure, GError **error)
{
  gsize difference = rn_plan_measure_difference (measure);

  if (difference == 0)
    return TRUE;
  g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
               "%" G_GSIZE_FORMAT " bytes were planned and never written: a fault of the program",
               difference);
  return FALSE;
}

static gboolean
print_report (RnJob *job, const RnOptions *cli, const PlanOptions *options, const RnLargestBatch *largest,
              GError **error)
{
  RnPlanMeasure measure;

  if (options->measure && !rn_plan_measure (job, &measure, error))
    return FALSE;
  g_autoptr (RnPredictor) predictor = rn_predictor_new (job, job->shapes);
  g_autoptr (RnStrategyTable) strategies = rn_strategy_table_new (predictor, job->root, error);
  const RnPlan *plan = rn_programs_get_plan (job->programs, rn_programs_memory (job->programs).worst, error);

  if (strategies == NULL || plan == NULL)
    return FALSE;
  const RnPlanReport report = { job, plan, strategies, largest, options->measure ? &measure : NULL };
  if (options->json)
    rn_plan_print_json (&report);
  else
    rn_plan_print_text (&report);
  if (options->png != NULL)
    {
      g_autofree char *name = g_path_get_basename (cli->config_path);
      if (!rn_plan_write_png (&report, name, options->png, error))
        return FALSE;
    }
  return !options->measure || check_measure (&measure, error);
}

int
rn_cmd_plan (int argc, char **argv)
{
  g_auto (PlanOptions) plan = { 0 };
  const GOptionEntry entries[] = {
    { "shape", 0, 0, G_OPTION_ARG_STRING, &plan.shape,
      "Padded image size; without it, the worst shape of the data set", "HxW" },
    { "batch", 0, 0, G_OPTION_ARG_STRING, &plan.batch,
      "Images per batch; without it, data.samples_per_gpu; auto: the most that fit into the budget, or into "
      "what is free",
      "N" },
    { "budget", 0, 0, G_OPTION_ARG_STRING, &plan.budget,
      "As memory.budget: a size, such as 700MiB, or auto: choose strategies for the shortest step within it",
      "SIZE" },
    { "device-profile", 0, 0, G_OPTION_ARG_STRING, &plan.profile_name,
      "A CUDA device that need not be there, such as t4 or h200, or a file that describes one: workspaces "
      "are those of cuDNN's engines for it",
      "NAME" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &plan.json, "Print JSON", NULL },
    { "png", 0, 0, G_OPTION_ARG_FILENAME, &plan.png, "Draw the bytes that are alive over the ops of the step",
      "FILE.png" },
    { "measure", 0, 0, G_OPTION_ARG_NONE, &plan.measure,
      "Run a step on random data too, and compare what each op writes with the plan; needs the memory, and a "
      "copy of the arena",
      NULL },
    { "passes", 0, 0, G_OPTION_ARG_NONE, &plan.passes, "Print the graph after every pass instead", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG",
    .summary = "Prints what a training run will need, to the byte, without running anything.",
    .examples = "  runner plan configs/retinanet_voc.yaml --shape 608x1024\n"
                "  runner plan configs/retinanet_voc.yaml --shape 608x1024 --budget 700MiB\n"
                "  runner plan configs/retinanet_voc.yaml --shape 608x1024 --budget 2GiB --batch auto\n"
                "  runner plan configs/retinanet_voc.yaml --shape 608x1024 --batch 1 --threads 2 --json\n"
                "  runner plan configs/retinanet_voc.yaml --shape 608x1024 --device-profile t4\n"
                "  runner plan configs/retinanet_shapes.yaml --png timeline.png\n"
                "  runner plan configs/retinanet_shapes.yaml --shape 128x160 --measure\n",
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };

  GError *error = NULL;
  int batch;
  g_auto (RnOptions) options = { 0 };
  g_auto (RnLargestBatch) largest = { 0 };
  if (!rn_options_parse (&usage, argc, argv, &options, &error) || !read_batch (&plan, &batch, &error)
      || !read_profile (&plan, &options, &error))
    return rn_cli_fail (error);
  g_autoptr (RnJob) job = wants_largest (&plan) ? open_largest (&options, &plan, &largest, &error)
                                                : open_job (&options, &plan, batch, &error);
  if (job == NULL)
    return rn_cli_fail (error);
  rn_cli_note_weights (job->root);
  gboolean done = plan.passes
                      ? print_passes (job, &error)
                      : print_report (job, &options, &plan, wants_largest (&plan) ? &largest : NULL, &error);
  return done ? 0 : rn_cli_fail (error);
}
