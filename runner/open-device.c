/* open-device.c: opens the device of a run. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/open-device.h"

#include "kernels/cuda-module.h"
#include "kernels/plan-device.h"
#include "runner/base/error.h"
#include "runner/config/config.h"

/* Ampere's: bf16 and TF32. */
#define MIN_CAPABILITY 8

#define PLAN_FILE "cudnn-plans.json"

static void
set_limits (RnDevice *device, const RnRunConfig *config)
{
  device->workspace_limit = config->memory.workspace_bytes;
  device->prefer = config->backend.prefer;
  device->forbid = config->backend.forbid;
}

static RnDevice *
open_cpu (const RnRunConfig *config, GError **error)
{
  return rn_device_new_cpu (config->threads > 0 ? (int) config->threads : (int) g_get_num_processors (),
                            error);
}

static RnCudaOptions
cuda_options (const RnRunConfig *config)
{
  return (RnCudaOptions){ .ordinal = rn_device_ordinal (config->device),
                          .half = config->fp16.level != RN_AMP_O0,
                          .tf32 = config->device_options.tf32,
                          .deterministic = config->deterministic,
                          .layout = (RnCudaLayout) config->device_options.layout };
}

/* What this generation of devices cannot do, or could do better. */
static gboolean
check_generation (const RnNode *root, const RnRunConfig *config, const RnCudaInfo *info, GError **error)
{
  gboolean is_new = info->capability[0] >= MIN_CAPABILITY;

  if (config->fp16.level != RN_AMP_O0 && config->fp16.dtype == RN_BF16 && !is_new)
    {
      const RnNode *line = rn_node_path (root, "fp16.dtype");
      return rn_node_error (line != NULL ? line : rn_node_get (root, "fp16"), error,
                            "bf16 needs compute capability %d.0, and %s has %d.%d; what works: dtype: fp16",
                            MIN_CAPABILITY, info->name, info->capability[0], info->capability[1]);
    }
  if (config->fp16.level == RN_AMP_O0 && !config->device_options.tf32 && is_new)
    g_message (
        "convolutions compute in strict single precision; device_options: {tf32: true} lets them round their "
        "inputs to 10 bits, as PyTorch does by default: several times faster on this device");
  if (config->device_options.tf32 && !is_new)
    g_message ("device_options.tf32 has no effect: %s computes in strict single precision", info->name);
  return TRUE;
}

static RnDevice *
open_cuda (const RnNode *root, const RnRunConfig *config, gboolean keeps_plans, GError **error)
{
  const RnCudaModule *module = rn_cuda_module_get (error);
  RnCudaOptions options = cuda_options (config);
  RnCudaInfo info;

  if (module == NULL || !module->describe (options.ordinal, &info, error)
      || !check_generation (root, config, &info, error))
    return NULL;
  g_autofree char *plans =
      keeps_plans && config->work_dir != NULL ? g_build_filename (config->work_dir, PLAN_FILE, NULL) : NULL;
  g_autofree char *cache = g_build_filename (g_get_user_cache_dir (), "runner", PLAN_FILE, NULL);
  options.plan_file = plans;
  options.cache_file = cache;
  return module->open (&options, error);
}

RnDevice *
rn_open_device (const RnNode *root, const RnRunConfig *config, gboolean keeps_plans, GError **error)
{
  RnDevice *device = rn_device_is_cuda (config->device) ? open_cuda (root, config, keeps_plans, error)
                                                        : open_cpu (config, error);

  if (device != NULL)
    set_limits (device, config);
  return device;
}

RnDevice *
rn_open_device_for_plans (const RnRunConfig *config, const char *profile, GError **error)
{
  RnCudaOptions options = cuda_options (config);
  const RnCudaModule *module = NULL;
  RnDevice *device;

  options.profile = profile;
  if (!rn_device_is_cuda (config->device))
    device = open_cpu (config, error);
  else if (profile == NULL)
    device = rn_device_new_plan_cuda ();
  else
    device = (module = rn_cuda_module_get (error)) != NULL ? module->open (&options, error) : NULL;
  if (device != NULL)
    set_limits (device, config);
  return device;
}

guint64
rn_device_free_memory (const RnRunConfig *config, GError **error)
{
  const RnCudaModule *module = rn_cuda_module_get (error);
  RnCudaInfo info;

  return module != NULL && module->describe (rn_device_ordinal (config->device), &info, error)
             ? info.free_bytes
             : 0;
}

char *
rn_device_profile (const RnRunConfig *config)
{
  g_autoptr (GError) error = NULL;
  const RnCudaModule *module = rn_cuda_module_get (&error);
  char *profile = module != NULL ? module->profile (rn_device_ordinal (config->device), &error) : NULL;

  if (profile == NULL)
    g_info ("planned without looking at the device: %s", error->message);
  return profile;
}
