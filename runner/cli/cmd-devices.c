/* cmd-devices.c: `runner devices`: the CUDA devices that a run can compute on. */
#include "config.h"

#include "runner/cli/commands.h"

#include "kernels/cuda-module.h"
#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/cli/common.h"
#include "runner/cli/json.h"

#define NO_PROFILE G_MININT

typedef struct
{
  gboolean json;
  int profile; /* NO_PROFILE: not asked for */
} DevicesOptions;

static void
add_device (JsonBuilder *builder, int ordinal, const RnCudaInfo *info, const GError *error)
{
  json_builder_begin_object (builder);
  rn_json_add_int (builder, "ordinal", ordinal);
  if (error != NULL)
    rn_json_add_string (builder, "error", error->message);
  else
    {
      g_autofree char *capability = g_strdup_printf ("%d.%d", info->capability[0], info->capability[1]);
      rn_json_add_string (builder, "name", info->name);
      rn_json_add_string (builder, "capability", capability);
      rn_json_add_int (builder, "multiprocessors", info->n_multiprocessors);
      rn_json_add_int (builder, "free_bytes", (gint64) info->free_bytes);
      rn_json_add_int (builder, "total_bytes", (gint64) info->total_bytes);
      rn_json_add_string (builder, "driver", info->driver);
      rn_json_add_string (builder, "runtime", info->runtime);
      rn_json_add_string (builder, "cudnn", info->cudnn);
    }
  json_builder_end_object (builder);
}

static void
print_device (int ordinal, const RnCudaInfo *info, const GError *error)
{
  if (error != NULL)
    {
      g_print ("cuda:%-3d %s\n", ordinal, error->message);
      return;
    }
  g_autofree char *free_text = rn_size_format (info->free_bytes), *total = rn_size_format (info->total_bytes);
  g_autofree char *memory = g_strdup_printf ("%s of %s free", free_text, total);
  g_print ("cuda:%-3d %-28s %d.%-8d %-26s %-7s %-8s %s\n", ordinal, info->name, info->capability[0],
           info->capability[1], memory, info->driver, info->runtime, info->cudnn);
}

static void
free_error (gpointer error)
{
  g_clear_error ((GError **) &error);
}

/* A device that cannot be used has its reason in its line; if none can be used, the first reason is the
 * error. */
static gboolean
list_devices (const RnCudaModule *module, gboolean json, GError **error)
{
  int n = module->count (error), n_usable = 0;
  g_autoptr (GPtrArray) errors = g_ptr_array_new_with_free_func (free_error); /* NULL where there is none */
  g_autofree RnCudaInfo *infos = g_new0 (RnCudaInfo, MAX (n, 1));

  if (n == 0)
    return FALSE;
  for (int i = 0; i < n; i++)
    {
      GError *local = NULL;
      n_usable += module->describe (i, &infos[i], &local);
      g_ptr_array_add (errors, local);
    }
  if (n_usable == 0)
    {
      g_propagate_error (error, g_error_copy (errors->pdata[0]));
      return FALSE;
    }
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_array (builder);
  if (!json)
    g_print ("%-8s %-28s %-10s %-26s %-7s %-8s %s\n", "device", "name", "capability", "memory", "driver",
             "runtime", "cuDNN");
  for (int i = 0; i < n; i++)
    if (json)
      add_device (builder, i, &infos[i], errors->pdata[i]);
    else
      print_device (i, &infos[i], errors->pdata[i]);
  json_builder_end_array (builder);
  if (json)
    rn_json_print (builder);
  return TRUE;
}

static gboolean
print_profile (const RnCudaModule *module, int ordinal, GError **error)
{
  g_autofree char *profile = module->profile (ordinal, error);

  if (profile != NULL)
    g_print ("%s\n", profile);
  return profile != NULL;
}

int
rn_cmd_devices (int argc, char **argv)
{
  DevicesOptions devices = { .profile = NO_PROFILE };
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &devices.json, "Print JSON", NULL },
    { "profile", 0, 0, G_OPTION_ARG_INT, &devices.profile,
      "Print device N as cuDNN writes it down, for plans where it is not there", "N" },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "",
    .summary =
        "Lists the CUDA devices that a run can compute on. Where there is none it says why, and ends with "
        "exit code 3.",
    .examples = "  runner devices\n"
                "  runner devices --json\n"
                "  runner devices --profile 0 > card.json\n",
    .entries = entries,
  };
  GError *error = NULL;
  g_auto (RnOptions) options;
  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  if (devices.profile < 0 && devices.profile != NO_PROFILE)
    {
      g_set_error (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--profile %d: devices count from 0",
                   devices.profile);
      return rn_cli_fail (error);
    }
  const RnCudaModule *module = rn_cuda_module_get (&error);
  gboolean done = module != NULL
                  && (devices.profile >= 0 ? print_profile (module, devices.profile, &error)
                                           : list_devices (module, devices.json, &error));
  return done ? 0 : rn_cli_fail (error);
}
