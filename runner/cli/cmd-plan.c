/* cmd-plan.c: `runner plan`: the memory of a run, exactly, before it runs and without its data. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/check.h"
#include "runner/cli/common.h"
#include "runner/cli/json.h"
#include "runner/cli/shape.h"

#define MIB (1024.0 * 1024.0)

/* One forward op with what it costs in both programs. */
typedef struct
{
  const char *scope, *op, *kernel;
  RnTensorDesc dst;
  gint64 macs; /* of the batch, forward */
  gsize out_bytes;
  gsize kept_bytes; /* of the output, if backward still reads it; 0 when its storage is shared with an earlier
                       row */
  gsize workspace_bytes; /* the largest of its forward and backward ops */
} Layer;

static const char *
kernel_name (const RnPlan *plan, int i)
{
  return plan->prepared[i].kernel->name;
}

/* The largest workspace of the backward ops that belong to the forward op @i. */
static gsize
backward_workspace (const RnPlan *plan, int i)
{
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  gsize bytes = 0;
  for (int k = plan->graph->turn; k < (int) plan->graph->ops->len; k++)
    {
      const RnGraphOp *other = rn_graph_op (plan->graph, k);
      if (other->group == op->group && g_str_equal (other->scope, op->scope))
        bytes = MAX (bytes, plan->prepared[k].workspace_bytes);
    }
  return bytes;
}

static Layer
describe_layer (const RnPlan *plan, int i)
{
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  Layer layer = {
    .scope = op->scope,
    .op = rn_op_name (op->op),
    .kernel = kernel_name (plan, i),
    .dst = plan->calls[i].out[0],
    .macs = rn_op_cost (&plan->calls[i]).macs,
    .out_bytes = rn_desc_bytes (&plan->calls[i].out[0]),
    .workspace_bytes = MAX (plan->prepared[i].workspace_bytes, backward_workspace (plan, i)),
  };
  int b = op->out[0] != RN_NO_VALUE ? plan->buffer_of[op->out[0]] : -1;
  if (b >= 0 && plan->buffers[b].last >= plan->graph->turn && plan->buffers[b].first == i)
    layer.kept_bytes = plan->buffers[b].bytes;
  return layer;
}

static void
print_text (RnJob *job, const RnPlan *plan)
{
  RnMemory m = rn_programs_memory (job->programs);
  RnParamSet *params = rn_programs_params (job->programs);
  const RnGraphOp *peak = rn_graph_op (plan->graph, plan->peak_op);

  g_print ("model        %" G_GINT64_FORMAT " parameters in %d tensors, %" G_GINT64_FORMAT " trainable\n",
           rn_param_set_n_elements (params, FALSE), rn_param_set_n_weights (params),
           rn_param_set_n_elements (params, TRUE));
  g_print ("shape        batch %d, %d x %d (height x width), the worst of the run\n", m.worst.n,
           m.worst.height, m.worst.width);
  g_print ("convolution  %.2f G multiply-adds per image, forward\n", (double) plan->macs / m.worst.n / 1e9);
  g_print ("device       %s\n\n", job->device->description);
  g_print ("                           MiB\n");
  g_print ("parameters, buffers   %8.1f\n", (double) m.param_bytes / MIB);
  g_print ("gradients             %8.1f\n", (double) m.grad_bytes / MIB);
  g_print ("optimizer state       %8.1f\n", (double) m.state_bytes / MIB);
  if (m.ema_bytes > 0)
    g_print ("mean of the weights   %8.1f\n", (double) m.ema_bytes / MIB);
  g_print ("arena                 %8.1f   activations, gradients and workspaces at fixed offsets; no "
           "placement needs less than %.1f\n",
           (double) m.arena_bytes / MIB, (double) m.live_bound_bytes / MIB);
  g_print ("  largest workspace   %8.1f   inside the arena\n", (double) m.workspace_bytes / MIB);
  g_print ("total                 %8.1f\n\n", (double) m.total_bytes / MIB);
  g_print ("peak at op %d: %s of %s\n\n", plan->peak_op, rn_op_name (peak->op), peak->scope);

  g_print ("kept: what of the output backward still reads; work: the largest scratch of the layer's ops, "
           "forward or "
           "backward\n");
  g_print ("%-34s %-15s %-20s %9s %9s %9s %9s  %s\n", "layer", "op", "output", "G mult", "out MiB",
           "kept MiB", "work MiB", "kernel");
  for (int i = 0; i < plan->graph->turn; i++)
    {
      Layer layer = describe_layer (plan, i);
      GString *dims = g_string_new (NULL);
      for (int d = 0; d < layer.dst.rank; d++)
        g_string_append_printf (dims, "%s%" G_GINT64_FORMAT, d ? "x" : "", layer.dst.dims[d]);
      g_print ("%-34s %-15s %-20s %9.3f %9.2f %9.2f %9.2f  %s\n", layer.scope, layer.op, dims->str,
               (double) layer.macs / 1e9, (double) layer.out_bytes / MIB, (double) layer.kept_bytes / MIB,
               (double) layer.workspace_bytes / MIB, layer.kernel);
      g_string_free (dims, TRUE);
    }
}

