/* weight-kernels.h: tests of launch-weights.h, kernels that stand between ops and the library. */
#ifndef TESTS_GPU_WEIGHT_KERNELS_H
#define TESTS_GPU_WEIGHT_KERNELS_H

/* Under /gpu/weights/ and /gpu/sums/. */
void add_weight_tests (void);

#endif
