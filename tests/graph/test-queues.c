/* test-queues.c: copies of offload in queues of their own: any order that queues and edges allow keeps every
 * byte as it was, no edge is one too many, and the executor does what the edges say. */
#include "config.h"

#include "graph/queues.h"
#include "tests/graph/late-device.h"
#include "tests/graph/planned-step.h"

#include <string.h>

typedef struct
{
  const char *name;
  PlannedNet net;
  NetOptions net_options;
  RnOffloadOptions offload;
} Case;

static const Case cases[] = {
  { "residual", net_residual, { 0 }, { .form = RN_OFFLOAD_IDLE, .idle = 4 } },
  { "frozen stem",
    net_residual,
    { .frozen_stem = TRUE },
    { .form = RN_OFFLOAD_IDLE, .idle = 1, .window = 3 } },
  { "pyramid", net_pyramid, { .bn_training = TRUE }, { .form = RN_OFFLOAD_IDLE, .idle = 1 } },
  { "window", net_pyramid, { .bn_training = TRUE }, { .form = RN_OFFLOAD_IDLE, .idle = 2, .window = 2 } },
  { "blocks", net_residual, { .bn_training = TRUE }, { .form = RN_OFFLOAD_BLOCK_OUTPUTS } },
};

static void
open_step (PlannedStep *step, RnDevice *device, const Case *c)
{
  const RnPassOptions options = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = 1, .offload = c->offload };
  planned_step_init (step, device, c->net, &c->net_options, &options, 0);
}

/* ---- which ops are done before which ---- */

/* [n][n]: row i, column k: is op k done before op i begins? Without edge @left_out. */
static gboolean *
find_order (const RnQueues *queues, int n, int left_out)
{
  gboolean *before = g_new0 (gboolean, (gsize) n * (gsize) n);

  for (int i = 0; i < n; i++)
    {
      gboolean *row = before + (gsize) i * (gsize) n;
      for (int k = 0; k < i; k++)
        row[k] = queues->queue_of[k] == queues->queue_of[i];
      for (int e = queues->first_edge[i]; e < queues->first_edge[i + 1]; e++)
        if (e != left_out)
          row[queues->edges[e].earlier] = TRUE;
      for (int k = i - 1; k >= 0; k--)
        for (int h = 0; row[k] && h < k; h++)
          row[h] |= before[(gsize) k * (gsize) n + (gsize) h];
    }
  return before;
}

/* Who touched a byte: its last writer, and since then the readers, the last of each queue. */
typedef struct
{
  int writer, readers[RN_N_QUEUES];
} Byte;

/* Looks at the bytes of a buffer as op @i touches it; returns how many it finds out of order. */
static int
touch (Byte *bytes, const RnBuffer *buffer, int i, RnQueue queue, gboolean is_written, const gboolean *row)
{
  int n_faults = 0;

  for (gsize at = buffer->offset; at < buffer->offset + buffer->bytes; at++)
    {
      Byte *byte = &bytes[at];
      n_faults += byte->writer >= 0 && byte->writer != i && !row[byte->writer];
      for (int q = 0; q < RN_N_QUEUES && is_written; q++)
        n_faults += byte->readers[q] >= 0 && byte->readers[q] != i && !row[byte->readers[q]];
      if (is_written)
        *byte = (Byte){ i, { -1, -1, -1 } };
      else
        byte->readers[queue] = i;
    }
  return n_faults;
}

/* Bytes of all arenas that two ops may touch in another order than that of the plan. */
static int
count_faults (const RnPlan *plan, const RnQueues *queues, const gboolean *before)
{
  const gsize sizes[RN_N_SPACES] = { plan->arena_bytes, plan->host_arena_bytes };
  int n = (int) plan->graph->ops->len, n_faults = 0;
  Byte *bytes[RN_N_SPACES];

  for (int space = 0; space < RN_N_SPACES; space++)
    {
      bytes[space] = g_new (Byte, sizes[space]);
      for (gsize at = 0; at < sizes[space]; at++)
        bytes[space][at] = (Byte){ -1, { -1, -1, -1 } };
    }
  for (int i = 0; i < n; i++)
    {
      const RnGraphOp *op = rn_graph_op (plan->graph, i);
      int touched[RN_OP_MAX_IN + RN_OP_MAX_OUT + 1], n_touched = 0, n_read;
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE && plan->buffer_of[op->in[s]] >= 0)
          touched[n_touched++] = plan->buffer_of[op->in[s]];
      n_read = n_touched;
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        if (op->out[s] != RN_NO_VALUE && plan->buffer_of[op->out[s]] >= 0)
          touched[n_touched++] = plan->buffer_of[op->out[s]];
      if (plan->workspace_of[i] >= 0)
        touched[n_touched++] = plan->workspace_of[i];
      for (int k = 0; k < n_touched; k++)
        {
          const RnBuffer *buffer = &plan->buffers[touched[k]];
          n_faults += touch (bytes[buffer->space], buffer, i, queues->queue_of[i], k >= n_read,
                             before + (gsize) i * (gsize) n);
        }
    }
  for (int space = 0; space < RN_N_SPACES; space++)
    g_free (bytes[space]);
  return n_faults;
}

