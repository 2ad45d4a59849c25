/*
 * test-kernels.c: every kernel of the CUDA device against the reference: values, guard bytes, outputs that
 * share storage with inputs, addresses that allow packs and addresses that do not, and equal bits whatever
 * the order of threads and blocks. It is two programs: on the simulated device, and check-kernels on a real
 * one.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/gpu/device-cases.h"
#include "tests/gpu/device-run.h"
#include "tests/gpu/test-device.h"
#include "tests/kernels/compare.h"

#include <math.h>
#include <string.h>

static GArray *cases, *large_cases;

static guint n_kernels_tested;

/* ---- against the reference ---- */

static GBytes *
outputs_of (const Buffers *b)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();

  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (RN_HAS_OUT (b->call, i))
      g_byte_array_append (bytes, b->out[i], (guint) rn_desc_bytes (&b->call->out[i]));
  return g_byte_array_free_to_bytes (g_steal_pointer (&bytes));
}

/* The outputs of one run, with an output in the place of an input, or with -1, -1. NULL: it is refused. If
 * @want, they are compared. */
static GBytes *
run_case (RnDevice *device, const RnKernel *kernel, const Case *c, guint seed, int alias_out, int alias_in,
          gsize shift, const Buffers *want)
{
  const RunOptions options = { .shift = shift };
  GBytes *outputs = NULL;
  Buffers got;

  buffers_init (&got, &c->call, seed, alias_out, alias_in);
  if (run_on_device (device, kernel, &c->call, &got, &options))
    {
      outputs = outputs_of (&got);
      if (want != NULL)
        compare_outputs (&c->call, kernel->name, &got, want, c->tolerance);
    }
  buffers_clear (&got);
  return outputs;
}

/* The library wants whole packs; the plan gives it such addresses. */
static gboolean
takes_any_address (RnOp op)
{
  return op > RN_OP_CONV2D_BWD_WEIGHTS;
}

/* Adds the outputs to @runs, or NULL. */
static void
check_case (RnDevice *device, RnDevice *ref, const RnKernel *kernel, const Case *c, guint seed,
            GPtrArray *runs)
{
  const RnOpCall wide = widened (c->call);
  Buffers want;

  run_reference (ref, &c->call, &wide, seed, &want);
  GBytes *outputs = run_case (device, kernel, c, seed, -1, -1, 0, &want);
  g_ptr_array_add (runs, outputs);
  if (outputs != NULL && takes_any_address (kernel->op))
    g_bytes_unref (run_case (device, kernel, c, seed, -1, -1, sizeof (float), &want));
  buffers_clear (&want);
}

/* In another order of threads and blocks, and with shared storage: the same bits. */
static void
check_bits (RnDevice *device, const RnKernel *kernel, const Case *c, guint seed, GBytes *outputs)
{
  g_autoptr (GBytes) again = run_case (device, kernel, c, seed, -1, -1, 0, NULL);
  g_assert_true (g_bytes_equal (again, outputs));

  for (int o = 0; o < rn_op_n_out (c->call.op); o++)
    for (int i = 0; i < rn_op_n_in (c->call.op); i++)
      if (RN_HAS_OUT (&c->call, o) && RN_HAS_IN (&c->call, i)
          && ((rn_op_alias_mask (c->call.op, o) >> i) & 1) != 0)
        {
          g_autoptr (GBytes) shared = run_case (device, kernel, c, seed, o, i, 0, NULL);
          g_assert_true (g_bytes_equal (shared, outputs));
        }
}

/* The values of an optimizer's flags depend on the seed: small vectors meet all of them. */
static guint
n_seeds (const RnOpCall *call)
{
  gboolean has_flags = call->op == RN_OP_SGD || call->op == RN_OP_ADAM || call->op == RN_OP_STEP_GUARD;
  return has_flags && rn_desc_elements (&call->out[0]) < 100 ? 32 : 1;
}

/* Its kernels are those of the other half. */
static gboolean
is_in_bf16 (const RnOpCall *call)
{
  return call->in[0].dtype == RN_BF16 || call->out[0].dtype == RN_BF16;
}

