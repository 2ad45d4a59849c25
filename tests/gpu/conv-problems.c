#include "config.h"

#include "tests/gpu/conv-problems.h"

#include "kernels/cuda/conv-graph.h"
#include "runner/cli/shape.h"
#include "runner/config/config.h"
#include "runner/job.h"

static RnConvProblem
problem_of (RnConvKind kind, const RnOpCall *call, const RnTensorDesc *source,
            const RnTensorDesc *destination)
{
  const RnConvArgs *args = &call->args.conv;
  RnConvProblem p = { .kind = kind,
                      .n = source->dims[0],
                      .c = source->dims[1],
                      .h = source->dims[2],
                      .w = source->dims[3],
                      .k = destination->dims[1],
                      .oh = destination->dims[2],
                      .ow = destination->dims[3],
                      .groups = args->groups };

  for (int axis = 0; axis < 2; axis++)
    {
      p.kernel[axis] = args->kernel[axis];
      p.stride[axis] = args->stride[axis];
      p.pad[axis] = args->pad[axis];
      p.dilation[axis] = args->dilation[axis];
    }
  return p;
}

/* FALSE for an op that is no convolution. */
static gboolean
problem_of_call (const RnOpCall *call, RnConvProblem *problem)
{
  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
      *problem = problem_of (RN_CONV_FORWARD, call, &call->in[RN_CONV_SRC], &call->out[RN_CONV_DST]);
      problem->residual = RN_HAS_IN (call, RN_CONV_RESIDUAL);
      problem->relu = call->args.conv.relu;
      problem->bias = problem->residual || problem->relu || RN_HAS_IN (call, RN_CONV_BIAS)
                      || RN_HAS_IN (call, RN_CONV_GAMMA);
      return TRUE;
    case RN_OP_CONV2D_BWD_DATA:
      *problem = problem_of (RN_CONV_BACKWARD_DATA, call, &call->out[RN_CONV_BD_DIFF_SRC],
                             &call->in[RN_CONV_BD_DIFF_DST]);
      return TRUE;
    case RN_OP_CONV2D_BWD_WEIGHTS:
      *problem = problem_of (RN_CONV_BACKWARD_WEIGHTS, call, &call->in[RN_CONV_BW_SRC],
                             &call->in[RN_CONV_BW_DIFF_DST]);
      return TRUE;
    default:
      return FALSE;
    }
}

GArray *
conv_problems_of_retinanet (int depth, const char *shape, guint *n_ops)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "configs", "retinanet_voc.yaml", NULL);
  g_autofree char *depth_line = g_strdup_printf ("model.backbone.depth=%d", depth);
  const char *const lines[] = { "work_dir=.",
                                "model.backbone.frozen_stages=-1",
                                "model.backbone.init_cfg=null",
                                depth_line,
                                depth < 50 ? "model.neck.in_channels=[64, 128, 256, 512]" : NULL,
                                NULL };
  GArray *problems = g_array_new (FALSE, FALSE, sizeof (RnConvProblem));

  RnNode *root = rn_config_load (path, lines, &error);
  g_assert_no_error (error);
  g_autoptr (RnJob) job = rn_job_new (root, &error);
  g_assert_no_error (error);
  rn_job_open_shapes (job, shape, 2, FALSE, FALSE, &error);
  g_assert_no_error (error);
  const RnPlan *plan = rn_programs_get_plan (job->programs, rn_programs_memory (job->programs).worst, &error);
  g_assert_no_error (error);

  *n_ops = 0;
  for (guint i = 0; i < plan->graph->ops->len; i++)
    {
      RnConvProblem problem;
      if (!problem_of_call (&plan->calls[i], &problem))
        continue;
      ++*n_ops;
      if (g_hash_table_add (seen, rn_conv_problem_text (&problem)))
        g_array_append_val (problems, problem);
    }
  return problems;
}
