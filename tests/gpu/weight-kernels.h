/* weight-kernels.h: tests of launch-weights.h, kernels that stand between ops and the library. */
#ifndef TESTS_GPU_WEIGHT_KERNELS_H
#define TESTS_GPU_WEIGHT_KERNELS_H

#include "kernels/device.h"

/* Under /gpu/weights/ and /gpu/sums/. @new_device: a device whose threads run in ascending or descending
 * order. */
void add_weight_tests (RnDevice *(*new_device) (gboolean descending));

#endif