static void
add_layers (JsonBuilder *builder, const RnPlan *plan)
{
  json_builder_set_member_name (builder, "layers");
  json_builder_begin_array (builder);
  for (int i = 0; i < plan->graph->turn; i++)
    {
      Layer layer = describe_layer (plan, i);
      json_builder_begin_object (builder);
      rn_json_add_string (builder, "layer", layer.scope);
      rn_json_add_string (builder, "op", layer.op);
      rn_json_add_string (builder, "kernel", layer.kernel);
      json_builder_set_member_name (builder, "output");
      json_builder_begin_array (builder);
      for (int d = 0; d < layer.dst.rank; d++)
        json_builder_add_int_value (builder, layer.dst.dims[d]);
      json_builder_end_array (builder);
      rn_json_add_int (builder, "macs", layer.macs);
      rn_json_add_int (builder, "output_bytes", (gint64) layer.out_bytes);
      rn_json_add_int (builder, "kept_bytes", (gint64) layer.kept_bytes);
      rn_json_add_int (builder, "workspace_bytes", (gint64) layer.workspace_bytes);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
}

static void
print_json (RnJob *job, const RnPlan *plan)
{
  RnMemory m = rn_programs_memory (job->programs);
  RnParamSet *params = rn_programs_params (job->programs);
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  rn_json_add_int (builder, "params", rn_param_set_n_elements (params, FALSE));
  rn_json_add_int (builder, "trainable_params", rn_param_set_n_elements (params, TRUE));
  rn_json_add_int (builder, "param_tensors", rn_param_set_n_weights (params));
  rn_json_add_int (builder, "macs_per_image", plan->macs / m.worst.n);
  rn_json_add_int (builder, "static_bytes", (gint64) (m.total_bytes - m.arena_bytes));
  rn_json_add_int (builder, "arena_bytes", (gint64) m.arena_bytes);
  rn_json_add_int (builder, "live_bound_bytes", (gint64) m.live_bound_bytes);
  rn_json_add_int (builder, "workspace_bytes", (gint64) m.workspace_bytes);
  rn_json_add_int (builder, "total_bytes", (gint64) m.total_bytes);
  g_autofree char *peak = g_strdup_printf ("%s %s", rn_op_name (rn_graph_op (plan->graph, plan->peak_op)->op),
                                           rn_graph_op (plan->graph, plan->peak_op)->scope);
  rn_json_add_string (builder, "peak_op", peak);
  rn_json_add_int (builder, "threads", job->device->n_threads);
  rn_json_add_string (builder, "device", job->device->description);
  rn_json_add_int (builder, "batch", m.worst.n);
  rn_json_add_int (builder, "height", m.worst.height);
  rn_json_add_int (builder, "width", m.worst.width);
  add_layers (builder, plan);
  json_builder_end_object (builder);

  rn_json_print (builder);
}

static void
print_pass (const char *pass, const RnGraph *graph, gpointer user_data)
{
  g_autofree char *text = rn_graph_print (graph);
  g_print ("---- after %s: %u ops ----\n%s\n", pass, graph->ops->len, text);
}

/* The worst shape's graph once more, printed after every pass. */
static gboolean
print_passes (RnJob *job, GError **error)
{
  RnMemory m = rn_programs_memory (job->programs);
  RnPassOptions options = rn_job_pass_options (job);
  g_autoptr (RnGraph) graph = rn_model_build (job->model, rn_programs_params (job->programs), m.worst.mode,
                                              m.worst.n, m.worst.height, m.worst.width, error);
  if (!graph)
    return FALSE;
  print_pass ("the model", graph, NULL);
  return rn_passes_run (graph, &options, print_pass, NULL, error);
}

int
rn_cmd_plan (int argc, char **argv)
{
  g_autofree char *shape = NULL;
  gint batch = 0;
  gboolean json = FALSE, passes = FALSE;
  const GOptionEntry entries[] = {
    { "shape", 0, 0, G_OPTION_ARG_STRING, &shape,
      "Padded image size; without it, the worst shape of the data set", "HxW" },
    { "batch", 0, 0, G_OPTION_ARG_INT, &batch, "Images per batch; without it, data.samples_per_gpu", "N" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON", NULL },
    { "passes", 0, 0, G_OPTION_ARG_NONE, &passes, "Print the graph after every pass instead", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG",
    .summary = "Prints what a training run will need, to the byte, without running anything.",
    .examples = "  runner plan configs/retinanet_voc.yaml --shape 608x1024\n"
                "  runner plan configs/retinanet_voc.yaml --shape 608x1024 --batch 1 --threads 2 --json\n"
                "  runner plan configs/retinanet_shapes.yaml\n",
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };

  GError *error = NULL;
  g_auto (RnOptions) options = { 0 };
  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  RnNode *root = rn_options_load (&options, &error);
  g_autoptr (RnJob) job = root ? rn_job_new (root, &error) : NULL;
  if (!job || !rn_job_check (job, &error))
    return rn_cli_fail (error);
  rn_cli_note_weights (job->root);
  if (!rn_job_open_shapes (job, shape, batch, TRUE, FALSE, &error))
    return rn_cli_fail (error);
  if (passes)
    return print_passes (job, &error) ? 0 : rn_cli_fail (error);

  const RnPlan *plan = rn_programs_get_plan (job->programs, rn_programs_memory (job->programs).worst, &error);
  if (!plan)
    return rn_cli_fail (error);
  if (json)
    print_json (job, plan);
  else
    print_text (job, plan);
  return 0;
}
