/*
 * test-host-memory.c: a small RetinaNet of which tensors and the optimizer's state wait in host memory, alone
 * and with other strategies: the same bits as the plain step, less memory on the device. On the CPU device,
 * in the checking mode. And what is given back to the system when a small shape follows a large one.
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
  SIZE = 64,
  LARGE = 128
};

static const char *const learned_norm[] = {
  "model.backbone.depth=18",
  "model.backbone.frozen_stages=1",
  "model.backbone.norm_eval=false",
  "model.backbone.init_cfg=null",
  SMALL_MODEL,
  "model.bbox_head.num_classes=3",
  "model.bbox_head.stacked_convs=1",
  NULL,
};

typedef struct
{
  RnDevice *device;
  Fixture model;
  RnBatch *batches[2]; /* SIZE, LARGE */
} Net;

static void
net_init (Net *net)
{
  static const int sizes[] = { SIZE, LARGE };
  g_autoptr (GError) error = NULL;

  fixture_init (&net->model, learned_norm);
  net->device = rn_device_new_cpu (1, &error);
  g_assert_no_error (error);
  for (int i = 0; i < 2; i++)
    {
      net->batches[i] = rn_random_batch_new (net->model.model, N, sizes[i], sizes[i], 3, 1, &error);
      g_assert_no_error (error);
    }
}

static void
net_clear (Net *net)
{
  for (int i = 0; i < 2; i++)
    rn_random_batch_free (net->batches[i]);
  fixture_clear (&net->model);
  rn_device_free (net->device);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Net, net_clear)

/* ---- Runs ---- */

typedef struct
{
  const char *name;
  RnOffloadOptions offload;
  RnMomentumForm momentum;
  RnHeadOrder head;
  gboolean in_backward;
} Case;

static const RnUpdateRule rules[] = {
  { .kind = RN_UPDATE_SGD, .momentum = TRUE, .weight_decay = 1e-2 },
  { .kind = RN_UPDATE_ADAM, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 1e-2, .amsgrad = TRUE },
};

static RnPrograms *
programs_new (const Net *net, const RnUpdateRule *rule, const Case *c)
{
  g_autoptr (GError) error = NULL;
  const RnShape shapes[] = { { RN_MODE_TRAIN, N, LARGE, LARGE }, { RN_MODE_TRAIN, N, SIZE, SIZE } };
  RnProgramsOptions options = {
    .training = TRUE,
    .rule = *rule,
    .momentum = c->momentum,
    .update_in_backward = c->in_backward,
    .passes = { .fold_frozen_bn = TRUE,
                .inplace = TRUE,
                .cblk = net->device->cblk,
                .head = c->head,
                .offload = c->offload },
    .plan_cache = 2,
    .check = TRUE,
  };
  RnPrograms *programs =
      rn_programs_new (net->model.model, net->device, &options, shapes, G_N_ELEMENTS (shapes), &error);

  g_assert_no_error (error);
  g_assert_true (rn_programs_reserve (programs, &error));
  g_assert_true (rn_param_set_init (rn_programs_params (programs), 7, &error));
  g_assert_no_error (error);
  return programs;
}

