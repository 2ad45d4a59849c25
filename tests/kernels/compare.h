/*
 * compare.h: what a kernel gave against the reference. This always computes on F32 tensors: a kernel for
 * halves must give what it gives on the same numbers, rounded once, to nearest.
 */
#ifndef TESTS_KERNELS_COMPARE_H
#define TESTS_KERNELS_COMPARE_H

#include "tests/kernels/harness.h"

/* @call on F32 tensors. */
RnOpCall widened (RnOpCall call);
/* Runs the kernel of @ref on @wide, which is @call widened, with the values of @call; @want belongs to @wide.
 */
void run_reference (RnDevice *ref, const RnOpCall *call, const RnOpCall *wide, guint seed, Buffers *want);
/*
 * All outputs, padding channels included. @tolerance: see Case; @kernel: for messages. A failure names the
 * element.
 */
void compare_outputs (const RnOpCall *call, const char *kernel, const Buffers *got, const Buffers *want,
                      double tolerance);
/*
 * Output @slot, within @operations FLT_EPSILON of the largest finite value of @want, before it is rounded to
 * its type. What is not finite must be the same.
 */
void compare_interval (const RnOpCall *call, int slot, const void *got, const float *want, double operations);
/* That a window of max pooling with a NaN gives one, wherever it is, in every type. @run: runs a call */
void check_nan_of_max_pool (RnDevice *device, void (*run) (RnDevice *, const RnOpCall *, Buffers *));

#endif
