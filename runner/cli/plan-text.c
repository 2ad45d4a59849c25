/* plan-text.c: what `runner plan` prints for people. */
#include "config.h"

#include "runner/cli/plan-report.h"

#include "runner/base/size.h"

#include <string.h>

#define MIB (1024.0 * 1024.0)
/* Tensors at the peak that are listed one by one. */
#define MAX_PEAK_ROWS 12

static double
mib (gsize bytes)
{
  return (double) bytes / MIB;
}

static void
print_summary (const RnPlanReport *report)
{
  const RnPlan *plan = report->plan;
  RnMemory m = rn_programs_memory (report->job->programs);
  RnParamSet *params = rn_programs_params (report->job->programs);
  const RnGraphOp *peak = rn_graph_op (plan->graph, plan->peak_op);

  g_print ("model        %" G_GINT64_FORMAT " parameters in %d tensors, %" G_GINT64_FORMAT " trainable\n",
           rn_param_set_n_elements (params, FALSE), rn_param_set_n_weights (params),
           rn_param_set_n_elements (params, TRUE));
  g_print ("shape        batch %d, %d x %d (height x width), the worst of the run\n", m.worst.n,
           m.worst.height, m.worst.width);
  g_print ("convolution  %.2f G multiply-adds per image, forward\n", (double) plan->macs / m.worst.n / 1e9);
  g_print ("device       %s\n", report->job->device->description);
  if (rn_job_is_for_plan (report->job))
    g_print (
        "             %s memory.workspace_limit\n",
        report->job->profile == NULL ? "the total is an upper bound: each convolution has the whole of"
        : report->job->config.deterministic
            ? "each convolution has the workspace of the engine that cuDNN ranks first within"
            : "each convolution has at most the workspace planned: the most of any engine of cuDNN within");
  g_print ("\n");
  g_print ("                           MiB\n");
  g_print ("parameters, buffers   %8.1f\n", mib (m.param_bytes));
  g_print ("gradients             %8.1f\n", mib (m.grad_bytes));
  g_print ("optimizer state       %8.1f\n", mib (m.state_bytes));
  if (m.ema_bytes > 0)
    g_print ("mean of the weights   %8.1f\n", mib (m.ema_bytes));
  g_print ("arena                 %8.1f   activations, gradients and workspaces at fixed offsets; no "
           "placement needs less than %.1f\n",
           mib (m.arena_bytes), mib (m.live_bound_bytes));
  g_print ("  largest workspace   %8.1f   inside the arena\n", mib (m.workspace_bytes));
  g_print ("total                 %8.1f\n", mib (m.total_bytes));
  if (m.host_bytes > 0)
    g_print ("host memory           %8.1f   beside it: what waits there\n", mib (m.host_bytes));
  g_print ("\npeak at op %d: %s of %s\n\n", plan->peak_op, rn_op_name (peak->op), peak->scope);
}

static void
print_peak (const RnPlan *plan)
{
  g_autoptr (GArray) alive = rn_plan_peak (plan);
  gsize rest = 0;

  g_print ("alive at the peak          MiB\n");
  for (guint i = 0; i < alive->len; i++)
    {
      const RnPeakBuffer *buffer = &g_array_index (alive, RnPeakBuffer, i);
      if (i < MAX_PEAK_ROWS)
        g_print ("%-20s %9.2f   %s\n", buffer->kind, mib (buffer->bytes), buffer->name);
      else
        rest += buffer->bytes;
    }
  if (alive->len > MAX_PEAK_ROWS)
    g_print ("%-20s %9.2f   %u smaller ones\n", "", mib (rest), alive->len - MAX_PEAK_ROWS);
  g_print ("\n");
}

/* The first line of a refusal, without where in the file it is. */
static char *
shorten (const char *refusal)
{
  const char *reason = g_strstr_len (refusal, -1, ": ");
  const char *end = strchr (refusal, '\n');
  g_autofree char *line = end != NULL ? g_strndup (refusal, (gsize) (end - refusal)) : g_strdup (refusal);

  if (reason != NULL && (end == NULL || reason < end))
    return g_strdup (line + (reason - refusal) + 2);
  return g_steal_pointer (&line);
}

/* What a strategy does: @with it against @without. */
static void
print_effect (const RnPrediction *with, const RnPrediction *without)
{
  g_print ("%9.1f %9.1f %6.2f %6.1f", mib (with->memory.total_bytes),
           mib (without->memory.total_bytes) - mib (with->memory.total_bytes),
           with->seconds / without->seconds, rn_plan_work_extra (&with->work));
}

static void
print_strategies (const RnStrategyTable *table)
{
  g_print ("what each strategy gives here, by planning, on its own beside what the file has\n"
           "total: with it; saved: against the file without it; time: of a step, as a ratio to that, by "
           "prediction;\n"
           "work: convolutions done once more, in %%\n");
  g_print ("%-22s %9s %9s %6s %6s  %-52s %s\n", "strategy", "total MiB", "saved MiB", "time", "work",
           "results", "line");
  for (guint i = 0; i < table->rows->len; i++)
    {
      const RnStrategyRow *row = &g_array_index (table->rows, RnStrategyRow, i);
      g_autofree char *lines = g_strjoinv (" ", (char **) row->strategy->lines);
      g_print ("%-22s ", row->strategy->name);
      if (row->refusal != NULL)
        {
          g_autofree char *reason = shorten (row->refusal);
          g_print ("%9s %s\n", row->is_on ? "on" : "-", reason);
          continue;
        }
      print_effect (row->is_on ? &table->base : &row->prediction,
                    row->is_on ? &row->prediction : &table->base);
      g_print ("  %-52s %s%s\n", rn_strategy_result_text (row->strategy->result), row->is_on ? "on: " : "",
               lines);
    }
  g_print ("\n");
}

