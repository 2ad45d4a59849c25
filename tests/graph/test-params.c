/* test-params.c: the parameter set: names, places in the arrays, and initial values. */
#include "config.h"

#include "graph/params.h"
#include "runner/base/error.h"

#include <math.h>
#include <string.h>

static int
add (RnParamSet *set, const char *name, int64_t n, gboolean trainable, RnInit init)
{
  RnTensorDesc desc = rn_desc_vector (RN_F32, n);
  return rn_param_set_intern (set, name, RN_PARAM_WEIGHT, &desc, trainable, init);
}

static int
add_buffer (RnParamSet *set, const char *name, int64_t n)
{
  RnTensorDesc desc = rn_desc_vector (RN_F32, n);
  return rn_param_set_intern (set, name, RN_PARAM_BUFFER, &desc, TRUE,
                              (RnInit){ .kind = RN_INIT_CONSTANT, .a = 2 });
}

static const RnInit normal = { .kind = RN_INIT_NORMAL, .a = 3, .b = 0.5 };
static const RnInit uniform = { .kind = RN_INIT_UNIFORM, .a = -1, .b = 1 };

static RnParamSet *
make_set (void)
{
  RnParamSet *set = rn_param_set_new ();
  add (set, "a", 1, TRUE, normal);
  add (set, "frozen", 33, FALSE, normal);
  add_buffer (set, "mean", 17);
  add (set, "b", 16, TRUE, uniform);
  add (set, "c", 17, TRUE, normal);
  return set;
}

static void
allocate (RnParamSet *set, RnDevice *device, gboolean training, int n_states)
{
  g_autoptr (GError) error = NULL;
  rn_param_set_allocate (set, device, training, n_states, &error);
  g_assert_no_error (error);
}

static void
init (RnParamSet *set, guint64 seed)
{
  g_autoptr (GError) error = NULL;
  rn_param_set_init (set, seed, &error);
  g_assert_no_error (error);
}

static void
test_list (void)
{
  g_autoptr (RnParamSet) set = make_set ();
  g_assert_cmpint (rn_param_set_size (set), ==, 5);
  g_assert_cmpint (rn_param_set_find (set, "b"), ==, 3);
  g_assert_cmpint (rn_param_set_find (set, "d"), ==, -1);
  g_assert_cmpint (add (set, "b", 16, TRUE, uniform), ==, 3);
  g_assert_cmpint (rn_param_set_size (set), ==, 5);
  g_assert_cmpint (rn_param_set_n_weights (set), ==, 4);
  g_assert_cmpint (rn_param_set_n_elements (set, FALSE), ==, 1 + 33 + 16 + 17);
  g_assert_cmpint (rn_param_set_n_elements (set, TRUE), ==, 1 + 16 + 17);
  g_assert_false (rn_param_set_get (set, 2)->trainable); /* a buffer, whatever was asked for */

  /* in steps of 64 bytes, 16 floats */
  g_assert_cmpuint (rn_param_set_value_bytes (set), ==, 64 * (1 + 3 + 2 + 1 + 2));
  g_assert_cmpuint (rn_param_set_grad_bytes (set), ==, 64 * (1 + 1 + 2));
}

static void
test_another_shape (void)
{
  g_autoptr (RnParamSet) set = make_set ();
  g_test_expect_message (G_LOG_DOMAIN, G_LOG_LEVEL_CRITICAL, "*rn_desc_equal*");
  g_assert_cmpint (add (set, "b", 15, TRUE, uniform), ==, -1);
  g_test_assert_expected_messages ();
}

