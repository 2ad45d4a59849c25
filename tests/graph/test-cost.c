/* What a plan is predicted to take, and kernels that are remembered. */
#include "config.h"

#include "graph/cost.h"
#include "kernels/call-cache.h"
#include "kernels/plan-device.h"
#include "tests/graph/nets.h"

/* The residual net, after the passes. */
static RnPlan *
make_plan (RnParamSet *params, RnDevice *device, const RnPassOptions *options)
{
  g_autoptr (GError) error = NULL;
  RnGraph *graph = rn_graph_new (RN_MODE_TRAIN, params);
  const NetOptions net = { 0 };

  net_residual (graph, &net);
  rn_graph_finish_forward (graph, &error);
  g_assert_no_error (error);
  rn_passes_run (graph, options, NULL, NULL, &error);
  g_assert_no_error (error);
  RnPlan *plan = rn_plan_new (graph, device, TRUE, &error);
  g_assert_no_error (error);
  return plan;
}

static RnOpCall
conv_call (RnOp op)
{
  RnOpCall call = { .op = op,
                    .args.conv = { .kernel = { 3, 3 },
                                   .stride = { 1, 1 },
                                   .pad = { 1, 1 },
                                   .dilation = { 1, 1 },
                                   .groups = 1,
                                   .compute = RN_F32 },
                    .in_present = 3,
                    .out_present = 1 };
  call.in[0] = call.out[0] = rn_desc_nchw (RN_F32, 2, 64, 40, 40, 16);
  call.in[1] = (RnTensorDesc){ RN_F32, 4, { 64, 64, 3, 3 }, 1 };
  return call;
}

/* Of the same work a kernel of a faster kind takes less time, and plain C the most. */
static void
test_rates (void)
{
  static const RnKernel kernels[] = { { .name = "cpu:conv2d_fwd:winograd" },
                                      { .name = "cpu:conv2d_fwd:onednn" },
                                      { .name = "ref:conv2d_fwd" } };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) one = rn_device_new_cpu (1, &error);
  RnOpCall call = conv_call (RN_OP_CONV2D_FWD);
  double last = 0;

  g_assert_no_error (error);
  for (gsize i = 0; i < G_N_ELEMENTS (kernels); i++)
    {
      const RnPrepared prepared = { .kernel = &kernels[i] };
      double seconds = rn_cost_op (one, &call, &prepared);
      g_assert_cmpfloat (seconds, >, last);
      last = seconds;
    }

  /* Twice the channels that come out: twice the work of a convolution, but for the price of a call. */
  const RnPrepared direct = { .kernel = &kernels[1] };
  double once = rn_cost_op (one, &call, &direct);
  call.out[0].dims[1] = call.in[1].dims[0] = 128;
  double twice = rn_cost_op (one, &call, &direct);
  g_assert_cmpfloat (twice, >, 1.8 * once);
  g_assert_cmpfloat (twice, <=, 2 * once);
}

/* What moves bytes takes as long as its bytes do. */
static void
test_bytes (void)
{
  static const RnKernel kernel = { .name = "cpu:any" };
  const RnPrepared prepared = { .kernel = &kernel };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error);
  RnOpCall relu = { .op = RN_OP_RELU_FWD, .in_present = 1, .out_present = 1 }, copy = relu;

  g_assert_no_error (error);
  relu.in[0] = relu.out[0] = rn_desc_vector (RN_F32, 1 << 24);
  double full = rn_cost_op (device, &relu, &prepared);
  copy.op = RN_OP_COPY;
  copy.in[0] = copy.out[0] = relu.in[0];
  g_assert_cmpfloat (rn_cost_op (device, &copy, &prepared), >, full / 4);
  relu.in[0] = relu.out[0] = rn_desc_vector (RN_F16, 1 << 24);
  double half = rn_cost_op (device, &relu, &prepared);
  g_assert_cmpfloat (half, <, 0.51 * full);
  g_assert_cmpfloat (half, >, 0.49 * full);
}

/* Work that is done again is counted apart, and takes time. */
static void
test_work (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error);
  RnPassOptions options = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = device->cblk };
  g_autoptr (RnParamSet) params = rn_param_set_new (), again_params = rn_param_set_new ();

  g_assert_no_error (error);
  g_autoptr (RnPlan) plain = make_plan (params, device, &options);
  options.recompute.backbone.form = RN_CP_BLOCKS;
  g_autoptr (RnPlan) again = make_plan (again_params, device, &options);

  RnPlanWork work = rn_cost_work (plain), more = rn_cost_work (again);
  gint64 forward = 0, all = 0;
  double seconds = 0;
  for (guint i = 0; i < plain->graph->ops->len; i++)
    {
      gint64 macs = rn_op_cost (&plain->calls[i]).macs;
      all += macs;
      forward += rn_graph_op (plain->graph, (int) i)->phase == RN_PHASE_FORWARD ? macs : 0;
      seconds += rn_cost_op (device, &plain->calls[i], &plain->prepared[i]);
    }
  g_assert_cmpint (work.step, ==, all);
  g_assert_cmpint (work.recompute, ==, 0);
  g_assert_cmpint (more.step, ==, all);
  g_assert_cmpint (more.recompute, >, 0);
  g_assert_cmpint (more.recompute, <, forward);
  g_assert_cmpfloat (rn_cost_plan (plain), ==, seconds);
  g_assert_cmpfloat (rn_cost_plan (again), >, seconds);
}

