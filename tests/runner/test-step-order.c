/*
 * test-step-order.c: a small RetinaNet whose head is run depth-first and whose parameters are stepped in the
 * backward program, alone and together, against the plain step: the same bits, less memory. On the CPU
 * device, in the checking mode.
 */
#include "config.h"

#include "runner/programs.h"
#include "runner/random-batch.h"
#include "tests/models/fixture.h"
#include "tests/small-model.h"

#include <string.h>

#define N_STEPS 3

enum
{
  N = 2,
  HEIGHT = 64,
  WIDTH = 64
};

static const char *const learned_norm[] = {
  "model.backbone.depth=18",
  "model.backbone.frozen_stages=1",
  "model.backbone.norm_eval=false",
  "model.backbone.init_cfg=null",
  SMALL_MODEL,
  "model.bbox_head.num_classes=3",
  "model.bbox_head.stacked_convs=2",
  NULL,
};

/* ---- Programs ---- */

typedef struct
{
  RnDevice *device;
  Fixture model;
  RnBatch *batch;
} Net;

static void
net_init (Net *net)
{
  g_autoptr (GError) error = NULL;

  fixture_init (&net->model, learned_norm);
  net->device = rn_device_new_cpu (1, &error);
  g_assert_no_error (error);
  net->batch = rn_random_batch_new (net->model.model, N, HEIGHT, WIDTH, 3, 1, &error);
  g_assert_no_error (error);
}

static void
net_clear (Net *net)
{
  rn_random_batch_free (net->batch);
  fixture_clear (&net->model);
  rn_device_free (net->device);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Net, net_clear)

typedef struct
{
  const char *name;
  RnUpdateRule rule;
  gboolean ema;
} Case;

static const Case cases[] = {
  { "sgd", { .weight_decay = 1e-2 }, FALSE },
  { "momentum", { .momentum = TRUE, .weight_decay = 1e-2, .dampening = 0.1 }, TRUE },
  { "nesterov", { .momentum = TRUE, .nesterov = TRUE, .weight_decay = 1e-2 }, FALSE },
  { "adamw",
    { .kind = RN_UPDATE_ADAM,
      .beta2 = 0.99,
      .eps = 1e-8,
      .weight_decay = 1e-2,
      .decoupled = TRUE,
      .amsgrad = TRUE },
    TRUE },
};

#define CHECKED 1 /* the case that is run in the checking mode, which is slow */

/* Norms have no weight decay, and the head a rate of its own. */
static void
set_multipliers (RnPrograms *programs)
{
  const RnParamSet *params = rn_programs_params (programs);

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      rn_programs_set_multipliers (
          programs, i,
          (RnParamMultipliers){ g_str_has_prefix (param->name, "bbox_head") ? 0.5 : 1,
                                param->is_norm ? 0 : 1 });
    }
}

/* Not planned. */
static RnPrograms *
programs_open (const Net *net, const Case *c, RnHeadOrder head, gboolean in_backward, int height, int width)
{
  g_autoptr (GError) error = NULL;
  const RnShape shape = { RN_MODE_TRAIN, N, height, width };
  RnProgramsOptions options = {
    .training = TRUE,
    .rule = c->rule,
    .ema = c->ema,
    .update_in_backward = in_backward,
    .passes = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = net->device->cblk, .head = head },
    .plan_cache = 2,
    .check = c == &cases[CHECKED],
  };
  RnPrograms *programs = rn_programs_new (net->model.model, net->device, &options, &shape, 1, &error);

  g_assert_no_error (error);
  set_multipliers (programs);
  return programs;
}

static RnPrograms *
programs_new (const Net *net, const Case *c, RnHeadOrder head, gboolean in_backward)
{
  g_autoptr (GError) error = NULL;
  RnPrograms *programs = programs_open (net, c, head, in_backward, HEIGHT, WIDTH);

  g_assert_true (rn_programs_reserve (programs, &error));
  g_assert_true (rn_param_set_init (rn_programs_params (programs), 7, &error));
  g_assert_no_error (error);
  return programs;
}

/* ---- Steps ---- */

