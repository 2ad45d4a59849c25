/*
 * conv-plan.h: convolutions by cuDNN's graph API: a convolution is described, engines are asked for, one is
 * chosen, and a plan runs it. The library answers without a device too, from a profile: then plans can be
 * made, but not run.
 */
#ifndef KERNELS_CUDA_CONV_PLAN_H
#define KERNELS_CUDA_CONV_PLAN_H

#include <cuda_runtime_api.h>
#include <glib.h>
#include <runner/tensor.h>
#include "runner/base/error.h"

G_BEGIN_DECLS

typedef struct _RnConvLibrary RnConvLibrary;
typedef struct _RnConvPlan RnConvPlan;

typedef enum
{
  RN_CONV_FORWARD,
  RN_CONV_BACKWARD_DATA,
  RN_CONV_BACKWARD_WEIGHTS,
} RnConvKind;

typedef struct
{
  RnConvKind kind;
  int64_t n, c, h, w; /* of the source (x, dx) */
  int64_t k, oh, ow;  /* of the destination (y, dy) */
  int64_t kernel[2], stride[2], pad[2], dilation[2], groups;
  RnDType dtype;     /* of every tensor: F32, F16, BF16 */
  gboolean nhwc;     /* layout of activations; weights are then KRSC, else KCRS */
  gboolean tf32;     /* F32 may be rounded to 10 bits on the way */
  gboolean bias;     /* forward: bias[k] (of dtype) is added; must be TRUE with residual or relu */
  gboolean residual; /* forward: z is added before the bias */
  gboolean relu;
  gboolean accumulate; /* beta 1: adds to the output */
} RnConvProblem;

/* Pointers of one execution; those that the problem has not are NULL. All 16-byte aligned. */
typedef struct
{
  const void *x; /* forward and backward of weights */
  const void *w; /* forward and backward of data */
  const void *bias;
  const void *z;     /* residual; may be y */
  const void *dy;    /* backward */
  void *y, *dx, *dw; /* the output of the kind */
  void *workspace;
} RnConvPointers;

typedef struct
{
  gboolean deterministic;             /* the first engine by rank: nothing is measured or kept; so it is in
                                         any case before RN_CUDNN_WRITES_PLANS */
  const char *plan_file, *cache_file; /* (nullable), see RnCudaOptions */
} RnConvOptions;

/*
 * For device @ordinal, whose work goes to @stream; errors RN_DEVICE_ERROR_MISSING: library too old or
 * unusable.
 */
RnConvLibrary *rn_conv_library_new (int ordinal, cudaStream_t stream, const RnConvOptions *options,
                                    GError **error);
/* For a device that is not there, described in JSON; rn_conv_plan_run is then refused. */
RnConvLibrary *rn_conv_library_new_for_profile (const char *json, const RnConvOptions *options,
                                                GError **error);
void rn_conv_library_free (RnConvLibrary *library);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnConvLibrary, rn_conv_library_free)
/* Later executions go to @stream. */
RnStatus rn_conv_library_set_stream (RnConvLibrary *library, cudaStream_t stream);
/*
 * Writes what was measured to the files of the options; nothing to do where nothing was. To be called after
 * the convolutions of a plan were measured, before the first step that uses them: what is not kept cannot be
 * taken again by a resumed run.
 */
RnStatus rn_conv_library_save (RnConvLibrary *library);
/*
 * What was measured, or read, for the convolutions that were planned: text as the files have it, for a
 * checkpoint. NULL where nothing is kept. (transfer full)
 */
char *rn_conv_library_choices (const RnConvLibrary *library);
/*
 * The choices of the run that goes on, before anything is planned: they win over those of the files. @text:
 * @size bytes of rn_conv_library_choices, whatever became of them; NULL: there are none. What cannot be taken
 * is chosen again, with one warning. Nothing to do where nothing is kept.
 */
void rn_conv_library_take_choices (RnConvLibrary *library, const char *text, gsize size);
/* Text of the last failure, or NULL. */
const char *rn_conv_library_fault (const RnConvLibrary *library);

/*
 * rn_conv_plan_new:
 * @workspace_limit: bytes; engines that need more are left out
 * @reason: (out): why there is none; static, or of RN_STATUS_DEVICE the library's fault
 *
 * The engine that was chosen before, in this process or by what the files of the options have; else the first
 * that passes the filter: no run-time compilation, no reduced precision, without TF32 no tensor cores on F32,
 * the same bits each time; the generic engine is the last resort.
 */
RnStatus rn_conv_plan_new (RnConvLibrary *library, const RnConvProblem *problem, gsize workspace_limit,
                           RnConvPlan **plan, const char **reason);
/*
 * Bytes that it needs to run; before a measurement, for which they have to be there, the most that an engine
 * takes which that may choose: then it is a bound, and a plan that is made afterwards needs not more.
 */
gsize rn_conv_plan_workspace (const RnConvPlan *plan);
gboolean rn_conv_plan_is_bound (const RnConvPlan *plan);
/* The bound that its workspace was, also when it no longer is. */
gsize rn_conv_plan_bound (const RnConvPlan *plan);
/* "engine 41, tensor cores": lent. */
const char *rn_conv_plan_detail (const RnConvPlan *plan);
/*
 * Measures the engines that passed, on @pointers (whose contents are lost, and the workspace of
 * @workspace_limit bytes): each must agree with the generic engine; keeps the fastest. Nothing to do where
 * the choice was stored or the library goes by rank.
 */
RnStatus rn_conv_plan_measure (RnConvPlan *plan, const RnConvPointers *pointers, gsize workspace_limit);
/* Queues one execution. Pointers are remembered: equal ones cost nothing the next time. */
RnStatus rn_conv_plan_run (RnConvPlan *plan, const RnConvPointers *pointers);
void rn_conv_plan_free (RnConvPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnConvPlan, rn_conv_plan_free)

G_END_DECLS

#endif
