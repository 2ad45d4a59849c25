/*
 * test-half-convs.c: convolutions that compute in half precision, on the simulated device, against the
 * reference: activations in half, predictions in F32, and all in F32; in both precisions.
 *
 * Both round the factors alike. What the device rounds besides, each once to half: the bias, the result, and
 * the gradient of the weights, which the reference adds in F32. A sum of three such errors, each at most half
 * a unit in the last place of the largest value, and one for sums of another order.
 */
#include "config.h"

#include "kernels/cuda/device-cuda.h"
#include "kernels/half.h"
#include "kernels/kernel-table.h"
#include "tests/gpu/device-run.h"
#include "tests/gpu/sim/sim.h"
#include "tests/kernels/cases.h"

#include <math.h>

#define N_ROUNDINGS 4

typedef struct
{
  RnDType compute, src, dst;
} Types;

static gboolean
is_plain_conv (const RnOpCall *call)
{
  return call->op <= RN_OP_CONV2D_BWD_WEIGHTS && call->args.conv.compute == RN_F32
         && (call->in[0].cblk == 1 || call->in[0].rank != 4) && call->out[0].cblk == 1
         && (call->op != RN_OP_CONV2D_BWD_WEIGHTS || call->in[RN_CONV_BW_DIFF_DST].cblk == 1);
}

/* A residual of one number: the library cannot tell it from a bias. */
static gboolean
is_ambiguous (const RnOpCall *call)
{
  return call->op == RN_OP_CONV2D_FWD && RN_HAS_IN (call, RN_CONV_RESIDUAL)
         && rn_desc_elements (&call->out[RN_CONV_DST]) == 1;
}

static void
set_map (RnTensorDesc *d, RnDType dtype)
{
  d->dtype = dtype;
  d->cblk = d->dims[1];
}

/* @call in NHWC and in these types. */
static RnOpCall
with_types (RnOpCall call, const Types *types)
{
  call.args.conv.compute = types->compute;
  switch (call.op)
    {
    case RN_OP_CONV2D_FWD:
      set_map (&call.in[RN_CONV_SRC], types->src);
      set_map (&call.out[RN_CONV_DST], types->dst);
      if (RN_HAS_IN (&call, RN_CONV_RESIDUAL))
        set_map (&call.in[RN_CONV_RESIDUAL], types->dst);
      break;
    case RN_OP_CONV2D_BWD_DATA:
      set_map (&call.out[RN_CONV_BD_DIFF_SRC], types->src);
      set_map (&call.in[RN_CONV_BD_DIFF_DST], types->dst);
      break;
    default:
      set_map (&call.in[RN_CONV_BW_SRC], types->src);
      set_map (&call.in[RN_CONV_BW_DIFF_DST], types->dst);
      break;
    }
  return call;
}

static void
compare (const RnOpCall *call, const Buffers *got, const Buffers *want)
{
  const int bits = call->args.conv.compute == RN_F16 ? 11 : 8;

  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    {
      const RnTensorDesc *d = &call->out[s];
      double largest = 0;
      if (!RN_HAS_OUT (call, s))
        continue;
      for (int64_t i = 0; i < rn_desc_elements (d); i++)
        largest = MAX (largest, fabs ((double) rn_float_get (d->dtype, want->out[s], i)));
      for (int64_t i = 0; i < rn_desc_elements (d); i++)
        {
          double x = (double) rn_float_get (d->dtype, got->out[s], i),
                 y = (double) rn_float_get (d->dtype, want->out[s], i);
          if (!(fabs (x - y) <= N_ROUNDINGS * ldexp (largest, -bits)))
            {
              g_autofree char *text = rn_op_describe (call);
              g_error ("%s: element %d of %s is %.9g, not %.9g", text, (int) i, rn_op_out_name (call->op, s),
                       x, y);
            }
        }
    }
}

static void
test_types (gconstpointer data)
{
  const Types *types = data;
  const SimConfig sim = { .model = "a100", .n_devices = 1, .driver_version = 13000 };
  const RnCudaOptions options = { .half = TRUE, .deterministic = TRUE };
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) cases = cases_new ();
  g_autoptr (RnDevice) ref = rn_device_new_ref ();
  int n = 0, n_seen = (int) (types->src == types->dst); /* half of the cases each, for the time */

  sim_reset (&sim);
  g_autoptr (RnDevice) device = rn_cuda_device_new (&options, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < cases->len; i++)
    {
      const RnOpCall *plain = &g_array_index (cases, Case, i).call;
      if (!is_plain_conv (plain) || is_ambiguous (plain) || ++n_seen % 2 != 0)
        continue;
      const RnOpCall call = with_types (*plain, types);
      Buffers got, want;
      g_assert_cmpstr (rn_op_check (&call), ==, NULL);
      buffers_init (&got, &call, 7, -1, -1);
      buffers_init (&want, &call, 7, -1, -1);
      g_assert_true (run_on_device (device, find_kernel (device, call.op), &call, &got, &(RunOptions){ 0 }));
      g_assert_true (run_kernel (ref, rn_kernels_ref ()[call.op], &call, &want));
      compare (&call, &got, &want);
      buffers_clear (&got);
      buffers_clear (&want);
      n++;
    }
  g_assert_cmpint (n, >, 20);
}

int
main (int argc, char **argv)
{
  static const Types all[] = { { RN_F16, RN_F16, RN_F16 },   { RN_F16, RN_F16, RN_F32 },
                               { RN_F16, RN_F32, RN_F32 },   { RN_BF16, RN_BF16, RN_BF16 },
                               { RN_BF16, RN_BF16, RN_F32 }, { RN_BF16, RN_F32, RN_F32 } };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    {
      g_autofree char *path = g_strdup_printf ("/gpu/half-convs/%s/%s-%s", rn_dtype_name (all[i].compute),
                                               rn_dtype_name (all[i].src), rn_dtype_name (all[i].dst));
      g_test_add_data_func (path, &all[i], test_types);
    }
  return g_test_run ();
}
