/*
 * build.c: writing the forward part. Each function infers the shape of its result, names values and
 * parameters after scope and module, and returns RN_NO_VALUE once something did not fit: the first fault is
 * kept and all that follows from it is silent.
 */
#include "config.h"

#include "graph/graph.h"
#include "runner/base/error.h"

/* "backbone.layer1.0" and "conv1" give "backbone.layer1.0.conv1". (transfer full) */
static char *
path_of (const RnGraph *graph, const char *name)
{
  if (!name)
    return g_strdup (graph->scope->str);
  return graph->scope->len > 0 ? g_strconcat (graph->scope->str, ".", name, NULL) : g_strdup (name);
}

static RnGraphOp *
add_op (RnGraph *graph, RnOp op, const char *path)
{
  RnGraphOp *o = rn_graph_append_op (graph, op, path);
  graph->turn = (int) graph->ops->len;
  return o;
}

/* The op that was added last is complete: check it as a whole. Gives its result. */
static RnValueId
finish_op (RnGraph *graph)
{
  int last = (int) graph->ops->len - 1;
  const RnGraphOp *op = rn_graph_op (graph, last);
  RnOpCall call;
  rn_graph_call (graph, last, &call);
  const char *reason = rn_op_check (&call);
  if (!reason)
    return op->out[0];
  g_autofree char *description = rn_op_describe (&call);
  rn_graph_set_fault (graph, "%s: %s: %s", op->scope, description, reason);
  return RN_NO_VALUE;
}

/* Descriptor of @v, or NULL and a fault when it is no feature map. */
static const RnTensorDesc *
feature_map (RnGraph *graph, const char *path, RnValueId v)
{
  const RnTensorDesc *desc = v == RN_NO_VALUE ? NULL : &rn_graph_value (graph, v)->desc;
  if (desc && desc->dtype == RN_F32 && desc->rank == 4)
    return desc;
  rn_graph_set_fault (graph, "%s: the input is no feature map of 4 dimensions", path);
  return NULL;
}

static RnValueId
add_activation (RnGraph *graph, const char *path, RnTensorDesc desc)
{
  return rn_graph_add_value (graph, path, desc, RN_VALUE_ACTIVATION, -1);
}

typedef enum
{
  ROLE_WEIGHT,
  ROLE_BIAS,
  ROLE_GAMMA,
  ROLE_BETA,
  ROLE_BUFFER,
} ParamRole;

/* The parameter PATH.NAME, from the set. */
static RnValueId
add_param (RnGraph *graph, const char *path, const char *name, ParamRole role, const RnTensorDesc *desc,
           gboolean frozen, RnInit init)
{
  g_autofree char *full = g_strconcat (path, ".", name, NULL);
  RnParamKind kind = role == ROLE_BUFFER ? RN_PARAM_BUFFER : RN_PARAM_WEIGHT;
  int known = rn_param_set_find (graph->params, full);
  if (known >= 0 && !rn_desc_equal (&rn_param_set_get (graph->params, known)->desc, desc))
    {
      rn_graph_set_fault (graph, "%s: used before with another shape", full);
      return RN_NO_VALUE;
    }
  int index = rn_param_set_intern (graph->params, full, kind, desc, !frozen, init);
  if (known < 0 && index >= 0)
    {
      RnParam *param = rn_param_set_edit (graph->params, index);
      param->is_norm = role == ROLE_GAMMA || role == ROLE_BETA;
      param->is_bias = role == ROLE_BIAS || role == ROLE_BETA;
    }
  return index < 0 ? RN_NO_VALUE : rn_graph_param_value (graph, index);
}

RnValueId
rn_graph_input (RnGraph *graph, const char *name, RnTensorDesc desc)
{
  return rn_graph_add_value (graph, name, desc, RN_VALUE_INPUT, -1);
}

gboolean
rn_graph_finish_forward (RnGraph *graph, GError **error)
{
  if (!graph->fault)
    return TRUE;
  g_set_error_literal (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED, graph->fault);
  return FALSE;
}

/* ---- layers with parameters ---- */

