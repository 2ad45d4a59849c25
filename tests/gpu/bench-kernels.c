/*
 * bench-kernels.c: bytes per second of the kernels that move data, against the rate at which the device
 * copies: a kernel that is limited by memory should come near to it. It opens the module, so it runs on a
 * real device only. Argument: its ordinal. Not built by default: make bench-gpu.
 *
 * Bytes are those that rn_op_cost counts: each tensor read once and written once.
 */
#include "config.h"

#include "kernels/cuda-module.h"

#include <runner/batch.h>
#include <stdio.h>
#include <stdlib.h>

/* The map of the finest level of a feature pyramid on 608x1024, batch 2. */
enum
{
  IMAGES = 2,
  CHANNELS = 256,
  HEIGHT = 76,
  WIDTH = 128,
  PARAMETERS = 36 << 20, /* of a detector with ResNet-50 */
  CLASSES = 20,
  ANCHORS = 9,     /* of a cell */
  SELECTED = 1000, /* of a level, at inference */
};

static gboolean
check (RnDevice *device, RnStatus status, const char *what)
{
  if (status != RN_STATUS_OK)
    fprintf (stderr, "%s: %s\n", what, rn_device_fault (device, status));
  return status == RN_STATUS_OK;
}

/* ---- calls ---- */

static RnOpCall
call_new (RnOp op, guint in_present, guint out_present)
{
  return (RnOpCall){ .op = op, .in_present = in_present, .out_present = out_present };
}

static void
add_elementwise (GArray *calls, const RnTensorDesc d)
{
  RnOpCall call = call_new (RN_OP_RELU_BWD, 7, 1);

  call.in[0] = call.in[1] = call.in[2] = call.out[0] = d;
  g_array_append_val (calls, call);
  call.out_present = 3;
  call.out[RN_RELU_BWD_SUMS] = rn_desc_vector (RN_F32, CHANNELS);
  g_array_append_val (calls, call);
  call = call_new (RN_OP_ADD, 3, 1);
  call.in[0] = call.in[1] = call.out[0] = d;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_RELU_FWD, 1, 1);
  call.in[0] = call.out[0] = d;
  g_array_append_val (calls, call);
}

/* @other: in the other layout. */
static void
add_moves (GArray *calls, const RnTensorDesc d, const RnTensorDesc other, const RnTensorDesc coarse)
{
  RnOpCall call = call_new (RN_OP_REORDER, 1, 1);

  call.in[0] = d;
  call.out[0] = other;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_UPSAMPLE_FWD, 3, 1);
  call.in[0] = coarse;
  call.in[1] = call.out[0] = d;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_UPSAMPLE_BWD, 3, 1);
  call.in[0] = d;
  call.in[1] = call.out[0] = coarse;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_ZERO, 0, 1);
  call.out[0] = d;
  g_array_append_val (calls, call);
}

static void
add_pools (GArray *calls, const RnTensorDesc d, const RnTensorDesc coarse)
{
  const RnPoolArgs pool = { .kernel = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 } };
  RnOpCall call = call_new (RN_OP_MAX_POOL_FWD, 1, 3);
  RnTensorDesc index = coarse;

  index.dtype = RN_U8;
  call.args.pool = pool;
  call.in[0] = d;
  call.out[0] = coarse;
  call.out[1] = index;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_MAX_POOL_BWD, 3, 1);
  call.args.pool = pool;
  call.in[0] = coarse;
  call.in[1] = index;
  call.out[0] = d;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_AVG_POOL_FWD, 1, 1);
  call.args.pool = (RnPoolArgs){ .kernel = { 2, 2 }, .stride = { 2, 2 } };
  call.in[0] = d;
  call.out[0] = coarse;
  g_array_append_val (calls, call);
  call.op = RN_OP_AVG_POOL_BWD;
  call.in[0] = coarse;
  call.out[0] = d;
  g_array_append_val (calls, call);
}

