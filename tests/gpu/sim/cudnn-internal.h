/*
 * cudnn-internal.h: what the parts of the simulated cuDNN share. A descriptor is a bag of typed attributes
 * until it is finalized; then what they say is checked and kept as one of the structures below.
 */
#ifndef TESTS_GPU_SIM_CUDNN_INTERNAL_H
#define TESTS_GPU_SIM_CUDNN_INTERNAL_H

#include <cudnn.h>
#include <glib.h>
#include <runner/tensor.h>
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/sim/sim.h"

G_BEGIN_DECLS

typedef struct
{
  int64_t id;
  gboolean has_id;
  cudnnDataType_t type;
  int n_dims;
  int64_t dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
  int64_t alignment;
  gboolean is_virtual;
} SimTensor;

typedef struct
{
  cudnnDataType_t compute;
  cudnnConvolutionMode_t mode;
  int n_dims;
  int64_t pad[CUDNN_DIM_MAX], post_pad[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX], dilation[CUDNN_DIM_MAX];
} SimWindow;

typedef struct
{
  cudnnPointwiseMode_t mode;
  cudnnDataType_t precision;
  gboolean has_options; /* clips and slopes */
} SimPointwise;

/* A convolution (x, w, y are of the forward direction), or a pointwise op (x, b, y). */
typedef struct
{
  cudnnBackendDescriptorType_t kind;
  SimTensor x, w, y;
  gboolean has_b;
  SimTensor b;
  SimWindow window;
  SimPointwise pointwise;
  float alpha, beta;
} SimOpNode;

#define SIM_MAX_OPS 8

/* What an execution computes, once the ops have been recognised. */
typedef struct
{
  cudnnBackendDescriptorType_t kind;
  SimTensor x, w, y;
  gboolean has_bias, has_residual, has_relu;
  SimTensor bias, residual;
  SimWindow window;
  int64_t groups;
  float alpha, beta;
} SimConv;

typedef struct
{
  int n_ops;
  SimOpNode ops[SIM_MAX_OPS]; /* each after those that it reads from */
  const char *refusal;        /* NULL: it is one of the patterns that have engines */
  SimConv conv;               /* valid when not refused */
} SimGraph;

typedef struct
{
  char *json;     /* as it was given */
  gsize length;   /* of it, with its end where that was counted */
  char *members;  /* as the library writes them into plans */
  int capability; /* 75, 80 */
  int64_t n_multiprocessors, driver;
} SimProfile;

typedef struct
{
  int64_t index;
  unsigned numerical_notes, behavior_notes; /* 1 << note */
  enum
  {
    SIM_ROUND_NOTHING,
    SIM_ROUND_TF32,
    SIM_ROUND_HALF,
  } inputs; /* F32 only */
  enum
  {
    SIM_ORDER_ASCENDING,
    SIM_ORDER_DESCENDING,
    SIM_ORDER_RANDOM,
  } order;
  gboolean rounds_sums, drops_terms, writes_nan, cannot_run;
  gboolean writes_early; /* in front of the residual, which there must be */
  gboolean any_alignment;
  gsize workspace;   /* times the weights in F32 */
  gsize extra_bytes; /* and so many more */
  double speed;      /* 1e9 multiplications per reported millisecond */
} SimEngine;

typedef struct
{
  const SimEngine *engine;
  int64_t knob; /* CUDNN_KNOB_TYPE_TILEK: 0, 1 */
} SimChoice;

/* NULL: there is none of that index. */
const SimEngine *sim_engine_find (int64_t index);
/* Why the engine cannot run the graph, or NULL. */
const char *sim_engine_refusal (const SimEngine *engine, const SimGraph *graph, const SimProfile *profile);
int64_t sim_engine_n_knobs (const SimEngine *engine);
gsize sim_choice_workspace (SimChoice choice, const SimConv *conv);
/* What the heuristics propose: appends SimChoices, the best first. */
void sim_engines_rank (cudnnBackendHeurMode_t mode, const SimGraph *graph, const SimProfile *profile,
                       GArray *choices);

typedef struct _SimDescriptor SimDescriptor;

struct _SimDescriptor
{
  cudnnBackendDescriptorType_t kind;
  int n_refs;
  gboolean is_finalized;
  GHashTable *values; /* SimValue by attribute name */

  /* Of what it was made, for those that outlive it. */
  SimDescriptor *graph, *profile;

  SimTensor tensor;
  SimWindow window;
  SimPointwise pointwise;
  SimOpNode op;
  SimGraph *as_graph;
  SimProfile as_profile;
  cudnnBackendHeurMode_t mode;
  SimChoice choice;
  char *json; /* of a plan */
};

