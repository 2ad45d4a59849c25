/*
 * norm.c: batch normalisation (Ioffe and Szegedy 2015, arXiv 1502.03167), on statistics of the batch or on
 * given ones.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <math.h>

#define FOR_CHANNEL(d, n, y, x)                \
  for (int64_t n = 0; n < (d)->dims[0]; n++)   \
    for (int64_t y = 0; y < (d)->dims[2]; y++) \
      for (int64_t x = 0; x < (d)->dims[3]; x++)

static RnStatus
batch_norm_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                void *const *out, void *workspace)
{
  const RnNormArgs *args = &call->args.norm;
  const RnTensorDesc *d = &call->in[RN_NORM_SRC];
  const RnDType t = d->dtype;
  const void *src = in[RN_NORM_SRC];
  const float *gamma = in[RN_NORM_GAMMA], *beta = in[RN_NORM_BETA];
  float *saved_mean = out[RN_NORM_SAVED_MEAN], *saved_invstd = out[RN_NORM_SAVED_INVSTD];
  float *running_mean = out[RN_NORM_RUNNING_MEAN], *running_var = out[RN_NORM_RUNNING_VAR];
  double count = (double) (d->dims[0] * d->dims[2] * d->dims[3]);

  for (int64_t c = 0; c < d->dims[1]; c++)
    {
      double mean = 0, var = 0;
      if (args->training)
        {
          FOR_CHANNEL (d, n, y, x)
            mean += rn_float_get (t, src, rn_desc_index (d, n, c, y, x));
          mean /= count;
          FOR_CHANNEL (d, n, y, x)
            var += pow (rn_float_get (t, src, rn_desc_index (d, n, c, y, x)) - mean, 2);
          var /= count;
          saved_mean[c] = (float) mean;
          saved_invstd[c] = (float) (1 / sqrt (var + args->eps));
          if (running_mean != NULL && !args->recompute)
            {
              /*
               * PyTorch divides by n - 1 = 0 for a single value and gets NaN; one value says nothing of a
               * variance, so it stays 0.
               */
              double unbiased = count > 1 ? var * count / (count - 1) : var;
              running_mean[c] =
                  (float) ((1 - args->momentum) * (double) running_mean[c] + args->momentum * mean);
              running_var[c] =
                  (float) ((1 - args->momentum) * (double) running_var[c] + args->momentum * unbiased);
            }
        }
      else
        {
          mean = ((const float *) in[RN_NORM_MEAN])[c];
          var = ((const float *) in[RN_NORM_VAR])[c];
        }
      double invstd = 1 / sqrt (var + args->eps);
      FOR_CHANNEL (d, n, y, x)
        {
          int64_t at = rn_desc_index (d, n, c, y, x);
          double value = (rn_float_get (t, src, at) - mean) * invstd * gamma[c] + beta[c];
          rn_float_set (t, out[RN_NORM_DST], at, (float) (args->relu && value < 0 ? 0 : value));
        }
    }
  for (int64_t c = d->dims[1]; c < rn_desc_stored_channels (d); c++)
    FOR_CHANNEL (d, n, y, x)
      rn_float_set (t, out[RN_NORM_DST], rn_desc_index (d, n, c, y, x), 0);
  return RN_STATUS_OK;
}

/*
 * With xhat = (src - mean) * invstd: diff_beta = sum dy, diff_gamma = sum dy * xhat, and
 *
 *   training: dx = gamma * invstd * (dy - diff_beta / count - xhat * diff_gamma / count),
 *
 *   given statistics: dx = gamma * invstd * dy.
 */
static RnStatus
batch_norm_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                void *const *out, void *workspace)
{
  const RnNormArgs *args = &call->args.norm;
  const RnTensorDesc *d = &call->in[RN_NORM_BWD_SRC];
  const RnDType t = d->dtype;
  const void *src = in[RN_NORM_BWD_SRC], *diff_dst = in[RN_NORM_BWD_DIFF_DST];
  const float *gamma = in[RN_NORM_BWD_GAMMA];
  const float *mean = in[RN_NORM_BWD_MEAN], *var = in[RN_NORM_BWD_VAR];
  void *diff_src = out[RN_NORM_BWD_DIFF_SRC];
  float *diff_gamma = out[RN_NORM_BWD_DIFF_GAMMA], *diff_beta = out[RN_NORM_BWD_DIFF_BETA];
  double count = (double) (d->dims[0] * d->dims[2] * d->dims[3]);

  for (int64_t c = 0; c < d->dims[1]; c++)
    {
      double invstd = args->training ? var[c] : 1 / sqrt ((double) var[c] + args->eps);
      double sum = 0, dot = 0;
      FOR_CHANNEL (d, n, y, x)
        {
          int64_t at = rn_desc_index (d, n, c, y, x);
          double diff = rn_float_get (t, diff_dst, at);
          sum += diff;
          dot += diff * (rn_float_get (t, src, at) - (double) mean[c]) * invstd;
        }
      FOR_CHANNEL (d, n, y, x)
        {
          int64_t at = rn_desc_index (d, n, c, y, x);
          double centred = rn_float_get (t, diff_dst, at);
          if (args->training)
            centred -= (sum + (rn_float_get (t, src, at) - (double) mean[c]) * invstd * dot) / count;
          rn_float_set (t, diff_src, at, (float) (gamma[c] * invstd * centred));
        }
      if (diff_gamma != NULL)
        diff_gamma[c] += (float) dot;
      if (diff_beta != NULL)
        diff_beta[c] += (float) sum;
    }
  for (int64_t c = d->dims[1]; c < rn_desc_stored_channels (d); c++)
    FOR_CHANNEL (d, n, y, x)
      rn_float_set (t, diff_src, rn_desc_index (d, n, c, y, x), 0);
  return RN_STATUS_OK;
}

const RnKernel rn_ref_batch_norm_fwd = { .op = RN_OP_BATCH_NORM_FWD,
                                         .name = "ref:batch_norm_fwd",
                                         .run = batch_norm_fwd };
const RnKernel rn_ref_batch_norm_bwd = { .op = RN_OP_BATCH_NORM_BWD,
                                         .name = "ref:batch_norm_bwd",
                                         .run = batch_norm_bwd };
