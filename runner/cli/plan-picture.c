/* plan-picture.c: what `runner plan --png` draws: the bytes that are alive at each op of the step. */
#include "config.h"

#include "runner/cli/plan-report.h"

#include "runner/draw/timeline.h"

#include <string.h>

#define MIB (1024.0 * 1024.0)

enum
{
  KIND_STATIC,
  KIND_INPUT,
  KIND_KEPT,
  KIND_ACTIVATION,
  KIND_RECOMPUTED,
  KIND_GRADIENT,
  KIND_WORKSPACE,
  N_KINDS
};

static const char *const kind_names[N_KINDS] = { "parameters, their gradients, optimizer",
                                                 "inputs",
                                                 "kept for backward",
                                                 "other activations",
                                                 "computed again",
                                                 "gradients",
                                                 "workspaces" };

static int
kind_of (const RnPlan *plan, const RnBuffer *buffer)
{
  if (buffer->value == RN_NO_VALUE)
    return KIND_WORKSPACE;
  const RnValue *value = rn_graph_value (plan->graph, buffer->value);
  if (value->kind == RN_VALUE_INPUT)
    return KIND_INPUT;
  if (value->kind == RN_VALUE_GRADIENT)
    return KIND_GRADIENT;
  if (rn_graph_op (plan->graph, buffer->first)->phase == RN_PHASE_RECOMPUTE)
    return KIND_RECOMPUTED;
  return rn_graph_op (plan->graph, buffer->last)->phase != RN_PHASE_FORWARD ? KIND_KEPT : KIND_ACTIVATION;
}

/* [kinds][ops], MiB. (transfer full) */
static double *
sum_sizes (const RnPlan *plan, gsize static_bytes)
{
  guint n = plan->graph->ops->len;
  double *sizes = g_new0 (double, N_KINDS *n);

  for (guint i = 0; i < n; i++)
    sizes[KIND_STATIC * n + i] = (double) static_bytes / MIB;
  for (int b = 0; b < plan->n_device_buffers; b++)
    {
      const RnBuffer *buffer = &plan->buffers[b];
      double *of_kind = sizes + (guint) kind_of (plan, buffer) * n;
      for (int i = buffer->first; i <= buffer->last; i++)
        of_kind[i] += (double) buffer->bytes / MIB;
    }
  return sizes;
}

static void
clear_entry (gpointer data)
{
  g_free ((char *) ((RnTimelineEntry *) data)->name);
}

static void
add_entry (GArray *entries, gsize bytes, char *name)
{
  RnTimelineEntry entry = { (double) bytes / MIB, name };
  g_array_append_val (entries, entry);
}

/* The largest buffers at the peak, and the rest as one. Of RnTimelineEntry, with names of their own.
 * (transfer full) */
static GArray *
describe_peak (const RnPlan *plan)
{
  g_autoptr (GArray) alive = rn_plan_peak (plan);
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (RnTimelineEntry));
  gsize rest = 0;
  guint n_shown = alive->len <= RN_TIMELINE_MAX_ENTRIES ? alive->len : RN_TIMELINE_MAX_ENTRIES - 1;

  g_array_set_clear_func (entries, clear_entry);
  for (guint i = 0; i < alive->len; i++)
    {
      const RnPeakBuffer *buffer = &g_array_index (alive, RnPeakBuffer, i);
      gboolean is_workspace = strcmp (buffer->kind, "workspace") == 0;
      if (i < n_shown)
        add_entry (entries, buffer->bytes,
                   g_strconcat (buffer->name, is_workspace ? " (workspace)" : "", NULL));
      else
        rest += buffer->bytes;
    }
  if (alive->len > n_shown)
    add_entry (entries, rest, g_strdup_printf ("in %u smaller ones", alive->len - n_shown));
  return entries;
}

gboolean
rn_plan_write_png (const RnPlanReport *report, const char *config_name, const char *path, GError **error)
{
  const RnPlan *plan = report->plan;
  guint n = plan->graph->ops->len;
  RnMemory m = rn_programs_memory (report->job->programs);
  gsize static_bytes = m.total_bytes - m.arena_bytes;
  const RnGraphOp *peak = rn_graph_op (plan->graph, plan->peak_op);
  g_autofree double *sizes = sum_sizes (plan, static_bytes);
  g_autofree int *phase_of = g_new (int, n);
  g_autoptr (GArray) largest = describe_peak (plan);
  g_autofree char *title = g_strdup_printf ("%s: memory of a step, batch %d at %dx%d", config_name, m.worst.n,
                                            m.worst.height, m.worst.width);
  g_autofree char *subtitle = g_strdup_printf ("%s; %.1f MiB in all: %.1f static, %.1f arena",
                                               report->job->device->description, (double) m.total_bytes / MIB,
                                               (double) static_bytes / MIB, (double) m.arena_bytes / MIB);
  g_autofree char *peak_title =
      g_strdup_printf ("op %d, %s of %s", plan->peak_op, rn_op_name (peak->op), peak->scope);

  for (guint i = 0; i < n; i++)
    phase_of[i] = (int) rn_graph_op (plan->graph, (int) i)->phase;
  const RnTimeline timeline = {
    .title = title,
    .subtitle = subtitle,
    .n = n,
    .n_kinds = N_KINDS,
    .kinds = kind_names,
    .sizes = sizes,
    .n_phases = RN_PLAN_N_PHASES,
    .phases = rn_plan_phase_names,
    .phase_of = phase_of,
    .turn = (guint) plan->graph->turn,
    .reserved = (double) m.total_bytes / MIB,
    .needed = (double) (static_bytes + plan->live_bound_bytes) / MIB,
    .peak = (guint) plan->peak_op,
    .peak_title = peak_title,
    .largest = (const RnTimelineEntry *) (gconstpointer) largest->data,
    .n_largest = largest->len,
  };
  return rn_timeline_write_png (&timeline, path, error);
}
