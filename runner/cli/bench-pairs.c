/* bench-pairs.c: steps of two jobs in turn. A ratio of neighbours in time says more than one of two
 * processes, on a machine that others use too. */
#include "config.h"

#include "runner/cli/bench-pairs.h"

#include "graph/cost.h"
#include "runner/cli/json.h"

void
rn_bench_pairs_clear (RnBenchPairs *pairs)
{
  for (int side = 0; side < 2; side++)
    g_clear_pointer (&pairs->seconds[side], g_array_unref);
}

static gboolean
run_side (RnBenchSteps *steps, double *seconds, GError **error)
{
  double phases[RN_BENCH_N_PHASES] = { 0 }, first_loss;

  if (!rn_bench_steps_run (steps, phases, &first_loss, error))
    return FALSE;
  *seconds = 0;
  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    *seconds += phases[k];
  return TRUE;
}

/* Seconds that the plan of the worst shape is predicted to take; 0 with an error. */
static double
predict (RnJob *job, GError **error)
{
  const RnPlan *plan = rn_programs_get_plan (job->programs, rn_programs_memory (job->programs).worst, error);
  return plan != NULL ? rn_cost_plan (plan) : 0;
}

static void
finish (RnBenchPairs *pairs)
{
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i < pairs->seconds[0]->len; i++)
    {
      double ratio =
          g_array_index (pairs->seconds[1], double, i) / g_array_index (pairs->seconds[0], double, i);
      pairs->ratio_min = i == 0 ? ratio : MIN (pairs->ratio_min, ratio);
      pairs->ratio_max = i == 0 ? ratio : MAX (pairs->ratio_max, ratio);
      g_array_append_val (ratios, ratio);
    }
  pairs->ratio = rn_bench_median (ratios);
}

gboolean
rn_bench_pairs_run (RnJob *const jobs[2], int n_pairs, int n_warmup, RnBenchPairs *pairs, GError **error)
{
  g_autoptr (RnBenchSteps) without = rn_bench_steps_new (jobs[0], error);
  g_autoptr (RnBenchSteps) with = without != NULL ? rn_bench_steps_new (jobs[1], error) : NULL;
  RnBenchSteps *steps[2] = { without, with };
  double predicted[2];

  *pairs = (RnBenchPairs){ 0 };
  if (with == NULL)
    return FALSE;
  for (int side = 0; side < 2; side++)
    {
      pairs->seconds[side] = g_array_new (FALSE, FALSE, sizeof (double));
      if ((predicted[side] = predict (jobs[side], error)) <= 0)
        return FALSE;
    }
  for (int i = 0; i < n_warmup + n_pairs; i++)
    {
      double seconds[2];
      for (int turn = 0; turn < 2; turn++)
        {
          int side = (i + turn) % 2;
          if (!run_side (steps[side], &seconds[side], error))
            return FALSE;
        }
      rn_job_show_progress (i + 1, n_warmup + n_pairs, (gpointer) "pair");
      for (int side = 0; side < 2 && i >= n_warmup; side++)
        g_array_append_val (pairs->seconds[side], seconds[side]);
    }
  for (int side = 0; side < 2; side++)
    pairs->loss[side] = (double) rn_programs_loss (jobs[side]->programs, "loss");
  pairs->predicted = predicted[1] / predicted[0];
  finish (pairs);
  return TRUE;
}

void
rn_bench_pairs_print_text (const RnBenchPairs *pairs)
{
  g_print ("seconds per iteration  %8.3f   without the lines, median of %u\n",
           rn_bench_median (pairs->seconds[0]), pairs->seconds[0]->len);
  g_print ("                       %8.3f   with them\n", rn_bench_median (pairs->seconds[1]));
  g_print ("times                  %8.3f   median over the pairs, %.3f to %.3f\n", pairs->ratio,
           pairs->ratio_min, pairs->ratio_max);
  g_print ("predicted              %8.3f\n", pairs->predicted);
  g_print ("loss                   %8.4f   without, %.4f with them, of the last iteration\n", pairs->loss[0],
           pairs->loss[1]);
}

void
rn_bench_pairs_print_json (const RnBenchPairs *pairs)
{
  static const char *const names[2] = { "without", "with" };
  g_autoptr (JsonBuilder) builder = json_builder_new ();

  json_builder_begin_object (builder);
  for (int side = 0; side < 2; side++)
    {
      json_builder_set_member_name (builder, names[side]);
      json_builder_begin_array (builder);
      for (guint i = 0; i < pairs->seconds[side]->len; i++)
        json_builder_add_double_value (builder, g_array_index (pairs->seconds[side], double, i));
      json_builder_end_array (builder);
    }
  rn_json_add_float (builder, "time_ratio", pairs->ratio);
  rn_json_add_float (builder, "time_ratio_min", pairs->ratio_min);
  rn_json_add_float (builder, "time_ratio_max", pairs->ratio_max);
  rn_json_add_float (builder, "predicted_ratio", pairs->predicted);
  rn_json_add_float (builder, "loss_without", pairs->loss[0]);
  rn_json_add_float (builder, "loss_with", pairs->loss[1]);
  json_builder_end_object (builder);
  rn_json_print (builder);
}
