/*
 * test-training.c: trainings on the simulated device against the same ones on the CPU: in single and in half
 * precision, with each memory strategy, in each schedule of the queues; resumed; and inference. The bytes
 * that were planned are those that are taken.
 *
 * RN_TEST_LONG=1: 20 iterations, and every strategy in half precision too.
 */
#include "config.h"

#include "runner/cli/bench-run.h"
#include "runner/cli/shape.h"
#include "runner/random-batch.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <string.h>

static void
test_fp32 (void)
{
  Run run = { .sim = t4, .strategy = -1, .n_iters = is_long ? 20 : 3 };
  g_auto (Outcome) device = { 0 }, cpu = { 0 };

  run_training (&run, &device);
  run.on_cpu = TRUE;
  run_training (&run, &cpu);
  assert_close (&device, &cpu, 1e-4);
}

/* The order of queues, threads and blocks changes no bit; what it must keep, events say. */
static void
test_schedules (void)
{
  static const SimSchedule schedules[] = { SIM_LATE, SIM_EARLY, SIM_RANDOM, SIM_RANDOM };
  Run run = { .sim = t4, .strategy = RN_STRATEGY_OFFLOAD_IDLE, .n_iters = 3 };
  g_auto (Outcome) first = { 0 }, cpu = { 0 };

  run_training (&run, &first);
  for (gsize i = 1; i < G_N_ELEMENTS (schedules); i++)
    {
      g_auto (Outcome) other = { 0 };
      run.sim.schedule = schedules[i];
      run.sim.seed = (unsigned) i;
      run.sim.descending = i % 2 == 1;
      run_training (&run, &other);
      assert_same (&other, &first);
    }
  run.on_cpu = TRUE;
  run_training (&run, &cpu);
  assert_close (&first, &cpu, 1e-4);
}

/* NHWC, where strict single precision would take NCHW; and engines that were chosen by time. */
static void
test_choices (void)
{
  Run run = { .sim = t4, .strategy = -1, .n_iters = 3, .on_cpu = TRUE };
  g_auto (Outcome) cpu = { 0 }, nhwc = { 0 }, measured = { 0 };

  run_training (&run, &cpu);
  run.on_cpu = FALSE;
  run.layout = RN_CUDA_LAYOUT_NHWC;
  run_training (&run, &nhwc);
  assert_close (&nhwc, &cpu, 1e-4);
  run.layout = RN_CUDA_LAYOUT_AUTO;
  run.measured = TRUE;
  run_training (&run, &measured);
  assert_close (&measured, &cpu, 1e-4);
}

static RnDType
type_of_strategy (RnStrategyId id)
{
  switch (id)
    {
    case RN_STRATEGY_FP16:
    case RN_STRATEGY_FP16_O2:
      return RN_F16;
    case RN_STRATEGY_BF16:
      return RN_BF16;
    default:
      return RN_F32;
    }
}

/* @dtype beside the strategy, if that is not a precision itself. */
static void
check_strategy (RnStrategyId id, RnDType dtype)
{
  RnDType own = type_of_strategy (id);
  Run run = { .sim = dtype == RN_BF16 || own == RN_BF16 ? a100 : t4,
              .strategy = (int) id,
              .dtype = dtype,
              .n_iters = own == RN_F32 && dtype == RN_F32 && is_long ? 20 : 3 };
  g_auto (Outcome) device = { 0 }, cpu = { 0 };

  g_test_message ("%s, %s", rn_strategy_get (id)->name, rn_dtype_name (dtype));
  run_training (&run, &device);
  run.on_cpu = TRUE;
  run_training (&run, &cpu);
  assert_close (&device, &cpu, loss_tolerance (own != RN_F32 ? own : dtype));
}

static void
test_alone (gconstpointer user_data)
{
  check_strategy ((RnStrategyId) GPOINTER_TO_INT (user_data), RN_F32);
}

/* Beside half precision: those that move or drop activations; all of them in the long test. */
static void
test_half (gconstpointer user_data)
{
  static const RnStrategyId few[] = { RN_STRATEGY_WITH_CP, RN_STRATEGY_OFFLOAD_IDLE };
  RnDType dtype = (RnDType) GPOINTER_TO_INT (user_data);

  for (gsize i = 0; i < G_N_ELEMENTS (few) && !is_long; i++)
    check_strategy (few[i], dtype);
  for (int id = 0; id < RN_STRATEGY_COUNT && is_long; id++)
    if (type_of_strategy ((RnStrategyId) id) == RN_F32
        && rn_strategies_pair_reason ((RnStrategyId) id,
                                      dtype == RN_F16 ? RN_STRATEGY_FP16 : RN_STRATEGY_BF16)
               == NULL)
      check_strategy ((RnStrategyId) id, dtype);
}

/* ---- sums of masked gradients ---- */

