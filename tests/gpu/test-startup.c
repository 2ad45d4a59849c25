/*
 * test-startup.c: what the module says of a device that cannot be used, on the simulated one: a line for each
 * condition, the first in the order in which things are built upon each other; and what it says of one that
 * can.
 */
#include "config.h"

#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/module.h"
#include "kernels/cuda/startup.h"
#include "runner/base/error.h"
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/sim/sim.h"

#include <string.h>

#define MAJOR (CUDART_VERSION / 1000)
#define OLD_DRIVER ((MAJOR - 1) * 1000 + 80)
#define OLD_CUDNN (CUDNN_MAJOR * 10000 + 700)

/* ---- the version of cuDNN: the linker puts this in the place of the library's ---- */

size_t __wrap_cudnnGetVersion (void);

static gsize cudnn_version = CUDNN_VERSION;

size_t
__wrap_cudnnGetVersion (void)
{
  return cudnn_version;
}

/* ---- the functions of the table, as one that fails or does not ---- */

static gboolean
try_open (int ordinal, GError **error)
{
  const RnCudaOptions options = { .ordinal = ordinal, .deterministic = TRUE };
  RnDevice *device = rn_cuda_module ()->open (&options, error);

  if (device == NULL)
    return FALSE;
  rn_device_free (device);
  return TRUE;
}

static gboolean
try_count (int ordinal, GError **error)
{
  return rn_cuda_module ()->count (error) > 0;
}

static gboolean
try_describe (int ordinal, GError **error)
{
  RnCudaInfo info;
  return rn_cuda_module ()->describe (ordinal, &info, error);
}

static gboolean
try_profile (int ordinal, GError **error)
{
  g_autofree char *profile = rn_cuda_module ()->profile (ordinal, error);
  return profile != NULL;
}

static gboolean (*const functions[]) (int ordinal, GError **error) = { try_open, try_describe, try_profile,
                                                                       try_count };
/* try_count, the last, asks nothing of one device. */
#define N_OF_DEVICE 3

/* A line, @want (a pattern), of the domain whose exit code is 3; and nothing is left behind. */
static void
assert_line (gboolean is_usable, const GError *error, int code, const char *want)
{
  g_assert_false (is_usable);
  g_assert_error (error, RN_DEVICE_ERROR, code);
  g_assert_cmpint (rn_error_exit_code (error), ==, 3);
  g_assert_null (strchr (error->message, '\n'));
  if (!g_pattern_match_simple (want, error->message))
    g_error ("\"%s\" is not like \"%s\"", error->message, want);
  g_assert_cmpuint (sim_n_live (), ==, 0);
  g_assert_cmpuint (sim_cudnn_n_live (), ==, 0);
}

/* ---- each condition ---- */

typedef struct
{
  const char *name;
  SimConfig sim;
  int ordinal;
  gsize cudnn;        /* version; 0: that of the build */
  gboolean is_of_one; /* a matter of the device that was asked for */
  const char *text;
} Row;

#define T4 .model = "t4", .n_devices = 1, .driver_version = CUDART_VERSION
#define FAILS(error) .sim = { T4, .startup_error = (error) }

