/*
 * cudnn-graph.c: tensors, convolutions and graphs of the simulated cuDNN: what is valid, and which graphs are
 * among the patterns that have engines.
 */
#include "config.h"

#include "tests/gpu/sim/cudnn-internal.h"

#include <string.h>

#define FWD(name) CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_##name
#define DATA(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_##name
#define FILTER(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_##name
#define PW(name) CUDNN_ATTR_OPERATION_POINTWISE_##name

/* The text of the condition that failed. */
#define REQUIRE(condition) \
  if (!(condition))        \
  return sim_refuse (CUDNN_STATUS_BAD_PARAM, "%s", #condition)

const char *
sim_kind_name (cudnnBackendDescriptorType_t kind)
{
  switch ((int) kind)
    {
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return "a pointwise descriptor";
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return "a convolution descriptor";
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return "an engine";
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return "an engine configuration";
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return "heuristics";
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return "an execution plan";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return "a forward convolution";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return "a backward filter convolution";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return "a backward data convolution";
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return "a pointwise op";
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return "an operation graph";
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return "a variant pack";
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return "a tensor";
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return "a device";
    default:
      return "an unknown descriptor";
    }
}

/* ---- tensors ---- */

/* Bytes of an element; 0 for a type that is not known. */
static gsize
type_bytes (cudnnDataType_t type)
{
  switch ((int) type)
    {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
      return 1;
    default:
      return 0;
    }
}

RnDType
sim_type_dtype (cudnnDataType_t type)
{
  return type == CUDNN_DATA_HALF ? RN_F16 : type == CUDNN_DATA_BFLOAT16 ? RN_BF16 : RN_F32;
}

gsize
sim_tensor_bytes (const SimTensor *tensor)
{
  int64_t last = 0;
  for (int i = 0; i < tensor->n_dims; i++)
    last += (tensor->dims[i] - 1) * tensor->strides[i];
  return (gsize) (last + 1) * type_bytes (tensor->type);
}

cudnnStatus_t
sim_finalize_tensor (SimDescriptor *d)
{
  SimTensor *t = &d->tensor;
  int type = CUDNN_DATA_FLOAT;

  *t = (SimTensor){ .alignment = 0 };
  int64_t n_dims = sim_value_int64s (d, CUDNN_ATTR_TENSOR_DIMENSIONS, t->dims, CUDNN_DIM_MAX);
  int64_t n_strides = sim_value_int64s (d, CUDNN_ATTR_TENSOR_STRIDES, t->strides, CUDNN_DIM_MAX);
  gboolean has_type = sim_value_enum (d, CUDNN_ATTR_TENSOR_DATA_TYPE, &type);
  t->has_id = sim_value_int64 (d, CUDNN_ATTR_TENSOR_UNIQUE_ID, &t->id);
  sim_value_int64 (d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &t->alignment);
  sim_value_bool (d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, &t->is_virtual);
  t->type = (cudnnDataType_t) type;

  REQUIRE (n_dims == n_strides);
  REQUIRE (n_dims >= 1);
  REQUIRE (n_dims <= CUDNN_DIM_MAX);
  t->n_dims = (int) n_dims;
  for (int i = 0; i < n_dims; i++)
    {
      REQUIRE (t->dims[i] >= 0);
      REQUIRE (t->strides[i] >= 0);
    }
  gsize size = type_bytes (t->type);
  if (size == 0)
    {
      sim_fault ("a tensor of type %d: cuDNN ends the program where it does not know the type, and the "
                 "simulation knows no type of 8 or fewer bits but INT8, UINT8 and BOOLEAN",
                 type);
      return sim_refuse (CUDNN_STATUS_BAD_PARAM, "type %d", type);
    }
  REQUIRE (t->alignment > 0 && t->alignment % (int64_t) size == 0);
  if (!t->has_id)
    sim_fault ("a tensor has no unique id");
  if (!has_type)
    sim_fault ("a tensor has no data type");
  return CUDNN_STATUS_SUCCESS;
}

static gboolean
tensors_equal (const SimTensor *a, const SimTensor *b)
{
  return a->type == b->type && a->n_dims == b->n_dims && a->alignment == b->alignment
         && a->is_virtual == b->is_virtual
         && memcmp (a->dims, b->dims, (gsize) a->n_dims * sizeof a->dims[0]) == 0
         && memcmp (a->strides, b->strides, (gsize) a->n_dims * sizeof a->strides[0]) == 0;
}

/* ---- convolutions ---- */

cudnnStatus_t
sim_finalize_window (SimDescriptor *d)
{
  SimWindow *w = &d->window;
  int64_t n_dims = 0;
  int compute = CUDNN_DATA_FLOAT, mode = CUDNN_CONVOLUTION;

  *w = (SimWindow){ .n_dims = 0 };
  sim_value_int64 (d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, &n_dims);
  gboolean is_whole = sim_value_enum (d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, &compute);
  is_whole &= sim_value_enum (d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, &mode);
  int64_t n_pads = sim_value_int64s (d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w->pad, CUDNN_DIM_MAX);
  int64_t n_post_pads =
      sim_value_int64s (d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w->post_pad, CUDNN_DIM_MAX);
  int64_t n_strides = sim_value_int64s (d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w->stride, CUDNN_DIM_MAX);
  int64_t n_dilations = sim_value_int64s (d, CUDNN_ATTR_CONVOLUTION_DILATIONS, w->dilation, CUDNN_DIM_MAX);

  REQUIRE (n_dims >= 1 && n_dims <= CUDNN_DIM_MAX);
  REQUIRE (n_strides == n_dims);
  REQUIRE (n_dilations == n_dims);
  REQUIRE (n_pads == 0 || n_pads == n_dims);
  REQUIRE (n_post_pads == 0 || n_post_pads == n_dims);
  for (int i = 0; i < n_dims; i++)
    {
      REQUIRE (w->pad[i] >= 0 && w->post_pad[i] >= 0);
      REQUIRE (w->stride[i] > 0);
      REQUIRE (w->dilation[i] > 0);
    }
  if (!is_whole || n_pads == 0 || n_post_pads == 0)
    sim_fault ("a convolution descriptor lacks its compute type, mode or paddings; cuDNN takes defaults");
  w->n_dims = (int) n_dims;
  w->compute = (cudnnDataType_t) compute;
  w->mode = (cudnnConvolutionMode_t) mode;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_finalize_pointwise (SimDescriptor *d)
{
  static const int options[] = { CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP,
                                 CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE };
  int mode = CUDNN_POINTWISE_ADD, precision = CUDNN_DATA_FLOAT;

  if (!sim_value_enum (d, CUDNN_ATTR_POINTWISE_MODE, &mode)
      || !sim_value_enum (d, CUDNN_ATTR_POINTWISE_MATH_PREC, &precision))
    sim_fault ("a pointwise descriptor lacks its mode or precision; cuDNN takes defaults");
  d->pointwise =
      (SimPointwise){ .mode = (cudnnPointwiseMode_t) mode, .precision = (cudnnDataType_t) precision };
  for (gsize i = 0; i < G_N_ELEMENTS (options); i++)
    {
      float value;
      d->pointwise.has_options |= sim_value_float (d, options[i], &value);
    }
  return CUDNN_STATUS_SUCCESS;
}

static gboolean
take_tensor (const SimDescriptor *d, int name, SimTensor *tensor)
{
  const SimDescriptor *from = sim_value_descriptor (d, name, 0);
  if (from == NULL)
    return FALSE;
  *tensor = from->tensor;
  return TRUE;
}

static cudnnStatus_t
check_sizes (const SimOpNode *op)
{
  const int64_t *x = op->x.dims, *w = op->w.dims, *y = op->y.dims;
  const SimWindow *window = &op->window;

  REQUIRE (op->x.n_dims == window->n_dims + 2);
  REQUIRE (op->w.n_dims == op->x.n_dims && op->y.n_dims == op->x.n_dims);
  for (int i = 0; i < op->x.n_dims; i++)
    REQUIRE (x[i] > 0 && w[i] > 0 && y[i] > 0);
  REQUIRE (y[0] == x[0]);
  REQUIRE (y[1] == w[0]);
  REQUIRE (x[1] % w[1] == 0);
  REQUIRE (w[0] % (x[1] / w[1]) == 0);
  for (int i = 0; i < window->n_dims; i++)
    {
      int64_t reach = window->dilation[i] * (w[2 + i] - 1) + 1;
      int64_t room = x[2 + i] + window->pad[i] + window->post_pad[i] - reach;
      REQUIRE (room >= 0);
      REQUIRE (y[2 + i] == room / window->stride[i] + 1);
    }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
finalize_convolution (SimDescriptor *d, int x, int w, int y, int window, int alpha, int beta)
{
  SimOpNode *op = &d->op;
  const SimDescriptor *from = sim_value_descriptor (d, window, 0);
  gboolean has_x = take_tensor (d, x, &op->x), has_w = take_tensor (d, w, &op->w),
           has_y = take_tensor (d, y, &op->y);

  REQUIRE (has_x && has_w && has_y && from != NULL);
  op->window = from->window;
  cudnnStatus_t status = check_sizes (op);
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  if (!sim_value_float (d, alpha, &op->alpha) || !sim_value_float (d, beta, &op->beta))
    sim_fault ("%s lacks alpha or beta; cuDNN takes defaults", sim_kind_name (d->kind));
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
finalize_pointwise_op (SimDescriptor *d)
{
  SimOpNode *op = &d->op;
  const SimDescriptor *from = sim_value_descriptor (d, PW (PW_DESCRIPTOR), 0);
  gboolean has_x = take_tensor (d, PW (XDESC), &op->x), has_y = take_tensor (d, PW (YDESC), &op->y);

  op->has_b = take_tensor (d, PW (BDESC), &op->b);
  if (from != NULL)
    op->pointwise = from->pointwise;
  else
    sim_fault ("a pointwise op has no pointwise descriptor; cuDNN takes the default, ADD");
  if (!has_x && !has_y && !op->has_b)
    {
      sim_fault ("a pointwise op has no tensors");
      return CUDNN_STATUS_SUCCESS;
    }
  REQUIRE (op->x.n_dims == op->y.n_dims);
  REQUIRE (op->pointwise.mode != CUDNN_POINTWISE_ADD || op->x.n_dims == op->b.n_dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_finalize_op (SimDescriptor *d)
{
  d->op = (SimOpNode){ .kind = d->kind, .alpha = 1 };
  switch ((int) d->kind)
    {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return finalize_convolution (d, FWD (X), FWD (W), FWD (Y), FWD (CONV_DESC), FWD (ALPHA), FWD (BETA));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return finalize_convolution (d, DATA (DX), DATA (W), DATA (DY), DATA (CONV_DESC), DATA (ALPHA),
                                   DATA (BETA));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return finalize_convolution (d, FILTER (X), FILTER (DW), FILTER (DY), FILTER (CONV_DESC),
                                   FILTER (ALPHA), FILTER (BETA));
    default:
      return finalize_pointwise_op (d);
    }
}

/* ---- graphs ---- */

static gboolean
is_pointwise (const SimOpNode *op)
{
  return op->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
}

static const SimTensor *
output_of (const SimOpNode *op)
{
  switch ((int) op->kind)
    {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return &op->x;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return &op->w;
    default:
      return &op->y;
    }
}

static int
inputs_of (const SimOpNode *op, const SimTensor *inputs[2])
{
  if (is_pointwise (op))
    {
      inputs[0] = &op->x;
      inputs[1] = &op->b;
      return op->has_b ? 2 : 1;
    }
  const SimTensor *output = output_of (op);
  inputs[0] = output == &op->x ? &op->y : &op->x;
  inputs[1] = output == &op->w ? &op->y : &op->w;
  return 2;
}

static gboolean
reads (const SimOpNode *op, int64_t id)
{
  const SimTensor *inputs[2];
  int n = inputs_of (op, inputs);
  for (int i = 0; i < n; i++)
    if (inputs[i]->id == id)
      return TRUE;
  return FALSE;
}

/* Puts each op after those that it reads from; FALSE: they go in a circle. */
static gboolean
sort_ops (SimGraph *graph)
{
  for (int n = 0; n < graph->n_ops; n++)
    {
      int next = n;
      for (gboolean waits = TRUE; next < graph->n_ops; next++)
        {
          waits = FALSE;
          for (int i = n; i < graph->n_ops; i++)
            waits |= i != next && reads (&graph->ops[next], output_of (&graph->ops[i])->id);
          if (!waits)
            break;
        }
      if (next == graph->n_ops)
        return FALSE;
      SimOpNode op = graph->ops[next];
      graph->ops[next] = graph->ops[n];
      graph->ops[n] = op;
    }
  return TRUE;
}

/* An id names one tensor, and nothing is both read from memory and written: the library lets it pass. */
static void
check_ids (const SimGraph *graph)
{
  const SimTensor *tensors[3 * SIM_MAX_OPS];
  int n = 0;

  for (int i = 0; i < graph->n_ops; i++)
    {
      const SimTensor *output = output_of (&graph->ops[i]);
      if (reads (&graph->ops[i], output->id))
        sim_fault ("tensor %" G_GINT64_FORMAT " is read and written by one op", output->id);
      tensors[n++] = output;
      n += inputs_of (&graph->ops[i], &tensors[n]);
    }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      if (tensors[i]->id == tensors[j]->id && !tensors_equal (tensors[i], tensors[j]))
        {
          sim_fault ("different tensors of a graph have the id %" G_GINT64_FORMAT, tensors[i]->id);
          return;
        }
}

static gboolean
is_add (const SimOpNode *op)
{
  return is_pointwise (op) && op->pointwise.mode == CUDNN_POINTWISE_ADD && op->has_b
         && op->pointwise.precision == CUDNN_DATA_FLOAT;
}

/* @op adds something to the tensor @id: what? */
static const SimTensor *
addend_of (const SimOpNode *op, int64_t id)
{
  return op->x.id == id ? &op->b : op->b.id == id ? &op->x : NULL;
}

static gboolean
has_dims (const SimTensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
  return t->n_dims == 4 && t->dims[0] == n && t->dims[1] == c && t->dims[2] == h && t->dims[3] == w;
}

/* Stored, of the type of the whole; or virtual, in single precision. */
static const char *
check_operand (const SimConv *c, const SimTensor *t, gboolean is_virtual)
{
  if (t->is_virtual != is_virtual)
    return is_virtual ? "what lies between two ops is stored" : "a tensor that no op writes is virtual";
  if (t->type != (is_virtual ? CUDNN_DATA_FLOAT : c->x.type))
    return "no engine for this mixture of types";
  return NULL;
}

/* What follows a forward convolution: [+ residual] + bias [, ReLU]. */
static const char *
match_epilogue (const SimGraph *graph, SimConv *c)
{
  SimTensor last = graph->ops[0].y;
  const char *refusal = check_operand (c, &last, TRUE);
  int i = 1;

  if (refusal != NULL)
    return refusal;
  if (c->alpha != 1 || c->beta != 0)
    return "a fused convolution has alpha 1 and beta 0";
  for (; i < graph->n_ops && is_add (&graph->ops[i]); i++)
    {
      const SimOpNode *op = &graph->ops[i];
      const SimTensor *addend = addend_of (op, last.id);
      if (addend == NULL)
        return "ops are not connected";
      if (c->has_bias)
        return "something is added after the bias";
      if ((refusal = check_operand (c, addend, FALSE)) != NULL
          || (refusal = check_operand (c, &op->y, i < graph->n_ops - 1)) != NULL)
        return refusal;
      if (!has_dims (&op->y, last.dims[0], last.dims[1], last.dims[2], last.dims[3]))
        return "an op changes the size";
      if (has_dims (addend, 1, last.dims[1], 1, 1))
        {
          c->has_bias = TRUE;
          c->bias = *addend;
        }
      else if (!c->has_residual && has_dims (addend, last.dims[0], last.dims[1], last.dims[2], last.dims[3]))
        {
          c->has_residual = TRUE;
          c->residual = *addend;
        }
      else
        return "what is added has another size";
      last = op->y;
    }
  if (!c->has_bias)
    return "a fused convolution has a bias";
  if (i < graph->n_ops)
    {
      const SimOpNode *op = &graph->ops[i++];
      if (!is_pointwise (op) || op->pointwise.mode != CUDNN_POINTWISE_RELU_FWD || op->has_b
          || op->pointwise.has_options || op->pointwise.precision != CUDNN_DATA_FLOAT || op->x.id != last.id)
        return "after the bias comes a plain ReLU";
      if ((refusal = check_operand (c, &op->y, FALSE)) != NULL)
        return refusal;
      if (!has_dims (&op->y, last.dims[0], last.dims[1], last.dims[2], last.dims[3]))
        return "an op changes the size";
      c->has_relu = TRUE;
      last = op->y;
    }
  c->y = last;
  return i == graph->n_ops ? NULL : "there are ops after the ReLU";
}

static const char *
match (SimGraph *graph)
{
  const SimOpNode *op = &graph->ops[0];
  SimConv *c = &graph->conv;

  if (is_pointwise (op))
    return "it does not begin with a convolution";
  *c = (SimConv){ .kind = op->kind,
                  .x = op->x,
                  .w = op->w,
                  .y = op->y,
                  .window = op->window,
                  .groups = op->x.dims[1] / op->w.dims[1],
                  .alpha = op->alpha,
                  .beta = op->beta };
  if (c->window.n_dims != 2)
    return "not two spatial dimensions";
  if (c->window.mode != CUDNN_CROSS_CORRELATION)
    return "not a cross-correlation";
  if (c->window.compute != CUDNN_DATA_FLOAT)
    return "sums are in single precision only";
  if (c->x.type != CUDNN_DATA_FLOAT && c->x.type != CUDNN_DATA_HALF && c->x.type != CUDNN_DATA_BFLOAT16)
    return "convolutions are in FLOAT, HALF and BFLOAT16";
  const char *refusal = check_operand (c, &c->x, FALSE);
  if (refusal == NULL)
    refusal = check_operand (c, &c->w, FALSE);
  if (refusal != NULL)
    return refusal;
  if (graph->n_ops > 1)
    return c->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
               ? match_epilogue (graph, c)
               : "nothing is fused to a backward convolution";
  if (output_of (op)->is_virtual)
    sim_fault ("the output of the graph is virtual: nothing would be written");
  return check_operand (c, &c->y, FALSE);
}

cudnnStatus_t
sim_finalize_graph (SimDescriptor *d)
{
  g_autofree SimGraph *graph = g_new0 (SimGraph, 1);
  int64_t n;

  sim_value_data (d, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
  REQUIRE (n > 0);
  if (n > SIM_MAX_OPS)
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED, "the simulation takes %d ops", SIM_MAX_OPS);
  for (int64_t i = 0; i < n; i++)
    graph->ops[graph->n_ops++] = sim_value_descriptor (d, CUDNN_ATTR_OPERATIONGRAPH_OPS, i)->op;
  for (int i = 0; i < graph->n_ops; i++)
    for (int j = 0; j < i; j++)
      REQUIRE (output_of (&graph->ops[i])->id != output_of (&graph->ops[j])->id);
  gboolean is_acyclic = sort_ops (graph);
  REQUIRE (is_acyclic);
  check_ids (graph);
  graph->refusal = match (graph);
  d->as_graph = g_steal_pointer (&graph);
  return CUDNN_STATUS_SUCCESS;
}
