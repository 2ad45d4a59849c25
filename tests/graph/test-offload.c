/* test-offload.c: the pass that lets idle values wait in host memory: what goes when, that it saves, that it
 * keeps to the limit, and that no bit changes; and the second arena in the checking mode. */
#include "config.h"

#include "tests/graph/planned-step.h"

#include <string.h>

#define IDLE(n) .form = RN_OFFLOAD_IDLE, .idle = (n)

static RnPassOptions
pass_options (const RnOffloadOptions *offload)
{
  return (RnPassOptions){ .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = 1, .offload = *offload };
}

static void
open_step (PlannedStep *step, RnDevice *device, PlannedNet net, const NetOptions *net_options,
           const RnOffloadOptions *offload)
{
  const RnPassOptions options = pass_options (offload);
  planned_step_init (step, device, net, net_options, &options, 0);
}

/* ---- The list ---- */

static gboolean
touches (const RnGraphOp *op, RnValueId v)
{
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    if (op->in[s] == v)
      return TRUE;
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    if (op->out[s] == v)
      return TRUE;
  return FALSE;
}

/* Ops that compute between @from and @to, exclusive. */
static int
n_computing (const RnGraph *graph, int from, int to)
{
  int n = 0;
  for (int i = from + 1; i < to; i++)
    n += rn_graph_op (graph, i)->phase != RN_PHASE_MOVE;
  return n;
}

/*
 * Each way out stands right behind the last op that touches the value; each way back @window ops in front of
 * the first reader of the copy, or right behind the way out; and the value is away for more than @idle ops.
 */
static void
assert_moves (const RnGraph *graph, int idle, int window, int *n_out, int *n_back)
{
  *n_out = *n_back = 0;
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (op->phase != RN_PHASE_MOVE)
        continue;
      g_assert_cmpint (op->op, ==, RN_OP_COPY);
      RnSpace from = rn_graph_value (graph, op->in[0])->space, to = rn_graph_value (graph, op->out[0])->space;
      g_assert_cmpint (from, !=, to);
      if (to == RN_SPACE_HOST)
        {
          int last = -1;
          for (int k = 0; k < (int) graph->ops->len; k++)
            if (k != i && touches (rn_graph_op (graph, k), op->in[0]))
              last = k;
          g_assert_cmpint (last, <, i);
          g_assert_cmpint (n_computing (graph, last, i), ==, 0);
          ++*n_out;
          continue;
        }
      int first = i + 1, previous = i - 1;
      while (!touches (rn_graph_op (graph, first), op->out[0]))
        first++;
      g_assert_cmpint (n_computing (graph, i, first), <=, window);
      /* the copy before it of the same value: its way out, or an earlier one back */
      while (!touches (rn_graph_op (graph, previous), op->in[0]))
        previous--;
      g_assert_cmpint (n_computing (graph, previous, first), >, idle);
      ++*n_back;
    }
}

static void
test_moves (void)
{
  static const int idles[] = { 1, 4, 16 }, windows[] = { 0, 2 };
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  int fewer = G_MAXINT;

  for (gsize k = 0; k < G_N_ELEMENTS (idles); k++)
    {
      int n_out[2], n_back[2];
      for (int w = 0; w < 2; w++)
        {
          g_auto (PlannedStep) step = { 0 };
          const RnOffloadOptions offload = { IDLE (idles[k]), .window = windows[w] };
          open_step (&step, device, net_pyramid, &(NetOptions){ .bn_training = TRUE }, &offload);
          assert_moves (step.plan->graph, idles[k], windows[w], &n_out[w], &n_back[w]);
        }
      g_assert_cmpint (n_out[0], >, 0);
      g_assert_cmpint (n_back[0], >=, n_out[0]); /* written out once, however often it comes back */
      g_assert_cmpint (n_back[0], <, fewer);     /* the longer the wait, the fewer */
      fewer = n_back[0];
      if (idles[k] > windows[1]) /* a gap that the window fills is none */
        g_assert_cmpint (n_back[1], ==, n_back[0]);
      else
        g_assert_cmpint (n_back[1], <=, n_back[0]);
      if (idles[k] == 1)
        g_assert_cmpint (n_back[0], >, n_out[0]); /* a value with two gaps */
    }
}