static void
test_edges (gconstpointer data)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, data);
  const RnPlan *plan = step.plan;
  int n = (int) plan->graph->ops->len, n_moves = 0;
  g_autoptr (RnQueues) queues = rn_queues_new (plan);
  g_autofree gboolean *before = find_order (queues, n, -1);

  for (int i = 0; i < n; i++)
    {
      const RnGraphOp *op = rn_graph_op (plan->graph, i);
      RnQueue expected = op->phase != RN_PHASE_MOVE ? RN_QUEUE_COMPUTE
                         : rn_graph_value (plan->graph, op->in[0])->space == RN_SPACE_HOST
                             ? RN_QUEUE_FROM_HOST
                             : RN_QUEUE_TO_HOST;
      g_assert_cmpint (queues->queue_of[i], ==, expected);
      n_moves += op->phase == RN_PHASE_MOVE;
    }
  g_assert_false (queues->is_single);
  g_assert_cmpint (queues->n_edges, >=, n_moves); /* each copy waits for something */
  g_assert_cmpint (count_faults (plan, queues, before), ==, 0);
  for (int e = 0; e < queues->n_edges; e++)
    {
      g_autofree gboolean *without = find_order (queues, n, e);
      g_assert_cmpint (count_faults (plan, queues, without), >, 0);
    }
}

/* Whoever waits finds the note of the op that it waits for. */
static void
test_events (gconstpointer data)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, data);
  int n = (int) step.plan->graph->ops->len, n_notes = 0;
  g_autoptr (RnQueues) queues = rn_queues_new (step.plan);
  g_autofree int *noted = g_new (int, queues->n_events);

  for (int i = 0; i < n; i++)
    {
      for (int e = queues->first_edge[i]; e < queues->first_edge[i + 1]; e++)
        {
          g_assert_cmpint (queues->edges[e].op, ==, i);
          g_assert_cmpint (noted[queues->event_of[queues->edges[e].earlier]], ==, queues->edges[e].earlier);
        }
      if (queues->event_of[i] < 0)
        continue;
      g_assert_cmpint (queues->event_of[i], <, queues->n_events);
      noted[queues->event_of[i]] = i;
      n_notes++;
    }
  g_assert_cmpint (n_notes, >, queues->n_events); /* numbers are used again */
}

static void
test_single (void)
{
  static const Case plain = { "plain", net_residual, { 0 }, { 0 } };
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, &plain);
  g_autoptr (RnQueues) queues = rn_queues_new (step.plan);

  g_assert_true (queues->is_single);
  g_assert_cmpint (queues->n_edges, ==, 0);
  g_assert_cmpint (queues->n_events, ==, 0);
}

/* ---- runs ---- */

/* Losses and gradients of a step, without the checking mode, which waits behind each op. (transfer full) */
static GArray *
run_step (RnDevice *device, const Case *c)
{
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, c);
  GError *error = NULL;
  rn_executor_free (step.executor);
  step.executor = rn_executor_new_in (step.plan, &step.arenas, &error);
  g_assert_no_error (error);

  planned_step_forward (&step);
  planned_step_backward (&step);
  if (device->vtbl->synchronize != NULL)
    device->vtbl->synchronize (device);
  return planned_step_results (&step);
}

static gboolean
same_bits (const GArray *a, const GArray *b)
{
  return a->len == b->len && memcmp (a->data, b->data, a->len * sizeof (float)) == 0;
}

#define N_SEEDS 20

static void
test_runs (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (RnDevice) ref = rn_device_new_ref ();
  g_autoptr (GArray) expected = run_step (ref, c);
  gboolean is_deaf_wrong = FALSE;

  for (guint32 seed = 0; seed < N_SEEDS + 2; seed++)
    for (int deaf = 0; deaf < 2; deaf++)
      {
        LateOrder order = seed == 0 ? LATE_COMPUTE_FIRST : seed == 1 ? LATE_COPIES_FIRST : LATE_RANDOM;
        g_autoptr (RnDevice) late = late_device_new (order, seed, deaf);
        g_autoptr (GArray) results = run_step (late, c);
        g_assert_cmpuint (late_device_n_done (late, RN_QUEUE_TO_HOST), >, 0);
        g_assert_cmpuint (late_device_n_done (late, RN_QUEUE_FROM_HOST), >, 0);
        if (deaf)
          is_deaf_wrong |= !same_bits (expected, results);
        else
          g_assert_true (same_bits (expected, results));
      }
  g_assert_true (is_deaf_wrong); /* so the waits are what keeps the order */
}

/* The checking mode on a device that works later sees what it sees on one that works at once. */
static void
test_checked (gconstpointer data)
{
  g_autoptr (RnDevice) ref = rn_device_new_ref (), late = late_device_new (LATE_RANDOM, 1, FALSE);
  RnDevice *const devices[] = { ref, late };
  gsize highest[2], highest_host[2];

  for (int k = 0; k < 2; k++)
    {
      g_auto (PlannedStep) step = { 0 };
      open_step (&step, devices[k], data);
      planned_step_forward (&step);
      planned_step_backward (&step);
      highest[k] = rn_executor_highest_byte (step.executor);
      highest_host[k] = rn_executor_highest_host_byte (step.executor);
    }
  g_assert_cmpuint (highest[0], >, 0);
  g_assert_cmpuint (highest[1], ==, highest[0]);
  g_assert_cmpuint (highest_host[0], >, 0);
  g_assert_cmpuint (highest_host[1], ==, highest_host[0]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      static const struct
      {
        const char *name;
        GTestDataFunc run;
      } tests[] = {
        { "edges", test_edges }, { "events", test_events }, { "runs", test_runs }, { "checked", test_checked }
      };
      for (gsize k = 0; k < G_N_ELEMENTS (tests); k++)
        {
          g_autofree char *path = g_strdup_printf ("/queues/%s/%s", tests[k].name, cases[i].name);
          g_test_add_data_func (path, &cases[i], tests[k].run);
        }
    }
  g_test_add_func ("/queues/single", test_single);
  return g_test_run ();
}
