/* cudnn-descriptors.c: the library's descriptors: made whole, written down, asked. */
#include "config.h"

#include "kernels/cuda/cudnn-private.h"

#include "runner/base/json.h"

#include <stdbool.h>
#include <string.h>

#define MAX_JSON_BYTES (1 << 20) /* of what the library is made to read */
#define MAX_JSON_DEPTH 16

/* ---- making descriptors ---- */

/* A descriptor that is being made. After a failure the further steps do nothing. */
typedef struct
{
  RnCudnn *cudnn;
  const char *what;
  cudnnBackendDescriptor_t raw; /* NULL after a failure */
} Making;

static void
destroy (void *raw)
{
  if (raw != NULL)
    cudnnBackendDestroyDescriptor (raw);
}

static Making
make (RnCudnn *cudnn, cudnnBackendDescriptorType_t type, const char *what)
{
  Making m = { .cudnn = cudnn, .what = what };

  if (!rn_cudnn_check (cudnn, cudnnBackendCreateDescriptor (type, &m.raw), what))
    m.raw = NULL;
  return m;
}

static void
set (Making *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
     const void *values)
{
  if (m->raw != NULL
      && !rn_cudnn_check (m->cudnn, cudnnBackendSetAttribute (m->raw, name, type, n, values), m->what))
    g_clear_pointer (&m->raw, destroy);
}

static void
set_int64 (Making *m, cudnnBackendAttributeName_t name, int64_t value)
{
  set (m, name, CUDNN_TYPE_INT64, 1, &value);
}

static void
set_float (Making *m, cudnnBackendAttributeName_t name, float value)
{
  set (m, name, CUDNN_TYPE_FLOAT, 1, &value);
}