static void
test_kernel (gconstpointer data)
{
  const RnOp op = (RnOp) GPOINTER_TO_INT (data);
  g_autoptr (RnDevice) ref = rn_device_new_ref ();
  g_autoptr (GPtrArray) runs = g_ptr_array_new ();
  guint n_taken = 0;

  for (int descending = 0; descending < 2; descending++)
    {
      g_autoptr (RnDevice) device = new_device (descending);
      const RnKernel *kernel = find_kernel (device, op);
      guint next = 0;
      for (guint i = 0; i < cases->len; i++)
        {
          const Case *c = &g_array_index (cases, Case, i);
          for (guint k = 0; c->call.op == op && k < n_seeds (&c->call); k++)
            if (!descending)
              check_case (device, ref, kernel, c, i + k, runs);
            else
              {
                g_autoptr (GBytes) outputs = g_ptr_array_index (runs, next++);
                n_taken += outputs != NULL;
                if (outputs != NULL && !is_in_bf16 (&c->call))
                  check_bits (device, kernel, c, i + k, outputs);
              }
        }
    }
  g_test_message ("%s takes %u of %u cases", rn_op_name (op), n_taken, runs->len);
  g_assert_cmpuint (n_taken, >, 0);
  n_kernels_tested++;
}

/* Threads that do more than one round; at addresses of single elements. */
static void
test_large (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  g_autoptr (RnDevice) ref = rn_device_new_ref ();

  for (guint i = 0; i < large_cases->len; i++)
    {
      const Case *c = &g_array_index (large_cases, Case, i);
      Buffers want;
      run_reference (ref, &c->call, &c->call, i, &want);
      g_autoptr (GBytes) outputs =
          run_case (device, find_kernel (device, c->call.op), c, i, -1, -1, sizeof (float), &want);
      g_assert_nonnull (outputs);
      buffers_clear (&want);
    }
}

/* ---- values that random ones do not hit ---- */

static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };

static void
run_plainly (RnDevice *device, const RnOpCall *call, Buffers *b)
{
  g_assert_true (run_on_device (device, find_kernel (device, call->op), call, b, &(RunOptions){ 0 }));
}

static void
test_nan_of_max_pool (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  check_nan_of_max_pool (device, run_plainly);
}

/* ReLU and additions keep NaN, as the reference does. */
static void
test_nan_of_elementwise (void)
{
  static const RnOp ops[] = { RN_OP_RELU_FWD, RN_OP_RELU_BWD, RN_OP_ADD };
  static const float values[] = { NAN, INFINITY, -INFINITY, 0, -0.0f, 1, -1, 0x1p-24f };
  enum
  {
    N = G_N_ELEMENTS (values) * G_N_ELEMENTS (values)
  };
  g_autoptr (RnDevice) device = new_device (FALSE);
  g_autoptr (RnDevice) ref = rn_device_new_ref ();

  for (guint o = 0; o < G_N_ELEMENTS (ops); o++)
    for (guint t = 0; t < G_N_ELEMENTS (types); t++)
      {
        RnTensorDesc d = rn_desc_vector (types[t], N);
        RnOpCall call = { .op = ops[o],
                          .args.add.relu = TRUE,
                          .in = { d, d },
                          .out = { d },
                          .in_present = ops[o] == RN_OP_RELU_FWD ? 1 : 3,
                          .out_present = 1 };
        guint8 a[4 * N], b[4 * N], got[4 * N], want[4 * N];
        Buffers on_device = { .call = &call, .in = { a, b }, .out = { got } };
        Buffers on_ref = { .call = &call, .in = { a, b }, .out = { want } };
        for (int i = 0; i < N; i++)
          {
            rn_float_set (types[t], a, i, values[(guint) i / G_N_ELEMENTS (values)]);
            rn_float_set (types[t], b, i, values[(guint) i % G_N_ELEMENTS (values)]);
          }
        run_on_device (device, find_kernel (device, call.op), &call, &on_device, &(RunOptions){ 0 });
        find_kernel (ref, call.op)->run (ref, &call, NULL, (const void *const *) on_ref.in, on_ref.out, NULL);
        for (int i = 0; i < N; i++)
          {
            float x = rn_float_get (types[t], got, i), y = rn_float_get (types[t], want, i);
            g_assert_true (isnan (y) ? isnan (x) : x == y && signbit (x) == signbit (y));
          }
      }
}