/* Only the outputs of blocks, one gap each. */
static void
test_block_outputs (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) step = { 0 };
  int n_out, n_back, n_blocks = 0;
  open_step (&step, device, net_residual, &(NetOptions){ 0 },
             &(RnOffloadOptions){ .form = RN_OFFLOAD_BLOCK_OUTPUTS });
  const RnGraph *graph = step.plan->graph;
  g_autofree int *writers = rn_graph_find_writers (graph);

  assert_moves (graph, 0, 0, &n_out, &n_back);
  g_assert_cmpint (n_out, >, 0);
  g_assert_cmpint (n_back, ==, n_out);
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (op->phase != RN_PHASE_MOVE || rn_graph_value (graph, op->out[0])->space != RN_SPACE_HOST)
        continue;
      const RnGraphOp *writer = rn_graph_op (graph, writers[op->in[0]]);
      g_assert_cmpint (writer->block, >=, 0);
      /* no later op of its block gives something */
      for (int k = writers[op->in[0]] + 1; k < graph->turn; k++)
        {
          const RnGraphOp *later = rn_graph_op (graph, k);
          g_assert_false (later->phase == RN_PHASE_FORWARD && later->block == writer->block
                          && later->stage == writer->stage);
        }
      n_blocks++;
    }
  g_assert_cmpint (n_blocks, ==, 2); /* those of net_residual */
}

static void
assert_fault (PlannedNet net, const RnOffloadOptions *offload, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_TRAIN, params);
  const RnPassOptions options = pass_options (offload);

  net (graph, &(NetOptions){ 0 });
  g_assert_false (rn_passes_run (graph, &options, NULL, NULL, &error));
  g_assert_error (error, RN_PASS_ERROR, RN_OPTION_OFFLOAD);
  g_assert_nonnull (strstr (error->message, text));
}

static void
test_without_effect (void)
{
  assert_fault (net_pyramid, &(RnOffloadOptions){ IDLE (10000) }, "a smaller number");
  assert_fault (net_pyramid, &(RnOffloadOptions){ .form = RN_OFFLOAD_BLOCK_OUTPUTS },
                "no output of a residual block");
  assert_fault (net_pyramid, &(RnOffloadOptions){ IDLE (4), .pinned_limit = 64 }, "pinned_limit of 64 bytes");
}

/* ---- Bytes ---- */

static gsize
sum_of_host_buffers (const RnPlan *plan)
{
  gsize bytes = 0;
  for (int b = plan->n_device_buffers; b < plan->n_buffers; b++)
    {
      g_assert_cmpint (plan->buffers[b].space, ==, RN_SPACE_HOST);
      bytes += plan->buffers[b].bytes;
    }
  for (int b = 0; b < plan->n_device_buffers; b++)
    g_assert_cmpint (plan->buffers[b].space, ==, RN_SPACE_DEVICE);
  return bytes;
}

static void
test_saves (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) plain = { 0 }, step = { 0 };
  open_step (&plain, device, net_pyramid, &(NetOptions){ 0 }, &(RnOffloadOptions){ 0 });
  open_step (&step, device, net_pyramid, &(NetOptions){ 0 }, &(RnOffloadOptions){ IDLE (4) });

  g_assert_cmpuint (plain.plan->host_arena_bytes, ==, 0);
  g_assert_cmpuint (step.plan->live_bound_bytes, <, plain.plan->live_bound_bytes);
  g_assert_cmpuint (step.plan->arena_bytes, <, plain.plan->arena_bytes);
  g_assert_cmpuint (step.plan->host_live_bound_bytes, >, 0);
  g_assert_cmpuint (step.plan->host_arena_bytes, >=, step.plan->host_live_bound_bytes);
  g_assert_cmpuint (step.plan->host_live_bound_bytes, <=, sum_of_host_buffers (step.plan));
  gsize largest = 0;
  for (int i = 0; i < (int) step.plan->graph->ops->len; i++)
    largest = MAX (largest, rn_plan_host_live_bytes (step.plan, i));
  g_assert_cmpuint (largest, ==, step.plan->host_live_bound_bytes);
}

