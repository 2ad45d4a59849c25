/*
 * cudnn-build.h: descriptors of cuDNN's graph API for tests, which set them one attribute at a time and want
 * to see every status. A builder that fails returns the descriptor all the same, and leaves the status.
 */
#ifndef TESTS_GPU_CUDNN_BUILD_H
#define TESTS_GPU_CUDNN_BUILD_H

#include <cudnn_graph.h>
#include <glib.h>

G_BEGIN_DECLS

typedef cudnnBackendDescriptor_t Descriptor;

/* Of the last call of a builder that was not a success; 0 after build_begin. */
extern cudnnStatus_t build_status;

/* An attribute that builders leave out; -1: none, as after build_begin. */
extern int build_skip;

/* Descriptors that are made from here on are destroyed by build_end. */
void build_begin (void);
void build_end (void);

Descriptor build_new (cudnnBackendDescriptorType_t kind);
cudnnStatus_t build_set (Descriptor d, int name, cudnnBackendAttributeType_t type, int64_t n,
                         const void *values);
cudnnStatus_t build_set_int64 (Descriptor d, int name, int64_t value);
cudnnStatus_t build_set_enum (Descriptor d, int name, cudnnBackendAttributeType_t type, int value);
cudnnStatus_t build_set_float (Descriptor d, int name, float value);
cudnnStatus_t build_set_descriptor (Descriptor d, int name, Descriptor value);
cudnnStatus_t build_finalize (Descriptor d);

/* Profile of a device that need not be there. */
Descriptor build_profile (const char *json);
/* A T4 (7.5) or an A100 (8.0), of driver 13000. */
extern const char build_t4[], build_a100[];

typedef struct
{
  int64_t id;
  cudnnDataType_t type;
  int64_t dims[4];
  gboolean nhwc;
  gboolean is_virtual;
  int64_t alignment; /* 0: 16 */
} TensorInfo;

Descriptor build_tensor (const TensorInfo *info);
Descriptor build_tensor_of (int64_t id, cudnnDataType_t type, int n_dims, const int64_t *dims, int n_strides,
                            const int64_t *strides, int64_t alignment, gboolean is_virtual);
/* All that a tensor needs, of one that is not finalized. */
void build_set_tensor (Descriptor d, int64_t id, cudnnDataType_t type, int n_dims, const int64_t *dims,
                       int n_strides, const int64_t *strides, int64_t alignment);

typedef struct
{
  int64_t pad[2], stride[2], dilation[2];
  cudnnDataType_t compute;
} WindowInfo;

Descriptor build_window (const WindowInfo *info);

typedef enum
{
  BUILD_FORWARD,
  BUILD_DATA,
  BUILD_FILTER,
} Direction;

/* @x, @w, @y: of the forward direction. */
Descriptor build_convolution (Direction direction, Descriptor x, Descriptor w, Descriptor y,
                              Descriptor window, float alpha, float beta);
Descriptor build_pointwise (cudnnPointwiseMode_t mode);
/* @b: (nullable) */
Descriptor build_pointwise_op (Descriptor pointwise, Descriptor x, Descriptor b, Descriptor y);
Descriptor build_graph (int n, const Descriptor *ops);

/* Configurations that the heuristics give, and what they tell. */
typedef struct
{
  Descriptor config;
  int64_t engine, workspace;
  unsigned numerical_notes, behavior_notes; /* 1 << note */
} Proposal;

/* (element-type Proposal) (transfer full) */
GArray *build_proposals (Descriptor graph, Descriptor profile, cudnnBackendHeurMode_t mode);

Descriptor build_plan (Descriptor config);
Descriptor build_plan_from_json (Descriptor profile, const char *json);
/* (transfer full) */
char *build_plan_json (Descriptor plan);
Descriptor build_pack (int n, const int64_t *ids, void *const *pointers, void *workspace);

G_END_DECLS

#endif