/*
 * Conversions give the bits of half.h: from every number of 16 bits; and from floats between, above and below
 * them: too large ones become infinite, NaN stays.
 */
static void
test_conversions (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  const gint64 n = 1 << 16;
  g_autofree guint8 *src = g_malloc (4 * (gsize) n), *got = g_malloc (4 * (gsize) n),
                    *want = g_malloc (4 * (gsize) n);

  for (guint s = 0; s < G_N_ELEMENTS (types); s++)
    for (guint d = 0; d < G_N_ELEMENTS (types); d++)
      {
        RnOpCall call = { .op = RN_OP_REORDER,
                          .in = { rn_desc_nchw (types[s], 1, 1, 256, 256, 1) },
                          .out = { rn_desc_nchw (types[d], 1, 1, 256, 256, 1) },
                          .in_present = 1,
                          .out_present = 1 };
        Buffers b = { .call = &call, .in = { src }, .out = { got } };
        for (gint64 i = 0; i < n; i++)
          {
            guint16 bits = (guint16) i;
            guint32 word = (guint32) i << 16 | (i % 3 == 0 ? 0x8000 : i % 3 == 1 ? 0x1000 : 0x7fff);
            memcpy (types[s] == RN_F32 ? src + 4 * i : src + 2 * i,
                    types[s] == RN_F32 ? (void *) &word : &bits, rn_dtype_size (types[s]));
          }
        for (gint64 i = 0; i < n; i++)
          rn_float_set (types[d], want, i, rn_float_get (types[s], src, i));
        for (gsize shift = 0; shift <= 4; shift += 4)
          {
            run_on_device (device, find_kernel (device, call.op), &call, &b, &(RunOptions){ .shift = shift });
            for (gint64 i = 0; i < n; i++)
              {
                gsize at = (gsize) i * rn_dtype_size (types[d]);
                if (types[s] == RN_F32 && types[d] == RN_F32)
                  g_assert_true (memcmp (got + at, src + at, 4) == 0);
                else
                  g_assert_true (memcmp (got + at, want + at, rn_dtype_size (types[d])) == 0);
              }
          }
      }
}

/* ---- memory of the host ---- */

/* States of an optimizer may lie there: the same bits as on the device. */
static void
test_pinned_states (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  guint n = 0;

  for (guint i = 0; i < cases->len; i++)
    {
      const Case *c = &g_array_index (cases, Case, i);
      if (c->call.op != RN_OP_SGD && c->call.op != RN_OP_ADAM)
        continue;
      Buffers there, here;
      buffers_init (&there, &c->call, i, -1, -1);
      buffers_init (&here, &c->call, i, -1, -1);
      const RnKernel *kernel = find_kernel (device, c->call.op);
      run_on_device (device, kernel, &c->call, &there, &(RunOptions){ 0 });
      run_on_device (device, kernel, &c->call, &here,
                     &(RunOptions){ .pinned_out = ~1u }); /* not the parameter */
      for (int o = 0; o < RN_OP_MAX_OUT; o++)
        if (RN_HAS_OUT (&c->call, o))
          g_assert_true (memcmp (there.out[o], here.out[o], rn_desc_bytes (&c->call.out[o])) == 0);
      buffers_clear (&there);
      buffers_clear (&here);
      n++;
    }
  g_assert_cmpuint (n, >, 0);
}

static void
test_pinned_copies (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  const RnTensorDesc d = rn_desc_nchw (RN_F16, 2, 5, 3, 7, 5);
  RnOpCall call = { .op = RN_OP_COPY, .in = { d }, .out = { d }, .in_present = 1, .out_present = 1 };

  for (guint ends = 0; ends < 3; ends++)
    {
      Buffers b;
      buffers_init (&b, &call, 1, -1, -1);
      const RunOptions options = { .pinned_in = ends & 1, .pinned_out = ends >> 1 };
      run_on_device (device, find_kernel (device, call.op), &call, &b, &options);
      g_assert_true (memcmp (b.in[0], b.out[0], rn_desc_bytes (&d)) == 0);
      buffers_clear (&b);
    }
}

/* ---- what is refused ---- */