static void
add_norms (GArray *calls, const RnTensorDesc d)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, CHANNELS);
  RnOpCall call = call_new (RN_OP_BATCH_NORM_FWD, 7, 7);

  call.args.norm = (RnNormArgs){ .eps = 1e-5f, .momentum = 0.1f, .training = TRUE, .relu = TRUE };
  call.in[0] = call.out[0] = d;
  call.in[1] = call.in[2] = call.out[1] = call.out[2] = v;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_BATCH_NORM_BWD, 31, 7);
  call.args.norm = (RnNormArgs){ .eps = 1e-5f, .training = TRUE };
  call.in[0] = call.in[1] = call.out[0] = d;
  call.in[2] = call.in[3] = call.in[4] = call.out[1] = call.out[2] = v;
  g_array_append_val (calls, call);
}

static void
add_maps (GArray *calls, RnDType t, gboolean nhwc)
{
  const int64_t cblk = nhwc ? CHANNELS : 1;
  const RnTensorDesc d = rn_desc_nchw (t, IMAGES, CHANNELS, HEIGHT, WIDTH, cblk);
  const RnTensorDesc coarse = rn_desc_nchw (t, IMAGES, CHANNELS, HEIGHT / 2, WIDTH / 2, cblk);

  add_elementwise (calls, d);
  add_moves (calls, d, rn_desc_nchw (t, IMAGES, CHANNELS, HEIGHT, WIDTH, nhwc ? 1 : CHANNELS), coarse);
  add_pools (calls, d, coarse);
  add_norms (calls, d);
}

/* Losses and selection of one level; no box is matched. */
static void
add_predictions (GArray *calls, RnDType t, gboolean nhwc)
{
  const int64_t n_anchors = HEIGHT * WIDTH * ANCHORS;
  const RnTensorDesc logits =
      rn_desc_nchw (t, IMAGES, ANCHORS * CLASSES, HEIGHT, WIDTH, nhwc ? ANCHORS * CLASSES : 1);
  const RnTensorDesc deltas = rn_desc_nchw (t, IMAGES, ANCHORS * 4, HEIGHT, WIDTH, nhwc ? ANCHORS * 4 : 1);
  const RnTensorDesc scalar = rn_desc_vector (RN_F32, 1);
  RnOpCall call = call_new (RN_OP_FOCAL_LOSS, 15, 3);

  call.args.focal = (RnFocalArgs){
    .alpha = 0.25f, .gamma = 2, .weight = 1, .num_classes = CLASSES, .anchors_per_cell = ANCHORS
  };
  call.in[RN_FOCAL_LOGITS] = call.out[RN_LOSS_DIFF] = logits;
  call.in[RN_FOCAL_LABELS] = (RnTensorDesc){ RN_I16, 2, { IMAGES, n_anchors, 1, 1 }, 1 };
  call.in[RN_FOCAL_AVG] = call.in[RN_FOCAL_GRAD_SCALE] = call.out[RN_LOSS_VALUE] = scalar;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_BOX_LOSS, 31, 3);
  call.args.box = (RnBoxArgs){ .weight = 1, .anchors_per_cell = ANCHORS };
  call.in[RN_BOX_PRED] = call.out[RN_LOSS_DIFF] = deltas;
  call.in[RN_BOX_POSITIVES] = rn_desc_vector (RN_U8, IMAGES * n_anchors * (int64_t) sizeof (RnPositive));
  call.in[RN_BOX_COUNT] = rn_desc_vector (RN_I64, 1);
  call.in[RN_BOX_AVG] = call.in[RN_BOX_GRAD_SCALE] = call.out[RN_LOSS_VALUE] = scalar;
  g_array_append_val (calls, call);
  call = call_new (RN_OP_TOPK, 3, 7);
  call.args.topk = (RnTopkArgs){ .k = SELECTED, .num_classes = CLASSES, .anchors_per_cell = ANCHORS };
  call.in[RN_TOPK_LOGITS] = logits;
  call.in[RN_TOPK_DELTAS] = deltas;
  call.out[RN_TOPK_INDEX] = (RnTensorDesc){ RN_I32, 2, { IMAGES, SELECTED, 1, 1 }, 1 };
  call.out[RN_TOPK_ROW_LOGITS] = (RnTensorDesc){ RN_F32, 3, { IMAGES, SELECTED, CLASSES, 1 }, 1 };
  call.out[RN_TOPK_ROW_DELTAS] = (RnTensorDesc){ RN_F32, 3, { IMAGES, SELECTED, 4, 1 }, 1 };
  g_array_append_val (calls, call);
}