static void
train (const Net *net, RnPrograms *programs, const Case *c, gboolean in_backward, int i)
{
  g_autoptr (GError) error = NULL;
  const double *lr_mults, rate = 0.02 / (i + 1);
  guint n_groups = rn_programs_groups (programs, &lr_mults);
  double lrs[2];

  g_assert_cmpuint (n_groups, ==, 2);
  for (guint k = 0; k < n_groups; k++)
    lrs[k] = rate * lr_mults[k];
  const RnUpdate update = {
    .lrs = lrs, .momentum = 0.9, .grad_multiplier = 0.5, .clip_value = 0.05, .n_steps = i
  };
  gboolean is_ok = rn_programs_zero_grads (programs, &error)
                   && rn_programs_forward (programs, net->batch, RN_MODE_TRAIN, 2, &error);
  g_assert_no_error (error);
  if (in_backward)
    is_ok = is_ok && rn_programs_backward_update (programs, &update, &error);
  else
    is_ok =
        is_ok && rn_programs_backward (programs, &error) && rn_programs_update (programs, &update, &error);
  g_assert_no_error (error);
  if (c->ema)
    is_ok = is_ok && rn_programs_update_ema (programs, i == 0 ? 1 : 0.25, TRUE, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

static void
assert_same (const void *a, const void *b, gsize bytes)
{
  g_assert_true (memcmp (a, b, bytes) == 0);
}

static void
assert_same_programs (RnPrograms *a, RnPrograms *b, const Case *c)
{
  const RnParamSet *x = rn_programs_params (a), *y = rn_programs_params (b);
  const char *names[RN_PARAM_MAX_STATES];
  gsize bytes = rn_param_set_value_bytes (x);
  float losses[] = { rn_programs_loss (a, "loss"), rn_programs_loss (b, "loss") };

  assert_same (&losses[0], &losses[1], sizeof losses[0]);
  assert_same (rn_param_set_all_values (x), rn_param_set_all_values (y), bytes);
  if (c->ema)
    assert_same (rn_param_set_all_ema (x), rn_param_set_all_ema (y), bytes);
  for (int k = 0; k < rn_update_rule_states (&c->rule, names); k++)
    for (int i = 0; i < rn_param_set_size (x); i++)
      if (rn_param_set_get (x, i)->trainable)
        assert_same (rn_param_set_state (x, k, i), rn_param_set_state (y, k, i),
                     rn_desc_bytes (&rn_param_set_get (x, i)->desc));
}

static void
test_bits (gconstpointer data)
{
  const Case *c = data;
  g_auto (Net) net = { 0 };
  net_init (&net);
  g_autoptr (RnPrograms) plain = programs_new (&net, c, RN_HEAD_ALL_LEVELS, FALSE);
  g_autofree void *start = g_memdup2 (rn_param_set_all_values (rn_programs_params (plain)),
                                      rn_param_set_value_bytes (rn_programs_params (plain)));

  for (int i = 0; i < N_STEPS; i++)
    train (&net, plain, c, FALSE, i);
  g_assert_true (memcmp (start, rn_param_set_all_values (rn_programs_params (plain)),
                         rn_param_set_value_bytes (rn_programs_params (plain)))
                 != 0);
  for (int kind = 1; kind < 4; kind++) /* depth-first, in backward, both */
    {
      gboolean in_backward = kind >= 2;
      g_autoptr (RnPrograms) other =
          programs_new (&net, c, kind & 1 ? RN_HEAD_DEPTH_FIRST : RN_HEAD_ALL_LEVELS, in_backward);
      for (int i = 0; i < N_STEPS; i++)
        train (&net, other, c, in_backward, i);
      assert_same_programs (other, plain, c);
      if (c != &cases[CHECKED])
        continue;
      /* what was written is what was planned; the highest buffer may end in bytes of padding */
      RnMemory memory = rn_programs_memory (other);
      g_assert_cmpuint (rn_programs_highest_byte (other), <=, memory.arena_bytes);
      g_assert_cmpuint (memory.arena_bytes - rn_programs_highest_byte (other), <, RN_ARENA_ALIGNMENT);
    }
}

/* What is planned for images that are large against the weights; *@head_peak: bytes alive at an op of the
 * head, at most. The arena is that of a workspace in the backbone here. */
static RnMemory
plan_large (const Net *net, RnHeadOrder head, gboolean in_backward, gsize *head_peak)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnPrograms) programs = programs_open (net, &cases[CHECKED], head, in_backward, 384, 512);

  g_assert_true (rn_programs_plan (programs, NULL, NULL, &error));
  g_assert_no_error (error);
  RnMemory memory = rn_programs_memory (programs);
  const RnPlan *plan = rn_programs_get_plan (programs, memory.worst, &error);
  *head_peak = 0;
  for (int i = 0; i < (int) plan->graph->ops->len; i++)
    if (rn_graph_op (plan->graph, i)->group >= 0)
      *head_peak = MAX (*head_peak, rn_plan_live_bytes (plan, i));
  return memory;
}

