/*
 * test-winograd.c: when Winograd's algorithm is taken, and that cutting the batch to save scratch changes
 * nothing but the scratch. Values against the reference are in test-kernels.
 */
#include "config.h"

#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum
{
  N = 2,
  CHANNELS = 256,
  SIZE = 32
};

static RnOpCall
conv (RnOp op, int stride, int64_t channels)
{
  RnTensorDesc map = rn_desc_nchw (RN_F32, N, channels, SIZE, SIZE, 16);
  RnTensorDesc small =
      rn_desc_nchw (RN_F32, N, channels, (SIZE + stride - 1) / stride, (SIZE + stride - 1) / stride, 16);
  RnTensorDesc weights = rn_desc_nchw (RN_F32, channels, channels, 3, 3, 1);
  RnOpCall call = {
    .op = op,
    .args.conv = { .kernel = { 3, 3 },
                   .stride = { stride, stride },
                   .pad = { 1, 1 },
                   .dilation = { 1, 1 },
                   .groups = 1 },
  };

  if (op == RN_OP_CONV2D_FWD)
    {
      call.in[RN_CONV_SRC] = map;
      call.in[RN_CONV_WEIGHTS] = weights;
      call.in_present = 1u << RN_CONV_SRC | 1u << RN_CONV_WEIGHTS;
      call.out[RN_CONV_DST] = small;
      call.out_present = 1u << RN_CONV_DST;
    }
  else
    {
      call.in[RN_CONV_BD_DIFF_DST] = small;
      call.in[RN_CONV_BD_WEIGHTS] = weights;
      call.in_present = 1u << RN_CONV_BD_DIFF_DST | 1u << RN_CONV_BD_WEIGHTS;
      call.out[RN_CONV_BD_DIFF_SRC] = map;
      call.out_present = 1u << RN_CONV_BD_DIFF_SRC;
    }
  return call;
}

/* Scratch of the kernel that the device picks, or 0 if that is not Winograd's. */
static gsize
winograd_scratch (RnDevice *device, const RnOpCall *call)
{
  RnPrepared prepared;
  g_autoptr (GError) error = NULL;
  rn_device_prepare (device, call, &prepared, &error);
  g_assert_no_error (error);
  gsize bytes = g_str_has_suffix (prepared.kernel->name, ":winograd") ? prepared.workspace_bytes : 0;
  rn_prepared_release (&prepared);
  return bytes;
}

static RnDevice *
device_new (gsize workspace_limit)
{
  RnDevice *device = rn_device_new_cpu (2, NULL);
  g_assert_nonnull (device);
  device->workspace_limit = workspace_limit;
  return device;
}

static void
test_slices (gconstpointer data)
{
  RnOpCall call = conv ((RnOp) GPOINTER_TO_INT (data), 1, CHANNELS);
  g_autoptr (RnDevice) free = device_new (0);
  gsize whole = winograd_scratch (free, &call);
  if (whole == 0)
    {
      g_test_skip ("this oneDNN has no Winograd convolutions for this processor");
      return;
    }
  g_autoptr (RnDevice) limited = device_new (whole - 1);
  gsize sliced = winograd_scratch (limited, &call);
  g_assert_cmpuint (sliced, >, 0);
  g_assert_cmpuint (sliced, <, whole);

  Buffers a, b;
  buffers_init (&a, &call, 1, -1, -1);
  buffers_init (&b, &call, 1, -1, -1);
  run_call (free, &call, &a);
  run_call (limited, &call, &b);
  const float *x = a.out[0], *y = b.out[0];
  double largest = 0;
  int64_t n = rn_desc_stored_elements (&call.out[0]);
  for (int64_t i = 0; i < n; i++)
    largest = fmax (largest, fabs ((double) x[i]));
  g_assert_cmpfloat (largest, >, 0);
  /* The same sums over channels, perhaps in another order: 9 * 256 products, see sum_tolerance in
     map-cases.c; and 100 for the growth that test-kernels.c explains. */
  for (int64_t i = 0; i < n; i++)
    g_assert_cmpfloat (fabs ((double) x[i] - y[i]), <=,
                       100 * (8 + sqrt (9.0 * CHANNELS)) * FLT_EPSILON * largest);
  buffers_clear (&a);
  buffers_clear (&b);
}

static void
test_not_taken (void)
{
  g_autoptr (RnDevice) device = device_new (0);
  g_autoptr (RnDevice) tight = device_new (1 << 20);
  RnOpCall strided = conv (RN_OP_CONV2D_FWD, 2, CHANNELS), narrow = conv (RN_OP_CONV2D_FWD, 1, 32),
           wide = conv (RN_OP_CONV2D_FWD, 1, 64);

  g_assert_cmpuint (winograd_scratch (device, &strided), ==, 0);
  g_assert_cmpuint (winograd_scratch (device, &narrow), ==, 0);
  g_assert_cmpuint (winograd_scratch (tight, &wide), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/winograd/slices/fwd", GINT_TO_POINTER (RN_OP_CONV2D_FWD), test_slices);
  g_test_add_data_func ("/winograd/slices/bwd_data", GINT_TO_POINTER (RN_OP_CONV2D_BWD_DATA), test_slices);
  g_test_add_func ("/winograd/not-taken", test_not_taken);
  return g_test_run ();
}