static void
count_masks (const Run *run, int *n_masks, int *n_sums)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_autoptr (RnTraining) training = open_run (run, dir);
  const RnJob *job = training->job;
  const RnPlan *plan = rn_programs_get_plan (job->programs, g_array_index (job->shapes, RnShape, 0), &error);

  g_assert_no_error (error);
  *n_masks = *n_sums = 0;
  for (guint i = 0; i < plan->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (plan->graph, (int) i);
      *n_masks += op->op == RN_OP_RELU_BWD;
      *n_sums += op->op == RN_OP_RELU_BWD && op->out[RN_RELU_BWD_SUMS] != RN_NO_VALUE;
    }
  remove_tree (dir);
}

/* The device takes them where the gradient is written, in either precision; the CPU with the weights. */
static void
test_mask_sums (void)
{
  static const RnDType types[] = { RN_F32, RN_F16 };

  for (gsize t = 0; t < G_N_ELEMENTS (types); t++)
    {
      Run run = { .sim = t4, .strategy = -1, .dtype = types[t], .n_iters = 1 };
      int n_masks, n_sums;
      count_masks (&run, &n_masks, &n_sums);
      g_assert_cmpint (n_sums, >, 0);
      run.on_cpu = TRUE;
      count_masks (&run, &n_masks, &n_sums);
      g_assert_cmpint (n_masks, >, 0);
      g_assert_cmpint (n_sums, ==, 0);
    }
}

/* ---- memory ---- */

/* What is planned is taken, nothing else, and nothing later. */
static void
test_bytes (gconstpointer user_data)
{
  const int id = GPOINTER_TO_INT (user_data);
  const Run run = { .sim = t4, .strategy = id, .n_iters = 4 };
  Outcome outcome = { 0 };
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_autoptr (RnTraining) training = open_run (&run, dir);
  const RnMemory memory = rn_programs_memory (training->job->programs);

  g_assert_cmpuint (sim_bytes (), ==, memory.total_bytes);
  unsigned long n = sim_n_allocations ();
  watched = &outcome;
  rn_runner_run (training->runner, &error);
  g_assert_no_error (error);
  watched = NULL;
  for (int i = 0; i < run.n_iters; i++)
    g_assert_cmpuint (outcome.allocations[i], ==, n);
  g_assert_cmpuint (sim_peak_bytes (), ==, memory.total_bytes);
  remove_tree (dir);
}

/* Plans @run for @shape and takes the memory: *@planned, and what there is then. */
static RnMemory
take_memory (const Run *run, const char *shape, RnMemory *planned)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_autoptr (RnJob) job = open_job (run, dir);

  if (!rn_job_open_shapes (job, shape, 2, FALSE, FALSE, &error)
      || !rn_programs_plan (job->programs, NULL, NULL, &error))
    g_error ("%s", error->message);
  *planned = rn_programs_memory (job->programs);
  rn_programs_reserve (job->programs, &error);
  g_assert_no_error (error);
  const RnMemory taken = rn_programs_memory (job->programs);
  g_assert_cmpuint (sim_bytes (), ==, taken.total_bytes);
  g_assert_cmpuint (sim_peak_bytes (), ==, planned->total_bytes);
  remove_tree (dir);
  return taken;
}

/*
 * Engines are measured with room for each within the limit, also for those that need more than the first by
 * rank; what was planned for that is the most that is ever taken, and what the run keeps is planned anew.
 * That comes to less at 32x32; at 32x64 offsets for smaller workspaces come to more, so nothing is changed.
 */
static void
test_measured_bytes (void)
{
  const Run by_rank = { .sim = t4, .strategy = -1, .n_iters = 1 };
  const Run measured = { .sim = t4, .strategy = -1, .n_iters = 1, .measured = TRUE };
  RnMemory planned;

  const RnMemory first = take_memory (&by_rank, "32x32", &planned);
  g_assert_cmpuint (first.total_bytes, ==, planned.total_bytes);
  const RnMemory chosen = take_memory (&measured, "32x32", &planned);
  g_assert_cmpuint (chosen.total_bytes, <, planned.total_bytes);
  g_assert_cmpuint (chosen.workspace_bytes, >, first.workspace_bytes);
  g_assert_cmpuint (chosen.workspace_bytes, <, planned.workspace_bytes);
  const RnMemory kept = take_memory (&measured, "32x64", &planned);
  g_assert_cmpuint (kept.total_bytes, ==, planned.total_bytes);
  g_assert_cmpuint (kept.workspace_bytes, ==, planned.workspace_bytes);
}