static void
assert_refused (RnDevice *device, const RnOpCall *call, const char *pattern)
{
  RnPrepared prepared = { .kernel = find_kernel (device, call->op) };
  const char *reason = NULL;

  g_assert_cmpstr (rn_op_check (call), ==, NULL);
  g_assert_cmpint (prepared.kernel->prepare (device, call, &prepared, &reason), ==, RN_STATUS_UNSUPPORTED);
  g_assert_true (g_pattern_match_simple (pattern, reason));
}

static void
test_refusals (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  const RnTensorDesc blocked = rn_desc_nchw (RN_F32, 1, 16, 4, 4, 8),
                     plain = rn_desc_nchw (RN_F32, 1, 16, 4, 4, 1);
  const RnTensorDesc coarse = rn_desc_nchw (RN_F32, 1, 1, 1, 70000, 1),
                     fine = rn_desc_nchw (RN_F32, 1, 1, 1, 140000, 1);
  const RnTensorDesc many = rn_desc_nchw (RN_F32, 1 << 20, 1 << 12, 1, 1, 1);
  const RnPoolArgs pool = { .kernel = { 1, 1 }, .stride = { 1, 1 } };
  const RnPoolArgs huge = { .kernel = { 1 << 17, 1 << 17 }, .stride = { 1, 1 }, .pad = { 1 << 16, 1 << 16 } };
  const char *layouts = "layouts other than NCHW and NHWC";
  RnOpCall call = { .in_present = 1, .out_present = 1, .in = { blocked }, .out = { blocked } };

  call.args.pool = pool;
  for (call.op = RN_OP_MAX_POOL_FWD; call.op <= RN_OP_UPSAMPLE_BWD; call.op++)
    if (call.op != RN_OP_MAX_POOL_BWD)
      assert_refused (device, &call, layouts);
  call.op = RN_OP_REORDER;
  assert_refused (device, &call, layouts);
  call.in[0] = plain;
  assert_refused (device, &call, layouts);
  call.in[0] = call.out[0] = many;
  assert_refused (device, &call, "a map with more rows*");

  RnOpCall normalize = { .op = RN_OP_NORMALIZE,
                         .in_present = 7,
                         .out_present = 1,
                         .in = { { RN_U8, 3, { 1, 4, 12, 1 }, 1 },
                                 { RN_I32, 2, { 1, 2, 1, 1 }, 1 },
                                 { RN_F32, 3, { 1, 3, 256, 1 }, 1 } },
                         .out = { rn_desc_nchw (RN_F32, 1, 3, 4, 4, 8) } };
  assert_refused (device, &normalize, layouts);
  normalize.in[0].dims[1] = normalize.out[0].dims[2] = 1 << 30;
  normalize.out[0].cblk = 1;
  assert_refused (device, &normalize, "a map with more rows*");

  call.op = RN_OP_UPSAMPLE_FWD;
  call.in[0] = coarse;
  call.out[0] = fine;
  assert_refused (device, &call, "a product of two heights*");
  call.op = RN_OP_AVG_POOL_FWD;
  call.args.pool = huge;
  call.in[0] = plain;
  call.out[0] = rn_desc_nchw (RN_F32, 1, 16, 5, 5, 1);
  assert_refused (device, &call, "a window*");
}

int
main (int argc, char **argv)
{
  test_device_begin ();
  g_test_init (&argc, &argv, NULL);
  cases = device_cases_new ();
  large_cases = device_large_cases_new ();

  for (RnOp op = 0; op < RN_OP_COUNT; op++)
    {
      g_autofree char *path = g_strconcat ("/gpu/kernels/", rn_op_name (op), NULL);
      g_test_add_data_func (path, GINT_TO_POINTER (op), test_kernel);
    }
  g_test_add_func ("/gpu/large/rounds", test_large);
  g_test_add_func ("/gpu/values/nan-of-max-pool", test_nan_of_max_pool);
  g_test_add_func ("/gpu/values/nan-of-elementwise", test_nan_of_elementwise);
  g_test_add_func ("/gpu/values/conversions", test_conversions);
  g_test_add_func ("/gpu/pinned/states", test_pinned_states);
  g_test_add_func ("/gpu/pinned/copies", test_pinned_copies);
  g_test_add_func ("/gpu/refusals/reasons", test_refusals);
  add_tests_of_simulation (&n_kernels_tested);
  int status = g_test_run ();
  g_array_unref (cases);
  g_array_unref (large_cases);
  return status;
}
