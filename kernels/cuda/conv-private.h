/* conv-private.h: what the parts of conv-plan.h share: conv-plan.c and conv-measure.c. */
#ifndef KERNELS_CUDA_CONV_PRIVATE_H
#define KERNELS_CUDA_CONV_PRIVATE_H

#include "kernels/cuda/conv-engines.h"
#include "kernels/cuda/conv-graph.h"
#include "kernels/cuda/plan-store.h"

G_BEGIN_DECLS

/* An engine that was chosen for a problem; plans of equal problems share it. */
typedef struct
{
  int n_refs;
  RnCudnnPlan *plan;
  gsize workspace; /* that the plan needs */
  gsize bound;     /* the most of any engine that could be chosen, by measuring, in its place */
  char *detail;    /* "engine 41, tensor cores" */
  gboolean is_measured;
} RnConvChoice;

struct _RnConvLibrary
{
  RnCudnn *cudnn;
  RnCudnnDevice *device;
  gboolean is_plan_only;
  cudaStream_t stream;
  gboolean by_rank; /* nothing is measured or kept */
  GHashTable *choices; /* by key: RnConvChoice */
  char *machine;       /* version and device, as stored plans are marked; NULL: without stores */
  RnPlanStore *run;    /* (nullable) of the run */
  RnPlanStore *cache;  /* (nullable) of the machine */
  char *loss; /* (nullable) why choices of the run may be missing: "FILE: 2 of 40 lines are damaged" */
  gboolean has_warned; /* that what the run had chosen cannot be used */
  char *fault;         /* text of the last failure, or NULL */
};

struct _RnConvPlan
{
  RnConvLibrary *library;
  RnConvProblem problem;
  gsize workspace_limit;
  char *key; /* problem and limit of the workspace */
  RnConvChoice *choice;
  RnConvPointers pointers; /* of @pack */
  RnCudnnPack *pack;       /* NULL until the first execution */
};

/* Takes @plan over. */
RnConvChoice *rn_conv_choice_new (RnCudnnPlan *plan, gsize workspace, const char *detail);
RnConvChoice *rn_conv_choice_ref (RnConvChoice *choice);
void rn_conv_choice_unref (RnConvChoice *choice);

/* Keeps the text as the fault, and gives @status. */
RnStatus rn_conv_fail (RnConvLibrary *library, RnStatus status, const char *format, ...) G_GNUC_PRINTF (3, 4);
/* RN_STATUS_DEVICE, with the fault that the library has just kept. */
RnStatus rn_conv_fail_cudnn (RnConvLibrary *library);

RnConvFilter rn_conv_filter (const RnConvLibrary *library, const RnConvProblem *problem,
                             gsize workspace_limit);

/* Takes the choice that was measured for an equal problem meanwhile; FALSE where there is none. */
gboolean rn_conv_plan_adopt (RnConvPlan *plan);
/* @choice (transfer full) is from now on that of the problem, and is stored with @json, its plan. */
void rn_conv_plan_take (RnConvPlan *plan, RnConvChoice *choice, const char *json, double seconds);

/* Addresses of @pointers for the problem's graph, checked. NULL with the fault kept. */
RnCudnnPack *rn_conv_pack_new (RnConvLibrary *library, const RnConvProblem *problem,
                               const RnConvPointers *pointers, gsize workspace);

G_END_DECLS

#endif
