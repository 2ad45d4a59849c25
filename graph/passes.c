/* passes.c: the passes in their order, each followed by a check. */
#include "config.h"

#include "graph/passes.h"
#include "runner/base/error.h"

G_DEFINE_QUARK (rn_pass_error, rn_pass_error)

typedef struct
{
  RnGraph *graph;
  RnPassTrace trace;
  gpointer user_data;
  GError **error;
} Run;

static gboolean
done (const Run *run, const char *pass)
{
  if (run->trace)
    run->trace (pass, run->graph, run->user_data);
  g_autofree char *fault = rn_graph_check (run->graph);
  if (!fault)
    return TRUE;
  if (run->graph->fault_option != RN_OPTION_NONE)
    g_set_error_literal (run->error, RN_PASS_ERROR, (int) run->graph->fault_option, fault);
  else
    g_set_error (run->error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED, "after pass %s: %s", pass, fault);
  return FALSE;
}

static gboolean
apply (const Run *run, const char *pass, void (*transform) (RnGraph *graph))
{
  transform (run->graph);
  return done (run, pass);
}

static gboolean
has_folded (const RnGraph *graph)
{
  for (guint i = 0; i < graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, (int) i);
      if (op->op == RN_OP_CONV2D_FWD && op->in[RN_CONV_GAMMA] != RN_NO_VALUE)
        return TRUE;
    }
  return FALSE;
}

static gboolean
fold (const Run *run, gboolean must_fold)
{
  rn_pass_fold_bn (run->graph);
  if (must_fold && !has_folded (run->graph))
    rn_graph_set_option_fault (
        run->graph, RN_OPTION_FOLD,
        "no convolution has a batch norm on frozen statistics behind it, so folding has "
        "no effect; what works: auto, or norm_eval: true");
  return done (run, "fold_bn");
}

/* What the plain step is changed to, in order. */
static gboolean
save_memory (const Run *run, const RnPassOptions *options)
{
  RnRecomputeOptions recompute = options->recompute;

  if (recompute.backbone.form != RN_CP_NONE || recompute.head.form != RN_CP_NONE || recompute.bn_relu
      || recompute.frozen)
    {
      recompute.order = options->head;
      rn_pass_recompute (run->graph, &recompute);
      if (!done (run, "recompute"))
        return FALSE;
    }
  if (options->head == RN_HEAD_DEPTH_FIRST && !apply (run, "depth_first", rn_pass_depth_first))
    return FALSE;
  if (options->update != NULL)
    {
      rn_pass_update (run->graph, options->update);
      if (!done (run, "update"))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_passes_run (RnGraph *graph, const RnPassOptions *options, RnPassTrace trace, gpointer user_data,
               GError **error)
{
  const Run run = { graph, trace, user_data, error };
  gboolean training = graph->mode == RN_MODE_TRAIN;

  if (!apply (&run, "freeze", rn_pass_freeze))
    return FALSE;
  if ((options->fold_frozen_bn || !training) && !fold (&run, options->must_fold && training))
    return FALSE;
  if (!apply (&run, "fuse", rn_pass_fuse))
    return FALSE;
  if (options->amp.level != RN_AMP_O0)
    {
      rn_pass_amp (graph, &options->amp);
      if (!done (&run, "amp"))
        return FALSE;
    }
  if (training && options->keep != NULL)
    {
      rn_pass_keep (graph, options->keep);
      if (!done (&run, "keep"))
        return FALSE;
    }
  if (training
      && !(apply (&run, "gradient", rn_pass_gradient) && apply (&run, "fuse_backward", rn_pass_fuse_backward)
           && (!options->mask_sums || apply (&run, "mask_sums", rn_pass_mask_sums))
           && save_memory (&run, options)))
    return FALSE;
  if (options->normalize && !apply (&run, "normalize", rn_pass_normalize))
    return FALSE;
  rn_pass_layout (graph, options->cblk);
  if (!done (&run, "layout"))
    return FALSE;
  if (!training || options->offload.form == RN_OFFLOAD_NONE)
    return TRUE;
  rn_pass_offload (graph, &options->offload); /* a copy lies as its source: the layout must be known */
  return done (&run, "offload");
}