/* What the device has is looked at before anything is taken. */
static void
test_too_small (void)
{
  const Run run = {
    .sim = { .model = "t4", .n_devices = 1, .driver_version = 13000, .memory_bytes = 64 << 10 },
    .strategy = -1,
    .n_iters = 1
  };
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);

  g_assert_null (rn_training_new (open_job (&run, dir), NULL, TRUE, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
  g_assert_nonnull (strstr (error->message, "and 64.0 KiB are available"));
  g_assert_cmpuint (sim_n_allocations (), ==, 0);
  remove_tree (dir);
}

/* `runner bench` asks the device what is taken: here nothing is, but what the plan has. */
static void
test_outside_of_plan (void)
{
  const Run run = { .sim = t4, .strategy = -1, .n_iters = 1 };
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_autoptr (RnJob) job = open_job (&run, dir);
  RnBenchResult result;

  if (!rn_job_open_shapes (job, "32x32", 2, FALSE, FALSE, &error)
      || !rn_bench_run (job, &(RnBenchOptions){ .iters = 2 }, &result, &error))
    g_error ("%s", error->message);
  g_assert_cmpint (result.planned_bytes, >, 0);
  g_assert_cmpint (result.device_used_bytes, ==, result.device_opened_bytes + result.planned_bytes);
  g_assert_cmpint (result.outside_plan_bytes, ==, 0);
  remove_tree (dir);
}

/* ---- runs that go on ---- */

static void
test_resume (void)
{
  g_auto (Outcome) straight = { 0 }, resumed = { 0 };

  run_interrupted ((Run){ .sim = t4, .strategy = RN_STRATEGY_MOMENTUM_HOST }, &straight, &resumed);
  assert_same (&resumed, &straight);
}

/* ---- inference ---- */

static int
compare_scores (gconstpointer a, gconstpointer b)
{
  float x = ((const RnDetection *) a)->score, y = ((const RnDetection *) b)->score;
  return x > y ? -1 : x < y;
}

/* Detections in a random image, best first. (transfer full) */
static GArray *
infer (const Run *run)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnJob) job = open_job (run, "unused");
  const RnShape shape = { RN_MODE_INFER, 2, 64, 64 };
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof shape);
  GArray *found[2] = { NULL };

  g_array_append_val (shapes, shape);
  if (!rn_job_open_model (job, &error) || !rn_job_open_programs (job, shapes, FALSE, FALSE, &error)
      || !rn_programs_reserve (job->programs, &error)
      || !rn_param_set_init (rn_programs_params (job->programs), 5, &error))
    g_error ("%s", error->message);
  g_autoptr (RnBatch) batch =
      rn_random_batch_new (job->model, shape.n, shape.height, shape.width, 3, 7, &error);
  g_assert_no_error (error);
  rn_programs_infer (job->programs, batch, found, &error);
  g_assert_no_error (error);
  g_array_unref (found[1]);
  g_array_sort (found[0], compare_scores);
  return found[0];
}
/* Scores are sigmoids of logits: a relative error of a logit is at most as large an absolute one of it. */
static void
test_inference (void)
{
  Run run = { .sim = t4, .strategy = -1, .n_iters = 1 };
  g_autoptr (GArray) device = infer (&run);
  run.on_cpu = TRUE;
  g_autoptr (GArray) cpu = infer (&run);

  g_assert_cmpuint (cpu->len, >, 0);
  g_assert_cmpuint (device->len, ==, cpu->len);
  for (guint i = 0; i < cpu->len; i++)
    {
      float x = g_array_index (device, RnDetection, i).score, y = g_array_index (cpu, RnDetection, i).score;
      g_assert_cmpfloat_with_epsilon (x, y, 1e-4f * y);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  training_runs_begin ();
  g_test_add_func ("/training/fp32", test_fp32);
  g_test_add_func ("/training/schedules", test_schedules);
  g_test_add_func ("/training/choices", test_choices);
  g_test_add_func ("/training/mask-sums", test_mask_sums);
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    {
      g_autofree char *path =
          g_strconcat ("/training/alone/", rn_strategy_get ((RnStrategyId) id)->name, NULL);
      g_test_add_data_func (path, GINT_TO_POINTER (id), test_alone);
    }
  g_test_add_data_func ("/training/half/f16", GINT_TO_POINTER (RN_F16), test_half);
  g_test_add_data_func ("/training/half/bf16", GINT_TO_POINTER (RN_BF16), test_half);
  g_test_add_data_func ("/training/bytes/plain", GINT_TO_POINTER (-1), test_bytes);
  g_test_add_data_func ("/training/bytes/offload", GINT_TO_POINTER (RN_STRATEGY_OFFLOAD_IDLE), test_bytes);
  g_test_add_func ("/training/bytes/measured", test_measured_bytes);
  g_test_add_func ("/training/too-small", test_too_small);
  g_test_add_func ("/training/bytes/outside", test_outside_of_plan);
  g_test_add_func ("/training/resume", test_resume);
  g_test_add_func ("/inference", test_inference);
  int result = g_test_run ();
  training_runs_end ();
  return result;
}
