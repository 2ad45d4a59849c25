/* plan-json.c: what `runner plan --json` prints. */
#include "config.h"

#include "runner/cli/plan-report.h"

#include "runner/cli/json.h"

static void
add_prediction (JsonBuilder *builder, const RnPrediction *prediction, double base_seconds)
{
  rn_json_add_int (builder, "total_bytes", (gint64) prediction->memory.total_bytes);
  rn_json_add_int (builder, "arena_bytes", (gint64) prediction->memory.arena_bytes);
  rn_json_add_int (builder, "host_bytes", (gint64) prediction->memory.host_bytes);
  rn_json_add_float (builder, "time_ratio", prediction->seconds / base_seconds);
  rn_json_add_int (builder, "step_macs", prediction->work.step);
  rn_json_add_int (builder, "recompute_macs", prediction->work.recompute);
}

static void
add_layers (JsonBuilder *builder, const RnPlan *plan)
{
  g_autoptr (GArray) layers = rn_plan_layers (plan);

  json_builder_set_member_name (builder, "layers");
  json_builder_begin_array (builder);
  for (guint i = 0; i < layers->len; i++)
    {
      const RnPlanLayer *layer = &g_array_index (layers, RnPlanLayer, i);
      json_builder_begin_object (builder);
      rn_json_add_string (builder, "layer", layer->scope);
      rn_json_add_string (builder, "op", layer->op);
      rn_json_add_string (builder, "kernel", layer->kernel);
      json_builder_set_member_name (builder, "output");
      json_builder_begin_array (builder);
      for (int d = 0; d < layer->dst.rank; d++)
        json_builder_add_int_value (builder, layer->dst.dims[d]);
      json_builder_end_array (builder);
      rn_json_add_string (builder, "dtype", rn_dtype_name (layer->dst.dtype));
      rn_json_add_int (builder, "macs", layer->macs);
      rn_json_add_int (builder, "output_bytes", (gint64) layer->out_bytes);
      rn_json_add_int (builder, "kept_bytes", (gint64) layer->kept_bytes);
      rn_json_add_int (builder, "recomputed_bytes", (gint64) layer->recomputed_bytes);
      rn_json_add_int (builder, "offloaded_bytes", (gint64) layer->offloaded_bytes);
      rn_json_add_int (builder, "workspace_bytes", (gint64) layer->workspace_bytes);
      if (layer->measure != NULL)
        {
          rn_json_add_int (builder, "planned_write_bytes", (gint64) layer->measure->planned_bytes);
          rn_json_add_int (builder, "written_bytes", (gint64) layer->measure->written_bytes);
          rn_json_add_float (builder, "seconds", layer->measure->seconds);
        }
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
}

static void
add_peak (JsonBuilder *builder, const RnPlan *plan)
{
  g_autoptr (GArray) alive = rn_plan_peak (plan);

  json_builder_set_member_name (builder, "peak");
  json_builder_begin_array (builder);
  for (guint i = 0; i < alive->len; i++)
    {
      const RnPeakBuffer *buffer = &g_array_index (alive, RnPeakBuffer, i);
      json_builder_begin_object (builder);
      rn_json_add_string (builder, "name", buffer->name);
      rn_json_add_string (builder, "kind", buffer->kind);
      rn_json_add_int (builder, "bytes", (gint64) buffer->bytes);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
}

/* Numbers of each strategy as it is or would be on, against the configuration without it. */
static void
add_strategies (JsonBuilder *builder, const RnStrategyTable *table)
{
  json_builder_set_member_name (builder, "strategies");
  json_builder_begin_array (builder);
  for (guint i = 0; i < table->rows->len; i++)
    {
      const RnStrategyRow *row = &g_array_index (table->rows, RnStrategyRow, i);
      const RnPrediction *with = row->is_on ? &table->base : &row->prediction;
      const RnPrediction *without = row->is_on ? &row->prediction : &table->base;
      json_builder_begin_object (builder);
      rn_json_add_string (builder, "name", row->strategy->name);
      rn_json_add_bool (builder, "is_on", row->is_on);
      rn_json_add_strings (builder, "lines", row->strategy->lines);
      rn_json_add_string (builder, "results", rn_strategy_result_text (row->strategy->result));
      rn_json_add_bool (builder, "is_bit_equal", row->strategy->result == RN_RESULT_BITS);
      if (row->refusal != NULL)
        rn_json_add_string (builder, "refused", row->refusal);
      else
        {
          add_prediction (builder, with, without->seconds);
          rn_json_add_int (builder, "saved_bytes",
                           (gint64) without->memory.total_bytes - (gint64) with->memory.total_bytes);
        }
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
}

static void
add_budget (JsonBuilder *builder, const RnJob *job)
{
  const RnCandidate *unchanged = rn_budget_base (job->budget);

  json_builder_set_member_name (builder, "budget");
  json_builder_begin_object (builder);
  rn_json_add_int (builder, "budget_bytes", (gint64) job->budget_bytes);
  rn_json_add_int (builder, "candidates", rn_budget_count (job->budget));
  rn_json_add_strings (builder, "lines", (const char *const *) job->chosen->lines);
  rn_json_add_int (builder, "unchanged_bytes", (gint64) unchanged->prediction.memory.total_bytes);
  rn_json_add_int (builder, "total_bytes", (gint64) job->chosen->prediction.memory.total_bytes);
  rn_json_add_float (builder, "time_ratio", job->chosen->seconds / unchanged->seconds);
  rn_json_add_int (builder, "step_macs", job->chosen->prediction.work.step);
  rn_json_add_int (builder, "recompute_macs", job->chosen->prediction.work.recompute);
  json_builder_end_object (builder);
}

static void
add_largest (JsonBuilder *builder, const RnLargestBatch *largest)
{
  json_builder_set_member_name (builder, "largest_batch");
  json_builder_begin_object (builder);
  rn_json_add_int (builder, "room_bytes", (gint64) largest->room.bytes);
  rn_json_add_bool (builder, "is_budget", largest->room.is_budget);
  rn_json_add_int (builder, "batch", largest->batch);
  rn_json_add_int (builder, "needed_bytes", (gint64) rn_room_needed (&largest->room, &largest->fits.memory));
  rn_json_add_int (builder, "next_needed_bytes",
                   (gint64) rn_room_needed (&largest->room, &largest->too_much.memory));
  rn_json_add_strings (builder, "lines", (const char *const *) largest->lines);
  json_builder_end_object (builder);
}

static void
add_measure (JsonBuilder *builder, const RnPlanMeasure *measure)
{
  json_builder_set_member_name (builder, "measured");
  json_builder_begin_object (builder);
  rn_json_add_int (builder, "arena_bytes", (gint64) measure->arena_bytes);
  rn_json_add_int (builder, "highest_arena_byte", (gint64) measure->highest_byte);
  rn_json_add_int (builder, "host_bytes", (gint64) measure->host_bytes);
  rn_json_add_int (builder, "highest_host_byte", (gint64) measure->highest_host_byte);
  rn_json_add_int (builder, "unused_scratch_bytes", (gint64) measure->unused_scratch_bytes);
  rn_json_add_int (builder, "difference_bytes", (gint64) rn_plan_measure_difference (measure));
  json_builder_end_object (builder);
}

void
rn_plan_print_json (const RnPlanReport *report)
{
  const RnPlan *plan = report->plan;
  RnMemory m = rn_programs_memory (report->job->programs);
  RnParamSet *params = rn_programs_params (report->job->programs);
  const RnGraphOp *peak_op = rn_graph_op (plan->graph, plan->peak_op);
  g_autofree char *peak = g_strdup_printf ("%s %s", rn_op_name (peak_op->op), peak_op->scope);
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
  rn_json_add_int (builder, "host_bytes", (gint64) m.host_bytes);
  rn_json_add_string (builder, "peak_op", peak);
  rn_json_add_int (builder, "threads", report->job->device->n_threads);
  rn_json_add_string (builder, "device", report->job->device->description);
  rn_json_add_bool (builder, "is_upper_bound",
                    rn_job_is_for_plan (report->job) && report->job->profile == NULL);
  rn_json_add_int (builder, "batch", m.worst.n);
  rn_json_add_int (builder, "height", m.worst.height);
  rn_json_add_int (builder, "width", m.worst.width);
  if (report->job->chosen != NULL)
    add_budget (builder, report->job);
  if (report->largest != NULL)
    add_largest (builder, report->largest);
  if (report->measure != NULL)
    add_measure (builder, report->measure);
  add_strategies (builder, report->strategies);
  add_peak (builder, plan);
  add_layers (builder, plan);
  json_builder_end_object (builder);
  rn_json_print (builder);
}
