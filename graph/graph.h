/*
 * graph.h: what a model becomes for one input shape: values and ops, in execution order. It has no memory and
 * no device.
 *
 * Models write the forward part with the rn_conv2d, rn_relu, ... functions. Passes (passes.h) turn it into
 * the step: the list then holds the forward program, [0, turn), and the backward program, [turn, n). The
 * planner (plan.h) gives every value its place.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <glib.h>
#include "graph/memory-options.h"
#include "graph/params.h"
#include "kernels/op.h"

G_BEGIN_DECLS

typedef int RnValueId; /* index into the graph's values */
#define RN_NO_VALUE (-1)

typedef enum
{
  RN_VALUE_INPUT, /* written by the host before the program: image, labels, scalars */
  /* These in the arrays of the parameter set; param -1: the whole array, but of states. */
  RN_VALUE_PARAM,      /* RN_PARAM_WEIGHT or _BUFFER */
  RN_VALUE_PARAM_GRAD, /* its gradient */
  RN_VALUE_STATE,      /* of the optimizer: array .state */
  RN_VALUE_EMA,        /* its running mean */
  RN_VALUE_ACTIVATION, /* made by a forward op */
  RN_VALUE_GRADIENT,   /* made by a backward op, or by a loss that writes its own gradient */
} RnValueKind;

/* Where a value lies: an arena of its own each. */
typedef enum
{
  RN_SPACE_DEVICE,
  RN_SPACE_HOST, /* pinned where the device knows the difference */
} RnSpace;
#define RN_N_SPACES 2

typedef struct
{
  char *name; /* module path of its op, "backbone.layer1.0.conv1"; "d:" and that for gradients, "r:" for what
                 is computed again */
  RnTensorDesc desc;
  RnValueKind kind;
  RnSpace space;
  int param;              /* index in the parameter set, for PARAM to EMA, else -1 */
  int state;              /* number of the array, for STATE */
  gboolean requires_grad; /* set by rn_pass_freeze: a gradient of this value is needed */
  RnValueId gradient;     /* set by rn_pass_gradient: its finished gradient, or RN_NO_VALUE */
  gboolean is_output;     /* read by the host after the program: stays alive to the end */
  gboolean is_kept;       /* read by the host after the forward ops: stays alive to the first backward op */
} RnValue;

/* Does the planner place it? The others lie in the parameter set. */
static inline gboolean
rn_value_is_in_arena (const RnValue *value)
{
  return value->kind == RN_VALUE_INPUT || value->kind == RN_VALUE_ACTIVATION
         || value->kind == RN_VALUE_GRADIENT;
}

/* Why an op is in the list. */
typedef enum
{
  RN_PHASE_FORWARD,
  RN_PHASE_RECOMPUTE, /* a forward op once more, for the backward part */
  RN_PHASE_BACKWARD,
  RN_PHASE_UPDATE, /* the optimizer's, in the backward part */
  RN_PHASE_MOVE,   /* to or from host memory */
} RnPhase;

typedef struct
{
  RnOp op;
  RnOpArgs args;
  RnPhase phase;
  char *scope; /* module path, as in checkpoint names */
  int group; /* head ops of one level and branch share a number >= 0, in summation order (P3 class, P3 box, P4
                class, ...); trunk: -1 */
  int stage, block; /* of the backbone: its stages are numbered 0, 1, ..., and its residual blocks through all
                       stages; other ops: -1 */
  RnValueId in[RN_OP_MAX_IN];
  RnValueId out[RN_OP_MAX_OUT];
} RnGraphOp;

typedef enum
{
  RN_MODE_TRAIN, /* forward + loss, backward */
  RN_MODE_LOSS,  /* forward + loss on evaluation statistics, no gradient */
  RN_MODE_INFER, /* forward + top-k */
} RnMode;

typedef struct
{
  RnMode mode;
  RnParamSet *params; /* lent */
  GPtrArray *values;  /* of RnValue, owned */
  GPtrArray *ops;     /* of RnGraphOp, owned, in execution order */
  int turn; /* where the backward program begins; equal to ops->len until rn_pass_gradient. With a depth-first
               head the forward program has backward ops too: see phase */
  int group, stage, block; /* given to the ops that are added next */
  RnPhase phase;           /* likewise */
  GString *scope;          /* given to the ops that are added next: see rn_graph_push_scope */
  GArray *scope_marks;     /* of gsize: length of scope before each push */
  GArray *param_values;    /* of RnValueId: the value of each parameter of the set, or RN_NO_VALUE */
  char *fault; /* the first fault, or NULL; rn_graph_finish_forward and rn_graph_check report it */
  RnMemoryOption fault_option; /* whose fault it is */
} RnGraph;

RnGraph *rn_graph_new (RnMode mode, RnParamSet *params);
void rn_graph_free (RnGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnGraph, rn_graph_free)

static inline RnValue *
rn_graph_value (const RnGraph *graph, RnValueId id)
{
  return (RnValue *) g_ptr_array_index (graph->values, (guint) id);
}

static inline RnGraphOp *
rn_graph_op (const RnGraph *graph, int i)
{
  return (RnGraphOp *) g_ptr_array_index (graph->ops, (guint) i);
}

/* Scopes nest: push "backbone", push "layer1.0" gives "backbone.layer1.0". */
void rn_graph_push_scope (RnGraph *graph, const char *format, ...) G_GNUC_PRINTF (2, 3);
void rn_graph_pop_scope (RnGraph *graph);
/* Is @scope the module @module, or inside of it? */
gboolean rn_scope_is_in (const char *scope, const char *module);

