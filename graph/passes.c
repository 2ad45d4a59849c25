/* passes.c: the passes in their order, each followed by a check. */
#include "config.h"

#include "graph/passes.h"
#include "runner/base/error.h"

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
  g_set_error (run->error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED, "after pass %s: %s", pass, fault);
  return FALSE;
}

static gboolean
apply (const Run *run, const char *pass, void (*transform) (RnGraph *graph))
{
  transform (run->graph);
  return done (run, pass);
}

gboolean
rn_passes_run (RnGraph *graph, const RnPassOptions *options, RnPassTrace trace, gpointer user_data,
               GError **error)
{
  const Run run = { graph, trace, user_data, error };
  gboolean training = graph->mode == RN_MODE_TRAIN;

  if (!apply (&run, "freeze", rn_pass_freeze))
    return FALSE;
  if ((options->fold_frozen_bn || !training) && !apply (&run, "fold_bn", rn_pass_fold_bn))
    return FALSE;
  if (!apply (&run, "fuse", rn_pass_fuse))
    return FALSE;
  if (training && options->keep != NULL)
    {
      rn_pass_keep (graph, options->keep);
      if (!done (&run, "keep"))
        return FALSE;
    }
  if (training
      && !(apply (&run, "gradient", rn_pass_gradient)
           && apply (&run, "fuse_backward", rn_pass_fuse_backward)))
    return FALSE;
  rn_pass_layout (graph, options->cblk);
  return done (&run, "layout");
}
