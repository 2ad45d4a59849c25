/*
 * conv-graph.h: a convolution (RnConvProblem) as a graph of cuDNN, in the forms that its pre-compiled engines
 * match:
 *
 *   forward          ConvFwd (x, w) -> y, which may be added to
 *   forward, fused   ConvFwd (x, w), [+ z], + bias, [ReLU] -> y
 *   backward         ConvBwdData (dy, w) -> dx and ConvBwdFilter (x, dy) -> dw, which may be added to
 *
 * The residual comes before the bias and the bias is always there: no engine takes another order.
 */
#ifndef KERNELS_CUDA_CONV_GRAPH_H
#define KERNELS_CUDA_CONV_GRAPH_H

#include "kernels/cuda/conv-plan.h"
#include "kernels/cuda/cudnn.h"

G_BEGIN_DECLS

/* The most tensors of one problem that have an address: x, w, z, bias, y. */
#define RN_CONV_MAX_TENSORS 5

/* NULL, or the static reason why the problem cannot be put as a graph. */
const char *rn_conv_problem_check (const RnConvProblem *problem);

/*
 * The problem in words that are the same for equal problems and differ for others:
 * "forward 2x256x76x128 -> 2x256x76x128 k3x3 s1x1 p1x1 d1x1 g1 f16 nhwc +bias +residual +relu".
 * (transfer full)
 */
char *rn_conv_problem_text (const RnConvProblem *problem);

/* NULL with the fault kept by @cudnn. */
RnCudnnGraph *rn_conv_graph_new (RnCudnn *cudnn, const RnConvProblem *problem);

/* Which address belongs to which tensor of the graph. Returns how many there are. */
int rn_conv_graph_bind (const RnConvProblem *problem, const RnConvPointers *pointers,
                        int64_t ids[RN_CONV_MAX_TENSORS], void *addresses[RN_CONV_MAX_TENSORS]);

/* The output's address and its number of elements. */
void *rn_conv_output (const RnConvProblem *problem, const RnConvPointers *pointers);
int64_t rn_conv_output_elements (const RnConvProblem *problem);

G_END_DECLS

#endif