/* @bias is left alone when there is none. */
static void
add_conv_params (RnGraph *graph, const char *path, int64_t in_channels, const RnConv2d *spec,
                 RnValueId *weights, RnValueId *bias)
{
  int64_t group_channels = in_channels / MAX (spec->groups, 1);
  RnTensorDesc kernels = { RN_F32, 4, { spec->out_channels, group_channels, spec->kernel, spec->kernel }, 1 };
  RnTensorDesc channel = rn_desc_vector (RN_F32, spec->out_channels);
  *weights = add_param (graph, path, "weight", ROLE_WEIGHT, &kernels, spec->frozen, spec->weight_init);
  if (spec->bias)
    *bias = add_param (graph, path, "bias", ROLE_BIAS, &channel, spec->frozen, spec->bias_init);
}

void
rn_conv2d_declare (RnGraph *graph, int64_t in_channels, const RnConv2d *spec)
{
  g_autofree char *path = path_of (graph, spec->name);
  RnValueId weights, bias;
  add_conv_params (graph, path, in_channels, spec, &weights, &bias);
}

RnValueId
rn_conv2d (RnGraph *graph, RnValueId x, const RnConv2d *spec)
{
  g_autofree char *path = path_of (graph, spec->name);
  const RnTensorDesc *src = feature_map (graph, path, x);
  if (!src)
    return RN_NO_VALUE;

  int k = spec->kernel, stride = MAX (spec->stride, 1), dilation = MAX (spec->dilation, 1),
      groups = MAX (spec->groups, 1);
  int64_t in_channels = src->dims[1], out_channels = spec->out_channels;
  int64_t h = rn_window_size (src->dims[2], k, stride, spec->pad, dilation, FALSE);
  int64_t w = rn_window_size (src->dims[3], k, stride, spec->pad, dilation, FALSE);
  if (h < 1 || w < 1)
    {
      rn_graph_set_fault (
          graph,
          "%s: a kernel of %d (stride %d, padding %d, dilation %d) does not fit a map of %" G_GINT64_FORMAT
          "x%" G_GINT64_FORMAT,
          path, k, stride, spec->pad, dilation, src->dims[2], src->dims[3]);
      return RN_NO_VALUE;
    }
  if (out_channels < 1 || in_channels % groups != 0 || out_channels % groups != 0)
    {
      rn_graph_set_fault (
          graph, "%s: %d groups do not divide %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " channels", path,
          groups, in_channels, out_channels);
      return RN_NO_VALUE;
    }

  RnValueId dst = add_activation (graph, path, rn_desc_nchw (RN_F32, src->dims[0], out_channels, h, w, 1));
  RnGraphOp *op = add_op (graph, RN_OP_CONV2D_FWD, path);
  op->args.conv = (RnConvArgs){
    .kernel = { k, k },
    .stride = { stride, stride },
    .pad = { spec->pad, spec->pad },
    .dilation = { dilation, dilation },
    .groups = groups,
  };
  op->in[RN_CONV_SRC] = x;
  add_conv_params (graph, path, in_channels, spec, &op->in[RN_CONV_WEIGHTS], &op->in[RN_CONV_BIAS]);
  op->out[RN_CONV_DST] = dst;
  return finish_op (graph);
}

/* What a batch norm on batch statistics writes besides its result. */
static void
add_statistics (RnGraph *graph, RnGraphOp *op, const char *path, const RnTensorDesc *channel, RnValueId mean,
                RnValueId var)
{
  g_autofree char *saved_mean = g_strconcat (path, ".saved_mean", NULL);
  g_autofree char *saved_invstd = g_strconcat (path, ".saved_invstd", NULL);
  op->out[RN_NORM_SAVED_MEAN] = add_activation (graph, saved_mean, *channel);
  op->out[RN_NORM_SAVED_INVSTD] = add_activation (graph, saved_invstd, *channel);
  op->out[RN_NORM_RUNNING_MEAN] = mean;
  op->out[RN_NORM_RUNNING_VAR] = var;
}

