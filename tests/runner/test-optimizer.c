/* The `optimizer:` map, and MMCV's rules of paramwise_cfg. */
#include "config.h"

#include "runner/optimizer.h"

#include "runner/config/config.h"

static RnOptimizer *
make (const char *yaml, RnNode **node, GError **error)
{
  *node = rn_config_load_text (yaml, "test.yaml", NULL, error);
  return *node != NULL ? rn_optimizer_new (*node, error) : NULL;
}

static void
test_sgd (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) node = NULL;
  g_autoptr (RnOptimizer) optimizer =
      make ("{type: SGD, lr: 0.01, momentum: 0.9, weight_decay: 1e-4, nesterov: true}", &node, &error);

  g_assert_no_error (error);
  g_assert_cmpfloat (rn_optimizer_lr (optimizer), ==, 0.01);
  g_assert_cmpfloat (rn_optimizer_momentum (optimizer), ==, 0.9);
  RnUpdateRule rule = rn_optimizer_rule (optimizer);
  g_assert_true (rule.momentum && rule.nesterov);
  g_assert_cmpfloat (rule.weight_decay, ==, 1e-4);
  g_assert_cmpfloat (rule.dampening, ==, 0);
  RnParamMultipliers m =
      rn_optimizer_multipliers (optimizer, &(RnParam){ .name = (char *) "a.bias", .is_bias = TRUE });
  g_assert_cmpfloat (m.lr_mult, ==, 1);
  g_assert_cmpfloat (m.decay_mult, ==, 1);
}

static void
test_adam (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) node = NULL, other = NULL;
  g_autoptr (RnOptimizer) adam = make ("{type: Adam}", &node, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (rn_optimizer_lr (adam), ==, 1e-3);
  g_assert_cmpfloat (rn_optimizer_momentum (adam), ==, 0.9);
  RnUpdateRule rule = rn_optimizer_rule (adam);
  g_assert_true (rule.kind == RN_UPDATE_ADAM && !rule.decoupled && !rule.amsgrad);
  g_assert_cmpfloat (rule.beta2, ==, 0.999);
  g_assert_cmpfloat (rule.eps, ==, 1e-8);
  g_assert_cmpfloat (rule.weight_decay, ==, 0);

  g_autoptr (RnOptimizer) adamw =
      make ("{type: AdamW, lr: 1e-4, betas: [0.8, 0.99], eps: 1e-6, amsgrad: true, paramwise_cfg: "
            "{norm_decay_mult: 0}}",
            &other, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (rn_optimizer_lr (adamw), ==, 1e-4);
  g_assert_cmpfloat (rn_optimizer_momentum (adamw), ==, 0.8);
  rule = rn_optimizer_rule (adamw);
  g_assert_true (rule.kind == RN_UPDATE_ADAM && rule.decoupled && rule.amsgrad);
  g_assert_cmpfloat (rule.beta2, ==, 0.99);
  g_assert_cmpfloat (rule.eps, ==, 1e-6);
  g_assert_cmpfloat (rule.weight_decay, ==, 0.01);
  const RnParam norm = { .name = (char *) "bn.weight", .is_norm = TRUE };
  g_assert_cmpfloat (rn_optimizer_multipliers (adamw, &norm).decay_mult, ==, 0);
}

/* As torch.optim calls them in its state. */
static void
test_states (void)
{
  static const struct
  {
    const char *config, *names;
  } rows[] = {
    { "{type: SGD, lr: 1}", "" },
    { "{type: SGD, lr: 1, momentum: 0.9}", "momentum" },
    { "{type: Adam}", "exp_avg exp_avg_sq" },
    { "{type: AdamW, amsgrad: true}", "exp_avg exp_avg_sq max_exp_avg_sq" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) node = NULL;
      g_autoptr (RnOptimizer) optimizer = make (rows[i].config, &node, &error);
      const char *names[RN_PARAM_MAX_STATES + 1];
      g_assert_no_error (error);
      RnUpdateRule rule = rn_optimizer_rule (optimizer);
      names[rn_update_rule_states (&rule, names)] = NULL;
      g_autofree char *text = g_strjoinv (" ", (char **) names);
      g_assert_cmpstr (text, ==, rows[i].names);
    }
}

static void
test_refused (void)
{
  static const char *const bad[] = { "{type: SGD}",
                                     "{type: Adam, betas: [0.9]}",
                                     "{type: Adam, betas: [0.9, 1]}",
                                     "{type: Adam, betas: [-0.1, 0.9]}",
                                     "{type: AdamW, momentum: 0.9}",
                                     "{type: Adam, eps: -1}",
                                     "{type: Adamm, lr: 1}",
                                     "{type: SGD, lr: -1}",
                                     "{type: SGD, lr: 1, momentun: 0.9}",
                                     "{type: SGD, lr: 1, nesterov: true}",
                                     "{type: SGD, lr: 1, momentum: 0.9, dampening: 0.1, nesterov: true}",
                                     "{type: SGD, lr: 1, paramwise_cfg: {custom_keys: [a]}}",
                                     "{type: SGD, lr: 1, paramwise_cfg: {custom_keys: {a: {lr: 2}}}}" };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) node = NULL;
      g_assert_null (make (bad[i], &node, &error));
      g_assert_true (g_str_has_prefix (error->message, "test.yaml:1:"));
    }
}

