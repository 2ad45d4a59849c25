/* The keys of the top level: what is read, what is refused, and in which words. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/run-config.h"
#include "runner/runner.h"

#include <glib.h>
#include <string.h>

static RnNode *
load (const char *text)
{
  g_autoptr (GError) error = NULL;
  RnNode *root = rn_config_load_text (text, "t.yaml", NULL, &error);
  g_assert_no_error (error);
  return root;
}

static void
assert_refused (const char *text, GQuark domain, int code, const char *words)
{
  g_autoptr (RnNode) root = load (text);
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;
  g_assert_false (rn_run_config_parse (root, &config, &error));
  g_assert_error (error, domain, code);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, words));
  g_assert_true (g_str_has_prefix (error->message, "t.yaml:"));
}

static void
test_values (void)
{
  g_autoptr (RnNode) root =
      load ("seed: 7\n"
            "threads: 3\n"
            "work_dir: out\n"
            "memory: {fold_frozen_bn: false, inplace: false, workspace_limit: 64MiB, plan_cache: 2}\n"
            "backend: {forbid: \"cpu:*\"}\n"
            "optimizer: {type: SGD}\n");
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;
  rn_run_config_parse (root, &config, &error);
  g_assert_no_error (error);
  g_assert_cmpint (config.seed, ==, 7);
  g_assert_cmpint (config.threads, ==, 3);
  g_assert_cmpstr (config.work_dir, ==, "out");
  g_assert_cmpstr (config.device, ==, "cpu");
  g_assert_cmpint (config.memory.fold_frozen_bn, ==, RN_FOLD_FALSE);
  g_assert_false (config.memory.inplace);
  g_assert_cmpuint (config.memory.workspace_bytes, ==, 64 << 20);
  g_assert_cmpint (config.memory.plan_cache, ==, 2);
  g_assert_null (config.backend.prefer);
  g_assert_cmpuint (g_strv_length (config.backend.forbid), ==, 1);
  g_assert_true (config.optimizer == rn_node_get (root, "optimizer"));
  g_assert_null (config.model);
}

static void
test_bytes (void)
{
  g_autoptr (RnNode) root = load ("memory: {workspace_limit: 67108864}\n");
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;
  rn_run_config_parse (root, &config, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (config.memory.workspace_bytes, ==, 64 << 20);
}

static void
test_defaults (void)
{
  g_autoptr (RnNode) root = load ("x_mine: {anything: [1, 2]}\n");
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;
  rn_run_config_parse (root, &config, &error);
  g_assert_no_error (error);
  g_assert_cmpint (config.seed, ==, 0);
  g_assert_cmpint (config.threads, ==, g_get_num_processors ());
  g_assert_cmpint (config.memory.fold_frozen_bn, ==, RN_FOLD_AUTO);
  g_assert_true (config.memory.inplace);
  g_assert_cmpuint (config.memory.workspace_bytes, ==, 0);
  g_assert_null (config.work_dir);
}

static void
test_neutral (void)
{
  g_autoptr (RnNode) root = load ("fp16: null\n"
                                  "plugins: []\n"
                                  "load_from: null\n"
                                  "auto_scale_lr: {enable: false, base_batch_size: 16}\n"
                                  "model: {backbone: {with_cp: false}}\n"
                                  "memory: {recompute: none, budget: null, offload: false}\n"
                                  "workflow: [[train, 1]]\n"
                                  "device: cpu\n");
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;
  rn_run_config_parse (root, &config, &error);
  g_assert_no_error (error);
}

static void
test_wrong (void)
{
  assert_refused ("optimiser: {type: SGD}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "optimizer");
  assert_refused ("memory: {inplce: true}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "inplace");
  assert_refused ("memory: {workspace_limit: much}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                  "workspace_limit");
  assert_refused ("memory: {workspace_limit: -1}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "above 0");
  assert_refused ("memory: {workspace_limit: [1]}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "above 0");
  assert_refused ("memory: {head: depth}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "depth_first");
  assert_refused ("memory: {offload: idle}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "idle>16");
  assert_refused ("memory: {offload: idle>0}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "idle>16");
  assert_refused ("memory: {recompute: all}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "bn_relu, frozen");
  assert_refused ("memory: {budget: plenty}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "budget");
  assert_refused ("memory: {budget: 0}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "above 0");
  assert_refused ("memory: {pinned_limit: [1]}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "1GiB");
  assert_refused ("seed: -1\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "seed");
  assert_refused ("workflow: [[val, 1]]\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "[[train, 1], [val, 1]]");
  assert_refused ("workflow: train\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "[[train, 1]]");
  assert_refused ("workflow: [[train]]\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "[train, 1]");
  assert_refused ("device: gpu\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "no device \"gpu\"");
  assert_refused ("device: cuda:x\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "no device \"cuda:x\"");

  assert_refused ("device: cudo\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "did you mean \"cuda\"?");
  assert_refused ("device: [cuda]\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "needs cpu, cuda, cuda:N");
  assert_refused ("device: {tf32: true}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "device: {type: cuda}");
  assert_refused ("device: {type: cuda, tf23: true}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY,
                  "did you mean \"tf32\"?");
  assert_refused ("device_options: {layuot: nhwc}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY,
                  "did you mean \"layout\"?");
  assert_refused ("device_options: {layout: nhcw}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "nhwc");
  assert_refused ("device: {type: cuda, tf32: true}\ndevice_options: {tf32: true}\n", RN_CONFIG_ERROR,
                  RN_CONFIG_ERROR_VALUE, "leave one out");
}

static void
assert_device (const char *text, const char *name, int ordinal, gboolean tf32, int layout)
{
  g_autoptr (RnNode) root = load (text);
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;

  rn_run_config_parse (root, &config, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (config.device, ==, name);
  g_assert_cmpint (rn_device_ordinal (config.device), ==, ordinal);
  g_assert_cmpint (config.device_options.tf32, ==, tf32);
  g_assert_cmpint (config.device_options.layout, ==, layout);
}

/* A name, or a map; what the map does not have is of device_options. */
static void
test_device (void)
{
  assert_device ("seed: 1\n", "cpu", 0, FALSE, 0);
  assert_device ("device: null\n", "cpu", 0, FALSE, 0);
  assert_device ("device: cuda:1\n", "cuda:1", 1, FALSE, 0);
  assert_device ("device: cuda\ndevice_options: {tf32: true, layout: nchw}\n", "cuda", 0, TRUE, 2);
  assert_device ("device: {type: cuda:2, tf32: true, layout: nhwc}\n", "cuda:2", 2, TRUE, 1);
  assert_device ("device: {type: cuda, layout: nchw}\ndevice_options: {tf32: true}\n", "cuda", 0, TRUE, 2);
}

