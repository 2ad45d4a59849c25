/*
 * test-kernels.c: every kernel against the reference, on every case it takes: values, padding channels, guard
 * bytes, outputs that share storage with inputs, and equal bits for any number of threads. A kernel that no
 * case reaches fails.
 *
 * The reference always computes on F32 tensors: a kernel for halves must give what this gives on the same
 * numbers, rounded once, to nearest. So must the reference itself on halves.
 */
#include "config.h"

#include "tests/kernels/cases.h"
#include "tests/kernels/compare.h"

#include <string.h>

static GArray *cases;

/* Every output once in the place of every input that the schema allows. */
static void
check_aliases (RnDevice *device, const RnKernel *kernel, const Case *c, guint seed, const Buffers *want,
               double tolerance)
{
  for (int o = 0; o < rn_op_n_out (c->call.op); o++)
    for (int i = 0; i < rn_op_n_in (c->call.op); i++)
      {
        if (!RN_HAS_OUT (&c->call, o) || !RN_HAS_IN (&c->call, i)
            || ((rn_op_alias_mask (c->call.op, o) >> i) & 1) == 0)
          continue;
        Buffers shared;
        buffers_init (&shared, &c->call, seed, o, i);
        run_kernel (device, kernel, &c->call, &shared);
        compare_outputs (&c->call, kernel->name, &shared, want, tolerance);
        buffers_clear (&shared);
      }
}

static gboolean
is_winograd (const RnKernel *kernel)
{
  return g_str_has_suffix (kernel->name, ":winograd");
}

/*
 * Winograd's F(4x4, 3x3) multiplies transformed inputs, B^T d B. Rows of B^T have absolute sums up to 10, so
 * these are up to 100 times the inputs, and so are their rounding errors.
 */
#define WINOGRAD_GROWTH 100

static gboolean
check_case (RnDevice *device, RnDevice *ref, const RnKernel *kernel, const Case *c, guint seed)
{
  Buffers got;
  buffers_init (&got, &c->call, seed, -1, -1);
  gboolean taken = run_kernel (device, kernel, &c->call, &got);
  if (taken)
    {
      const RnOpCall wide = widened (c->call);
      Buffers want;
      run_reference (ref, &c->call, &wide, seed, &want);
      double tolerance = c->tolerance * (is_winograd (kernel) ? WINOGRAD_GROWTH : 1);
      if (g_str_has_prefix (kernel->name, "ref:"))
        tolerance = 0;
      compare_outputs (&c->call, kernel->name, &got, &want, tolerance);
      check_aliases (device, kernel, c, seed, &want, tolerance);
      buffers_clear (&want);
    }
  buffers_clear (&got);
  return taken;
}

static void
test_against_reference (gconstpointer data)
{
  const RnKernel *kernel = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_cpu (2, &error);
  g_autoptr (RnDevice) ref = rn_device_new_ref ();
  guint n_cases = 0, n_taken = 0;

  g_assert_no_error (error);
  for (guint i = 0; i < cases->len; i++)
    {
      const Case *c = &g_array_index (cases, Case, i);
      if (c->call.op != kernel->op)
        continue;
      n_cases++;
      n_taken += check_case (device, ref, kernel, c, i);
    }
  g_test_message ("%s takes %u of %u cases", kernel->name, n_taken, n_cases);
  if (n_taken == 0 && is_winograd (kernel))
    g_test_skip ("this oneDNN has no Winograd convolutions for this processor");
  else
    g_assert_cmpuint (n_taken, >, 0);
}

/*
 * oneDNN shares out some reductions by thread, so its kernels are left out: bits are promised for an equal
 * number of threads.
 */
static void
test_threads (gconstpointer data)
{
  const RnKernel *kernel = data;

  for (guint i = 0; i < cases->len; i++)
    {
      const Case *c = &g_array_index (cases, Case, i);
      if (c->call.op != kernel->op)
        continue;
      Buffers one, many;
      g_autoptr (RnDevice) single = rn_device_new_cpu (1, NULL);
      buffers_init (&one, &c->call, i, -1, -1);
      run_kernel (single, kernel, &c->call, &one);
      g_autoptr (RnDevice) several = rn_device_new_cpu (3, NULL);
      buffers_init (&many, &c->call, i, -1, -1);
      run_kernel (several, kernel, &c->call, &many);
      for (int o = 0; o < rn_op_n_out (c->call.op); o++)
        if (RN_HAS_OUT (&c->call, o))
          g_assert_true (memcmp (one.out[o], many.out[o], rn_desc_bytes (&c->call.out[o])) == 0);
      buffers_clear (&one);
      buffers_clear (&many);
    }
}

static void
test_nan_of_max_pool (void)
{
  RnDevice *devices[] = { rn_device_new_ref (), rn_device_new_cpu (2, NULL) };

  for (guint k = 0; k < G_N_ELEMENTS (devices); k++)
    {
      check_nan_of_max_pool (devices[k], run_call);
      rn_device_free (devices[k]);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  cases = cases_new ();

  g_test_add_func ("/kernels/max-pool/nan", test_nan_of_max_pool);
  const RnKernel *const *kernels = rn_kernels_all ();
  for (int i = 0; kernels[i] != NULL; i++)
    {
      if (strstr (kernels[i]->name, ":half") != NULL || strstr (kernels[i]->name, "bf16") != NULL)
        continue; /* test-half-conv.c */
      g_autofree char *path = g_strconcat ("/kernels/reference/", kernels[i]->name, NULL);
      g_test_add_data_func (path, kernels[i], test_against_reference);
      if (g_str_has_suffix (kernels[i]->name, ":openmp"))
        {
          g_autofree char *threads = g_strconcat ("/kernels/threads/", kernels[i]->name, NULL);
          g_test_add_data_func (threads, kernels[i], test_threads);
        }
    }
  int status = g_test_run ();
  g_array_unref (cases);
  return status;
}