typedef struct
{
  const char *name;
  gboolean is_norm, is_bias;
  double lr_mult, decay_mult;
} Row;

/* DefaultOptimizerConstructor of MMCV 1.x: the longest key wins, then the alphabet; a key puts the other
 * rules out of force. */
static void
test_paramwise (void)
{
  static const Row rows[] = {
    { "neck.conv.weight", FALSE, FALSE, 1, 1 },
    { "neck.conv.bias", FALSE, TRUE, 2, 0 },
    { "neck.bn.weight", TRUE, FALSE, 1, 0.5f },
    { "neck.bn.bias", TRUE, TRUE, 1, 0.5f }, /* the bias rules spare norm layers */
    { "backbone.conv.weight", FALSE, FALSE, 0.1, 1 },
    { "backbone.conv.bias", FALSE, TRUE, 0.1, 1 },
    { "backbone.layer1.bn.weight", TRUE, FALSE, 0.25f, 3 },
    { "head.aa.zz", FALSE, FALSE, 4, 1 },
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) node = NULL;
  g_autoptr (RnOptimizer) optimizer =
      make ("type: SGD\nlr: 1\nparamwise_cfg:\n"
            "  bias_lr_mult: 2\n  bias_decay_mult: 0\n  norm_decay_mult: 0.5\n  bypass_duplicate: true\n"
            "  custom_keys: {backbone: {lr_mult: 0.1}, backbone.layer1: {lr_mult: 0.25, decay_mult: 3}, zz: "
            "{lr_mult: 5}, aa: {lr_mult: 4}}\n",
            &node, &error);

  g_assert_no_error (error);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      RnParam param = { .name = (char *) rows[i].name,
                        .is_norm = rows[i].is_norm,
                        .is_bias = rows[i].is_bias };
      RnParamMultipliers m = rn_optimizer_multipliers (optimizer, &param);
      g_assert_cmpfloat (m.lr_mult, ==, rows[i].lr_mult);
      g_assert_cmpfloat (m.decay_mult, ==, rows[i].decay_mult);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/runner/optimizer/sgd", test_sgd);
  g_test_add_func ("/runner/optimizer/adam", test_adam);
  g_test_add_func ("/runner/optimizer/states", test_states);
  g_test_add_func ("/runner/optimizer/refused", test_refused);
  g_test_add_func ("/runner/optimizer/paramwise", test_paramwise);
  return g_test_run ();
}
