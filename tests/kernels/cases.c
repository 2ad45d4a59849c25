/*
 * cases.c: sizes that are odd, 1, or not a multiple of a channel block; groups, stride, dilation; every
 * optional slot with and without. Here: losses, selection, update, and all of them in half precision.
 */
#include "config.h"

#include "tests/kernels/cases.h"

#include "tests/kernels/case-list.h"
#include "tests/kernels/harness.h"

#include <runner/batch.h>
#include <string.h>

void
add_case (GArray *cases, const RnOpCall *call, double tolerance)
{
  Case c = { *call, tolerance };
  const char *reason = rn_op_check (call);
  if (reason != NULL)
    {
      g_autofree char *text = rn_op_describe (call);
      g_error ("%s: %s", text, reason);
    }
  g_array_append_val (cases, c);
}

/* ---- losses, selection, update ------------------------------------------------------------------------- */

typedef struct
{
  int64_t n, h, w;
  int classes, anchors;
} Level;

static const Level levels[] = { { 1, 1, 1, 1, 1 },   { 2, 5, 7, 20, 9 }, { 3, 2, 3, 3, 2 },
                                { 1, 3, 140, 2, 3 }, { 2, 4, 10, 4, 6 }, /* whole packs of 8 in both layouts,
                                                                            which hold two anchors in NHWC */
                                { 1, 3, 4, 8, 2 } };

static void
add_losses (GArray *cases, const Level *l, int64_t cblk)
{
  const int64_t level = l->h * l->w * l->anchors;

  for (int variant = 0; variant < 3; variant++)
    {
      RnTensorDesc logits = rn_desc_nchw (RN_F32, l->n, (int64_t) l->classes * l->anchors, l->h, l->w, cblk);
      RnTensorDesc labels = { RN_I16, 2, { l->n, 4 + level + 3, 1, 1 }, 1 };
      RnOpCall focal = {
        .op = RN_OP_FOCAL_LOSS,
        .args.focal = { .alpha = 0.25f,
                        .gamma = variant == 2 ? 2.5f : 2,
                        .weight = 1.5f,
                        .num_classes = l->classes,
                        .anchors_per_cell = l->anchors,
                        .anchor_offset = 4 },
      };
      set_in (&focal, RN_FOCAL_LOGITS, logits);
      set_in (&focal, RN_FOCAL_LABELS, labels);
      set_in (&focal, RN_FOCAL_AVG, vec (1));
      set_in (&focal, RN_FOCAL_GRAD_SCALE, vec (1));
      set_out (&focal, RN_LOSS_VALUE, vec (1));
      if (variant != 1)
        set_out (&focal, RN_LOSS_DIFF, logits);
      add_case (cases, &focal, LOSS_OPERATIONS);

      RnTensorDesc pred = rn_desc_nchw (RN_F32, l->n, 4 * (int64_t) l->anchors, l->h, l->w, cblk);
      RnTensorDesc positives = rn_desc_vector (RN_U8, (l->n * level / 2 + 1) * (int64_t) sizeof (RnPositive));
      RnOpCall box = {
        .op = RN_OP_BOX_LOSS,
        .args.box = { .beta = variant == 2 ? 0.5f : 0,
                      .weight = 2,
                      .anchors_per_cell = l->anchors,
                      .anchor_offset = 4 },
      };
      set_in (&box, RN_BOX_PRED, pred);
      set_in (&box, RN_BOX_POSITIVES, positives);
      set_in (&box, RN_BOX_COUNT, rn_desc_vector (RN_I64, 1));
      set_in (&box, RN_BOX_AVG, vec (1));
      set_in (&box, RN_BOX_GRAD_SCALE, vec (1));
      set_out (&box, RN_LOSS_VALUE, vec (1));
      if (variant != 1)
        set_out (&box, RN_LOSS_DIFF, pred);
      add_case (cases, &box, LOSS_OPERATIONS);
    }
}

