/* device-config.h: `device:` and `device_options:`, where a run computes and how convolutions do. */
#ifndef RUNNER_DEVICE_CONFIG_H
#define RUNNER_DEVICE_CONFIG_H

#include <runner/keys.h>

G_BEGIN_DECLS

/* `device_options:`, of a CUDA device; the CPU has none of it. */
typedef struct
{
  gboolean tf32; /* convolutions in single precision may round their inputs to 10 bits */
  int layout;    /* RnCudaLayout */
} RnDeviceOptions;

extern const RnKeySpec rn_device_option_keys[];

/*
 * rn_device_config_read:
 * @root: the configuration
 * @options: (inout): as `device_options:` has them
 *
 * The name of the device: "cpu", "cuda" or "cuda:N", lent by @root. `device:` is the name, or a map of it
 * (`type`) and of what may stand in `device_options:` too. NULL with RN_CONFIG_ERROR.
 */
const char *rn_device_config_read (const RnNode *root, RnDeviceOptions *options, GError **error);

gboolean rn_device_is_cuda (const char *name);
/* N of "cuda:N"; 0 for "cuda". */
int rn_device_ordinal (const char *name);

G_END_DECLS

#endif
