/* conv-verify.h: numbers to try an engine with, and how far its results may be from those of another. */
#ifndef KERNELS_CUDA_CONV_VERIFY_H
#define KERNELS_CUDA_CONV_VERIFY_H

#include "kernels/cuda/conv-plan.h"

G_BEGIN_DECLS

/* Elements @first .. @first + @n - 1 of a sequence that @seed names: uniform in [-1, 1), rounded to @dtype.
 */
void rn_conv_fill_random (RnDType dtype, void *data, gsize first, gsize n, guint32 seed);

/* Two results of one problem on numbers of that kind may differ by absolute + relative * |result|. */
typedef struct
{
  float absolute, relative;
} RnConvTolerance;

RnConvTolerance rn_conv_tolerance (const RnConvProblem *problem);

/* @n results of @dtype: all finite and within the tolerance of @wanted? */
gboolean rn_conv_agrees (RnDType dtype, const void *results, const void *wanted, gsize n,
                         RnConvTolerance tolerance);

G_END_DECLS

#endif