static void
add_topk (GArray *cases, const Level *l, int64_t cblk)
{
  const int64_t level = l->h * l->w * l->anchors, ks[] = { 1, (level + 1) / 2, level };

  for (guint i = 0; i < G_N_ELEMENTS (ks); i++)
    {
      RnOpCall call = {
        .op = RN_OP_TOPK,
        .args.topk = { .k = ks[i], .num_classes = l->classes, .anchors_per_cell = l->anchors },
      };
      set_in (&call, RN_TOPK_LOGITS,
              rn_desc_nchw (RN_F32, l->n, (int64_t) l->classes * l->anchors, l->h, l->w, cblk));
      set_in (&call, RN_TOPK_DELTAS, rn_desc_nchw (RN_F32, l->n, 4 * (int64_t) l->anchors, l->h, l->w, cblk));
      set_out (&call, RN_TOPK_INDEX, (RnTensorDesc){ RN_I32, 2, { l->n, ks[i], 1, 1 }, 1 });
      set_out (&call, RN_TOPK_ROW_LOGITS, (RnTensorDesc){ RN_F32, 3, { l->n, ks[i], l->classes, 1 }, 1 });
      set_out (&call, RN_TOPK_ROW_DELTAS, (RnTensorDesc){ RN_F32, 3, { l->n, ks[i], 4, 1 }, 1 });
      add_case (cases, &call, 0);
    }
}

static void
add_updates (GArray *cases, int64_t n)
{
  RnOpCall stats = { .op = RN_OP_GRAD_STATS };
  set_in (&stats, RN_GRAD_STATS_GRAD, vec (n));
  set_in (&stats, RN_GRAD_STATS_NORM_TYPE, vec (1));
  set_out (&stats, 0, vec (RN_STATS_COUNT));
  for (int type = 0; type < 4; type++) /* see norm_type in harness.c */
    add_case (cases, &stats, 1);       /* sums are in double */

  RnOpCall guard = { .op = RN_OP_STEP_GUARD };
  set_in (&guard, 0, vec (RN_STATS_COUNT));
  set_out (&guard, 0, vec (RN_HYPER_COUNT + 2 * RN_GROUP_COUNT));
  add_case (cases, &guard, 0); /* in double, rounded once */

  for (int variant = 0; variant < 3; variant++)
    {
      RnOpCall sgd = {
        .op = RN_OP_SGD,
        .args.sgd = { .group = variant % 2,
                      .weight_decay = 0.005,
                      .dampening = variant == 2 ? 0 : 0.125f,
                      .nesterov = variant == 2 },
      };
      set_in (&sgd, RN_SGD_GRAD, vec (n));
      set_in (&sgd, RN_SGD_HYPER, vec (RN_HYPER_COUNT + 2 * RN_GROUP_COUNT));
      set_out (&sgd, RN_SGD_PARAM, vec (n));
      if (variant != 0)
        set_out (&sgd, RN_SGD_MOMENTUM, vec (n));
      add_case (cases, &sgd, 0);
    }
}

static void
add_adam (GArray *cases, int64_t n)
{
  for (int variant = 0; variant < 4; variant++)
    {
      RnOpCall adam = {
        .op = RN_OP_ADAM,
        .args.adam = { .group = variant % 2,
                       .weight_decay = 0.125,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .decoupled = variant >= 2 },
      };
      set_in (&adam, RN_ADAM_GRAD, vec (n));
      set_in (&adam, RN_ADAM_HYPER, vec (RN_HYPER_COUNT + 2 * RN_GROUP_COUNT));
      set_out (&adam, RN_ADAM_PARAM, vec (n));
      set_out (&adam, RN_ADAM_EXP_AVG, vec (n));
      set_out (&adam, RN_ADAM_EXP_AVG_SQ, vec (n));
      if (variant % 2 != 0)
        set_out (&adam, RN_ADAM_MAX_EXP_AVG_SQ, vec (n));
      add_case (cases, &adam, 0);
    }
}