static void
train (RnPrograms *programs, const RnBatch *batch, gboolean in_backward, int step)
{
  g_autoptr (GError) error = NULL;
  const double lr = 0.01;
  const RnUpdate update = { .lrs = &lr, .momentum = 0.9, .grad_multiplier = 1, .n_steps = step };

  gboolean is_ok = rn_programs_zero_grads (programs, &error)
                   && rn_programs_forward (programs, batch, RN_MODE_TRAIN, 1, &error);
  g_assert_no_error (error);
  if (in_backward)
    is_ok = is_ok && rn_programs_backward_update (programs, &update, &error);
  else
    is_ok = is_ok && rn_programs_backward (programs, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

static void
update (RnPrograms *programs, int step)
{
  g_autoptr (GError) error = NULL;
  const double lr = 0.01;
  const RnUpdate update = { .lrs = &lr, .momentum = 0.9, .grad_multiplier = 1, .n_steps = step };

  g_assert_true (rn_programs_update (programs, &update, &error));
  g_assert_no_error (error);
}

static void
assert_same_states (const RnParamSet *a, const RnParamSet *b, const RnUpdateRule *rule)
{
  const char *names[RN_PARAM_MAX_STATES];

  for (int k = 0; k < rn_update_rule_states (rule, names); k++)
    for (int i = 0; i < rn_param_set_size (a); i++)
      if (rn_param_set_get (a, i)->trainable)
        g_assert_true (memcmp (rn_param_set_state (a, k, i), rn_param_set_state (b, k, i),
                               rn_desc_bytes (&rn_param_set_get (a, i)->desc))
                       == 0);
}

/* ---- The bits ---- */

static const Case plain = { .name = "plain" };

#define IDLE(n)                          \
  {                                      \
    .form = RN_OFFLOAD_IDLE, .idle = (n) \
  }

static const Case cases[] = {
  { "idle-1", IDLE (1), RN_MOMENTUM_FP32, RN_HEAD_ALL_LEVELS, FALSE },
  { "idle-16", IDLE (16), RN_MOMENTUM_FP32, RN_HEAD_ALL_LEVELS, FALSE },
  { "block-outputs", { .form = RN_OFFLOAD_BLOCK_OUTPUTS }, RN_MOMENTUM_FP32, RN_HEAD_ALL_LEVELS, FALSE },
  { "limit",
    { .form = RN_OFFLOAD_IDLE, .idle = 8, .pinned_limit = 1 << 18 },
    RN_MOMENTUM_FP32,
    RN_HEAD_ALL_LEVELS,
    FALSE },
  { "momentum-host", { .form = RN_OFFLOAD_NONE }, RN_MOMENTUM_HOST, RN_HEAD_ALL_LEVELS, FALSE },
  { "all", IDLE (8), RN_MOMENTUM_HOST, RN_HEAD_DEPTH_FIRST, TRUE },
};

/* Losses, gradients, weights, statistics and states over steps of both shapes. */
static void
assert_bits (const Net *net, const RnUpdateRule *rule, const Case *c)
{
  g_autoptr (RnPrograms) want = programs_new (net, rule, &plain), got = programs_new (net, rule, c);
  const RnParamSet *a = rn_programs_params (want), *b = rn_programs_params (got);
  RnMemory before = rn_programs_memory (want), after = rn_programs_memory (got);

  for (int step = 0; step < N_STEPS; step++)
    {
      const RnBatch *batch = net->batches[step % 2];
      train (want, batch, FALSE, step);
      train (got, batch, c->in_backward, step);
      float losses[] = { rn_programs_loss (want, "loss"), rn_programs_loss (got, "loss") };
      g_assert_true (memcmp (&losses[0], &losses[1], sizeof losses[0]) == 0);
      if (!c->in_backward)
        g_assert_true (
            memcmp (rn_param_set_all_grads (a), rn_param_set_all_grads (b), rn_param_set_grad_bytes (a))
            == 0);
      update (want, step);
      if (!c->in_backward)
        update (got, step);
    }
  g_assert_true (
      memcmp (rn_param_set_all_values (a), rn_param_set_all_values (b), rn_param_set_value_bytes (a)) == 0);
  assert_same_states (a, b, rule);

  /* what is written in both arenas is what was planned, but for the bytes of alignment */
  g_assert_cmpuint (rn_programs_highest_byte (got), <=, after.arena_bytes);
  g_assert_cmpuint (rn_programs_highest_byte (got) + RN_ARENA_ALIGNMENT, >, after.arena_bytes);
  g_assert_cmpuint (rn_programs_highest_host_byte (got), <=, after.host_arena_bytes);
  if (c->offload.form != RN_OFFLOAD_NONE)
    {
      g_assert_cmpuint (after.total_bytes, <, before.total_bytes);
      g_assert_cmpuint (rn_programs_highest_host_byte (got) + RN_ARENA_ALIGNMENT, >, after.host_arena_bytes);
      if (c->offload.pinned_limit > 0)
        g_assert_cmpuint (after.host_arena_bytes, <=, c->offload.pinned_limit);
    }
  gboolean is_host = c->momentum == RN_MOMENTUM_HOST;
  g_assert_cmpuint (after.state_bytes, ==, is_host ? 0 : before.state_bytes);
  g_assert_cmpuint (after.host_state_bytes, ==, is_host ? before.state_bytes : 0);
  g_assert_cmpuint (after.host_bytes, ==, after.host_state_bytes + after.host_arena_bytes);
  g_assert_cmpuint (after.total_bytes, ==,
                    after.param_bytes + after.grad_bytes + after.state_bytes + after.arena_bytes);
}

static void
test_bits (gconstpointer data)
{
  g_auto (Net) net = { 0 };

  net_init (&net);
  for (gsize r = 0; r < G_N_ELEMENTS (rules); r++)
    assert_bits (&net, &rules[r], data);
}

/* ---- Giving back ---- */

/* What a large shape took comes free behind a small one, once, and comes back by itself. */
static void
test_trim (void)
{
  g_auto (Net) net = { 0 };
  const Case c = { .name = "trim", .offload = IDLE (16) };
  net_init (&net);
  g_autoptr (RnPrograms) want = programs_new (&net, &rules[0], &c), got = programs_new (&net, &rules[0], &c);
  g_autoptr (GError) error = NULL;
  const RnPlan *small = rn_programs_get_plan (got, (RnShape){ RN_MODE_TRAIN, N, SIZE, SIZE }, &error);
  RnMemory memory = rn_programs_memory (got);
  gsize unused = memory.arena_bytes - small->arena_bytes + memory.host_arena_bytes - small->host_arena_bytes;
  gsize edges = 2 * 2 * 4096; /* at both ends of both arenas, a page may be used or not be whole */

  g_assert_cmpuint (rn_programs_trim (got), ==, 0); /* no program has run */
  for (int step = 0; step < 4; step++)
    {
      const RnBatch *batch = net.batches[step % 2 == 0];
      train (want, batch, FALSE, step);
      train (got, batch, FALSE, step);
      update (want, step);
      update (got, step);
      gsize freed = rn_programs_trim (got);
      if (step % 2 == 0)
        {
          g_assert_cmpuint (freed, <=, edges);
          continue;
        }
      g_assert_cmpuint (freed, <=, unused);
      g_assert_cmpuint (freed + edges, >=, unused);
      g_assert_cmpuint (rn_programs_trim (got), ==, 0);
    }
  const RnParamSet *a = rn_programs_params (want), *b = rn_programs_params (got);
  g_assert_true (
      memcmp (rn_param_set_all_values (a), rn_param_set_all_values (b), rn_param_set_value_bytes (a)) == 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/runner/host-memory/bits/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_bits);
    }
  g_test_add_func ("/runner/host-memory/trim", test_trim);
  return g_test_run ();
}