static void
print_lines (char *const *lines)
{
  for (int i = 0; lines[i] != NULL; i++)
    g_print ("  --set '%s'\n", lines[i]);
}

static void
print_budget (const RnJob *job)
{
  const RnPrediction *p = &job->chosen->prediction;
  const RnCandidate *unchanged = rn_budget_base (job->budget);

  g_print (
      "budget: the fastest of %u candidates that fits needs %.1f MiB in place of %.1f; a step takes %.2f "
      "times as long by prediction, with %.1f %% of the convolutions done once more\n",
      rn_budget_count (job->budget), mib (p->memory.total_bytes),
      mib (unchanged->prediction.memory.total_bytes), job->chosen->seconds / unchanged->seconds,
      rn_plan_work_extra (&p->work));
  if (job->chosen->lines[0] == NULL)
    g_print ("  nothing has to change\n");
  print_lines (job->chosen->lines);
  g_print ("\n");
}

static void
print_largest (const RnLargestBatch *largest)
{
  g_autofree char *bytes = rn_size_format (largest->room.bytes);

  g_print ("largest batch in %s %s: %d, in %.1f MiB; %d would need %.1f\n", bytes,
           largest->room.is_budget ? "of budget" : "of free memory", largest->batch,
           mib (rn_room_needed (&largest->room, &largest->fits.memory)), largest->batch + 1,
           mib (rn_room_needed (&largest->room, &largest->too_much.memory)));
  if (largest->lines != NULL)
    print_lines (largest->lines);
  g_print ("\n");
}

/* Planned and written bytes and the time of a checked step, by what its ops are for. */
static void
print_measure (const RnPlan *plan, const RnPlanMeasure *measure)
{
  g_print ("a step on random data, each op compared with its plan\n");
  g_print ("%-22s %6s %12s %12s %9s\n", "", "ops", "planned MiB", "written MiB", "ms");
  for (int phase = 0; phase < RN_PLAN_N_PHASES; phase++)
    {
      RnOpMeasure sum = { 0 };
      int n = 0;
      for (guint i = 0; i < plan->graph->ops->len; i++)
        if ((int) rn_graph_op (plan->graph, (int) i)->phase == phase)
          {
            sum.planned_bytes += plan->measures[i].planned_bytes;
            sum.written_bytes += plan->measures[i].written_bytes;
            sum.seconds += plan->measures[i].seconds;
            n++;
          }
      if (n > 0)
        g_print ("%-22s %6d %12.1f %12.1f %9.1f\n", rn_plan_phase_names[phase], n, mib (sum.planned_bytes),
                 mib (sum.written_bytes), sum.seconds * 1e3);
    }
  g_print ("arena: %" G_GSIZE_FORMAT " bytes planned, written up to %" G_GSIZE_FORMAT, measure->arena_bytes,
           measure->highest_byte);
  if (measure->host_bytes > 0)
    g_print ("; host: %" G_GSIZE_FORMAT " and %" G_GSIZE_FORMAT, measure->host_bytes,
             measure->highest_host_byte);
  if (measure->unused_scratch_bytes > 0)
    g_print (", %" G_GSIZE_FORMAT " bytes of the last scratch were not needed",
             measure->unused_scratch_bytes);
  g_print ("; difference %" G_GSIZE_FORMAT " bytes\n\n", rn_plan_measure_difference (measure));
}

static void
print_layers (const RnPlan *plan)
{
  g_autoptr (GArray) layers = rn_plan_layers (plan);

  g_print ("kept: what of the output backward still reads; again: dropped, and computed once more for it; "
           "host: waits there; work: the largest scratch of the layer's ops, forward or backward\n");
  if (plan->measures != NULL)
    g_print ("written: by the layer's forward op, outputs and scratch; ms: of it\n");
  g_print ("%-34s %-15s %-20s %9s %9s %9s %9s %9s %9s  %s%s\n", "layer", "op", "output", "G mult", "out MiB",
           "kept MiB", "again MiB", "host MiB", "work MiB",
           plan->measures != NULL ? "written MiB       ms  " : "", "kernel");
  for (guint i = 0; i < layers->len; i++)
    {
      const RnPlanLayer *layer = &g_array_index (layers, RnPlanLayer, i);
      g_autoptr (GString) dims = g_string_new (NULL);
      for (int d = 0; d < layer->dst.rank; d++)
        g_string_append_printf (dims, "%s%" G_GINT64_FORMAT, d ? "x" : "", layer->dst.dims[d]);
      if (layer->dst.dtype != RN_F32)
        g_string_append_printf (dims, ":%s", rn_dtype_name (layer->dst.dtype));
      g_print ("%-34s %-15s %-20s %9.3f %9.2f %9.2f %9.2f %9.2f %9.2f  ", layer->scope, layer->op, dims->str,
               (double) layer->macs / 1e9, mib (layer->out_bytes), mib (layer->kept_bytes),
               mib (layer->recomputed_bytes), mib (layer->offloaded_bytes), mib (layer->workspace_bytes));
      if (layer->measure != NULL)
        g_print ("%11.2f %8.2f  ", mib (layer->measure->written_bytes), layer->measure->seconds * 1e3);
      g_print ("%s\n", layer->kernel);
    }
}

void
rn_plan_print_text (const RnPlanReport *report)
{
  print_summary (report);
  if (report->job->chosen != NULL)
    print_budget (report->job);
  if (report->largest != NULL)
    print_largest (report->largest);
  print_strategies (report->strategies);
  print_peak (report->plan);
  if (report->measure != NULL)
    print_measure (report->plan, report->measure);
  print_layers (report->plan);
}