/* What goes over all parameters at once. */
static void
add_sums (GArray *calls)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, PARAMETERS), scalar = rn_desc_vector (RN_F32, 1);
  RnOpCall stats = call_new (RN_OP_GRAD_STATS, 3, 1), mean = call_new (RN_OP_EMA_UPDATE, 3, 1);
  RnOpCall swap = call_new (RN_OP_SWAP, 0, 3);

  stats.in[RN_GRAD_STATS_GRAD] = mean.in[RN_EMA_SRC] = mean.out[0] = v;
  stats.in[RN_GRAD_STATS_NORM_TYPE] = mean.in[RN_EMA_MOMENTUM] = scalar;
  stats.out[0] = rn_desc_vector (RN_F32, RN_STATS_COUNT);
  swap.out[RN_SWAP_A] = swap.out[RN_SWAP_B] = v;
  g_array_append_val (calls, stats);
  g_array_append_val (calls, mean);
  g_array_append_val (calls, swap);
}

/* The batch of such a map. */
static void
add_normalize (GArray *calls, RnDType t, gboolean nhwc)
{
  const int64_t h = 8 * HEIGHT, w = 8 * WIDTH;
  RnOpCall call = call_new (RN_OP_NORMALIZE, 7, 1);

  call.in[RN_NORMALIZE_PIXELS] = (RnTensorDesc){ RN_U8, 3, { IMAGES, h, 3 * w, 1 }, 1 };
  call.in[RN_NORMALIZE_SIZES] = (RnTensorDesc){ RN_I32, 2, { IMAGES, 2, 1, 1 }, 1 };
  call.in[RN_NORMALIZE_TABLE] = (RnTensorDesc){ RN_F32, 3, { IMAGES, 3, 256, 1 }, 1 };
  call.out[0] = rn_desc_nchw (t, IMAGES, 3, h, w, nhwc ? 3 : 1);
  g_array_append_val (calls, call);
}

static void
add_updates (GArray *calls, RnDType states)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, PARAMETERS), s = rn_desc_vector (states, PARAMETERS);
  const RnTensorDesc hyper = rn_desc_vector (RN_F32, RN_HYPER_COUNT + RN_GROUP_COUNT);
  RnOpCall sgd = call_new (RN_OP_SGD, 3, 3), adam = call_new (RN_OP_ADAM, 3, 7);

  sgd.in[0] = sgd.out[0] = adam.in[0] = adam.out[0] = v;
  sgd.in[1] = adam.in[1] = hyper;
  sgd.out[1] = adam.out[1] = adam.out[2] = s;
  g_array_append_val (calls, sgd);
  g_array_append_val (calls, adam);
}

/* ---- one call ---- */

typedef struct
{
  const void *in[RN_OP_MAX_IN];
  void *out[RN_OP_MAX_OUT];
  void *workspace;
  GPtrArray *memory;
} Buffers;

static void *
new_memory (RnDevice *device, Buffers *b, gsize bytes)
{
  void *memory = NULL;

  if (bytes == 0)
    return NULL;
  if (!check (device, device->vtbl->alloc (device, bytes, &memory), "memory")
      || !check (device, device->vtbl->fill (device, memory, 0, bytes), "fill"))
    exit (1);
  g_ptr_array_add (b->memory, memory);
  return memory;
}

/* Zero, but for scalars (a norm's type, a normaliser) and sizes: images fill the batch. */
static void *
new_input (RnDevice *device, Buffers *b, const RnOpCall *call, int slot)
{
  const RnTensorDesc *d = &call->in[slot];
  const float two = 2;
  void *memory = new_memory (device, b, rn_desc_bytes (d));

  if (call->op == RN_OP_NORMALIZE && slot == RN_NORMALIZE_SIZES
      && !check (device, device->vtbl->fill (device, memory, 0x7f, rn_desc_bytes (d)), "fill"))
    exit (1);
  if (d->dtype == RN_F32 && rn_desc_elements (d) == 1
      && !check (device, device->vtbl->copy_in (device, memory, &two, sizeof two), "copy"))
    exit (1);
  return memory;
}

