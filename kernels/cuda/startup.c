/* startup.c: is there a device that can be used, and what is wrong if not. */
#include "config.h"

#include "kernels/cuda/startup.h"

#include "kernels/cuda/cudnn.h"
#include "runner/base/error.h"

#include <stdlib.h>
#include <string.h>

/* RN_CUDA_ARCH: what this build has kernels for. */


static gboolean missing (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
missing (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, "CUDA: %s", text);
  return FALSE;
}

char *
rn_cuda_version_text (int version)
{
  return g_strdup_printf ("%d.%d", version / 1000, version % 1000 / 10);
}

/* ---- what a call says that cannot be done ---- */

/* The first drivers of each major version of CUDA. */
static const struct
{
  int major, driver;
} first_drivers[] = { { 12, 525 }, { 13, 580 } };

/* A driver runs programs of its own major version, minor ones that are newer than it is too. */
static gboolean
driver_too_old (int driver, int runtime, GError **error)
{
  int major = runtime / 1000;
  g_autofree char *found = rn_cuda_version_text (driver), *needed = rn_cuda_version_text (major * 1000);

  for (gsize i = 0; i < G_N_ELEMENTS (first_drivers); i++)
    if (first_drivers[i].major == major)
      return missing (error, "the driver supports CUDA %s, this build needs %s: driver %d or newer", found,
                      needed, first_drivers[i].driver);
  return missing (error, "the driver supports CUDA %s, this build needs %s: a newer driver", found, needed);
}

static gboolean
no_device (GError **error)
{
  const char *visible = g_getenv ("CUDA_VISIBLE_DEVICES");

  if (visible != NULL)
    return missing (error, "there is no device, or CUDA_VISIBLE_DEVICES=%s hides it", visible);
  return missing (error, "there is no device that the driver can use; nvidia-smi lists them");
}

static gboolean
no_memory (GError **error)
{
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
               "CUDA: the device has not even the memory to begin with; other programs hold it: nvidia-smi "
               "lists them");
  return FALSE;
}

/* FALSE with the line for @status unless it is success. */
static gboolean
check (cudaError_t status, const char *what, GError **error)
{
  int driver = 0, runtime = 0;

  if (status == cudaSuccess)
    return TRUE;
  cudaGetLastError (); /* no later call is to report it again */
  switch ((int) status)
    {
    case cudaErrorMemoryAllocation:
      return no_memory (error);
    case cudaErrorStubLibrary:
      return missing (error, "the libcuda that was found is the stub for linking: take the folder \"stubs\" "
                             "of the toolkit out of LD_LIBRARY_PATH");
    case cudaErrorInsufficientDriver:
      if (cudaDriverGetVersion (&driver) != cudaSuccess || driver == 0)
        return missing (error, "no NVIDIA driver is installed");
      cudaRuntimeGetVersion (&runtime);
      return driver_too_old (driver, runtime, error);
    case cudaErrorDevicesUnavailable:
      return missing (error,
                      "the device is busy: another program has it alone (its compute mode is exclusive)");
    case cudaErrorNoDevice:
      return no_device (error);
    case cudaErrorSystemNotReady:
      return missing (error, "the device is not ready: NVIDIA's fabric manager does not run");
    case cudaErrorSystemDriverMismatch:
      return missing (error,
                      "the driver in the kernel and the library libcuda are of different versions: start the "
                      "machine anew after an update of the driver");
    case cudaErrorCompatNotSupportedOnDevice:
      return missing (error,
                      "this device cannot use a libcuda that is newer than its driver: take the folder "
                      "\"compat\" out of LD_LIBRARY_PATH, or update the driver");
    case cudaErrorNoKernelImageForDevice:
      return missing (error,
                      "the kernels are built for %s, which the device cannot run: build the module anew with "
                      "--with-cuda-arch",
                      RN_CUDA_ARCH);
    case cudaErrorUnknown:
      return missing (
          error, "the driver fails without a reason (cudaErrorUnknown); what it wrote into the kernel's log "
                 "says more: dmesg");
    default:
      return missing (error, "%s: %s (%d): %s", what, cudaGetErrorName (status), (int) status,
                      cudaGetErrorString (status));
    }
}

/* ---- driver, runtime, devices ---- */

gboolean
rn_cuda_startup (int *n_devices, GError **error)
{
  int driver = 0, runtime = 0;

  *n_devices = 0;
  if (!check (cudaDriverGetVersion (&driver), "cudaDriverGetVersion", error))
    return FALSE;
  if (driver == 0)
    return missing (error, "no NVIDIA driver is installed");
  if (!check (cudaRuntimeGetVersion (&runtime), "cudaRuntimeGetVersion", error))
    return FALSE;
  if (driver / 1000 < runtime / 1000)
    return driver_too_old (driver, runtime, error);
  if (!check (cudaGetDeviceCount (n_devices), "cudaGetDeviceCount", error))
    return FALSE;
  return *n_devices > 0 || no_device (error);
}

/* ---- one device ---- */

gboolean
rn_cuda_archs_cover (const char *archs, int capability)
{
  g_auto (GStrv) list = g_strsplit (archs, ",", -1);

  for (char **arch = list; *arch != NULL; arch++)
    {
      gboolean is_ptx = g_str_has_prefix (*arch, "ptx");
      int number = atoi (*arch + (is_ptx ? strlen ("ptx") : 0));
      if (number <= capability && (is_ptx || number / 10 == capability / 10))
        return TRUE;
    }
  return FALSE;
}

static gboolean
check_capability (int ordinal, GError **error)
{
  struct cudaDeviceProp properties;

  if (!check (cudaGetDeviceProperties (&properties, ordinal), "cudaGetDeviceProperties", error))
    return FALSE;
  int capability = 10 * properties.major + properties.minor;
  if (capability < RN_CUDA_MIN_CAPABILITY)
    return missing (error, "device %d (%s) has compute capability %d.%d, and %d.%d is the least that works",
                    ordinal, properties.name, properties.major, properties.minor, RN_CUDA_MIN_CAPABILITY / 10,
                    RN_CUDA_MIN_CAPABILITY % 10);
  if (!rn_cuda_archs_cover (RN_CUDA_ARCH, capability))
    return missing (
        error,
        "device %d (%s) has compute capability %d.%d, and the kernels are built for %s: build the module "
        "anew with --with-cuda-arch=%d",
        ordinal, properties.name, properties.major, properties.minor, RN_CUDA_ARCH, capability);
  return TRUE;
}

static gboolean
check_ordinal (int ordinal, int n_devices, GError **error)
{
  if (ordinal >= 0 && ordinal < n_devices)
    return TRUE;
  if (n_devices == 1)
    return missing (error, "there is no device %d; what works: cuda, or cuda:0", ordinal);
  return missing (error, "there is no device %d; what works: cuda:0 to cuda:%d", ordinal, n_devices - 1);
}

gboolean
rn_cuda_startup_device (int ordinal, GError **error)
{
  int n_devices;
  gsize free_bytes, total_bytes;

  /* A context is made by the first call that needs one, at the latest by the question for memory. */
  return rn_cuda_startup (&n_devices, error) && check_ordinal (ordinal, n_devices, error)
         && check_capability (ordinal, error) && check (cudaSetDevice (ordinal), "cudaSetDevice", error)
         && check (cudaMemGetInfo (&free_bytes, &total_bytes), "cudaMemGetInfo", error)
         && rn_cudnn_check_version (cudnnGetVersion (), error);
}
