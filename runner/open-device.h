/* open-device.h: the device of a run, as the configuration has it. */
#ifndef RUNNER_OPEN_DEVICE_H
#define RUNNER_OPEN_DEVICE_H

#include "kernels/device.h"
#include "runner/run-config.h"

G_BEGIN_DECLS

/*
 * Opens the device; what the configuration asks of it and it has not is an error: RN_DEVICE_ERROR, or
 * RN_CONFIG_ERROR with the line. @keeps_plans: engines that are chosen for convolutions are kept in the work
 * dir, so that a resumed run has the same.
 */
RnDevice *rn_open_device (const RnNode *root, const RnRunConfig *config, gboolean keeps_plans,
                          GError **error);

/*
 * rn_open_device_for_plans:
 * @profile: (nullable): the device as cuDNN writes it down
 *
 * A device that plans can be made for, and nothing else; the CPU's can do both. With a profile the plans are
 * those of the device, else an upper bound.
 */
RnDevice *rn_open_device_for_plans (const RnRunConfig *config, const char *profile, GError **error);

/* What the CUDA device of @config has free, in bytes; 0 where that cannot be asked: RN_DEVICE_ERROR. */
guint64 rn_device_free_memory (const RnRunConfig *config, GError **error);
/* The CUDA device of @config as cuDNN writes it down, or NULL where that cannot be asked. (transfer full) */
char *rn_device_profile (const RnRunConfig *config);

G_END_DECLS

#endif
