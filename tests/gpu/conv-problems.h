/* conv-problems.h: the convolutions of a training step, as the CUDA device puts them. */
#ifndef TESTS_GPU_CONV_PROBLEMS_H
#define TESTS_GPU_CONV_PROBLEMS_H

#include "kernels/cuda/conv-plan.h"

/*
 * The different convolutions of RetinaNet on ResNet-@depth, nothing of it frozen, on two images of @shape
 * ("608x1024"), all directions. Element type and layout are left to the caller. @n_ops: becomes the number of
 * ops that they are of. Array of RnConvProblem. (transfer full)
 */
GArray *conv_problems_of_retinanet (int depth, const char *shape, guint *n_ops);

#endif