/* The limit holds to the byte: the pass reckons with the placement that the plan then has. */
static void
test_pinned_limit (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  const NetOptions net = { .bn_training = TRUE };
  g_auto (PlannedStep) plain = { 0 }, all = { 0 };
  open_step (&plain, device, net_pyramid, &net, &(RnOffloadOptions){ 0 });
  open_step (&all, device, net_pyramid, &net, &(RnOffloadOptions){ IDLE (4) });

  for (gsize sixteenths = 1; sixteenths <= 16; sixteenths++)
    {
      g_auto (PlannedStep) step = { 0 };
      gsize limit = all.plan->host_arena_bytes * sixteenths / 16;
      open_step (&step, device, net_pyramid, &net, &(RnOffloadOptions){ IDLE (4), .pinned_limit = limit });
      g_assert_cmpuint (step.plan->host_arena_bytes, >, 0);
      g_assert_cmpuint (step.plan->host_arena_bytes, <=, limit);
      g_assert_cmpuint (step.plan->live_bound_bytes, <=, plain.plan->live_bound_bytes);
      if (sixteenths == 16)
        {
          g_assert_cmpuint (step.plan->host_arena_bytes, ==, limit);
          g_assert_cmpuint (step.plan->arena_bytes, ==, all.plan->arena_bytes);
        }
    }
}

/* ---- The bits ---- */

typedef struct
{
  const char *name;
  PlannedNet net;
  NetOptions net_options;
  RnHeadOrder head;
} Case;

static const Case cases[] = {
  { "residual", net_residual, { 0 }, RN_HEAD_ALL_LEVELS },
  { "pyramid", net_pyramid, { 0 }, RN_HEAD_ALL_LEVELS },
  { "batch-statistics", net_pyramid, { .bn_training = TRUE }, RN_HEAD_ALL_LEVELS },
  { "frozen-stem", net_residual, { .frozen_stem = TRUE }, RN_HEAD_ALL_LEVELS },
  { "depth-first", net_pyramid, { .bn_training = TRUE }, RN_HEAD_DEPTH_FIRST },
};

static const RnOffloadOptions forms[] = {
  { IDLE (1) },
  { IDLE (2) },
  { IDLE (4) },
  { IDLE (1), .pinned_limit = 8192 },
  { IDLE (2), .window = 3 },
  { .form = RN_OFFLOAD_BLOCK_OUTPUTS },
};

/* Losses, gradients summed over two batches, parameters and statistics; and the checking mode agrees. */
static void
assert_bits (const Case *c, RnDevice *device, const RnOffloadOptions *offload)
{
  g_auto (PlannedStep) plain = { 0 }, step = { 0 };
  RnPassOptions options = pass_options (&(RnOffloadOptions){ 0 });
  options.head = c->head;
  options.cblk = device->cblk;
  planned_step_init (&plain, device, c->net, &c->net_options, &options, 0);
  options.offload = *offload;
  planned_step_init (&step, device, c->net, &c->net_options, &options, 0);

  for (int i = 0; i < 2; i++)
    {
      planned_step_forward (&plain);
      planned_step_forward (&step);
      g_autoptr (GArray) want = planned_step_losses (&plain), got = planned_step_losses (&step);
      g_assert_cmpuint (got->len, ==, want->len);
      g_assert_true (memcmp (got->data, want->data, got->len * sizeof (float)) == 0);
      planned_step_backward (&plain);
      planned_step_backward (&step);
    }
  int grads = (int) rn_param_set_grad_bytes (plain.params),
      values = (int) rn_param_set_value_bytes (plain.params);
  g_assert_cmpmem (rn_param_set_all_grads (step.params), grads, rn_param_set_all_grads (plain.params), grads);
  g_assert_cmpmem (rn_param_set_all_values (step.params), values, rn_param_set_all_values (plain.params),
                   values);

  /* what is written reaches the end of both arenas, but for their alignment */
  g_assert_cmpuint (step.plan->host_arena_bytes, >, 0);
  g_assert_cmpuint (rn_executor_highest_byte (step.executor), <=, step.plan->arena_bytes);
  g_assert_cmpuint (rn_executor_highest_host_byte (step.executor), <=, step.plan->host_arena_bytes);
  g_assert_cmpuint (rn_executor_highest_host_byte (step.executor) + RN_ARENA_ALIGNMENT, >,
                    step.plan->host_arena_bytes);
}