/* ---- writing the forward part. Errors of shape are sticky: rn_graph_finish_forward reports the first one,
 * with its scope. ---- */

RnValueId rn_graph_input (RnGraph *graph, const char *name, RnTensorDesc desc);
/* The first input or activation of that name, or RN_NO_VALUE. */
RnValueId rn_graph_find_value (const RnGraph *graph, const char *name);
void rn_graph_mark_output (RnGraph *graph, RnValueId value);

typedef struct
{
  const char *name; /* module name inside the scope: "conv1"; parameters are SCOPE.NAME.weight, .bias */
  int64_t out_channels;
  int kernel, stride, pad; /* square; stride 0 means 1 */
  int dilation, groups;    /* 0 means 1 */
  gboolean bias;
  gboolean frozen; /* parameters need no gradient */
  RnInit weight_init, bias_init;
} RnConv2d;

RnValueId rn_conv2d (RnGraph *graph, RnValueId x, const RnConv2d *spec);
/* Adds the parameters of a convolution on @in_channels ahead of its use: a parameter set is in the order of
 * first sight. */
void rn_conv2d_declare (RnGraph *graph, int64_t in_channels, const RnConv2d *spec);

typedef struct
{
  const char *name;
  double eps, momentum;
  gboolean training;  /* statistics of the batch; FALSE: running statistics */
  gboolean frozen;    /* gamma and beta need no gradient */
  double weight_init; /* gamma */
} RnBatchNorm;

RnValueId rn_batch_norm (RnGraph *graph, RnValueId x, const RnBatchNorm *spec);
RnValueId rn_relu (RnGraph *graph, RnValueId x);
RnValueId rn_add (RnGraph *graph, RnValueId a, RnValueId b);
RnValueId rn_max_pool2d (RnGraph *graph, RnValueId x, int kernel, int stride, int pad);
RnValueId rn_avg_pool2d (RnGraph *graph, RnValueId x, int kernel, int stride,
                         gboolean ceil_mode); /* padding is never counted */
/* nearest (x, to the size of fine) + fine */
RnValueId rn_upsample_add (RnGraph *graph, RnValueId x, RnValueId fine);

/*
 * Losses: return the loss value F32[1], named by the scope alone (push "loss_cls.0" before); in RN_MODE_TRAIN
 * they also write the gradient of their first argument (see op.h).
 */
RnValueId rn_focal_loss (RnGraph *graph, RnValueId logits, RnValueId labels, RnValueId avg,
                         RnValueId grad_scale, const RnFocalArgs *args);
RnValueId rn_box_loss (RnGraph *graph, RnValueId pred, RnValueId positives, RnValueId count, RnValueId avg,
                       RnValueId grad_scale, const RnBoxArgs *args);
/*
 * Gives the three outputs of RN_OP_TOPK, marked as outputs, as values named NAME.index, NAME.logits and
 * NAME.deltas (without the scope).
 */
void rn_topk (RnGraph *graph, const char *name, RnValueId logits, RnValueId deltas, const RnTopkArgs *args);

/* FALSE when an op got shapes that do not fit; the message has scope, op and shapes. */
gboolean rn_graph_finish_forward (RnGraph *graph, GError **error);

/* ---- for passes ---- */
/* Tensors of this size and more are refused, so that sums of sizes cannot overflow. */
#define RN_MAX_TENSOR_BYTES ((gint64) 1 << 40)
/* RN_NO_VALUE and a fault when @desc is empty or too large. */
RnValueId rn_graph_add_value (RnGraph *graph, const char *name, RnTensorDesc desc, RnValueKind kind,
                              int param);
/* The value of parameter @param, added on first use. */
RnValueId rn_graph_param_value (RnGraph *graph, int param);
/* Notes a fault if it is the first one. */
void rn_graph_set_fault (RnGraph *graph, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The same for an option that does not fit the graph, or that has no effect on it: says what works instead.
 */
void rn_graph_set_option_fault (RnGraph *graph, RnMemoryOption option, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
/* A zeroed op, all slots RN_NO_VALUE, appended; scope copied; group, stage, block and phase from the graph.
 * turn stays. */
RnGraphOp *rn_graph_append_op (RnGraph *graph, RnOp op, const char *scope);
/* The same before op @position; in front of turn it becomes a forward op. */
RnGraphOp *rn_graph_insert_op (RnGraph *graph, int position, RnOp op, const char *scope);
/* Marks op @i for removal: it becomes RN_OP_COUNT. Positions stay until rn_graph_sweep. */
void rn_graph_drop_op (RnGraph *graph, int i);
/* Removes the dropped ops. Their values stay, used by nobody. */
void rn_graph_sweep (RnGraph *graph);
/* For each value: how many input slots read it; the host's reading counts as one. (transfer full) */
int *rn_graph_count_reads (const RnGraph *graph);
/* For each value: the op that writes it first, or -1. (transfer full) */
int *rn_graph_find_writers (const RnGraph *graph);
/* Does a batch norm take its statistics from the batch? */
gboolean rn_graph_has_live_batch_norm (const RnGraph *graph);
/* Descriptors and presence bits of op @i. */
void rn_graph_call (const RnGraph *graph, int i, RnOpCall *call);
/* Every op's call passes rn_op_check, every value is written before it is read, each activation has one
 * writer. NULL or the fault. (transfer full) */
char *rn_graph_check (const RnGraph *graph);
/* One line an op, for `runner plan --passes`. (transfer full) */
char *rn_graph_print (const RnGraph *graph);

G_END_DECLS

#endif
