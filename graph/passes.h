/*
 * passes.h: from a forward graph to a step, one file a pass. Order: freeze, fold_bn, fuse, amp, keep,
 * gradient, fuse_backward, mask_sums, recompute, depth_first, update, normalize, layout, offload. Each leaves
 * a graph that rn_graph_check accepts. Fusion comes before the gradient, so that the backward part never
 * needs a value that fusion removed. What saves memory comes after it: a schedule is the same list with ops
 * added or moved, and the planner sees from the list alone what must be kept.
 */
#ifndef GRAPH_PASSES_H
#define GRAPH_PASSES_H

#include "graph/graph.h"
#include "graph/memory-options.h"
#include "graph/update-graph.h"

G_BEGIN_DECLS

typedef struct
{
  gboolean fold_frozen_bn; /* every batch norm on running statistics that follows a convolution */
  gboolean must_fold;      /* while training, to fold none is a fault of RN_OPTION_FOLD */
  gboolean inplace;   /* outputs may take the storage of an input that nobody reads later; for the planner */
  int64_t cblk;       /* channel block of activations, or RN_CBLK_ALL; the device's wish */
  gboolean mask_sums; /* likewise: masks of gradients add up what they write */
  gboolean normalize; /* the host writes the bytes of a batch, not the model's input "image" */
  const char *const *keep; /* (nullable) modules, NULL-ended, lent: for rn_pass_keep, while training */
  RnAmpOptions amp;
  /* While training: */
  RnRecomputeOptions recompute;
  RnHeadOrder head;
  const RnUpdateSpec *update; /* (nullable) lent: in the backward program */
  RnOffloadOptions offload;
} RnPassOptions;

/* Sets requires_grad: parameters that train, and every activation that one of them can reach. A frozen prefix
 * has none. */
void rn_pass_freeze (RnGraph *graph);
/* conv -> batch norm (running statistics), conv output read by nobody else: one folded convolution. */
void rn_pass_fold_bn (RnGraph *graph);
/* conv (+ add) (+ ReLU), batch norm + ReLU, add + ReLU: one op each. */
void rn_pass_fuse (RnGraph *graph);
/* Half precision: element types of activations, and casts where two meet. */
void rn_pass_amp (RnGraph *graph, const RnAmpOptions *options);
/*
 * The outputs of these modules (NULL-ended; those that the graph does not have are passed over) stay readable
 * when the forward ops have run.
 */
void rn_pass_keep (RnGraph *graph, const char *const *modules);
/*
 * What the module "backbone.layer1" gives: the first output of the last forward op in it or below it. Where
 * a module runs once a level, that is the last level. RN_NO_VALUE: no op is left of it.
 */
RnValueId rn_graph_module_output (const RnGraph *graph, const char *module);
/* All names that rn_graph_module_output takes, in the order of the ops, NULL-ended. (transfer full) */
char **rn_graph_module_names (const RnGraph *graph);
/*
 * Appends the backward ops. Head groups first, in ascending order, then the trunk in reverse: shared head
 * gradients are summed P3 to P7, class before box. Values with several readers get their contributions added
 * as they come. Ops without requires_grad get nothing.
 */
void rn_pass_gradient (RnGraph *graph);
/* add followed by ReLU mask, upsample gradient followed by add: one op each. */
void rn_pass_fuse_backward (RnGraph *graph);
/* ReLU mask -> weight gradient with sums over channels: the mask gives them. */
void rn_pass_mask_sums (RnGraph *graph);
/*
 * Outputs that only the backward part needs late are dropped and computed again in front of the first op that
 * reads them. Statistics of batch norms are not updated twice. A part of @options that finds nothing to do is
 * a fault of its option. The copies have RN_PHASE_RECOMPUTE and stand in the backward part.
 */
void rn_pass_recompute (RnGraph *graph, const RnRecomputeOptions *options);
/* Groups of the head, one after the other, forward and backward, all in the forward program. */
void rn_pass_depth_first (RnGraph *graph);
/*
 * The order that it makes: positions of the ops, and *@turn, where the backward program begins by then. NULL:
 * no op has a group. (transfer full)
 */
int *rn_depth_first_order (const RnGraph *graph, int *turn);
/*
 * The gradients of parameters become values of the arena, and the optimizer's op of a parameter stands behind
 * the last op that needs its gradient or its old value, in the backward program. Adds the input "hyper".
 */
void rn_pass_update (RnGraph *graph, const RnUpdateSpec *spec);
/* Values that are idle for long go to host memory and come back. */
void rn_pass_offload (RnGraph *graph, const RnOffloadOptions *options);
/*
 * The input "image" becomes what the op NORMALIZE makes of the inputs "pixels", "sizes" and "table", in front
 * of what reads it first.
 */
void rn_pass_normalize (RnGraph *graph);
/* Sets cblk of all activations and gradients of rank 4. What NORMALIZE writes stays NCHW but with
 * RN_CBLK_ALL. */
void rn_pass_layout (RnGraph *graph, int64_t cblk);

/* Codes are RnMemoryOption: the option that does not fit the model, or that has no effect on it. */
#define RN_PASS_ERROR (rn_pass_error_quark ())
GQuark rn_pass_error_quark (void);

/*
 * All of them for the graph's mode. @trace (may be NULL) is called after each pass with its name. Errors:
 * RN_PASS_ERROR, or what rn_graph_check finds.
 */
typedef void (*RnPassTrace) (const char *pass, const RnGraph *graph, gpointer user_data);
gboolean rn_passes_run (RnGraph *graph, const RnPassOptions *options, RnPassTrace trace, gpointer user_data,
                        GError **error);

G_END_DECLS

#endif
