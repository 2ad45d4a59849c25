/* conv-case.h: a convolution on the simulated device: its memory, and what it must compute. */
#ifndef TESTS_GPU_CONV_CASE_H
#define TESTS_GPU_CONV_CASE_H

#include "kernels/cuda/conv-plan.h"

#define LIMIT ((gsize) 1 << 20) /* bytes of workspace */

#define OK(call) g_assert_cmpint ((call), ==, cudaSuccess)

/* Tensors of a convolution, and its workspace. */
enum
{
  X,
  W,
  Y,
  BIAS,
  Z,
  WORKSPACE,
  N_BUFFERS
};

typedef struct
{
  RnConvProblem problem;
  cudaStream_t stream;
  gsize bytes[N_BUFFERS];
  void *memory[N_BUFFERS]; /* of the device */
  RnConvPointers pointers;
} Case;

/* Begins with a device of this model. */
void start (const char *model);

/* 3x3 with stride 2, 8 channels to 16, on a small map of odd sizes. */
RnConvProblem problem_of (RnConvKind kind, RnDType dtype, gboolean nhwc);

/* @in_place: the residual is where the output goes. */
void case_init (Case *c, const RnConvProblem *problem, gboolean in_place);
void case_clear (Case *c);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

/* @run, @cache: files of choices, or NULL. */
RnConvLibrary *library_new (const Case *c, gboolean deterministic, const char *run, const char *cache);
RnConvPlan *plan_new (RnConvLibrary *library, const RnConvProblem *problem);
void assert_ok (const RnConvLibrary *library, RnStatus status);

/* Runs the problem by @plan on random numbers and compares with the definition, within the tolerance of
 * conv-verify.h. */
void check_result (const Case *c, RnConvLibrary *library, RnConvPlan *plan);

/* Measures the problem by @plan, and gives what was logged. (transfer full) */
char *measure (const Case *c, RnConvLibrary *library, RnConvPlan *plan);

/* Logging of the convolutions goes into @log from now on, until log_end. */
guint log_begin (GString *log);
void log_end (guint handler);

#endif
