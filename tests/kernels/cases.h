/* cases.h: the calls that every kernel of an op is tested with. */
#ifndef TESTS_KERNELS_CASES_H
#define TESTS_KERNELS_CASES_H

#include "kernels/op.h"

typedef struct
{
  RnOpCall call;
  /*
   * Largest difference from the reference in units of FLT_EPSILON times the largest entry of the tensor,
   * before results are rounded to the type of the tensor; 0: equal bits.
   */
  double tolerance;
} Case;

/* ---- tolerances ---- */

/*
 * Sums are in double; what is left is a handful of single-precision operations per element on values of the
 * size of the largest.
 */
#define FEW_OPERATIONS 16

/*
 * Losses. p^gamma with gamma 2.5 goes through an exponential whose argument, log p^gamma, has a rounding
 * error of some ulp: up to gamma |log p| = 3.3 at the logits used here. The sum over a tile of 1024 is in
 * single precision: sqrt (1024) / 2 ulp and more for a sum of positive numbers.
 */
#define LOSS_OPERATIONS 64

/* ---- calls ---- */

/* Array of Case. (transfer full) */
GArray *cases_new (void);

#endif
