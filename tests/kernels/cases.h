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

/* Array of Case. (transfer full) */
GArray *cases_new (void);

#endif
