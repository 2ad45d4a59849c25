/*
 * startup.h: is there a device that can be used? Looked at in the order in which things are built upon each
 * other: driver, runtime, devices, then of one device: capability, memory, and the version of cuDNN. The
 * first that is missing is one line of text, with what helps.
 *
 * Errors: RN_DEVICE_ERROR, MISSING or MEMORY.
 */
#ifndef KERNELS_CUDA_STARTUP_H
#define KERNELS_CUDA_STARTUP_H

#include <cuda_runtime_api.h>
#include <glib.h>

G_BEGIN_DECLS

/* The oldest devices that kernels are made for: 10 * major + minor. */
#define RN_CUDA_MIN_CAPABILITY 75

/* What no device is needed for. @n_devices: (out): at least 1. */
gboolean rn_cuda_startup (int *n_devices, GError **error);
/* All, for device @ordinal; it is the current one afterwards, with a context. */
gboolean rn_cuda_startup_device (int ordinal, GError **error);

/* "13.0" for 13000. (transfer full) */
char *rn_cuda_version_text (int version);

/*
 * Do kernels that were compiled for @archs, as --with-cuda-arch has them ("75,80,ptx90"), run on a device of
 * @capability (10 * major + minor)? Code for one architecture runs on the later ones of the same generation,
 * ptx on all later ones.
 */
gboolean rn_cuda_archs_cover (const char *archs, int capability);

G_END_DECLS

#endif