/* A plan from remembered kernels is the plan; the second one asks nobody. */
static void
test_call_cache (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnCallCache) cache = rn_call_cache_new ();
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error), quick = rn_device_new_cpu (1, &error);
  RnPassOptions options = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = device->cblk };
  char *all[] = { (char *) "*", NULL };

  g_assert_no_error (error);
  quick->calls = cache;
  for (int round = 0; round < 2; round++)
    {
      g_autoptr (RnParamSet) params = rn_param_set_new (), other_params = rn_param_set_new ();
      g_autoptr (RnPlan) plan = make_plan (params, device, &options);
      g_autoptr (RnPlan) same = make_plan (other_params, quick, &options);
      g_assert_cmpuint (plan->arena_bytes, ==, same->arena_bytes);
      g_assert_cmpuint (plan->graph->ops->len, ==, same->graph->ops->len);
      for (guint i = 0; i < plan->graph->ops->len; i++)
        {
          g_assert_true (plan->prepared[i].kernel == same->prepared[i].kernel);
          g_assert_cmpuint (plan->prepared[i].workspace_bytes, ==, same->prepared[i].workspace_bytes);
          g_assert_null (same->prepared[i].state);
        }
      quick->forbid = all; /* no kernel could be found any more */
    }
}

/* The same call under another limit of workspaces is another question. */
static void
test_call_cache_limit (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnCallCache) cache = rn_call_cache_new ();
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error);
  RnOpCall call = conv_call (RN_OP_CONV2D_FWD);
  RnPrepared prepared, limited, again;

  g_assert_no_error (error);
  device->calls = cache;
  g_assert_true (rn_device_prepare (device, &call, &prepared, &error));
  device->workspace_limit = 1;
  g_assert_true (rn_device_prepare (device, &call, &limited, &error));
  g_assert_cmpuint (limited.workspace_bytes, <=, 1);
  device->workspace_limit = 0;
  g_assert_true (rn_device_prepare (device, &call, &again, &error));
  g_assert_true (again.kernel == prepared.kernel);
  g_assert_cmpuint (again.workspace_bytes, ==, prepared.workspace_bytes);
}

/* Under a limit that it is below, a kernel that is known is taken; the same one would have been found. */
static void
test_call_cache_below_limit (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnCallCache) cache = rn_call_cache_new ();
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error), anew = rn_device_new_cpu (1, &error);
  RnOpCall call = conv_call (RN_OP_CONV2D_FWD);
  RnPrepared prepared, known, found;
  char *all[] = { (char *) "*", NULL };

  g_assert_no_error (error);
  device->calls = cache;
  g_assert_true (rn_device_prepare (device, &call, &prepared, &error));
  device->workspace_limit = anew->workspace_limit = MAX (prepared.workspace_bytes, 1);
  g_assert_true (rn_device_prepare (anew, &call, &found, &error));
  device->forbid = all;
  g_assert_true (rn_device_prepare (device, &call, &known, &error));
  g_assert_true (known.kernel == found.kernel);
  g_assert_cmpuint (known.workspace_bytes, ==, found.workspace_bytes);
  rn_prepared_release (&found);

  /* A kernel that takes all there is does not stay below a larger limit. */
  g_autoptr (RnCallCache) other = rn_call_cache_new ();
  g_autoptr (RnDevice) card = rn_device_new_plan_cuda ();
  card->calls = other;
  g_assert_true (rn_device_prepare (card, &call, &prepared, &error));
  g_assert_cmpuint (prepared.workspace_bytes, >, RN_PLAN_DEVICE_WORKSPACE); /* an engine's, and its weights */
  card->workspace_limit = 2 * RN_PLAN_DEVICE_WORKSPACE;
  g_assert_true (rn_device_prepare (card, &call, &prepared, &error));
  g_assert_cmpuint (prepared.workspace_bytes, ==, 2 * RN_PLAN_DEVICE_WORKSPACE);
}

/* Without offsets an arena is the bound, below which no placement can go. */
static void
test_bounds (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error);
  RnPassOptions options = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = device->cblk };
  g_autoptr (RnParamSet) params = rn_param_set_new ();

  g_assert_no_error (error);
  g_autoptr (RnPlan) plan = make_plan (params, device, &options);
  gsize bound = 0;
  for (int i = 0; i < (int) plan->graph->ops->len; i++)
    bound = MAX (bound, rn_plan_live_bytes (plan, i));
  g_assert_cmpuint (plan->live_bound_bytes, ==, bound);
  g_assert_cmpuint (rn_plan_live_bytes (plan, plan->peak_op), ==, bound);
  g_assert_cmpuint (plan->arena_bytes, >=, bound);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cost/rates", test_rates);
  g_test_add_func ("/cost/bytes", test_bytes);
  g_test_add_func ("/cost/work", test_work);
  g_test_add_func ("/call-cache/same", test_call_cache);
  g_test_add_func ("/call-cache/limit", test_call_cache_limit);
  g_test_add_func ("/call-cache/below-limit", test_call_cache_below_limit);
  g_test_add_func ("/plan/bounds", test_bounds);
  return g_test_run ();
}