static void
run_times (RnDevice *device, const RnOpCall *call, const RnPrepared *prepared, const Buffers *b, int times)
{
  for (int i = 0; i < times; i++)
    if (!check (device, prepared->kernel->run (device, call, prepared->state, b->in, b->out, b->workspace),
                prepared->kernel->name))
      exit (1);
  if (!check (device, device->vtbl->synchronize (device), prepared->kernel->name))
    exit (1);
}

/* Bytes per second: of the fastest of some series, each long enough for the clock of the host. */
static double
measure (RnDevice *device, const RnOpCall *call)
{
  g_autoptr (GError) error = NULL;
  RnPrepared prepared = { NULL };
  Buffers b = { .memory = g_ptr_array_new () };
  double best = 0;

  if (!rn_device_prepare (device, call, &prepared, &error)
      || !rn_device_finalize (device, call, &prepared, &error))
    {
      fprintf (stderr, "%s\n", error->message);
      exit (1);
    }
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (RN_HAS_IN (call, i))
      b.in[i] = new_input (device, &b, call, i);
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (RN_HAS_OUT (call, i))
      b.out[i] = new_memory (device, &b, rn_desc_bytes (&call->out[i]));
  b.workspace = new_memory (device, &b, prepared.workspace_bytes);

  run_times (device, call, &prepared, &b, 3);
  for (int series = 0; series < 5; series++)
    {
      const int times = 50;
      gint64 start = g_get_monotonic_time ();
      run_times (device, call, &prepared, &b, times);
      double seconds = (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC;
      best = MAX (best, (double) rn_op_cost (call).bytes * times / seconds);
    }
  for (guint i = 0; i < b.memory->len; i++)
    device->vtbl->free (device, g_ptr_array_index (b.memory, i), 0);
  g_ptr_array_unref (b.memory);
  rn_prepared_release (&prepared);
  return best;
}

/* Of the first map. */
static const char *
layout_of (const RnOpCall *call)
{
  gboolean is_map = RN_HAS_IN (call, 0) && call->in[0].rank == 4;
  return (is_map ? &call->in[0] : &call->out[0])->cblk > 1 ? "NHWC" : "NCHW";
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  RnCudaOptions options = { .ordinal = argc > 1 ? atoi (argv[1]) : 0, .deterministic = TRUE };
  RnCudaInfo info;
  const RnCudaModule *module = rn_cuda_module_get (&error);
  g_autoptr (RnDevice) device = NULL;

  if (module == NULL || !module->describe (options.ordinal, &info, &error)
      || (device = module->open (&options, &error)) == NULL)
    {
      fprintf (stderr, "%s\n", error->message);
      return 3;
    }

  RnOpCall copy = call_new (RN_OP_COPY, 1, 1);
  copy.in[0] = copy.out[0] = rn_desc_vector (RN_F32, PARAMETERS);
  const double rate = measure (device, &copy);
  printf ("%s, copies at %.0f GB/s\n", info.name, rate / 1e9);

  g_autoptr (GArray) calls = g_array_new (FALSE, FALSE, sizeof (RnOpCall));
  add_maps (calls, RN_F32, FALSE);
  add_maps (calls, RN_F16, TRUE);
  add_maps (calls, RN_BF16, TRUE);
  add_predictions (calls, RN_F32, FALSE);
  add_predictions (calls, RN_F16, TRUE);
  add_sums (calls);
  add_normalize (calls, RN_F32, FALSE);
  add_normalize (calls, RN_F16, TRUE);
  add_updates (calls, RN_F32);
  add_updates (calls, RN_BF16);
  for (guint i = 0; i < calls->len; i++)
    {
      const RnOpCall *call = &g_array_index (calls, RnOpCall, i);
      g_autofree char *text = rn_op_describe (call);
      const double speed = measure (device, call);
      printf ("%7.0f GB/s %4.0f %%  %s, %s\n", speed / 1e9, 100 * speed / rate, text, layout_of (call));
    }
  return 0;
}