RnValueId
rn_batch_norm (RnGraph *graph, RnValueId x, const RnBatchNorm *spec)
{
  g_autofree char *path = path_of (graph, spec->name);
  const RnTensorDesc *src = feature_map (graph, path, x);
  if (!src)
    return RN_NO_VALUE;

  const RnInit zero = { .kind = RN_INIT_CONSTANT, .a = 0 }, one = { .kind = RN_INIT_CONSTANT, .a = 1 };
  const RnInit weight = { .kind = RN_INIT_CONSTANT, .a = spec->weight_init };
  RnTensorDesc channel = rn_desc_vector (RN_F32, src->dims[1]);
  RnValueId dst = add_activation (graph, path, *src);
  RnGraphOp *op = add_op (graph, RN_OP_BATCH_NORM_FWD, path);
  op->args.norm = (RnNormArgs){
    .eps = (float) spec->eps,
    .momentum = (float) spec->momentum,
    .training = spec->training && graph->mode == RN_MODE_TRAIN,
  };
  op->in[RN_NORM_SRC] = x;
  op->in[RN_NORM_GAMMA] = add_param (graph, path, "weight", ROLE_GAMMA, &channel, spec->frozen, weight);
  op->in[RN_NORM_BETA] = add_param (graph, path, "bias", ROLE_BETA, &channel, spec->frozen, zero);
  op->out[RN_NORM_DST] = dst;
  RnValueId mean = add_param (graph, path, "running_mean", ROLE_BUFFER, &channel, TRUE, zero);
  RnValueId var = add_param (graph, path, "running_var", ROLE_BUFFER, &channel, TRUE, one);
  if (op->args.norm.training)
    add_statistics (graph, op, path, &channel, mean, var);
  else
    {
      op->in[RN_NORM_MEAN] = mean;
      op->in[RN_NORM_VAR] = var;
    }
  return finish_op (graph);
}

/* ---- layers without parameters ---- */

/* An op with up to two inputs whose first one, or @like, gives the shape of the result. */
static RnValueId
add_plain (RnGraph *graph, RnOp op, RnValueId a, RnValueId b, RnValueId like)
{
  g_autofree char *path = path_of (graph, rn_op_name (op));
  const RnTensorDesc *desc = feature_map (graph, path, like);
  if (!feature_map (graph, path, a) || !desc)
    return RN_NO_VALUE;
  RnValueId dst = add_activation (graph, path, *desc);
  RnGraphOp *o = add_op (graph, op, path);
  o->in[0] = a;
  o->in[1] = b;
  o->out[0] = dst;
  return finish_op (graph);
}

RnValueId
rn_relu (RnGraph *graph, RnValueId x)
{
  return add_plain (graph, RN_OP_RELU_FWD, x, RN_NO_VALUE, x);
}

RnValueId
rn_add (RnGraph *graph, RnValueId a, RnValueId b)
{
  return add_plain (graph, RN_OP_ADD, a, b, b);
}

RnValueId
rn_upsample_add (RnGraph *graph, RnValueId x, RnValueId fine)
{
  return add_plain (graph, RN_OP_UPSAMPLE_FWD, x, fine, fine);
}

static RnValueId
add_pool (RnGraph *graph, RnOp op, RnValueId x, const RnPoolArgs *args)
{
  g_autofree char *path = path_of (graph, rn_op_name (op));
  const RnTensorDesc *src = feature_map (graph, path, x);
  if (!src)
    return RN_NO_VALUE;
  int64_t h =
      rn_window_size (src->dims[2], args->kernel[0], args->stride[0], args->pad[0], 1, args->ceil_mode);
  int64_t w =
      rn_window_size (src->dims[3], args->kernel[1], args->stride[1], args->pad[1], 1, args->ceil_mode);
  if (h < 1 || w < 1)
    {
      rn_graph_set_fault (graph,
                          "%s: a window of %d (stride %d, padding %d) does not fit a map of %" G_GINT64_FORMAT
                          "x%" G_GINT64_FORMAT,
                          path, args->kernel[0], args->stride[0], args->pad[0], src->dims[2], src->dims[3]);
      return RN_NO_VALUE;
    }
  RnValueId dst = add_activation (graph, path, rn_desc_nchw (RN_F32, src->dims[0], src->dims[1], h, w, 1));
  RnGraphOp *o = add_op (graph, op, path);
  o->args.pool = *args;
  o->in[0] = x;
  o->out[RN_POOL_DST] = dst;
  return finish_op (graph);
}

RnValueId
rn_max_pool2d (RnGraph *graph, RnValueId x, int kernel, int stride, int pad)
{
  const RnPoolArgs args = { .kernel = { kernel, kernel }, .stride = { stride, stride }, .pad = { pad, pad } };
  return add_pool (graph, RN_OP_MAX_POOL_FWD, x, &args);
}

