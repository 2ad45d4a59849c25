/*
 * check-training.c: trainings on a real device against the same ones on the CPU, in each precision, in both
 * layouts, with engines by rank and by time, with strategies that queue copies or run ops again; the same
 * bits in a second run and behind a checkpoint. For make check-gpu.
 */
#include "config.h"

#include "tests/gpu/training-run.h"
#include "tests/tree.h"

static void
check_against_cpu (Run run, RnDType computes_in)
{
  g_auto (Outcome) device = { 0 }, cpu = { 0 };

  run_training (&run, &device);
  run.on_cpu = TRUE;
  run_training (&run, &cpu);
  assert_close (&device, &cpu, loss_tolerance (computes_in));
}

static void
test_fp32 (void)
{
  check_against_cpu ((Run){ .strategy = -1, .n_iters = MAX_ITERS }, RN_F32);
}

static void
test_layouts (void)
{
  check_against_cpu ((Run){ .strategy = -1, .n_iters = 3, .layout = RN_CUDA_LAYOUT_NHWC }, RN_F32);
  check_against_cpu ((Run){ .strategy = -1, .n_iters = 3, .layout = RN_CUDA_LAYOUT_NCHW }, RN_F32);
}

static void
test_measured (void)
{
  check_against_cpu ((Run){ .strategy = -1, .n_iters = 3, .measured = TRUE }, RN_F32);
}

/* BF16 needs compute capability 8.0; older devices are to refuse it. */
static void
test_half (gconstpointer data)
{
  const RnDType dtype = (RnDType) GPOINTER_TO_INT (data);

  if (dtype == RN_BF16 && test_device_capability () < 80)
    {
      const Run run = { .strategy = -1, .n_iters = 1, .dtype = dtype };
      g_autoptr (GError) error = NULL;
      g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
      g_assert_null (rn_training_new (open_job (&run, dir), NULL, TRUE, &error));
      g_assert_nonnull (error);
      remove_tree (dir);
    }
  else
    check_against_cpu ((Run){ .strategy = -1, .n_iters = 3, .dtype = dtype }, dtype);
}

/* Those that run ops again, that use the other queues, and that update while gradients come. */
static void
test_strategy (gconstpointer data)
{
  check_against_cpu ((Run){ .strategy = GPOINTER_TO_INT (data), .n_iters = 3 }, RN_F32);
}

/* The device decides the order of its threads and queues: it must not matter. */
static void
test_again (void)
{
  const Run run = { .strategy = RN_STRATEGY_OFFLOAD_IDLE, .n_iters = 3 };
  g_auto (Outcome) first = { 0 }, second = { 0 };

  run_training (&run, &first);
  run_training (&run, &second);
  assert_same (&second, &first);
}

static void
test_resume (void)
{
  g_auto (Outcome) straight = { 0 }, resumed = { 0 };

  run_interrupted ((Run){ .strategy = RN_STRATEGY_MOMENTUM_HOST }, &straight, &resumed);
  assert_same (&resumed, &straight);
}

int
main (int argc, char **argv)
{
  static const RnStrategyId strategies[] = { RN_STRATEGY_WITH_CP, RN_STRATEGY_OFFLOAD_IDLE,
                                             RN_STRATEGY_IN_BACKWARD, RN_STRATEGY_ACCUMULATION };

  test_device_begin ();
  g_test_init (&argc, &argv, NULL);
  training_runs_begin ();
  g_test_add_func ("/gpu/training/fp32", test_fp32);
  g_test_add_func ("/gpu/training/layouts", test_layouts);
  g_test_add_func ("/gpu/training/measured", test_measured);
  g_test_add_data_func ("/gpu/training/f16", GINT_TO_POINTER (RN_F16), test_half);
  g_test_add_data_func ("/gpu/training/bf16", GINT_TO_POINTER (RN_BF16), test_half);
  for (gsize i = 0; i < G_N_ELEMENTS (strategies); i++)
    {
      g_autofree char *path = g_strconcat ("/gpu/training/", rn_strategy_get (strategies[i])->name, NULL);
      g_test_add_data_func (path, GINT_TO_POINTER (strategies[i]), test_strategy);
    }
  g_test_add_func ("/gpu/training/again", test_again);
  g_test_add_func ("/gpu/training/resume", test_resume);
  int result = g_test_run ();
  training_runs_end ();
  return result;
}
