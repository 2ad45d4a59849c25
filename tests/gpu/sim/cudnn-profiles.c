/* cudnn-profiles.c: devices of the simulated cuDNN, and how they are written as JSON. The members are those
 * of cuDNN 9. */
#include "config.h"

#include "tests/gpu/sim/cudnn-json.h"
#include "tests/gpu/sim/internal.h"

#include <string.h>

static const char *const profile_members[] = { "maxGridSize",
                                               "maxBlockSize",
                                               "regsPerBlock",
                                               "multiProcessorCount",
                                               "warpSize",
                                               "maxSharedMemoryPerBlock",
                                               "maxSharedMemoryPerBlockOptin",
                                               "reservedSharedMemoryPerBlock",
                                               "maxRegistersPerSM",
                                               "maxCtasPerSM",
                                               "maxThreadsPerBlock",
                                               "maxThreadsPerSM",
                                               "pciDeviceId",
                                               "isTccDriver",
                                               "supportCoopLaunch",
                                               "totalGlobalMem",
                                               "smClockRateKHz",
                                               "memClockRateKHz",
                                               "l2CacheSize",
                                               "cudaDeviceId",
                                               "deviceVer",
                                               "driverVer",
                                               "deviceName",
                                               NULL };

cudnnStatus_t
sim_read_profile (JsonObject *object, SimProfile *profile)
{
  g_autoptr (GString) json = g_string_new ("{");
  int64_t version = 0;

  for (int i = 0; profile_members[i] != NULL; i++)
    {
      const char *name = profile_members[i], *text;
      int64_t value, values[CUDNN_DIM_MAX];
      if (!json_object_has_member (object, name))
        return sim_refuse (CUDNN_STATUS_BAD_PARAM, "!json_object.HasMember(\"%s\")", name);
      if (i > 0)
        g_string_append (json, ",");
      if (i < 2 && sim_json_integers (object, name, values) == 3)
        sim_json_append_integers (json, name, values, 3);
      else if (i >= 2 && sim_json_integer (object, name, &value))
        g_string_append_printf (json, "\"%s\":%" G_GINT64_FORMAT, name, value);
      else if (strcmp (name, "deviceName") == 0 && (text = sim_json_string (object, name)) != NULL)
        g_string_append_printf (json, "\"%s\":\"%s\"", name, text);
      else
        return sim_refuse (CUDNN_STATUS_BAD_PARAM, "\"%s\" has another type", name);
    }
  g_string_append (json, "}");
  sim_json_integer (object, "deviceVer", &version);
  sim_json_integer (object, "multiProcessorCount", &profile->n_multiprocessors);
  sim_json_integer (object, "driverVer", &profile->driver);
  if (version < 500)
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "deviceVer %" G_GINT64_FORMAT, version);
  profile->capability = (int) version / 10;
  g_free (profile->members);
  profile->members = g_string_free (g_steal_pointer (&json), FALSE);
  return CUDNN_STATUS_SUCCESS;
}

/* The simulated device, as it describes itself. */
static cudnnStatus_t
describe_device (int ordinal, char **json)
{
  const SimModel *m = sim_model ();

  if (sim_call ("cudnnBackendFinalize") != cudaSuccess || ordinal < 0 || ordinal >= sim_config ()->n_devices)
    return sim_refuse (CUDNN_STATUS_NOT_INITIALIZED, "device %d cannot be asked", ordinal);
  *json = g_strdup_printf (
      "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
      "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
      "\"maxSharedMemoryPerBlockOptin\":%" G_GSIZE_FORMAT ",\"reservedSharedMemoryPerBlock\":%d,"
      "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,"
      "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":%" G_GSIZE_FORMAT ","
      "\"smClockRateKHz\":%d,\"memClockRateKHz\":%d,\"l2CacheSize\":%" G_GSIZE_FORMAT ",\"cudaDeviceId\":%d,"
      "\"deviceVer\":%d,\"driverVer\":%d,\"deviceName\":\"%s\"}",
      m->n_multiprocessors, m->shared_optin, m->capability[0] >= 8 ? 1024 : 0, m->blocks_per_sm,
      m->threads_per_sm, sim_config ()->memory_bytes, m->clock_khz, m->memory_clock_khz, m->l2_bytes, ordinal,
      100 * m->capability[0] + 10 * m->capability[1], sim_config ()->driver_version, m->name);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_finalize_profile (SimDescriptor *d)
{
  int64_t length;
  const char *given = sim_value_data (d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, &length);
  g_autofree char *own = NULL;
  int ordinal = 0;

  if (given == NULL)
    {
      sim_value_enum (d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, &ordinal);
      cudnnStatus_t status = describe_device (ordinal, &own);
      if (status != CUDNN_STATUS_SUCCESS)
        return status;
      given = own;
      length = (int64_t) strlen (own);
    }
  g_free (d->as_profile.json);
  d->as_profile.json = g_memdup2 (given, (gsize) length + 1);
  d->as_profile.length = (gsize) length;
  /* The end of a C string may be counted or not. */
  g_autoptr (JsonNode) root = sim_json_parse (given, (int64_t) strnlen (given, (gsize) length));
  if (root == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "!json_object.IsObject()");
  return sim_read_profile (json_node_get_object (root), &d->as_profile);
}