/* In place of @OLD and @NEW stand the versions of CUDA; other drivers than these two lines name are newer. */
static const Row rows[] = {
  { "no-driver", { .model = "t4" }, .text = "CUDA: no NVIDIA driver is installed" },
  { "old-driver",
    { .model = "t4", .n_devices = 1, .driver_version = OLD_DRIVER },
    .text = "CUDA: the driver supports CUDA @OLD, this build needs @NEW: driver 5?? or newer" },
  { "stub", FAILS (cudaErrorStubLibrary),
    .text =
        "CUDA: the libcuda that was found is the stub for linking: take the folder \"stubs\" of the toolkit "
        "out of LD_LIBRARY_PATH" },
  { "no-device",
    { .model = "t4", .driver_version = CUDART_VERSION },
    .text = "CUDA: there is no device that the driver can use; nvidia-smi lists them" },
  { "busy", FAILS (cudaErrorDevicesUnavailable), .is_of_one = TRUE,
    .text = "CUDA: the device is busy: another program has it alone (its compute mode is exclusive)" },
  { "ordinal",
    { T4 },
    .ordinal = 1,
    .is_of_one = TRUE,
    .text = "CUDA: there is no device 1; what works: cuda, or cuda:0" },
  { "ordinal-of-three",
    { .model = "t4", .n_devices = 3, .driver_version = CUDART_VERSION },
    .ordinal = 3,
    .is_of_one = TRUE,
    .text = "CUDA: there is no device 3; what works: cuda:0 to cuda:2" },
  { "ordinal-below",
    { T4 },
    .ordinal = -1,
    .is_of_one = TRUE,
    .text = "CUDA: there is no device -1; what works: cuda, or cuda:0" },
  { "fabric-manager", FAILS (cudaErrorSystemNotReady),
    .text = "CUDA: the device is not ready: NVIDIA's fabric manager does not run" },
  { "mismatch", FAILS (cudaErrorSystemDriverMismatch),
    .text =
        "CUDA: the driver in the kernel and the library libcuda are of different versions: start the machine "
        "anew after an update of the driver" },
  { "no-compatibility", FAILS (cudaErrorCompatNotSupportedOnDevice),
    .text =
        "CUDA: this device cannot use a libcuda that is newer than its driver: take the folder \"compat\" "
        "out of LD_LIBRARY_PATH, or update the driver" },
  { "unknown", FAILS (cudaErrorUnknown),
    .text = "CUDA: the driver fails without a reason (cudaErrorUnknown); what it wrote into the kernel's log "
            "says "
            "more: dmesg" },
  { "another-error", FAILS (cudaErrorInvalidValue),
    .text = "CUDA: cudaGetDeviceCount: cudaErrorInvalidValue (1): *" },
  { "capability-6",
    { .model = "gtx1080", .n_devices = 1, .driver_version = CUDART_VERSION },
    .is_of_one = TRUE,
    .text = "CUDA: device 0 (NVIDIA GeForce GTX 1080) has compute capability 6.1, and 7.5 is the least that "
            "works" },
  { "capability-7",
    { .model = "v100", .n_devices = 2, .driver_version = CUDART_VERSION },
    .ordinal = 1,
    .is_of_one = TRUE,
    .text =
        "CUDA: device 1 (Tesla V100-SXM2-16GB) has compute capability 7.0, and 7.5 is the least that works" },
  { "old-cudnn",
    { T4 },
    .cudnn = OLD_CUDNN,
    .is_of_one = TRUE,
    .text = "CUDA: *test-startup is cuDNN @CUDNN.7.0, this build needs @CUDNN.*.0 or a newer one of the same "
            "major "
            "version" },
  { "another-cudnn",
    { T4 },
    .cudnn = (CUDNN_MAJOR + 1) * 10000,
    .is_of_one = TRUE,
    .text =
        "CUDA: *test-startup is cuDNN *.0.0, this build needs @CUDNN.*.0 or a newer one of the same major "
        "version" },
};

