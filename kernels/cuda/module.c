/* module.c: the table that the module shows. */
#include "config.h"

#include "kernels/cuda/module.h"

#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/startup.h"
#include "kernels/module-number.h"
#include "runner/base/error.h"

#include <gmodule.h>

static RnDevice *
open_device (const RnCudaOptions *options, GError **error)
{
  /* For plans alone nothing has to be there. */
  if (options->profile == NULL && !rn_cuda_startup_device (options->ordinal, error))
    return NULL;
  return rn_cuda_device_new (options, error);
}

static int
count_devices (GError **error)
{
  int n;

  return rn_cuda_startup (&n, error) ? n : 0;
}

static void
write_versions (RnCudaInfo *info)
{
  int driver = 0, runtime = 0;

  cudaDriverGetVersion (&driver);
  cudaRuntimeGetVersion (&runtime);
  g_autofree char *driver_text = rn_cuda_version_text (driver),
                  *runtime_text = rn_cuda_version_text (runtime), *cudnn = rn_cudnn_version_text ();
  g_strlcpy (info->driver, driver_text, sizeof info->driver);
  g_strlcpy (info->runtime, runtime_text, sizeof info->runtime);
  g_strlcpy (info->cudnn, cudnn, sizeof info->cudnn);
}

static gboolean
describe_device (int ordinal, RnCudaInfo *info, GError **error)
{
  struct cudaDeviceProp properties;
  gsize free_bytes = 0, total_bytes = 0;

  if (!rn_cuda_startup_device (ordinal, error))
    return FALSE;
  *info = (RnCudaInfo){ 0 };
  if (cudaGetDeviceProperties (&properties, ordinal) != cudaSuccess
      || cudaMemGetInfo (&free_bytes, &total_bytes) != cudaSuccess)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, "CUDA: device %d does not answer",
                   ordinal);
      return FALSE;
    }
  g_strlcpy (info->name, properties.name, sizeof info->name);
  info->capability[0] = properties.major;
  info->capability[1] = properties.minor;
  info->n_multiprocessors = properties.multiProcessorCount;
  info->free_bytes = free_bytes;
  info->total_bytes = total_bytes;
  write_versions (info);
  return TRUE;
}

static char *
write_profile (int ordinal, GError **error)
{
  if (!rn_cuda_startup_device (ordinal, error))
    return NULL;
  g_autoptr (RnCudnn) cudnn = rn_cudnn_new (error);
  if (cudnn == NULL)
    return NULL;
  /* Nothing is computed: no handle is made, and no stream. */
  g_autoptr (RnCudnnDevice) device = rn_cudnn_device_new (cudnn, ordinal);
  char *json = device != NULL ? rn_cudnn_device_to_json (cudnn, device) : NULL;
  if (json == NULL)
    rn_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
                  "CUDA: cuDNN cannot describe device %d: %s", ordinal, rn_cudnn_fault (cudnn));
  return json;
}

static const RnCudaModule module = {
  .number = RN_CUDA_MODULE_NUMBER,
  .open = open_device,
  .count = count_devices,
  .describe = describe_device,
  .profile = write_profile,
  .kernels = rn_cuda_kernels,
};

G_MODULE_EXPORT const RnCudaModule *
rn_cuda_module (void)
{
  return &module;
}
