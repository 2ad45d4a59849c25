/*
 * bench-cost.c: times every op of a training step and puts it beside its prediction: the source of the rates
 * in graph/cost.c. Not run by make check.
 *
 *   bench-cost CONFIG HxW [THREADS [ROUNDS [KEY=VALUE ...]]]
 *
 * The time of an op is the smallest of ROUNDS runs of the whole step, so that noise of other programs counts
 * little and the caches are as in a step. With EACH in the environment every op is listed.
 */
#include "config.h"

#include "graph/cost.h"
#include "runner/cli/shape.h"
#include "runner/config/config.h"
#include "runner/job.h"
#include "runner/programs-private.h"
#include "runner/random-batch.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  double measured, predicted;
  gint64 macs, bytes;
  int n;
} Sum;

static double
now (void)
{
  return (double) g_get_monotonic_time () / G_USEC_PER_SEC;
}

/* The class of ops that share a rate: op, kernel, and for convolutions the window. */
static char *
class_of (const RnPlan *plan, int i)
{
  const RnOpCall *call = &plan->calls[i];
  gboolean is_conv = rn_op_cost (call).macs > 0;

  if (!is_conv)
    return g_strdup (plan->prepared[i].kernel->name);
  return g_strdup_printf ("%s k%d s%d", plan->prepared[i].kernel->name, call->args.conv.kernel[0],
                          call->args.conv.stride[0]);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static void
print_sums (GHashTable *sums)
{
  guint n;
  g_autofree gpointer *names = g_hash_table_get_keys_as_array (sums, &n);

  qsort (names, n, sizeof *names, compare_names);
  g_print ("%-44s %4s %10s %10s %7s %9s %8s\n", "kernel", "n", "ms", "predicted", "ratio", "GMAC/s", "GB/s");
  for (guint i = 0; i < n; i++)
    {
      const Sum *s = g_hash_table_lookup (sums, names[i]);
      g_print ("%-44s %4d %10.2f %10.2f %7.2f %9.1f %8.1f\n", (const char *) names[i], s->n,
               s->measured * 1e3, s->predicted * 1e3, s->predicted / s->measured,
               (double) s->macs / s->measured / 1e9, (double) s->bytes / s->measured / 1e9);
    }
}

static void
report (const RnPlan *plan, const double *seconds, gboolean each)
{
  g_autoptr (GHashTable) sums = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  double measured = 0, predicted = 0;

  for (int i = 0; i < (int) plan->graph->ops->len; i++)
    {
      RnOpCost cost = rn_op_cost (&plan->calls[i]);
      double p = rn_cost_op (plan->device, &plan->calls[i], &plan->prepared[i]);
      char *name = class_of (plan, i);
      Sum *s = g_hash_table_lookup (sums, name);
      if (each)
        {
          g_autofree char *text = rn_op_describe (&plan->calls[i]);
          g_print ("%-40s %9.3f ms %9.3f  %8.1f GMAC/s %8.1f GB/s  %s\n", name, seconds[i] * 1e3, p * 1e3,
                   (double) cost.macs / seconds[i] / 1e9, (double) cost.bytes / seconds[i] / 1e9, text);
        }
      if (s == NULL)
        g_hash_table_insert (sums, name, s = g_new0 (Sum, 1));
      else
        g_free (name);
      s->measured += seconds[i];
      s->predicted += p;
      s->macs += cost.macs;
      s->bytes += cost.bytes;
      s->n++;
      measured += seconds[i];
      predicted += p;
    }
  print_sums (sums);
  g_print ("step: measured %.1f ms, predicted %.1f ms\n", measured * 1e3, predicted * 1e3);
}

/* The ops of @executor's plan, one by one: the smallest time of each so far. */
static void
time_ops (RnExecutor *executor, const RnPlan *plan, double *seconds)
{
  g_autoptr (GError) error = NULL;

  for (int i = 0; i < (int) plan->graph->ops->len; i++)
    {
      double start = now ();
      rn_executor_run (executor, i, i + 1, &error);
      g_assert_no_error (error);
      seconds[i] = MIN (seconds[i], now () - start);
    }
}

static double *
new_times (const RnPlan *plan)
{
  double *seconds = g_new (double, plan->graph->ops->len);

  for (guint i = 0; i < plan->graph->ops->len; i++)
    seconds[i] = G_MAXDOUBLE;
  return seconds;
}

static void
run (RnJob *job, int rounds)
{
  g_autoptr (GError) error = NULL;
  RnPrograms *programs = job->programs;
  RnShape shape = rn_programs_memory (programs).worst;

  rn_programs_reserve (programs, &error);
  g_assert_no_error (error);
  rn_param_set_init (rn_programs_params (programs), 1, &error);
  g_autoptr (RnBatch) batch =
      rn_random_batch_new (job->model, shape.n, shape.height, shape.width, 12, 1, &error);
  g_assert_no_error (error);
  RnProgram *program = rn_programs_prepare (programs, shape, &error);
  g_assert_no_error (error);

  g_autofree double *step = new_times (program->plan),
                    *update = programs->update_plan != NULL ? new_times (programs->update_plan) : NULL;
  for (int round = 0; round < rounds + 1; round++)
    {
      rn_programs_copy_batch (programs, program, batch, 1, &error);
      g_assert_no_error (error);
      time_ops (program->executor, program->plan, step);
      if (update != NULL)
        time_ops (programs->update, programs->update_plan, update);
    }
  gboolean each = g_getenv ("EACH") != NULL;
  report (program->plan, step, each);
  if (update != NULL)
    report (programs->update_plan, update, each);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);

  if (argc < 3)
    {
      g_printerr ("usage: bench-cost CONFIG HxW [THREADS [ROUNDS [KEY=VALUE ...]]]\n");
      return 2;
    }
  g_ptr_array_add (lines, g_strdup_printf ("threads=%s", argc > 3 ? argv[3] : "2"));
  g_ptr_array_add (lines, g_strdup ("work_dir=."));
  for (int i = 5; i < argc; i++)
    g_ptr_array_add (lines, g_strdup (argv[i]));
  g_ptr_array_add (lines, NULL);
  RnNode *root = rn_config_load (argv[1], (const char *const *) lines->pdata, &error);
  g_assert_no_error (error);
  g_autoptr (RnJob) job = rn_job_new (root, &error);
  g_assert_no_error (error);
  if (!rn_job_open_shapes (job, argv[2], 0, FALSE, FALSE, &error))
    g_error ("%s", error->message);
  run (job, argc > 4 ? atoi (argv[4]) : 3);
  return 0;
}