static void
set_dtype (Making *m, cudnnBackendAttributeName_t name, cudnnDataType_t value)
{
  set (m, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

/* @other: a descriptor of ours; its type says what it is. */
static void
set_descriptor (Making *m, cudnnBackendAttributeName_t name, const void *other)
{
  set (m, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

static void *
finish (Making *m)
{
  if (m->raw != NULL && !rn_cudnn_check (m->cudnn, cudnnBackendFinalize (m->raw), m->what))
    g_clear_pointer (&m->raw, destroy);
  return g_steal_pointer (&m->raw);
}

#define DESTROY(name, Type)                \
  void rn_cudnn_##name##_free (Type *name) \
  {                                        \
    destroy (name);                        \
  }
DESTROY (device, RnCudnnDevice)
DESTROY (tensor, RnCudnnTensor)
DESTROY (window, RnCudnnWindow)
DESTROY (op, RnCudnnOp)
DESTROY (graph, RnCudnnGraph)
DESTROY (config, RnCudnnConfig)
DESTROY (plan, RnCudnnPlan)
DESTROY (pack, RnCudnnPack)
#undef DESTROY

static gboolean
get (RnCudnn *cudnn, const void *descriptor, cudnnBackendAttributeName_t name,
     cudnnBackendAttributeType_t type, int64_t n, int64_t *n_got, void *values, const char *what)
{
  /* The library takes descriptors of const objects as it takes all others. */
  cudnnBackendDescriptor_t raw = (cudnnBackendDescriptor_t) (gsize) descriptor;
  return rn_cudnn_check (cudnn, cudnnBackendGetAttribute (raw, name, type, n, n_got, values), what);
}

/* An attribute that is a text. (transfer full) */
static char *
get_text (RnCudnn *cudnn, const void *descriptor, cudnnBackendAttributeName_t name, const char *what)
{
  int64_t n = 0;

  if (!get (cudnn, descriptor, name, CUDNN_TYPE_CHAR, 0, &n, NULL, what) || n < 0)
    return NULL;
  g_autofree char *text = g_malloc0 ((gsize) n + 1);
  if (!get (cudnn, descriptor, name, CUDNN_TYPE_CHAR, n, &n, text, what))
    return NULL;
  return g_steal_pointer (&text);
}

/*
 * An attribute that is JSON of a file. The library reads it by recursion, without a bound: text that nests
 * too deep is kept from it.
 */
static void
set_json (Making *m, cudnnBackendAttributeName_t name, const char *json)
{
  g_autoptr (GError) error = NULL;
  gsize size = strlen (json);

  if (size <= MAX_JSON_BYTES && rn_json_check (json, size, MAX_JSON_DEPTH, &error))
    {
      set (m, name, CUDNN_TYPE_CHAR, (int64_t) size, json);
      return;
    }
  g_clear_pointer (&m->raw, destroy);
  rn_cudnn_keep_fault (m->cudnn, CUDNN_STATUS_BAD_PARAM, m->what,
                       error != NULL ? error->message : "too long");
}

/* ---- devices ---- */

RnCudnnDevice *
rn_cudnn_device_new (RnCudnn *cudnn, int ordinal)
{
  Making m = make (cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "describing the device");
  int32_t id = ordinal;

  set (&m, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
  return finish (&m);
}

RnCudnnDevice *
rn_cudnn_device_new_from_json (RnCudnn *cudnn, const char *json)
{
  Making m = make (cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "reading the profile of a device");

  set_json (&m, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json);
  return finish (&m);
}

char *
rn_cudnn_device_to_json (RnCudnn *cudnn, const RnCudnnDevice *device)
{
  return get_text (cudnn, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                   "writing down the profile of the device");
}

/* ---- tensors and ops ---- */

/* TRUE for the types of activations. */
static gboolean
library_type (RnDType dtype, cudnnDataType_t *type)
{
  switch (dtype)
    {
    case RN_F32:
      *type = CUDNN_DATA_FLOAT;
      return TRUE;
    case RN_F16:
      *type = CUDNN_DATA_HALF;
      return TRUE;
    case RN_BF16:
      *type = CUDNN_DATA_BFLOAT16;
      return TRUE;
    default:
      return FALSE;
    }
}

RnCudnnTensor *
rn_cudnn_tensor_new (RnCudnn *cudnn, const RnCudnnTensorInfo *info)
{
  const char *what = "making a tensor";
  const int64_t *dims = info->dims;
  const int64_t nchw[4] = { dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1 };
  const int64_t nhwc[4] = { dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1] };
  bool is_virtual = info->is_virtual != FALSE; /* the library's booleans have one byte */
  cudnnDataType_t type = CUDNN_DATA_FLOAT;

  if (!info->is_virtual && !library_type (info->dtype, &type))
    {
      rn_cudnn_keep_fault (cudnn, CUDNN_STATUS_BAD_PARAM, what, "neither f32 nor f16 nor bf16");
      return NULL;
    }
  Making m = make (cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  set_dtype (&m, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  set (&m, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
  set (&m, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, info->nhwc ? nhwc : nchw);
  set_int64 (&m, CUDNN_ATTR_TENSOR_UNIQUE_ID, info->id);
  set_int64 (&m, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, RN_CUDNN_ALIGNMENT);
  set (&m, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  return finish (&m);
}

RnCudnnWindow *
rn_cudnn_window_new (RnCudnn *cudnn, const int64_t pad[2], const int64_t stride[2], const int64_t dilation[2])
{
  Making m = make (cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "describing a convolution");
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;

  set_int64 (&m, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  set_dtype (&m, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  set (&m, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set (&m, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
  set (&m, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
  set (&m, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
  set (&m, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
  return finish (&m);
}

RnCudnnOp *
rn_cudnn_op_forward_new (RnCudnn *cudnn, const RnCudnnWindow *window, const RnCudnnTensor *x,
                         const RnCudnnTensor *w, const RnCudnnTensor *y, float beta)
{
  Making m = make (cudnn, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "making a convolution");

  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  set_float (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1);
  set_float (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, beta);
  return finish (&m);
}

RnCudnnOp *
rn_cudnn_op_backward_data_new (RnCudnn *cudnn, const RnCudnnWindow *window, const RnCudnnTensor *dy,
                               const RnCudnnTensor *w, const RnCudnnTensor *dx, float beta)
{
  Making m = make (cudnn, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   "making the gradient of a convolution's source");

  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, window);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx);
  set_float (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1);
  set_float (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, beta);
  return finish (&m);
}

RnCudnnOp *
rn_cudnn_op_backward_weights_new (RnCudnn *cudnn, const RnCudnnWindow *window, const RnCudnnTensor *x,
                                  const RnCudnnTensor *dy, const RnCudnnTensor *dw, float beta)
{
  Making m = make (cudnn, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                   "making the gradient of a convolution's weights");

  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, window);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, dy);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, dw);
  set_float (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1);
  set_float (&m, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, beta);
  return finish (&m);
}

/* @b: NULL for an op of one operand. */
static RnCudnnOp *
pointwise_new (RnCudnn *cudnn, cudnnPointwiseMode_t mode, const RnCudnnTensor *x, const RnCudnnTensor *b,
               const RnCudnnTensor *y, const char *what)
{
  Making pointwise = make (cudnn, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what);

  set (&pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set_dtype (&pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  void *description = finish (&pointwise);
  if (description == NULL)
    return NULL;
  Making m = make (cudnn, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, what);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != NULL)
    set_descriptor (&m, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set_descriptor (&m, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  RnCudnnOp *op = finish (&m);
  destroy (description);
  return op;
}

RnCudnnOp *
rn_cudnn_op_add_new (RnCudnn *cudnn, const RnCudnnTensor *a, const RnCudnnTensor *b, const RnCudnnTensor *y)
{
  return pointwise_new (cudnn, CUDNN_POINTWISE_ADD, a, b, y, "making a sum");
}

RnCudnnOp *
rn_cudnn_op_relu_new (RnCudnn *cudnn, const RnCudnnTensor *x, const RnCudnnTensor *y)
{
  return pointwise_new (cudnn, CUDNN_POINTWISE_RELU_FWD, x, NULL, y, "making a ReLU");
}

RnCudnnGraph *
rn_cudnn_graph_new (RnCudnn *cudnn, RnCudnnOp *const *ops, int n_ops)
{
  Making m = make (cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "making a graph");

  set (&m, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n_ops, ops);
  return finish (&m);
}

/* ---- engines ---- */

/* Creates @n empty descriptors, for the library to fill. */
static gboolean
create_empty (RnCudnn *cudnn, cudnnBackendDescriptorType_t type, int64_t n, GPtrArray *raws, const char *what)
{
  for (int64_t i = 0; i < n; i++)
    {
      Making m = make (cudnn, type, what);
      if (m.raw == NULL)
        return FALSE;
      g_ptr_array_add (raws, m.raw);
    }
  return TRUE;
}

static gboolean
read_results (RnCudnn *cudnn, const void *heuristics, GPtrArray *configs)
{
  const char *what = "reading what the heuristics propose";
  g_autoptr (GPtrArray) raws = g_ptr_array_new_with_free_func (destroy);
  int64_t n = 0, n_got = 0;

  if (!get (cudnn, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL,
            what))
    return FALSE;
  if (n <= 0)
    return TRUE;
  if (!create_empty (cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, n, raws, what)
      || !get (cudnn, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &n_got,
               raws->pdata, what))
    return FALSE;
  /* Often fewer than it said. */
  for (int64_t i = 0; i < MIN (n, n_got); i++)
    g_ptr_array_add (configs, g_steal_pointer (&raws->pdata[i]));
  return TRUE;
}

gboolean
rn_cudnn_heuristics (RnCudnn *cudnn, const RnCudnnGraph *graph, const RnCudnnDevice *device,
                     cudnnBackendHeurMode_t mode, GPtrArray *configs)
{
  Making m = make (cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "asking for engines");

  set_descriptor (&m, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set (&m, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  set_descriptor (&m, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  void *heuristics = finish (&m);
  if (heuristics == NULL)
    return rn_cudnn_is_unsupported (rn_cudnn_status (cudnn));
  gboolean is_ok = read_results (cudnn, heuristics, configs);
  destroy (heuristics);
  return is_ok;
}

/* One bit per note. */
static gboolean
read_notes (RnCudnn *cudnn, const void *engine, cudnnBackendAttributeName_t name,
            cudnnBackendAttributeType_t type, int n_known, guint *notes, const char *what)
{
  int values[32]; /* the enums of notes are ints; their numbers are below 32 */
  const int64_t n_most = MIN (n_known, 32);
  int64_t n = 0;

  *notes = 0;
  if (!get (cudnn, engine, name, type, n_most, &n, values, what))
    return FALSE;
  for (int64_t i = 0; i < MIN (n, n_most); i++)
    if (values[i] >= 0 && values[i] < 32)
      *notes |= 1U << values[i];
  return TRUE;
}

gboolean
rn_cudnn_config_describe (RnCudnn *cudnn, const RnCudnnConfig *config, RnCudnnConfigInfo *info)
{
  const char *what = "describing an engine";
  g_autoptr (GPtrArray) raws = g_ptr_array_new_with_free_func (destroy);
  int64_t n = 0, workspace = 0;

  G_STATIC_ASSERT (sizeof (cudnnBackendNumericalNote_t) == sizeof (int));
  G_STATIC_ASSERT (sizeof (cudnnBackendBehaviorNote_t) == sizeof (int));
  *info = (RnCudnnConfigInfo){ 0 };
  if (!create_empty (cudnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1, raws, what)
      || !get (cudnn, config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &workspace, what)
      || !get (cudnn, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, raws->pdata,
               what)
      || !get (cudnn, raws->pdata[0], CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &info->engine,
               what))
    return FALSE;
  info->workspace = workspace > 0 ? (gsize) workspace : 0;
  return read_notes (cudnn, raws->pdata[0], CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &info->numerical_notes, what)
         && read_notes (cudnn, raws->pdata[0], CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                        CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &info->behavior_notes, what);
}

/* ---- plans ---- */

RnCudnnPlan *
rn_cudnn_plan_new (RnCudnn *cudnn, const RnCudnnConfig *config)
{
  Making m = make (cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "making a plan");

  set_descriptor (&m, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  return finish (&m);
}

RnCudnnPlan *
rn_cudnn_plan_new_from_json (RnCudnn *cudnn, const RnCudnnDevice *device, const char *json)
{
  Making m = make (cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "reading a plan");

  /* Without a device the library crashes. */
  set_descriptor (&m, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  set_json (&m, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, json);
  return finish (&m);
}

char *
rn_cudnn_plan_to_json (RnCudnn *cudnn, const RnCudnnPlan *plan)
{
  return get_text (cudnn, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, "writing down a plan");
}

gboolean
rn_cudnn_plan_workspace (RnCudnn *cudnn, const RnCudnnPlan *plan, gsize *bytes)
{
  int64_t n = 0, value = 0;

  if (!get (cudnn, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &value,
            "asking for the workspace of a plan"))
    return FALSE;
  *bytes = value > 0 ? (gsize) value : 0;
  return TRUE;
}

static const char *
pack_problem (const int64_t *ids, void *const *pointers, int n, const void *workspace)
{
  for (int i = 0; i < n; i++)
    {
      if (pointers[i] == NULL)
        return "a tensor has no address";
      if ((gsize) pointers[i] % RN_CUDNN_ALIGNMENT != 0)
        return "the address of a tensor is not aligned to 16 bytes";
      for (int j = 0; j < i; j++)
        if (ids[i] == ids[j])
          return "a tensor is named twice";
    }
  return (gsize) workspace % RN_CUDNN_ALIGNMENT != 0 ? "the workspace is not aligned to 16 bytes" : NULL;
}

RnCudnnPack *
rn_cudnn_pack_new (RnCudnn *cudnn, const int64_t *ids, void *const *pointers, int n, void *workspace)
{
  const char *what = "naming the addresses of a plan", *problem = pack_problem (ids, pointers, n, workspace);

  if (problem != NULL)
    {
      rn_cudnn_keep_fault (cudnn, CUDNN_STATUS_BAD_PARAM, what, problem);
      return NULL;
    }
  Making m = make (cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, what);
  set (&m, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
  set (&m, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
  set (&m, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  return finish (&m);
}
