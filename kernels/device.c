/* device.c: finds the kernel of a call. */
#define G_LOG_DOMAIN "rn-kernels"
#include "config.h"

#include "kernels/device.h"

#include "kernels/call-cache.h"
#include "kernels/trace-dispatch.h"

#include <string.h>

static gboolean
matches (char *const *patterns, const char *name)
{
  for (int i = 0; patterns != NULL && patterns[i] != NULL; i++)
    if (g_pattern_match_simple (patterns[i], name))
      return TRUE;
  return FALSE;
}

/* NULL when the kernel took the call, else the reason why not. */
static const char *
try_kernel (RnDevice *device, const RnKernel *kernel, const RnOpCall *call, RnPrepared *prepared)
{
  const char *reason = NULL;
  RnPrepared candidate = { .kernel = kernel };

  if (matches (device->forbid, kernel->name))
    return "forbidden by the configuration";
  if (kernel->prepare != NULL)
    {
      RnStatus status = kernel->prepare (device, call, &candidate, &reason);
      if (status != RN_STATUS_OK)
        return reason != NULL ? reason : rn_status_name (status);
    }
  if (device->workspace_limit > 0 && candidate.workspace_bytes > device->workspace_limit)
    {
      rn_prepared_release (&candidate);
      return "needs more workspace than the limit";
    }
  *prepared = candidate;
  return NULL;
}

/* Finds the kernel for @call anew. */
static gboolean
find_kernel (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, GError **error)
{
  const char *reason = rn_op_check (call);
  if (reason != NULL)
    {
      g_autofree char *text = rn_op_describe (call);
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s: %s", text, reason);
      return FALSE;
    }

  g_autofree char *traced = rn_traces_dispatch () ? rn_op_describe (call) : NULL;
  reason = "the device has no kernel for the op";
  for (int preferred = 1; preferred >= 0; preferred--)
    for (int i = 0; device->kernels[i] != NULL; i++)
      {
        const RnKernel *kernel = device->kernels[i];
        if (kernel->op != call->op || matches (device->prefer, kernel->name) != preferred)
          continue;
        const char *refusal = try_kernel (device, kernel, call, prepared);
        if (traced != NULL && refusal != NULL)
          g_message ("dispatch: %s: %s: no: %s", traced, kernel->name, refusal);
        else if (traced != NULL)
          g_message ("dispatch: %s: %s: yes%s%s, workspace %" G_GSIZE_FORMAT, traced, kernel->name,
                     prepared->detail != NULL ? ", " : "", prepared->detail != NULL ? prepared->detail : "",
                     prepared->workspace_bytes);
        if (refusal == NULL)
          return TRUE;
        reason = refusal;
      }

  g_autofree char *text = rn_op_describe (call);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s: no kernel takes it: %s", text, reason);
  return FALSE;
}

/* What was found before, or would be: the kernel that is taken without a limit is taken under one that it is
 * below. */
static const RnPrepared *
find_known (RnDevice *device, const RnOpCall *call)
{
  const RnPrepared *known = rn_call_cache_find (device->calls, call, device->workspace_limit);

  if (known != NULL || device->workspace_limit == 0)
    return known;
  known = rn_call_cache_find (device->calls, call, 0);
  return known != NULL && !known->kernel->takes_limit && known->workspace_bytes <= device->workspace_limit
             ? known
             : NULL;
}

gboolean
rn_device_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, GError **error)
{
  g_return_val_if_fail (device != NULL && call != NULL && prepared != NULL, FALSE);

  if (device->calls == NULL)
    return find_kernel (device, call, prepared, error);
  const RnPrepared *known = find_known (device, call);
  if (known == NULL)
    {
      RnPrepared found;
      if (!find_kernel (device, call, &found, error))
        return FALSE;
      rn_call_cache_add (device->calls, call, device->workspace_limit, &found);
      known = rn_call_cache_find (device->calls, call, device->workspace_limit);
    }
  *prepared = *known;
  return TRUE;
}

const char *
rn_device_fault (RnDevice *device, RnStatus status)
{
  const char *fault = device->vtbl->fault != NULL ? device->vtbl->fault (device) : NULL;
  return fault != NULL ? fault : rn_status_name (status);
}

gboolean
rn_device_finalize (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, GError **error)
{
  g_return_val_if_fail (device->calls == NULL, FALSE);
  if (prepared->kernel->finalize == NULL)
    return TRUE;
  RnStatus status = prepared->kernel->finalize (device, call, prepared);
  if (status == RN_STATUS_OK)
    return TRUE;

  g_autofree char *text = rn_op_describe (call);
  g_set_error (error, RN_DEVICE_ERROR,
               status == RN_STATUS_MEMORY ? RN_DEVICE_ERROR_MEMORY : RN_DEVICE_ERROR_KERNEL, "%s: %s: %s",
               text, prepared->kernel->name, rn_device_fault (device, status));
  return FALSE;
}

void
rn_prepared_release (RnPrepared *prepared)
{
  if (prepared->kernel != NULL && prepared->kernel->release != NULL && prepared->state != NULL)
    prepared->kernel->release (prepared->state);
  memset (prepared, 0, sizeof *prepared);
}

void
rn_device_free (RnDevice *device)
{
  if (device != NULL)
    device->vtbl->destroy (device);
}
