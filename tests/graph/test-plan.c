/* test-plan.c: placement, plans, the executor, and the checking mode that compares them with what is really
 * written. */
#include "config.h"

#include "graph/executor.h"
#include "graph/passes.h"
#include "runner/base/rng.h"

#include <string.h>

/* ---- placement ---- */

static gboolean
overlap (const RnBuffer *a, const RnBuffer *b)
{
  return a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->bytes
         && b->offset < a->offset + a->bytes;
}

static void
test_placement_random (void)
{
  enum
  {
    N = 200,
    N_OPS = 100
  };
  for (guint round = 0; round < 20; round++)
    {
      RnBuffer buffers[N];
      RnRng rng;
      rn_rng_init (&rng, 1, RN_STREAM_SYNTH, round, 0);
      memset (buffers, 0, sizeof buffers);
      for (int i = 0; i < N; i++)
        {
          buffers[i].bytes = (gsize) rn_rng_below (&rng, 5000) + 1;
          buffers[i].first = (int) rn_rng_below (&rng, N_OPS);
          buffers[i].last =
              buffers[i].first + (int) rn_rng_below (&rng, (guint64) (N_OPS - buffers[i].first));
        }
      gsize arena = rn_place_buffers (buffers, N);
      for (int i = 0; i < N; i++)
        {
          g_assert_cmpuint (buffers[i].offset % RN_ARENA_ALIGNMENT, ==, 0);
          g_assert_cmpuint (buffers[i].offset + buffers[i].bytes, <=, arena);
          for (int k = 0; k < i; k++)
            g_assert_false (overlap (&buffers[i], &buffers[k]));
        }
    }
}

/* Activations that die in the reverse order of their birth, as in a chain of layers: the live bound is always
 * reached. */
static void
test_placement_nested (void)
{
  enum
  {
    N = 30
  };
  RnBuffer buffers[N];
  memset (buffers, 0, sizeof buffers);
  gsize bound = 0;
  for (int i = 0; i < N; i++)
    {
      buffers[i] = (RnBuffer){ .bytes = (gsize) (64 * (1 + i * 7 % 11)), .first = i, .last = 2 * N - i };
      bound += buffers[i].bytes;
    }
  g_assert_cmpuint (rn_place_buffers (buffers, N), ==, bound);
}

/* Bytes alive at an op, at most. */
static gsize
live_bound (const RnBuffer *buffers, int n, int n_ops)
{
  gsize bound = 0;
  for (int op = 0; op < n_ops; op++)
    {
      gsize live = 0;
      for (int i = 0; i < n; i++)
        if (buffers[i].first <= op && op <= buffers[i].last)
          live += buffers[i].bytes;
      bound = MAX (bound, live);
    }
  return bound;
}

/*
 * Lives as those of a training step: activations of sizes that shrink, kept or recomputed or away for a
 * while, gradients and workspaces that pass by. At most 2 % above the bound, as is asked of real networks.
 */
static void
test_placement_of_steps (void)
{
  enum
  {
    N_LAYERS = 60,
    N_OPS = 4 * N_LAYERS
  };
  for (guint round = 0; round < 20; round++)
    {
      RnBuffer buffers[6 * N_LAYERS];
      int n = 0;
      RnRng rng;
      rn_rng_init (&rng, 2, RN_STREAM_SYNTH, round, 0);
      memset (buffers, 0, sizeof buffers);
      for (int i = 0; i < N_LAYERS; i++)
        {
          gsize bytes = (gsize) (64 * (1 + rn_rng_below (&rng, 3))) << (14 - i / 12 * 2);
          int forward = 2 * i, backward = N_OPS - 1 - 2 * i;
          if (rn_rng_below (&rng, 3) == 0) /* away between its uses */
            {
              buffers[n++] = (RnBuffer){ .bytes = bytes, .first = forward, .last = forward + 3 };
              buffers[n++] = (RnBuffer){ .bytes = bytes, .first = backward - 2, .last = backward };
            }
          else
            buffers[n++] = (RnBuffer){ .bytes = bytes, .first = forward, .last = backward };
          buffers[n++] = (RnBuffer){ .bytes = bytes, .first = MAX (backward - 2, 0), .last = backward };
          buffers[n++] = (RnBuffer){ .bytes = bytes / 4, .first = forward, .last = forward };
          buffers[n++] = (RnBuffer){ .bytes = bytes / 2, .first = backward, .last = backward };
        }
      gsize arena = rn_place_buffers (buffers, n), bound = live_bound (buffers, n, N_OPS);
      g_assert_cmpuint (arena, >=, bound);
      g_assert_cmpfloat ((double) arena, <=, 1.02 * (double) bound);
      for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
          g_assert_false (overlap (&buffers[i], &buffers[k]));
    }
}