/* What a run computes in, and the optimizer hook that it gets. */
static void
test_fp16 (void)
{
  static const struct
  {
    const char *text, *precision, *type;
    double scale; /* NAN: there is none in the hook's map */
  } cases[] = {
    { "fp16: null\n", "fp32", NULL, NAN },
    { "fp16: {}\n", "fp16 O1", "Fp16OptimizerHook", NAN }, /* with the defaults, as in MMDetection */
    { "fp16: {loss_scale: 64}\n", "fp16 O1", "Fp16OptimizerHook", 64 },
    { "fp16: {opt_level: O2}\noptimizer_config: {type: OptimizerHook}\n", "fp16 O2", "Fp16OptimizerHook",
      NAN },
    { "fp16: {loss_scale: 8}\noptimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: "
      "2}\n",
      "fp16 O1", "GradientCumulativeFp16OptimizerHook", 8 },
    { "fp16: {loss_scale: 8}\ncustom_hooks: [{type: EmptyCacheHook}, {type: OptimizerHook}]\n", "fp16 O1",
      "Fp16OptimizerHook", 8 },
    { "optimizer_config: {type: Fp16OptimizerHook, loss_scale: 4}\n", "fp16 O1", "Fp16OptimizerHook", 4 },
    { "fp16: {opt_level: O0, loss_scale: 4}\n", "fp32", "Fp16OptimizerHook", 4 },
    { "fp16: {dtype: bf16}\noptimizer_config: {type: OptimizerHook}\n", "bf16 O1", "OptimizerHook", NAN },
    { "fp16: {dtype: bfloat16, loss_scale: 1}\noptimizer_config: {type: MyOptimizerHook}\n", "bf16 O1",
      "MyOptimizerHook", NAN },
    { "fp16: {dtype: bf16}\noptimizer_config: {type: Fp16OptimizerHook}\n", "bf16 O1", "Fp16OptimizerHook",
      1 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnNode) root = load (cases[i].text);
      g_auto (RnRunConfig) config = { 0 };
      g_autoptr (GError) error = NULL;
      rn_run_config_parse (root, &config, &error);
      g_assert_no_error (error);
      g_assert_cmpstr (rn_fp16_describe (&config.fp16), ==, cases[i].precision);
      const RnNode *hook = rn_optimizer_hook_config (&config);
      g_assert_true ((hook == NULL) == (cases[i].type == NULL));
      if (hook == NULL)
        continue;
      g_assert_cmpstr (rn_node_as_string (rn_node_get (hook, "type")), ==, cases[i].type);
      const RnNode *scale = rn_node_get (hook, "loss_scale");
      g_assert_true ((scale == NULL) == !!isnan (cases[i].scale));
      if (scale != NULL)
        g_assert_cmpfloat (rn_node_as_float (scale), ==, cases[i].scale);
    }
  assert_refused ("fp16: {loss_scale: 8}\noptimizer_config: {type: MyOptimizerHook}\n", RN_CONFIG_ERROR,
                  RN_CONFIG_ERROR_VALUE, "cannot be given");
  assert_refused ("fp16: 3\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "needs a map");
  assert_refused ("fp16: {dtype: int8}\n", RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "bf16");
}

/* What other programs call it, what belongs further down, and what was misspelt. */
static void
test_hints (void)
{
  static const struct
  {
    const char *text, *words;
  } cases[] = {
    { "batch_size: 2\n", "data.samples_per_gpu" },
    { "lr: 0.1\n", "optimizer.lr" },
    { "param_scheduler: []\n", "lr_config (the key is MMDetection 3's)" },
    { "default_scope: mmdet\n", "leave it out" },
    { "model: {neck: {out_channels: 2}}\nout_channels: 3\n", "did you mean model.neck.out_channels" },
    { "x_a: {b: [{inner_key: 2}]}\ninner_key: 3\n", "did you mean x_a.b.0.inner_key" },
    { "accumulative_counts: 4\n", "GradientCumulativeOptimizerHook" },
    { "optimizer_config: {cumulative_iters: 4}\n", "type: GradientCumulativeOptimizerHook" },
    { "optimizer_config: {loss_scale: 512}\n", "type: Fp16OptimizerHook" },
    { "optimzer: {}\n", "did you mean \"optimizer\"?" },
    { "zzz: 1\n", "there are: model, data" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_refused (cases[i].text, RN_CONFIG_ERROR,
                    strstr (cases[i].words, "there are") != NULL || strstr (cases[i].words, "\"?") != NULL
                        ? RN_CONFIG_ERROR_KEY
                        : RN_CONFIG_ERROR_VALUE,
                    cases[i].words);
}

/* Keys of MMDetection's files that mean nothing here: accepted, and said to be unused. */
static void
test_unused (void)
{
  g_autoptr (RnNode) root = load ("dist_params: {backend: nccl}\n");
  g_auto (RnRunConfig) config = { 0 };
  g_autoptr (GError) error = NULL;
  g_test_expect_message ("rn-config", G_LOG_LEVEL_MESSAGE, "*dist_params*not used*");
  rn_run_config_parse (root, &config, &error);
  g_test_assert_expected_messages ();
  g_assert_no_error (error);
}

static void
test_training (void)
{
  static const struct
  {
    const char *text;
    const char *words; /* NULL: may train */
  } cases[] = {
    { "model: {backbone: {frozen_stages: -1, init_cfg: null}}\n", NULL },
    { "model: {backbone: {frozen_stages: -1}}\n", NULL },
    { "model: {backbone: {frozen_stages: 1, init_cfg: {type: Pretrained, checkpoint: a.pth}}}\n", NULL },
    { "model: {init_cfg: {type: Pretrained, checkpoint: a.pth}, backbone: {frozen_stages: 1}}\n", NULL },
    { "model: {backbone: {frozen_stages: 1}}\nload_from: a.pth\n", NULL },
    { "model: {neck: {init_cfg: {type: Pretrained, checkpoint: a.pth}}}\n", "model.neck.init_cfg: null" },
    { "model: {backbone: {frozen_stages: 1, init_cfg: null}}\nload_from: null\n",
      "model.backbone.frozen_stages=-1" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnNode) root = load (cases[i].text);
      g_autoptr (GError) error = NULL;
      gboolean ok = rn_run_config_check_training (root, FALSE, &error);
      g_assert_cmpint (ok, ==, cases[i].words == NULL);
      if (ok)
        continue;
      g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
      g_assert_nonnull (strstr (error->message, cases[i].words));
      g_test_message ("%s", error->message);
    }
  /* The weights of a resumed run come from its checkpoint. */
  g_autoptr (RnNode) root = load ("model: {backbone: {frozen_stages: 1, init_cfg: null}}\n");
  g_assert_true (rn_run_config_check_training (root, TRUE, NULL));
}

static void
test_need (void)
{
  g_autoptr (RnNode) root = load ("model: {type: RetinaNet}\n"
                                  "data: null\n");
  g_autoptr (GError) error = NULL;
  g_assert_nonnull (rn_run_config_need (root, "model", &error));
  g_assert_no_error (error);
  g_assert_null (rn_run_config_need (root, "data", &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/run-config/values", test_values);
  g_test_add_func ("/run-config/bytes", test_bytes);
  g_test_add_func ("/run-config/defaults", test_defaults);
  g_test_add_func ("/run-config/neutral", test_neutral);
  g_test_add_func ("/run-config/fp16", test_fp16);
  g_test_add_func ("/run-config/wrong", test_wrong);
  g_test_add_func ("/run-config/device", test_device);
  g_test_add_func ("/run-config/hints", test_hints);
  g_test_add_func ("/run-config/unused", test_unused);
  g_test_add_func ("/run-config/training", test_training);
  g_test_add_func ("/run-config/need", test_need);
  return g_test_run ();
}
