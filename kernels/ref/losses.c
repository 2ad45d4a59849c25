/* losses.c: the sigmoid focal loss and the box loss of one level, with their gradients. */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <math.h>
#include <runner/batch.h>

typedef struct
{
  double loss, slope;
} LossAt;

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

static double
softplus (double x)
{
  return fmax (x, 0) + log1p (exp (-fabs (x)));
}

/*
 * Lin et al. 2017 (arXiv 1708.02002), eq. 5, in terms of the logit x, with p = sigmoid (x):
 *
 *   y = 1: loss = alpha (1 - p)^gamma softplus (-x),
 *
 *     slope = -alpha (1 - p)^gamma ((1 - p) + gamma p softplus (-x));
 *
 *   y = 0: loss = (1 - alpha) p^gamma softplus (x),
 *
 *     slope = (1 - alpha) p^gamma (p + gamma (1 - p) softplus (x)).
 *
 * No log of a rounded probability: finite for every finite logit.
 */
static LossAt
focal (const RnFocalArgs *args, double x, gboolean positive)
{
  double p = sigmoid (x), q = sigmoid (-x);

  if (positive)
    return (LossAt){ args->alpha * pow (q, args->gamma) * softplus (-x),
                     -args->alpha * pow (q, args->gamma) * (q + args->gamma * p * softplus (-x)) };
  return (LossAt){ (1 - (double) args->alpha) * pow (p, args->gamma) * softplus (x),
                   (1 - (double) args->alpha) * pow (p, args->gamma) * (p + args->gamma * q * softplus (x)) };
}

static RnStatus
focal_loss (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const RnFocalArgs *args = &call->args.focal;
  const RnTensorDesc *d = &call->in[RN_FOCAL_LOGITS];
  const int16_t *labels = in[RN_FOCAL_LABELS];
  double scale = args->weight / (double) *(const float *) in[RN_FOCAL_AVG];
  double grad_scale = *(const float *) in[RN_FOCAL_GRAD_SCALE];
  void *diff = out[RN_LOSS_DIFF];
  double sum = 0;

  for (int64_t n = 0; n < d->dims[0]; n++)
    for (int64_t c = 0; c < rn_desc_stored_channels (d); c++)
      for (int64_t y = 0; y < d->dims[2]; y++)
        for (int64_t x = 0; x < d->dims[3]; x++)
          {
            int64_t at = rn_desc_index (d, n, c, y, x);
            LossAt l = { 0, 0 };
            if (c < d->dims[1])
              {
                int64_t anchor = (y * d->dims[3] + x) * args->anchors_per_cell + c / args->num_classes;
                int label = labels[n * call->in[RN_FOCAL_LABELS].dims[1] + args->anchor_offset + anchor];
                if (label >= 0)
                  l = focal (args, rn_float_get (d->dtype, in[RN_FOCAL_LOGITS], at),
                             label == c % args->num_classes);
              }
            sum += l.loss;
            if (diff != NULL)
              rn_float_set (d->dtype, diff, at, (float) (l.slope * scale * grad_scale));
          }
  *(float *) out[RN_LOSS_VALUE] = (float) (sum * scale);
  return RN_STATUS_OK;
}

/* L1 (beta 0) or smooth L1: e^2 / (2 beta) below beta, |e| - beta / 2 from there on. */
static LossAt
smooth_l1 (double e, double beta)
{
  if (fabs (e) < beta)
    return (LossAt){ e * e / (2 * beta), e / beta };
  return (LossAt){ fabs (e) - beta / 2, e > 0 ? 1 : e < 0 ? -1 : e };
}

static const RnPositive *
find_positive (const RnPositive *positives, int64_t n_positives, int64_t image, int64_t anchor)
{
  for (int64_t i = 0; i < n_positives; i++)
    if (positives[i].image == image && positives[i].anchor == anchor)
      return &positives[i];
  return NULL;
}

static RnStatus
box_loss (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnBoxArgs *args = &call->args.box;
  const RnTensorDesc *d = &call->in[RN_BOX_PRED];
  int64_t capacity = call->in[RN_BOX_POSITIVES].dims[0] / (int64_t) sizeof (RnPositive);
  int64_t n_positives = CLAMP (*(const int64_t *) in[RN_BOX_COUNT], 0, capacity);
  double scale = args->weight / (double) *(const float *) in[RN_BOX_AVG];
  double grad_scale = *(const float *) in[RN_BOX_GRAD_SCALE];
  void *diff = out[RN_LOSS_DIFF];
  double sum = 0;

  for (int64_t n = 0; n < d->dims[0]; n++)
    for (int64_t c = 0; c < rn_desc_stored_channels (d); c++)
      for (int64_t y = 0; y < d->dims[2]; y++)
        for (int64_t x = 0; x < d->dims[3]; x++)
          {
            int64_t at = rn_desc_index (d, n, c, y, x);
            int64_t anchor = args->anchor_offset + (y * d->dims[3] + x) * args->anchors_per_cell + c / 4;
            const RnPositive *positive =
                c < d->dims[1] ? find_positive (in[RN_BOX_POSITIVES], n_positives, n, anchor) : NULL;
            LossAt l = { 0, 0 };
            if (positive != NULL)
              l = smooth_l1 ((double) rn_float_get (d->dtype, in[RN_BOX_PRED], at) - positive->target[c % 4],
                             args->beta);
            sum += l.loss;
            if (diff != NULL)
              rn_float_set (d->dtype, diff, at, (float) (l.slope * scale * grad_scale));
          }
  *(float *) out[RN_LOSS_VALUE] = (float) (sum * scale);
  return RN_STATUS_OK;
}

const RnKernel rn_ref_focal_loss = { .op = RN_OP_FOCAL_LOSS, .name = "ref:focal_loss", .run = focal_loss };
const RnKernel rn_ref_box_loss = { .op = RN_OP_BOX_LOSS, .name = "ref:box_loss", .run = box_loss };