static void
test_placement_empty (void)
{
  g_assert_cmpuint (rn_place_buffers (NULL, 0), ==, 0);
}

/* ---- a small detector-like graph ---- */

enum
{
  BATCH = 2,
  SIZE = 8,
  CLASSES = 3
};

/* Two residual convolutions and a focal loss: sharing, keeping and overwriting all happen. */
static RnGraph *
small_graph (RnParamSet *params)
{
  RnInit normal = { RN_INIT_NORMAL, 0, 0.3 }, zero = { RN_INIT_CONSTANT, 0, 0 };
  RnConv2d conv = {
    .out_channels = 4, .kernel = 3, .pad = 1, .bias = TRUE, .weight_init = normal, .bias_init = zero
  };
  RnGraph *graph = rn_graph_new (RN_MODE_TRAIN, params);
  RnValueId x = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, BATCH, 3, SIZE, SIZE, 1));
  RnTensorDesc labels_desc = { RN_I16, 2, { BATCH, SIZE * SIZE, 1, 1 }, 1 };
  RnValueId labels = rn_graph_input (graph, "labels", labels_desc);
  RnValueId avg = rn_graph_input (graph, "avg_factor", rn_desc_vector (RN_F32, 1));
  RnValueId scale = rn_graph_input (graph, "grad_scale", rn_desc_vector (RN_F32, 1));

  conv.name = "conv1";
  RnValueId a = rn_relu (graph, rn_conv2d (graph, x, &conv));
  conv.name = "conv2";
  RnValueId b = rn_relu (graph, rn_add (graph, rn_conv2d (graph, a, &conv), a));
  conv.name = "conv3";
  RnValueId c = rn_relu (graph, rn_add (graph, rn_conv2d (graph, b, &conv), b));
  conv.name = "logits";
  conv.out_channels = CLASSES;
  RnValueId logits = rn_conv2d (graph, c, &conv);
  RnFocalArgs focal = {
    .alpha = 0.25f, .gamma = 2, .weight = 1, .num_classes = CLASSES, .anchors_per_cell = 1
  };
  RnValueId loss = rn_focal_loss (graph, logits, labels, avg, scale, &focal);
  rn_graph_mark_output (graph, loss);
  GError *error = NULL;
  rn_graph_finish_forward (graph, &error);
  g_assert_no_error (error);
  RnPassOptions options = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = 1 };
  rn_passes_run (graph, &options, NULL, NULL, &error);
  g_assert_no_error (error);
  return graph;
}

typedef struct
{
  RnDevice *device;
  RnParamSet *params;
  RnPlan *plan;
  guint8 *arena;
  RnExecutor *executor;
} Fixture;