static void
add_means (GArray *cases, int64_t n)
{
  RnOpCall ema = { .op = RN_OP_EMA_UPDATE }, swap = { .op = RN_OP_SWAP };

  set_in (&ema, RN_EMA_SRC, vec (n));
  set_in (&ema, RN_EMA_MOMENTUM, vec (1));
  set_out (&ema, 0, vec (n));
  add_case (cases, &ema, 0); /* one seed copies, one does not */
  add_case (cases, &ema, 0);
  set_out (&swap, RN_SWAP_A, vec (n));
  set_out (&swap, RN_SWAP_B, vec (n));
  add_case (cases, &swap, 0);
}

/* ---- half precision ------------------------------------------------------------------------------------ */

/* @call with all activations of type @t. */
static RnOpCall
with_activations (RnOpCall call, RnDType t)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (RN_HAS_IN (&call, i) && call.in[i].rank == 4 && call.in[i].dtype == RN_F32)
      call.in[i].dtype = t;
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (RN_HAS_OUT (&call, i) && call.out[i].rank == 4 && call.out[i].dtype == RN_F32)
      call.out[i].dtype = t;
  return call;
}

/* States in BF16, and the gradient as a convolution leaves it. */
static RnOpCall
with_short_states (RnOpCall call)
{
  for (int i = 1; i < RN_OP_MAX_OUT; i++) /* 0 is the parameter */
    if (RN_HAS_OUT (&call, i))
      call.out[i].dtype = RN_BF16;
  call.in[0] = rn_desc_nchw (RN_F32, call.in[0].dims[0], 1, 1, 1, 1);
  return call;
}

/* Every case in every type with RN_TEST_LONG=1, else each in some, in turn. */
static void
add_halves (GArray *cases)
{
  const gboolean all = g_getenv ("RN_TEST_LONG") != NULL;
  static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };
  const guint n = cases->len;

  for (guint i = 0; i < n; i++)
    {
      const Case c = g_array_index (cases, Case, i);
      RnOpCall call = c.call;
      gboolean is_conv = call.op <= RN_OP_CONV2D_BWD_WEIGHTS; /* test-half-conv.c */

      if (call.op == RN_OP_SGD || call.op == RN_OP_ADAM)
        {
          call = with_short_states (call);
          add_case (cases, &call, c.tolerance);
        }
      for (guint t = 1; t < G_N_ELEMENTS (types) && !is_conv; t++)
        {
          call = with_activations (c.call, types[t]);
          if (call.op == RN_OP_TOPK && t == 1) /* these may differ */
            call.in[RN_TOPK_DELTAS].dtype = RN_F32;
          if ((all || (i + t) % 5 == 0) && memcmp (&call, &c.call, sizeof call) != 0)
            add_case (cases, &call, c.tolerance);
        }
      for (guint t = 0; t < 6 && call.op == RN_OP_REORDER; t++) /* and where the type changes */
        {
          call.in[0].dtype = types[t / 2];
          call.out[0].dtype = types[(t / 2 + t % 2 + 1) % 3];
          if (all || (i + t) % 5 == 0)
            add_case (cases, &call, c.tolerance);
        }
    }
}

GArray *
cases_new (void)
{
  GArray *cases = g_array_new (FALSE, TRUE, sizeof (Case));

  add_conv_cases (cases);
  for (guint round = 0; round < N_CASE_ROUNDS; round++)
    {
      add_map_cases (cases, round);
      for (guint i = 0; i < G_N_ELEMENTS (levels); i++)
        {
          int64_t cblk = block_of_round (round, (int64_t) levels[i].classes * levels[i].anchors);
          add_losses (cases, &levels[i], cblk);
          add_topk (cases, &levels[i], cblk);
        }
    }
  static const int64_t sizes[] = { 1, 7, 40001 }; /* the last: several chunks, the last one short */
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      const int64_t n = sizes[i];
      add_updates (cases, n);
      add_adam (cases, n);
      add_means (cases, n);
    }
  add_halves (cases);
  return cases;
}