static void
test_bits (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) ref = rn_device_new_ref (), cpu = rn_device_new_cpu (1, &error);
  g_assert_no_error (error);

  for (gsize k = 0; k < G_N_ELEMENTS (forms); k++)
    if (forms[k].form != RN_OFFLOAD_BLOCK_OUTPUTS || c->net == net_residual)
      {
        assert_bits (c, ref, &forms[k]);
        assert_bits (c, cpu, &forms[k]);
      }
}

/* ---- The checking mode ---- */

static const RnKernel *honest_copy;

static RnStatus
copy_in_part (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  RnStatus status = honest_copy->run (device, call, state, in, out, workspace);
  guint8 *last = (guint8 *) out[0] + rn_desc_bytes (&call->out[0]) - 1;
  *last ^= 1;
  return status;
}

static RnStatus
copy_too_far (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  RnStatus status = honest_copy->run (device, call, state, in, out, workspace);
  guint8 *next = (guint8 *) out[0] + rn_desc_bytes (&call->out[0]);
  *next ^= 1;
  return status;
}

/* A copy out that goes wrong is seen, in the arena of the host. */
static void
assert_seen (RnStatus (*run) (RnDevice *, const RnOpCall *, gconstpointer, const void *const *, void *const *,
                              void *),
             const char *text)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (GError) error = NULL;
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, net_pyramid, &(NetOptions){ 0 }, &(RnOffloadOptions){ IDLE (4) });
  const RnGraph *graph = step.plan->graph;
  int bad = -1;

  /* one that is not the last of the host's arena */
  for (int i = 0; i < graph->turn && bad < 0; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      int b = op->phase == RN_PHASE_MOVE ? step.plan->buffer_of[op->out[0]] : -1;
      if (b >= step.plan->n_device_buffers
          && step.plan->buffers[b].offset + step.plan->buffers[b].bytes + RN_ARENA_ALIGNMENT
                 < step.plan->host_arena_bytes)
        bad = i;
    }
  g_assert_cmpint (bad, >=, 0);
  planned_step_forward (&step); /* is right */
  honest_copy = step.plan->prepared[bad].kernel;
  RnKernel kernel = *honest_copy;
  kernel.run = run;
  step.plan->prepared[bad].kernel = &kernel;
  g_assert_false (rn_executor_run (step.executor, 0, graph->turn, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
  g_assert_nonnull (strstr (error->message, text));
  g_assert_nonnull (strstr (error->message, "host arena byte"));
  step.plan->prepared[bad].kernel = honest_copy;
}

static void
test_check (void)
{
  assert_seen (copy_in_part, "left a part of its output unwritten");
  assert_seen (copy_too_far, "wrote outside its outputs");
}

static void
test_executor_wants_a_host_arena (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (GError) error = NULL;
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, net_pyramid, &(NetOptions){ 0 }, &(RnOffloadOptions){ IDLE (4) });
  g_assert_null (rn_executor_new (step.plan, step.arenas.memory[RN_SPACE_DEVICE],
                                  step.arenas.bytes[RN_SPACE_DEVICE], &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
  g_assert_nonnull (strstr (error->message, "host arena"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/offload/moves", test_moves);
  g_test_add_func ("/graph/offload/block-outputs", test_block_outputs);
  g_test_add_func ("/graph/offload/without-effect", test_without_effect);
  g_test_add_func ("/graph/offload/saves", test_saves);
  g_test_add_func ("/graph/offload/pinned-limit", test_pinned_limit);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/graph/offload/bits/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_bits);
    }
  g_test_add_func ("/graph/offload/check", test_check);
  g_test_add_func ("/graph/offload/host-arena", test_executor_wants_a_host_arena);
  return g_test_run ();
}