/* No array of gradients: what is left of them in the arena is less. */
static void
test_memory (void)
{
  g_auto (Net) net = { 0 };
  gsize plain_peak, deep_peak, fused_peak, both_peak;
  net_init (&net);
  RnMemory plain = plan_large (&net, RN_HEAD_ALL_LEVELS, FALSE, &plain_peak);
  RnMemory deep = plan_large (&net, RN_HEAD_DEPTH_FIRST, FALSE, &deep_peak);
  RnMemory fused = plan_large (&net, RN_HEAD_ALL_LEVELS, TRUE, &fused_peak);
  RnMemory both = plan_large (&net, RN_HEAD_DEPTH_FIRST, TRUE, &both_peak);
  g_autoptr (RnPrograms) small = programs_new (&net, &cases[CHECKED], RN_HEAD_DEPTH_FIRST, TRUE);

  g_assert_cmpuint (deep_peak, <, plain_peak);
  g_assert_cmpuint (both_peak, <, fused_peak);
  g_assert_cmpuint (deep.total_bytes, <=, plain.total_bytes);
  g_assert_cmpuint (deep.grad_bytes, ==, plain.grad_bytes);
  g_assert_cmpuint (fused.grad_bytes, ==, 0);
  g_assert_cmpuint (fused.state_bytes, ==, plain.grad_bytes);
  g_assert_cmpuint (fused.total_bytes, <, plain.total_bytes);
  g_assert_cmpuint (both.total_bytes, <, deep.total_bytes);
  g_assert_cmpuint (both.total_bytes, ==,
                    both.param_bytes + both.state_bytes + both.ema_bytes + both.arena_bytes);
  g_assert_null (rn_param_set_all_grads (rn_programs_params (small)));
}

/* A search for what is not finite runs the forward pass again: the head's gradients are not added twice. */
static void
test_second_look (void)
{
  g_auto (Net) net = { 0 };
  g_autoptr (GError) error = NULL;
  g_autofree char *where = NULL;
  net_init (&net);
  g_autoptr (RnPrograms) programs = programs_new (&net, &cases[CHECKED], RN_HEAD_DEPTH_FIRST, FALSE);
  const RnParamSet *params = rn_programs_params (programs);
  gsize bytes = rn_param_set_grad_bytes (params);

  g_assert_true (rn_programs_forward (programs, net.batch, RN_MODE_TRAIN, 1, &error));
  g_assert_no_error (error);
  g_autofree void *grads = g_memdup2 (rn_param_set_all_grads (params), bytes);
  const float *head = rn_param_set_grad (params, rn_param_set_find (params, "bbox_head.retina_cls.bias"));
  g_assert_cmpfloat (head[0], !=, 0);
  g_assert_true (rn_programs_find_non_finite (programs, net.batch, &where, &error));
  g_assert_no_error (error);
  g_assert_null (where);
  assert_same (grads, rn_param_set_all_grads (params), bytes);
}

/* Validation has no backward part, and leaves gradients alone. */
static void
test_validation (void)
{
  g_auto (Net) net = { 0 };
  g_autoptr (GError) error = NULL;
  net_init (&net);
  g_autoptr (RnPrograms) programs = programs_new (&net, &cases[0], RN_HEAD_DEPTH_FIRST, FALSE);
  const RnPlan *plan = rn_programs_get_plan (programs, (RnShape){ RN_MODE_LOSS, N, HEIGHT, WIDTH }, &error);

  g_assert_no_error (error);
  g_assert_cmpint (plan->graph->turn, ==, (int) plan->graph->ops->len);
  for (int i = 0; i < plan->graph->turn; i++)
    g_assert_cmpint (rn_graph_op (plan->graph, i)->phase, ==, RN_PHASE_FORWARD);
}

/* `detect_anomalous_params` finds none, though each gradient has an op that clears it. */
static void
test_facts (void)
{
  g_auto (Net) net = { 0 };
  g_autoptr (GError) error = NULL;
  RnStepFacts facts;
  net_init (&net);
  g_autoptr (RnPrograms) programs = programs_new (&net, &cases[CHECKED], RN_HEAD_DEPTH_FIRST, TRUE);

  g_assert_true (rn_programs_describe_step (programs, &facts, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (facts.unreached_params), ==, 0);
  g_assert_true (facts.has_live_batch_norm);
  g_strfreev (facts.unreached_params);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/runner/step-order/bits/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_bits);
    }
  g_test_add_func ("/runner/step-order/memory", test_memory);
  g_test_add_func ("/runner/step-order/second-look", test_second_look);
  g_test_add_func ("/runner/step-order/validation", test_validation);
  g_test_add_func ("/runner/step-order/facts", test_facts);
  return g_test_run ();
}