static void
test_places (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (RnParamSet) set = make_set ();
  g_assert_null (rn_param_set_value (set, 0));
  allocate (set, device, TRUE, 2);
  char *values = rn_param_set_value (set, 0), *grads = rn_param_set_all_grads (set);
  static const gsize value_at[] = { 0, 64, 256, 384, 448 };
  static const int grad_at[] = { 0, -1, -1, 64, 128 };
  for (int i = 0; i < 5; i++)
    {
      g_assert_true ((char *) rn_param_set_value (set, i) == values + value_at[i]);
      g_assert_true (rn_param_set_grad (set, i) == (grad_at[i] < 0 ? NULL : grads + grad_at[i]));
      for (int k = 0; k < RN_PARAM_MAX_STATES; k++)
        {
          char *first = rn_param_set_state (set, k, 0); /* the first one is trained, at the start */
          g_assert_true ((first != NULL) == (k < 2));
          g_assert_true (rn_param_set_state (set, k, i)
                         == (first == NULL || grad_at[i] < 0 ? NULL : first + grad_at[i]));
        }
    }
  g_assert_cmpuint ((guintptr) values % 64, ==, 0);
  g_assert_cmpuint ((guintptr) grads % 64, ==, 0);
}

/* Norms run over the whole array, so the gaps must be zero, and stay so. */
static void
test_gaps (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (RnParamSet) set = make_set ();
  allocate (set, device, TRUE, 0);
  init (set, 1);
  const float *values = rn_param_set_value (set, 0);
  for (int k = 1; k < 16; k++)
    g_assert_cmpfloat (values[k], ==, 0);
  g_assert_null (rn_param_set_state (set, 0, 0));

  float *grads = rn_param_set_all_grads (set);
  gsize n = rn_param_set_grad_bytes (set) / sizeof (float);
  for (gsize k = 0; k < n; k++)
    {
      g_assert_cmpfloat (grads[k], ==, 0);
      grads[k] = 1;
    }
  rn_param_set_zero_grads (set, &error);
  g_assert_no_error (error);
  for (gsize k = 0; k < n; k++)
    g_assert_cmpfloat (grads[k], ==, 0);
}

/* The mean lies as the values do, apart from them. */
static void
test_ema (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (RnParamSet) set = make_set ();
  allocate (set, device, TRUE, 0);
  g_assert_null (rn_param_set_all_ema (set));
  g_assert_null (rn_param_set_ema (set, 0));
  init (set, 1);
  g_assert_true (rn_param_set_allocate_ema (set, &error));
  g_assert_no_error (error);
  const char *values = rn_param_set_all_values (set);
  char *mean = rn_param_set_all_ema (set);
  g_assert_true (rn_param_set_value (set, 0) == values);
  for (int i = 0; i < rn_param_set_size (set); i++)
    g_assert_true ((char *) rn_param_set_ema (set, i) - mean
                   == (const char *) rn_param_set_value (set, i) - values);
  for (gsize k = 0; k < rn_param_set_value_bytes (set) / sizeof (float); k++)
    g_assert_cmpfloat (((const float *) (gpointer) mean)[k], ==, 0);
  g_autofree char *before = g_memdup2 (values, rn_param_set_value_bytes (set));
  memset (mean, 0xff, rn_param_set_value_bytes (set));
  g_assert_true (memcmp (values, before, rn_param_set_value_bytes (set)) == 0);
}

static void
test_without_gradients (void)
{
  for (int n_states = 0; n_states < 2; n_states++)
    {
      g_autoptr (RnDevice) device = rn_device_new_ref ();
      g_autoptr (RnParamSet) set = make_set ();
      allocate (set, device, FALSE, n_states);
      g_assert_nonnull (rn_param_set_value (set, 4));
      g_assert_null (rn_param_set_all_grads (set));
      g_assert_null (rn_param_set_grad (set, 4));
      g_assert_true ((rn_param_set_state (set, 0, 4) != NULL) == (n_states == 1));
      g_assert_true (rn_param_set_zero_grads (set, NULL));
    }
}

