/* harness.c: buffers with guards, values by hash, one run of a kernel. */
#include "config.h"

#include "tests/kernels/harness.h"

#include "kernels/half.h"

#include <math.h>
#include <runner/batch.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 256 /* bytes on each side, so that data is aligned as in an arena */
#define GUARD_BYTE 0xa5

static guint32
hash (guint32 x)
{
  /* lowbias32 of Wellons' hash-prospector */
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static guint32
bits_at (guint seed, int slot, int64_t i)
{
  return hash (hash (hash (seed) + (guint32) slot) + (guint32) i);
}

float
value_at (guint seed, int slot, int64_t i)
{
  return (float) (bits_at (seed, slot, i) >> 8) / 8388608.0f - 1; /* 24 bits over 0 .. 2, minus 1: exact */
}

void
set_in (RnOpCall *call, int slot, RnTensorDesc d)
{
  call->in[slot] = d;
  call->in_present |= 1u << slot;
}

void
set_out (RnOpCall *call, int slot, RnTensorDesc d)
{
  call->out[slot] = d;
  call->out_present |= 1u << slot;
}

static guint8 *
guarded_new (gsize bytes)
{
  gsize total = (bytes + GUARD - 1) / GUARD * GUARD + 2 * GUARD;
  guint8 *block = aligned_alloc (GUARD, total);
  memset (block, GUARD_BYTE, total);
  return block;
}

static void
check_guard (const guint8 *block, gsize bytes)
{
  gsize total = (bytes + GUARD - 1) / GUARD * GUARD + 2 * GUARD;
  for (gsize i = 0; i < GUARD; i++)
    g_assert_cmphex (block[i], ==, GUARD_BYTE);
  for (gsize i = GUARD + bytes; i < total; i++)
    g_assert_cmphex (block[i], ==, GUARD_BYTE);
}

gboolean
is_padding (const RnTensorDesc *d, int64_t i)
{
  if (d->rank != 4)
    return FALSE;
  int64_t plane = d->dims[2] * d->dims[3] * d->cblk, blocks = rn_desc_stored_channels (d) / d->cblk;
  return i / plane % blocks * d->cblk + i % d->cblk >= d->dims[1];
}

static void
fill_floats (const RnTensorDesc *d, const char *name, guint seed, int slot, gboolean coarse, void *data)
{
  gboolean positive =
      g_str_equal (name, "var") || g_str_equal (name, "running_var") || g_str_has_suffix (name, "exp_avg_sq");
  for (int64_t i = 0; i < rn_desc_stored_elements (d); i++)
    {
      float v = value_at (seed, slot, i);
      if (coarse) /* few values, so that there are ties */
        v = (float) (int) (v * 8) / 8;
      rn_float_set (d->dtype, data, i, is_padding (d, i) ? 0 : positive ? 1.25f + v * 0.75f : v);
    }
}

/*
 * Every third anchor of all levels, in order, with targets near and far from the predictions; some belong to
 * other levels.
 */
static void
fill_positives (const RnOpCall *call, guint seed, RnPositive *positives, int64_t capacity)
{
  const RnTensorDesc *pred = &call->in[RN_BOX_PRED];
  int64_t level = pred->dims[2] * pred->dims[3] * call->args.box.anchors_per_cell;
  int64_t anchors = call->args.box.anchor_offset + level + 5, per_image = MAX (capacity / pred->dims[0], 1);

  for (int64_t i = 0; i < capacity; i++)
    {
      RnPositive p = { .image = (int32_t) (i / per_image),
                       .anchor = (int32_t) MIN (i % per_image * 3 + 1, anchors) };
      for (int d = 0; d < 4; d++)
        p.target[d] = value_at (seed, 99, i * 4 + d);
      positives[i] = p;
    }
}

/* Mostly the list without its last entry; or none, or more than there is room for, or what makes no sense. */
static int64_t
count_of (int64_t capacity, guint seed)
{
  const int64_t counts[] = { capacity - 1, 0, capacity - 1, capacity + 7, capacity - 1, -3 };
  return counts[seed / 2 % G_N_ELEMENTS (counts)];
}

/* Half background, a sixth ignored, the others of some class. */
static int16_t
label_at (int num_classes, guint seed, int64_t i)
{
  guint kind = bits_at (seed, 97, i) % 6;
  if (kind < 3)
    return (int16_t) num_classes;
  return (int16_t) (kind == 3 ? -1 : (int) (bits_at (seed, 98, i) % (guint) num_classes));
}

/* Of gradients that are below the limit of fill_hyper, above it, infinite, NaN; with a NaN the norm would be
 * one too, and so would the multiplier, but results of cases are numbers. */
static void
fill_stats (guint seed, float *stats)
{
  stats[RN_STATS_NORM] = (float[]){ 0.2f, 3.3f, INFINITY, 1.5f }[seed % 4];
  stats[RN_STATS_MAX_ABS] = (float[]){ 0.1f, FLT_MAX, INFINITY, NAN }[seed % 4];
}

/* Gradients are up to 0.25 after their multiplier: half of the runs cut some of them. */
static void
fill_hyper (const RnOpCall *call, const RnTensorDesc *d, guint seed, float *hyper)
{
  /* A step in parts: with momentum, and not as Nesterov's. */
  gboolean parts = call->op == RN_OP_SGD && RN_HAS_OUT (call, RN_SGD_MOMENTUM) && !call->args.sgd.nesterov;

  hyper[RN_HYPER_MOMENTUM] = 0.9f;
  hyper[RN_HYPER_TAKE] = 0.1f;
  hyper[RN_HYPER_BIAS2] = 0.75f;
  hyper[RN_HYPER_GRAD_MULTIPLIER] = 0.25f;
  hyper[RN_HYPER_CLIP_VALUE] = seed / 2 % 2 ? 0.125f : 0.0f;
  hyper[RN_HYPER_FIRST] = seed % 2 ? 1.0f : 0.0f;
  hyper[RN_HYPER_CONTINUES] = parts && seed / 4 % 2 ? 1.0f : 0.0f;
  hyper[RN_HYPER_WAITS] = parts && seed / 8 % 2 ? 1.0f : 0.0f;
  hyper[RN_HYPER_MAX_NORM] = seed / 4 % 2 ? 0.07f : 0.0f;
  hyper[RN_HYPER_CHECKS_FINITE] = seed / 8 % 2 ? 1.0f : 0.0f;
  hyper[RN_HYPER_SKIPS] = seed / 16 % 2 ? 1.0f : 0.0f;
  for (int64_t i = RN_HYPER_COUNT; i < d->dims[0]; i++)
    hyper[i] = 0.1f * (float) (i - RN_HYPER_COUNT + 1);
}

/* All of the image, a part of it, or nothing; and what is no size of a part, which kernels must live with. */
static void
fill_sizes (const RnTensorDesc *dst, guint seed, int32_t (*sizes)[2])
{
  for (int64_t n = 0; n < dst->dims[0]; n++)
    for (int axis = 0; axis < 2; axis++)
      {
        const int32_t whole = (int32_t) dst->dims[2 + axis];
        const int32_t choices[] = { whole, whole - 1, whole, (whole + 1) / 2, whole, 0,
                                    whole, whole + 7, whole, G_MAXINT32,      whole, G_MININT32 };
        sizes[n][axis] = choices[bits_at (seed, 96, 2 * n + axis) % G_N_ELEMENTS (choices)];
      }
}

static void
fill_input (const RnOpCall *call, int slot, guint seed, void *data)
{
  const RnTensorDesc *d = &call->in[slot];
  const char *name = rn_op_in_name (call->op, slot);
  gboolean ties = call->op == RN_OP_MAX_POOL_FWD || call->op == RN_OP_TOPK || call->op == RN_OP_RELU_BWD;

  if (g_str_equal (name, "labels"))
    for (int64_t i = 0; i < rn_desc_elements (d); i++)
      ((int16_t *) data)[i] = label_at (call->args.focal.num_classes, seed, i);
  else if (g_str_equal (name, "positives"))
    fill_positives (call, seed, data, d->dims[0] / (int64_t) sizeof (RnPositive));
  else if (g_str_equal (name, "count"))
    *(int64_t *) data = count_of (call->in[RN_BOX_POSITIVES].dims[0] / (int64_t) sizeof (RnPositive), seed);
  else if (g_str_equal (name, "index"))
    for (int64_t i = 0; i < rn_desc_stored_elements (d); i++)
      ((guint8 *) data)[i] = (guint8) (bits_at (seed, slot, i)
                                       % (guint) (call->args.pool.kernel[0] * call->args.pool.kernel[1]));
  else if (g_str_equal (name, "pixels"))
    for (int64_t i = 0; i < rn_desc_elements (d); i++)
      ((guint8 *) data)[i] = (guint8) bits_at (seed, slot, i);
  else if (g_str_equal (name, "sizes"))
    fill_sizes (&call->out[0], seed, data);
  else if (g_str_equal (name, "avg"))
    *(float *) data = 3;
  else if (g_str_equal (name, "grad_scale"))
    *(float *) data = 0.5f;
  else if (g_str_equal (name, "hyper"))
    fill_hyper (call, d, seed, data);
  else if (g_str_equal (name, "stats"))
    fill_stats (seed, data);
  else if (g_str_equal (name, "momentum")) /* of a running mean */
    *(float *) data = seed % 2 ? 1.0f : 0.25f;
  else if (g_str_equal (name, "norm_type"))
    *(float *) data = (float[]){ 2, 1, 3.5f, INFINITY }[seed % 4];
  else
    fill_floats (d, name, seed, slot, ties, data);
}

void
buffers_init (Buffers *b, const RnOpCall *call, guint seed, int alias_out, int alias_in)
{
  memset (b, 0, sizeof *b);
  b->call = call;
  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i))
      {
        b->in_block[i] = guarded_new (rn_desc_bytes (&call->in[i]));
        b->in[i] = b->in_block[i] + GUARD;
        fill_input (call, i, seed, b->in[i]);
      }
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    {
      if (!RN_HAS_OUT (call, i))
        continue;
      if (i == alias_out)
        {
          b->out[i] = b->in[alias_in];
          continue;
        }
      b->out_block[i] = guarded_new (rn_desc_bytes (&call->out[i]));
      b->out[i] = b->out_block[i] + GUARD;
      if (call->op == RN_OP_STEP_GUARD)
        fill_hyper (call, &call->out[i], seed, b->out[i]);
      else if ((rn_op_update_mask (call->op) >> i) & 1)
        fill_floats (&call->out[i], rn_op_out_name (call->op, i), seed, 100 + i, FALSE, b->out[i]);
      else
        memset (b->out[i], 0xff, rn_desc_bytes (&call->out[i])); /* a NaN in every float, of any type */
    }
}