static char *
expected_text (const Row *row)
{
  g_autoptr (GString) text = g_string_new (row->text);
  g_autofree char *old = rn_cuda_version_text (OLD_DRIVER), *new = rn_cuda_version_text (MAJOR * 1000),
                  *cudnn = g_strdup_printf ("%d", CUDNN_MAJOR);

  g_string_replace (text, "@OLD", old, 0);
  g_string_replace (text, "@NEW", new, 0);
  g_string_replace (text, "@CUDNN", cudnn, 0);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
test_row (gconstpointer data)
{
  const Row *row = data;
  g_autofree char *want = expected_text (row);

  cudnn_version = row->cudnn != 0 ? row->cudnn : CUDNN_VERSION;
  for (guint i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      g_autoptr (GError) error = NULL;
      sim_reset (&row->sim);
      gboolean is_usable = functions[i](row->ordinal, &error);
      if (row->is_of_one && i == N_OF_DEVICE)
        {
          g_assert_no_error (error);
          g_assert_true (is_usable);
        }
      else
        assert_line (is_usable, error, RN_DEVICE_ERROR_MISSING, want);
    }
  cudnn_version = CUDNN_VERSION;
}

/* The driver that the text of an old one names is the first of the major version. */
static void
test_first_driver (void)
{
  static const char *const drivers[] = { "driver 525 or newer", "driver 580 or newer" };
  const SimConfig sim = { .model = "t4", .n_devices = 1, .driver_version = OLD_DRIVER };
  g_autoptr (GError) error = NULL;

  G_STATIC_ASSERT (MAJOR == 12 || MAJOR == 13);
  sim_reset (&sim);
  g_assert_false (try_count (0, &error));
  g_assert_true (g_str_has_suffix (error->message, drivers[MAJOR - 12]));
}

static void
test_hidden (void)
{
  const SimConfig sim = { .model = "t4", .driver_version = CUDART_VERSION };
  g_autoptr (GError) error = NULL;

  g_setenv ("CUDA_VISIBLE_DEVICES", "7", TRUE);
  sim_reset (&sim);
  gboolean is_usable = try_open (0, &error);
  g_unsetenv ("CUDA_VISIBLE_DEVICES");
  assert_line (is_usable, error, RN_DEVICE_ERROR_MISSING,
               "CUDA: there is no device, or CUDA_VISIBLE_DEVICES=7 hides it");
}

/* ---- calls that fail on a device that looks usable ---- */

static unsigned long
n_calls_of (gboolean (*function) (int ordinal, GError **error))
{
  const SimConfig sim = { T4 };
  g_autoptr (GError) error = NULL;

  sim_reset (&sim);
  gboolean is_usable = function (0, &error);
  g_assert_no_error (error);
  g_assert_true (is_usable);
  return sim_n_calls ();
}

/* Whatever call of whichever function fails: a line, and nothing is left. */
static void
test_failing_calls (void)
{
  static const struct
  {
    cudaError_t error;
    int code;
    const char *part;
  } failures[] = {
    { cudaErrorMemoryAllocation, RN_DEVICE_ERROR_MEMORY, "not even the memory to begin with" },
    { cudaErrorNoKernelImageForDevice, RN_DEVICE_ERROR_MISSING,
      "built for 75,80,90,ptx90, which the device" },
    { cudaErrorNoKernelImageForDevice, RN_DEVICE_ERROR_MISSING, "anew with --with-cuda-arch" },
    { cudaErrorECCUncorrectable, RN_DEVICE_ERROR_MISSING, "cudaErrorECCUncorrectable (214)" },
  };
  const SimConfig sim = { T4 };
  unsigned long n_startup = n_calls_of (try_count);

  for (guint i = 0; i < N_OF_DEVICE; i++)
    for (unsigned long n = 1, n_calls = n_calls_of (functions[i]); n <= n_calls; n++)
      for (guint k = 0; k < G_N_ELEMENTS (failures); k++)
        {
          g_autoptr (GError) error = NULL;
          sim_reset (&sim);
          sim_fail_call (n, failures[k].error);
          if (functions[i](0, &error)) /* it released something, or asked for what it can do without */
            {
              g_assert_cmpuint (n, >, n_startup);
              continue;
            }
          g_assert_cmpint (rn_error_exit_code (error), ==, 3);
          g_assert_null (strchr (error->message, '\n'));
          g_assert_cmpuint (sim_n_live (), ==, 0);
          g_assert_cmpuint (sim_cudnn_n_live (), ==, 0);
          if (n <= n_startup)
            {
              g_assert_error (error, RN_DEVICE_ERROR, failures[k].code);
              if (strstr (error->message, failures[k].part) == NULL)
                g_error ("call %lu: %s", n, error->message);
            }
        }
}

/* ---- the order ---- */

/* Two things are wrong: the first is what has to be put right first. */
static void
test_order (void)
{
  static const struct
  {
    SimConfig sim;
    int ordinal;
    unsigned long failing_call; /* of the runtime: 2 is the question for its version */
    gsize cudnn;
    const char *part;
  } pairs[] = {
    { { .model = "t4" }, 0, 2, 0, "no NVIDIA driver" },
    { { .model = "t4", .n_devices = 1, .driver_version = OLD_DRIVER }, 0, 2, 0, "cudaRuntimeGetVersion" },
    { { .model = "t4", .driver_version = OLD_DRIVER }, 0, 0, 0, "the driver supports" },
    { { .model = "t4", .driver_version = CUDART_VERSION }, 1, 0, 0, "that the driver can use" },
    { { .model = "gtx1080", .n_devices = 1, .driver_version = CUDART_VERSION }, 1, 0, 0, "no device 1" },
    { { .model = "gtx1080",
        .n_devices = 1,
        .driver_version = CUDART_VERSION,
        .startup_error = cudaErrorDevicesUnavailable },
      0,
      0,
      0,
      "compute capability 6.1" },
    { { T4, .startup_error = cudaErrorDevicesUnavailable }, 0, 0, OLD_CUDNN, "busy" },
    { { T4 }, 0, 0, OLD_CUDNN, "cuDNN" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (pairs); i++)
    {
      g_autoptr (GError) error = NULL;
      sim_reset (&pairs[i].sim);
      sim_fail_call (pairs[i].failing_call, cudaErrorInvalidValue);
      cudnn_version = pairs[i].cudnn != 0 ? pairs[i].cudnn : CUDNN_VERSION;
      g_assert_false (try_open (pairs[i].ordinal, &error));
      if (strstr (error->message, pairs[i].part) == NULL)
        g_error ("\"%s\" comes before \"%s\"", error->message, pairs[i].part);
    }
  cudnn_version = CUDNN_VERSION;
}

/* ---- what can be used ---- */

/* A newer driver, a newer minor version of cuDNN, an older minor version of the driver. */
static void
test_usable (void)
{
  static const struct
  {
    const char *model;
    int driver_version;
    gsize cudnn;
  } cases[] = {
    { "gtx1660", CUDART_VERSION, CUDNN_VERSION },    { "t4", MAJOR * 1000, CUDNN_VERSION },
    { "a100", (MAJOR + 1) * 1000, CUDNN_VERSION },   { "rtx5090", CUDART_VERSION, CUDNN_VERSION / 100 * 100 },
    { "h200", CUDART_VERSION, CUDNN_VERSION + 100 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    for (guint k = 0; k < G_N_ELEMENTS (functions); k++)
      {
        const SimConfig sim = { .model = cases[i].model,
                                .n_devices = 2,
                                .driver_version = cases[i].driver_version };
        g_autoptr (GError) error = NULL;
        sim_reset (&sim);
        cudnn_version = cases[i].cudnn;
        gboolean is_usable = functions[k](1, &error);
        g_assert_no_error (error);
        g_assert_true (is_usable);
        g_assert_cmpuint (sim_n_live (), ==, 0);
      }
  cudnn_version = CUDNN_VERSION;
}

static void
test_describe (void)
{
  const SimConfig sim = {
    .model = "rtx3060", .n_devices = 2, .driver_version = MAJOR * 1000 + 90, .memory_bytes = (gsize) 5 << 30
  };
  RnCudaInfo info;
  g_autoptr (GError) error = NULL;
  g_autofree char *driver = g_strdup_printf ("%d.9", MAJOR);
  g_autofree char *runtime = rn_cuda_version_text (CUDART_VERSION);
  g_autofree char *cudnn = g_strdup_printf ("%d.%d.%d", CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);

  sim_reset (&sim);
  g_assert_cmpint (rn_cuda_module ()->count (&error), ==, 2);
  memset (&info, 0xff, sizeof info);
  gboolean is_usable = rn_cuda_module ()->describe (1, &info, &error);
  g_assert_no_error (error);
  g_assert_true (is_usable);
  g_assert_cmpstr (info.name, ==, "NVIDIA GeForce RTX 3060");
  g_assert_cmpint (info.capability[0], ==, 8);
  g_assert_cmpint (info.capability[1], ==, 6);
  g_assert_cmpint (info.n_multiprocessors, ==, 28);
  g_assert_cmpuint (info.total_bytes, ==, (guint64) 5 << 30);
  g_assert_cmpuint (info.free_bytes, <=, info.total_bytes);
  g_assert_cmpuint (info.free_bytes, >, 0);
  g_assert_cmpstr (info.driver, ==, driver);
  g_assert_cmpstr (info.runtime, ==, runtime);
  g_assert_cmpstr (info.cudnn, ==, cudnn);
}

/* The profile of a device makes a device for plans, where there is none. */
static void
test_profile (void)
{
  const SimConfig here = { .model = "a100", .n_devices = 1, .driver_version = CUDART_VERSION };
  const SimConfig nowhere = { .model = "t4" };
  g_autoptr (GError) error = NULL;

  sim_reset (&here);
  g_autofree char *profile = rn_cuda_module ()->profile (0, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (profile, "NVIDIA A100-SXM4-40GB"));
  sim_reset (&nowhere);
  const RnCudaOptions options = { .profile = profile };
  RnDevice *device = rn_cuda_module ()->open (&options, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (device->description, "NVIDIA A100-SXM4-40GB (sm_80)"));
  rn_device_free (device);
}

/* ---- kernels that were compiled for other devices ---- */

static void
test_archs (void)
{
  static const struct
  {
    const char *archs;
    int capability;
    gboolean is_covered;
  } cases[] = {
    { "75", 75, TRUE },
    { "75", 80, FALSE }, /* another generation */
    { "80", 86, TRUE },  /* a later one of the same */
    { "86", 80, FALSE }, /* an earlier one */
    { "80", 89, TRUE },
    { "80", 75, FALSE },
    { "90", 100, FALSE },
    { "100", 103, TRUE },
    { "100", 120, FALSE },
    { "ptx90", 90, TRUE }, /* compiled by the driver */
    { "ptx90", 120, TRUE },
    { "ptx90", 89, FALSE },
    { "75,80,90,ptx90", 75, TRUE },
    { "75,80,90,ptx90", 103, TRUE },
    { "80,90", 75, FALSE },
    { "120", 121, TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    if (rn_cuda_archs_cover (cases[i].archs, cases[i].capability) != cases[i].is_covered)
      g_error ("--with-cuda-arch=%s, a device of %d", cases[i].archs, cases[i].capability);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_unsetenv ("CUDA_VISIBLE_DEVICES");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *path = g_strconcat ("/startup/says/", rows[i].name, NULL);
      g_test_add_data_func (path, &rows[i], test_row);
    }
  g_test_add_func ("/startup/first-driver", test_first_driver);
  g_test_add_func ("/startup/hidden", test_hidden);
  g_test_add_func ("/startup/failing-calls", test_failing_calls);
  g_test_add_func ("/startup/order", test_order);
  g_test_add_func ("/startup/usable", test_usable);
  g_test_add_func ("/startup/describe", test_describe);
  g_test_add_func ("/startup/profile", test_profile);
  g_test_add_func ("/startup/archs", test_archs);
  return g_test_run ();
}