/* ---- cudnn-attributes.c ---- */

enum
{
  SIM_MANY = 1 << 0,    /* any number of values; else exactly one */
  SIM_ANY = 1 << 1,     /* the type is not looked at */
  SIM_DOUBLES = 1 << 2, /* DOUBLE does as well as FLOAT */
  SIM_READ = 1 << 3,    /* can be read when finalized; else 3000 */
  SIM_NO_SET = 1 << 4,  /* @wrong says what comes of it */
  SIM_NULL_IS_UNSET = 1 << 5,
  SIM_MORE_3000 = 1 << 6, /* more than one value, which is 2000 elsewhere */
  SIM_NONE_3000 = 1 << 7, /* no value, likewise */
};

#define SIM_ANY_OP (-1) /* for @target */

typedef struct
{
  int kind, name, type;
  int wrong; /* status for values of another type */
  int flags;
  int target; /* kind of descriptor that the value must be */
} SimAttribute;

/* NULL: descriptors of that kind have no such attribute. */
const SimAttribute *sim_attribute_find (int kind, int name);
gboolean sim_kind_is_known (cudnnBackendDescriptorType_t kind);

/* ---- cudnn-descriptors.c ---- */

SimDescriptor *sim_descriptor_new (cudnnBackendDescriptorType_t kind);
SimDescriptor *sim_descriptor_ref (SimDescriptor *d);
void sim_descriptor_unref (SimDescriptor *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SimDescriptor, sim_descriptor_unref)
/* The live descriptor that the program means, or NULL with a fault; @what: the call, for the fault. */
SimDescriptor *sim_descriptor_find (cudnnBackendDescriptor_t descriptor, const char *what);

/* Keeps the text for cudnnGetLastErrorString, and returns @status. */
cudnnStatus_t sim_refuse (cudnnStatus_t status, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Values of an attribute, FALSE or 0 when it was not set. */
gboolean sim_value_int64 (const SimDescriptor *d, int name, int64_t *value);
gboolean sim_value_enum (const SimDescriptor *d, int name, int *value);
gboolean sim_value_float (const SimDescriptor *d, int name, float *value);
gboolean sim_value_bool (const SimDescriptor *d, int name, gboolean *value);
int64_t sim_value_int64s (const SimDescriptor *d, int name, int64_t *values, int64_t max);
gconstpointer sim_value_data (const SimDescriptor *d, int name, int64_t *n);
/* NULL where it is missing, or was not finalized when it was set. */
SimDescriptor *sim_value_descriptor (const SimDescriptor *d, int name, int64_t i);

cudnnStatus_t sim_set (SimDescriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t n, const void *values);
/* The same for descriptors that need not be in the program's hands. */
cudnnStatus_t sim_set_descriptors (SimDescriptor *d, int name, int64_t n, SimDescriptor *const *values);
cudnnStatus_t sim_finalize (SimDescriptor *d);

/* ---- finalize, by kind; cudnn-graph.c ---- */

const char *sim_kind_name (cudnnBackendDescriptorType_t kind);
RnDType sim_type_dtype (cudnnDataType_t type);
/* From the first to the last element. */
gsize sim_tensor_bytes (const SimTensor *tensor);
cudnnStatus_t sim_finalize_tensor (SimDescriptor *d);
cudnnStatus_t sim_finalize_window (SimDescriptor *d);
cudnnStatus_t sim_finalize_pointwise (SimDescriptor *d);
cudnnStatus_t sim_finalize_op (SimDescriptor *d);
cudnnStatus_t sim_finalize_graph (SimDescriptor *d);

/* ---- cudnn-engines.c ---- */

cudnnStatus_t sim_finalize_heuristics (SimDescriptor *d);
cudnnStatus_t sim_finalize_engine (SimDescriptor *d);
cudnnStatus_t sim_finalize_config (SimDescriptor *d);

/* ---- cudnn-profiles.c ---- */

cudnnStatus_t sim_finalize_profile (SimDescriptor *d);

/* ---- cudnn-plans.c ---- */

cudnnStatus_t sim_finalize_plan (SimDescriptor *d);

/* ---- cudnn-execute.c ---- */

cudnnStatus_t sim_finalize_pack (SimDescriptor *d);
unsigned long sim_cudnn_n_handles (void);

/* ---- cudnn-compute.c ---- */

typedef struct
{
  void *x, *w, *y;
  const void *bias, *residual;
  void *workspace; /* NULL: the engine needs none */
} SimConvPointers;

void sim_conv_run (const SimConv *conv, SimChoice choice, const SimConvPointers *pointers);
/* Multiplications. */
double sim_conv_work (const SimConv *conv);

G_END_DECLS

#endif