void
buffers_check_guards (const Buffers *b)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (b->in_block[i] != NULL)
      check_guard (b->in_block[i], rn_desc_bytes (&b->call->in[i]));
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (b->out_block[i] != NULL)
      check_guard (b->out_block[i], rn_desc_bytes (&b->call->out[i]));
}

void
buffers_clear (Buffers *b)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    free (b->in_block[i]);
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    free (b->out_block[i]);
  memset (b, 0, sizeof *b);
}

static void
run_prepared (RnDevice *device, RnPrepared *prepared, Buffers *b)
{
  g_autoptr (GError) error = NULL;
  gsize bytes = prepared->workspace_bytes;
  guint8 *block = guarded_new (bytes);

  rn_device_finalize (device, b->call, prepared, &error);
  g_assert_no_error (error);
  memset (block + GUARD, 0xff, bytes);
  RnStatus status = prepared->kernel->run (device, b->call, prepared->state, (const void *const *) b->in,
                                           b->out, block + GUARD);
  g_assert_cmpint (status, ==, RN_STATUS_OK);
  check_guard (block, bytes);
  buffers_check_guards (b);
  free (block);
}

gboolean
run_kernel (RnDevice *device, const RnKernel *kernel, const RnOpCall *call, Buffers *b)
{
  RnPrepared prepared = { .kernel = kernel };
  const char *reason = NULL;

  if (kernel->prepare != NULL && kernel->prepare (device, call, &prepared, &reason) != RN_STATUS_OK)
    {
      g_assert_nonnull (reason);
      return FALSE;
    }
  run_prepared (device, &prepared, b);
  rn_prepared_release (&prepared);
  return TRUE;
}

void
run_call (RnDevice *device, const RnOpCall *call, Buffers *b)
{
  g_autoptr (GError) error = NULL;
  RnPrepared prepared = { NULL };

  rn_device_prepare (device, call, &prepared, &error);
  g_assert_no_error (error);
  run_prepared (device, &prepared, b);
  rn_prepared_release (&prepared);
}
