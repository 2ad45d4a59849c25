/* device-cases.h: the calls that kernels of the CUDA device are tested with. */
#ifndef TESTS_GPU_DEVICE_CASES_H
#define TESTS_GPU_DEVICE_CASES_H

#include "tests/kernels/cases.h"

/*
 * The table of cases.h in both layouts of the device and in every type of activations; array of Case.
 * (transfer full)
 */
GArray *device_cases_new (void);
/*
 * Calls that are larger than any grid, so that threads do more than one round. For addresses of single
 * elements: in packs they would need several times as many. (transfer full)
 */
GArray *device_large_cases_new (void);

#endif