RnValueId
rn_avg_pool2d (RnGraph *graph, RnValueId x, int kernel, int stride, gboolean ceil_mode)
{
  const RnPoolArgs args = { .kernel = { kernel, kernel },
                            .stride = { stride, stride },
                            .ceil_mode = ceil_mode };
  return add_pool (graph, RN_OP_AVG_POOL_FWD, x, &args);
}

/* ---- the end of a detector ---- */

/* Adds a loss without its inputs; NULL when @pred is no feature map. */
static RnGraphOp *
add_loss (RnGraph *graph, RnOp op, RnValueId pred)
{
  g_autofree char *path = path_of (graph, NULL);
  const RnTensorDesc *desc = feature_map (graph, path, pred);
  if (!desc)
    return NULL;
  RnGraphOp *o = add_op (graph, op, path);
  o->in[0] = pred;
  o->out[RN_LOSS_VALUE] = add_activation (graph, path, rn_desc_vector (RN_F32, 1));
  if (graph->mode == RN_MODE_TRAIN)
    {
      g_autofree char *name = g_strconcat ("d:", rn_graph_value (graph, pred)->name, NULL);
      o->out[RN_LOSS_DIFF] = rn_graph_add_value (graph, name, *desc, RN_VALUE_GRADIENT, -1);
    }
  return o;
}

RnValueId
rn_focal_loss (RnGraph *graph, RnValueId logits, RnValueId labels, RnValueId avg, RnValueId grad_scale,
               const RnFocalArgs *args)
{
  RnGraphOp *op = add_loss (graph, RN_OP_FOCAL_LOSS, logits);
  if (!op)
    return RN_NO_VALUE;
  op->args.focal = *args;
  op->in[RN_FOCAL_LABELS] = labels;
  op->in[RN_FOCAL_AVG] = avg;
  op->in[RN_FOCAL_GRAD_SCALE] = grad_scale;
  return finish_op (graph);
}

RnValueId
rn_box_loss (RnGraph *graph, RnValueId pred, RnValueId positives, RnValueId count, RnValueId avg,
             RnValueId grad_scale, const RnBoxArgs *args)
{
  RnGraphOp *op = add_loss (graph, RN_OP_BOX_LOSS, pred);
  if (!op)
    return RN_NO_VALUE;
  op->args.box = *args;
  op->in[RN_BOX_POSITIVES] = positives;
  op->in[RN_BOX_COUNT] = count;
  op->in[RN_BOX_AVG] = avg;
  op->in[RN_BOX_GRAD_SCALE] = grad_scale;
  return finish_op (graph);
}

static RnValueId
add_result (RnGraph *graph, const char *name, const char *what, RnTensorDesc desc)
{
  g_autofree char *path = g_strconcat (name, ".", what, NULL);
  RnValueId v = add_activation (graph, path, desc);
  rn_graph_mark_output (graph, v);
  return v;
}

void
rn_topk (RnGraph *graph, const char *name, RnValueId logits, RnValueId deltas, const RnTopkArgs *args)
{
  g_autofree char *path = path_of (graph, name);
  const RnTensorDesc *desc = feature_map (graph, path, logits);
  if (!desc || !feature_map (graph, path, deltas))
    return;
  int64_t n = desc->dims[0];
  RnGraphOp *op = add_op (graph, RN_OP_TOPK, path);
  op->args.topk = *args;
  op->in[RN_TOPK_LOGITS] = logits;
  op->in[RN_TOPK_DELTAS] = deltas;
  op->out[RN_TOPK_INDEX] =
      add_result (graph, name, "index", (RnTensorDesc){ RN_I32, 2, { n, args->k, 1, 1 }, 1 });
  op->out[RN_TOPK_ROW_LOGITS] = add_result (
      graph, name, "logits", (RnTensorDesc){ RN_F32, 3, { n, args->k, args->num_classes, 1 }, 1 });
  op->out[RN_TOPK_ROW_DELTAS] =
      add_result (graph, name, "deltas", (RnTensorDesc){ RN_F32, 3, { n, args->k, 4, 1 }, 1 });
  finish_op (graph);
}