static void
assert_moments (const float *values, int64_t n, double mean, double deviation)
{
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < n; k++)
    sum += (double) values[k];
  for (int64_t k = 0; k < n; k++)
    squares += ((double) values[k] - mean) * ((double) values[k] - mean);
  /* five standard errors of a mean of n values, and of a deviation (at most that of a normal distribution) */
  g_assert_cmpfloat (fabs (sum / (double) n - mean), <, 5 * deviation / sqrt ((double) n));
  g_assert_cmpfloat (fabs (sqrt (squares / (double) n) - deviation), <,
                     5 * deviation / sqrt (2 * (double) n));
}

static void
test_distributions (void)
{
  enum
  {
    N = 20000
  };
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (RnParamSet) set = rn_param_set_new ();
  add (set, "normal", N, TRUE, normal);
  add (set, "uniform", N, TRUE, uniform);
  add_buffer (set, "constant", 5);
  allocate (set, device, FALSE, 0);
  init (set, 42);
  assert_moments (rn_param_set_value (set, 0), N, 3, 0.5);
  assert_moments (rn_param_set_value (set, 1), N, 0, 1 / sqrt (3));
  const float *u = rn_param_set_value (set, 1), *constant = rn_param_set_value (set, 2);
  for (int k = 0; k < N; k++)
    g_assert_true (u[k] >= -1 && u[k] <= 1);
  for (int k = 0; k < 5; k++)
    g_assert_cmpfloat (constant[k], ==, 2);
}

/* The same tensor gets the same values wherever it stands and whatever is beside it; names and seeds make a
 * difference. */
static void
test_independence (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (RnParamSet) a = make_set ();
  g_autoptr (RnParamSet) b = rn_param_set_new ();
  add (b, "c", 17, TRUE, normal);
  add (b, "other", 17, TRUE, normal);
  allocate (a, device, FALSE, FALSE);
  allocate (b, device, FALSE, FALSE);
  init (a, 5);
  init (b, 5);
  gsize bytes = 17 * sizeof (float);
  g_assert_cmpint (memcmp (rn_param_set_value (a, 4), rn_param_set_value (b, 0), bytes), ==, 0);
  g_assert_cmpint (memcmp (rn_param_set_value (b, 0), rn_param_set_value (b, 1), bytes), !=, 0);
  init (b, 6);
  g_assert_cmpint (memcmp (rn_param_set_value (a, 4), rn_param_set_value (b, 0), bytes), !=, 0);
}

/* A device with no memory left after so many allocations. */
static int allocations_left;

static RnStatus (*true_alloc) (RnDevice *device, gsize bytes, void **memory);

static RnStatus
scarce_alloc (RnDevice *device, gsize bytes, void **memory)
{
  return allocations_left-- > 0 ? true_alloc (device, bytes, memory) : RN_STATUS_MEMORY;
}

static void
test_no_memory (void)
{
  for (int n = 0; n < 4; n++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnDevice) device = rn_device_new_ref ();
      g_autoptr (RnParamSet) set = make_set ();
      RnDeviceVtbl vtbl = *device->vtbl;
      const RnDeviceVtbl *kept = device->vtbl;
      true_alloc = vtbl.alloc;
      vtbl.alloc = scarce_alloc;
      device->vtbl = &vtbl;
      allocations_left = n;
      g_assert_false (rn_param_set_allocate (set, device, TRUE, 2, &error));
      g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
      g_assert_null (rn_param_set_value (set, 0));
      device->vtbl = kept;
      allocate (set, device, TRUE, 2); /* may be tried again */
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/params/list", test_list);
  g_test_add_func ("/graph/params/another-shape", test_another_shape);
  g_test_add_func ("/graph/params/places", test_places);
  g_test_add_func ("/graph/params/gaps", test_gaps);
  g_test_add_func ("/graph/params/ema", test_ema);
  g_test_add_func ("/graph/params/without-gradients", test_without_gradients);
  g_test_add_func ("/graph/params/distributions", test_distributions);
  g_test_add_func ("/graph/params/independence", test_independence);
  g_test_add_func ("/graph/params/no-memory", test_no_memory);
  return g_test_run ();
}
