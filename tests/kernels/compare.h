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

#endif
