/* bench-pairs.c: steps of two jobs in turn. A ratio of neighbours in time says more than one of two
 * processes, on a machine that others use too. */
#include "config.h"

#include "runner/cli/bench-pairs.h"

#include "runner/cli/json.h"
#include "runner/predict.h"

#include <time.h>

void
rn_bench_pairs_clear (RnBenchPairs *pairs)
{
  for (int side = 0; side < 2; side++)
    {
      g_clear_pointer (&pairs->seconds[side], g_array_unref);
      g_clear_pointer (&pairs->processor[side], g_array_unref);
    }
}

/* Threads that wait for a core do not count: less of what others do on the machine is in it. */
static double
processor_seconds (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* One step of @side, whose times are noted if it @counts. */
static gboolean
run_side (RnBenchSteps *const steps[2], int side, gboolean counts, RnBenchPairs *pairs, GError **error)
{
  double phases[RN_BENCH_N_PHASES] = { 0 }, first_loss, seconds = 0, start = processor_seconds ();

  if (!rn_bench_steps_run (steps[side], phases, &first_loss, error))
    return FALSE;
  double processor = (processor_seconds () - start) / rn_bench_steps_window (steps[side]);
  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    seconds += phases[k];
  if (counts)
    {
      g_array_append_val (pairs->seconds[side], seconds);
      g_array_append_val (pairs->processor[side], processor);
    }
  return TRUE;
}

/* Seconds that a step of the worst shape is predicted to take; 0 with an error. */
static double
predict (RnJob *job, GError **error)
{
  const RnPlan *plan = rn_programs_get_plan (job->programs, rn_programs_memory (job->programs).worst, error);
  return plan != NULL ? rn_predict_step (job->programs, plan) : 0;
}

static RnBenchRatio
ratio_of (GArray *const sides[2])
{
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  RnBenchRatio result = { 0 };

  for (guint i = 0; i < sides[0]->len; i++)
    {
      double ratio = g_array_index (sides[1], double, i) / g_array_index (sides[0], double, i);
      result.least = i == 0 ? ratio : MIN (result.least, ratio);
      result.most = i == 0 ? ratio : MAX (result.most, ratio);
      g_array_append_val (ratios, ratio);
    }
  result.median = rn_bench_median (ratios);
  return result;
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
      pairs->processor[side] = g_array_new (FALSE, FALSE, sizeof (double));
      if ((predicted[side] = predict (jobs[side], error)) <= 0)
        return FALSE;
    }
  for (int i = 0; i < n_warmup + n_pairs; i++)
    {
      for (int turn = 0; turn < 2; turn++)
        if (!run_side (steps, (i + turn) % 2, i >= n_warmup, pairs, error))
          return FALSE;
      rn_job_show_progress (i + 1, n_warmup + n_pairs, (gpointer) "pair");
    }
  for (int side = 0; side < 2; side++)
    pairs->loss[side] = (double) rn_programs_loss (jobs[side]->programs, "loss");
  pairs->predicted = predicted[1] / predicted[0];
  pairs->time = ratio_of (pairs->seconds);
  pairs->processor_time = ratio_of (pairs->processor);
  return TRUE;
}

void
rn_bench_pairs_print_text (const RnBenchPairs *pairs)
{
  g_print ("seconds per iteration  %8.3f   without the lines, median of %u\n",
           rn_bench_median (pairs->seconds[0]), pairs->seconds[0]->len);
  g_print ("                       %8.3f   with them\n", rn_bench_median (pairs->seconds[1]));
  g_print ("times                  %8.3f   median over the pairs, %.3f to %.3f\n", pairs->time.median,
           pairs->time.least, pairs->time.most);
  g_print ("  of processor time    %8.3f   likewise, %.3f to %.3f\n", pairs->processor_time.median,
           pairs->processor_time.least, pairs->processor_time.most);
  g_print ("predicted              %8.3f\n", pairs->predicted);
  g_print ("loss                   %8.4f   without, %.4f with them, of the last iteration\n", pairs->loss[0],
           pairs->loss[1]);
}

static void
add_seconds (JsonBuilder *builder, const char *name, const GArray *seconds)
{
  json_builder_set_member_name (builder, name);
  json_builder_begin_array (builder);
  for (guint i = 0; i < seconds->len; i++)
    json_builder_add_double_value (builder, g_array_index (seconds, double, i));
  json_builder_end_array (builder);
}

void
rn_bench_pairs_print_json (const RnBenchPairs *pairs)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();

  json_builder_begin_object (builder);
  add_seconds (builder, "without", pairs->seconds[0]);
  add_seconds (builder, "with", pairs->seconds[1]);
  add_seconds (builder, "processor_without", pairs->processor[0]);
  add_seconds (builder, "processor_with", pairs->processor[1]);
  rn_json_add_float (builder, "time_ratio", pairs->time.median);
  rn_json_add_float (builder, "time_ratio_min", pairs->time.least);
  rn_json_add_float (builder, "time_ratio_max", pairs->time.most);
  rn_json_add_float (builder, "processor_time_ratio", pairs->processor_time.median);
  rn_json_add_float (builder, "predicted_ratio", pairs->predicted);
  rn_json_add_float (builder, "loss_without", pairs->loss[0]);
  rn_json_add_float (builder, "loss_with", pairs->loss[1]);
  json_builder_end_object (builder);
  rn_json_print (builder);
}