static void
set_up (Fixture *f, gboolean inplace)
{
  GError *error = NULL;
  f->device = rn_device_new_ref ();
  f->params = rn_param_set_new ();
  f->plan = rn_plan_new (small_graph (f->params), f->device, inplace, &error);
  g_assert_no_error (error);
  rn_param_set_allocate (f->params, f->device, TRUE, FALSE, &error);
  g_assert_no_error (error);
  rn_param_set_init (f->params, 7, &error);
  g_assert_no_error (error);
  f->arena = g_malloc0 (f->plan->arena_bytes);
  f->executor = rn_executor_new (f->plan, f->arena, f->plan->arena_bytes, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f)
{
  rn_executor_free (f->executor);
  rn_plan_free (f->plan);
  rn_param_set_free (f->params);
  rn_device_free (f->device);
  g_free (f->arena);
}

static void *
input (Fixture *f, const char *name)
{
  return rn_executor_address (f->executor, rn_graph_find_value (f->plan->graph, name));
}

static void
write_inputs (Fixture *f)
{
  RnRng rng;
  rn_rng_init (&rng, 3, RN_STREAM_SYNTH, 0, 0);
  float *image = input (f, "image");
  for (int i = 0; i < BATCH * 3 * SIZE * SIZE; i++)
    image[i] = (float) rn_rng_normal (&rng);
  int16_t *labels = input (f, "labels");
  for (int i = 0; i < BATCH * SIZE * SIZE; i++)
    labels[i] = (int16_t) (i % 7 == 0 ? i % CLASSES : i % 11 == 0 ? -1 : CLASSES);
  *(float *) input (f, "avg_factor") = 5;
  *(float *) input (f, "grad_scale") = 1;
}

static gboolean
run_step (Fixture *f, GError **error)
{
  rn_param_set_zero_grads (f->params, NULL);
  write_inputs (f);
  return rn_executor_run (f->executor, 0, f->plan->graph->turn, error)
         && rn_executor_run (f->executor, f->plan->graph->turn, (int) f->plan->graph->ops->len, error);
}

static void
test_plan_is_sound (void)
{
  for (int inplace = 0; inplace < 2; inplace++)
    {
      Fixture f;
      set_up (&f, inplace);
      g_assert_null (rn_plan_check (f.plan));
      g_assert_cmpuint (f.plan->arena_bytes, >=, f.plan->live_bound_bytes);
      g_assert_cmpuint (f.plan->live_bound_bytes, ==, rn_plan_live_bytes (f.plan, f.plan->peak_op));
      for (int i = 0; i < (int) f.plan->graph->ops->len; i++)
        g_assert_cmpuint (rn_plan_live_bytes (f.plan, i), <=, f.plan->live_bound_bytes);
      tear_down (&f);
    }
}

/* 8x8 maps, batch 2: conv1 3 -> 4, conv2 and conv3 4 -> 4, logits 4 -> 3, all 3x3. */
static void
test_plan_counts_macs (void)
{
  Fixture f;
  set_up (&f, TRUE);
  g_assert_cmpint (f.plan->macs, ==, BATCH * SIZE * SIZE * 9 * (3 * 4 + 4 * 4 + 4 * 4 + 4 * 3));
  tear_down (&f);
}

static void
test_inplace_saves_and_changes_no_bit (void)
{
  Fixture f[2];
  for (int inplace = 0; inplace < 2; inplace++)
    {
      GError *error = NULL;
      set_up (&f[inplace], inplace);
      run_step (&f[inplace], &error);
      g_assert_no_error (error);
    }
  g_assert_cmpuint (f[1].plan->live_bound_bytes, <, f[0].plan->live_bound_bytes);
  int bytes = (int) rn_param_set_grad_bytes (f[0].params);
  g_assert_cmpmem (rn_param_set_all_grads (f[0].params), bytes, rn_param_set_all_grads (f[1].params), bytes);
  /* and the step did something */
  gboolean all_zero = TRUE;
  const float *grads = rn_param_set_all_grads (f[0].params);
  for (int i = 0; i < bytes / (int) sizeof (float); i++)
    all_zero = all_zero && grads[i] == 0;
  g_assert_false (all_zero);
  tear_down (&f[0]);
  tear_down (&f[1]);
}

static void
test_plan_check_sees_overlap (void)
{
  Fixture f;
  set_up (&f, TRUE);
  for (int a = 0; a < f.plan->n_buffers; a++)
    for (int b = 0; b < a; b++)
      if (f.plan->buffers[a].first <= f.plan->buffers[b].last
          && f.plan->buffers[b].first <= f.plan->buffers[a].last
          && f.plan->buffers[a].bytes <= f.plan->buffers[b].bytes)
        {
          gsize offset = f.plan->buffers[a].offset;
          f.plan->buffers[a].offset = f.plan->buffers[b].offset;
          g_autofree char *fault = rn_plan_check (f.plan);
          g_assert_nonnull (fault);
          g_assert_nonnull (strstr (fault, "overlaps"));
          f.plan->buffers[a].offset = offset;
        }
  tear_down (&f);
}

static void
test_executor_refuses_a_small_arena (void)
{
  Fixture f;
  set_up (&f, TRUE);
  GError *error = NULL;
  g_assert_null (rn_executor_new (f.plan, f.arena, f.plan->arena_bytes - 1, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
  g_clear_error (&error);
  tear_down (&f);
}

/* ---- the checking mode ---- */

static void
test_check_agrees_with_plan (void)
{
  for (int inplace = 0; inplace < 2; inplace++)
    {
      Fixture f;
      GError *error = NULL;
      set_up (&f, inplace);
      rn_executor_enable_check (f.executor, &error);
      g_assert_no_error (error);
      for (int i = 0; i < 2; i++)
        {
          run_step (&f, &error);
          g_assert_no_error (error);
        }
      /* the last buffer of the arena may end with alignment */
      g_assert_cmpuint (rn_executor_highest_byte (f.executor), <=, f.plan->arena_bytes);
      g_assert_cmpuint (rn_executor_highest_byte (f.executor) + RN_ARENA_ALIGNMENT, >, f.plan->arena_bytes);
      tear_down (&f);
    }
}

/* A kernel that does its work and then makes a mistake. */
static const RnKernel *honest_kernel;
static guint8 *stray_write;   /* one byte to change, or NULL */
static gsize unwritten_bytes; /* end of the output to put back as it was */

static RnStatus
run_badly (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  gsize bytes = rn_desc_bytes (&call->out[0]);
  g_autofree guint8 *before = g_memdup2 (out[0], bytes);
  RnStatus status = honest_kernel->run (device, call, state, in, out, workspace);
  if (unwritten_bytes)
    memcpy ((guint8 *) out[0] + bytes - unwritten_bytes, before + bytes - unwritten_bytes, unwritten_bytes);
  if (stray_write)
    *stray_write ^= 1;
  return status;
}

static void
expect_fault (Fixture *f, const char *text)
{
  GError *error = NULL;
  rn_executor_enable_check (f->executor, &error);
  g_assert_no_error (error);
  g_assert_false (run_step (f, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
  g_assert_nonnull (strstr (error->message, text));
  g_clear_error (&error);
}

static void
test_check_sees_stray_writes (void)
{
  Fixture f;
  set_up (&f, TRUE);
  RnKernel bad = *f.plan->prepared[0].kernel;
  honest_kernel = f.plan->prepared[0].kernel;
  bad.run = run_badly;
  f.plan->prepared[0].kernel = &bad;
  stray_write = input (&f, "labels"); /* alive, and not op 0's to write */
  unwritten_bytes = 0;
  expect_fault (&f, "wrote outside");
  tear_down (&f);
}

static void
test_check_sees_unwritten_output (void)
{
  Fixture f;
  set_up (&f, TRUE);
  RnKernel bad = *f.plan->prepared[0].kernel;
  honest_kernel = f.plan->prepared[0].kernel;
  bad.run = run_badly;
  f.plan->prepared[0].kernel = &bad;
  stray_write = NULL;
  unwritten_bytes = 4;
  expect_fault (&f, "unwritten");
  tear_down (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/placement/random", test_placement_random);
  g_test_add_func ("/graph/placement/nested", test_placement_nested);
  g_test_add_func ("/graph/placement/empty", test_placement_empty);
  g_test_add_func ("/graph/placement/steps", test_placement_of_steps);
  g_test_add_func ("/graph/plan/sound", test_plan_is_sound);
  g_test_add_func ("/graph/plan/macs", test_plan_counts_macs);
  g_test_add_func ("/graph/plan/inplace", test_inplace_saves_and_changes_no_bit);
  g_test_add_func ("/graph/plan/sees-overlap", test_plan_check_sees_overlap);
  g_test_add_func ("/graph/executor/small-arena", test_executor_refuses_a_small_arena);
  g_test_add_func ("/graph/check/agrees", test_check_agrees_with_plan);
  g_test_add_func ("/graph/check/stray-write", test_check_sees_stray_writes);
  g_test_add_func ("/graph/check/unwritten", test_check_sees_unwritten_output);
  return g_test_run ();
}
