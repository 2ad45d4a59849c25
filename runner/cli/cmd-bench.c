/* cmd-bench.c: `runner bench`: times the step on random data, without data set or weights, and looks at the
 * memory that it really takes. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/cli/common.h"
#include "runner/cli/json.h"
#include "runner/cli/shape.h"
#include "runner/fit.h"
#include "runner/random-batch.h"

#include <sys/resource.h>

#define MIB (1024.0 * 1024.0)
#define BOXES_PER_IMAGE 12
/* Small enough that random weights do not run away, large enough that the update is real work. */
#define BENCH_LR 1e-5

enum
{
  PHASE_FORWARD,
  PHASE_BACKWARD,
  PHASE_UPDATE,
  N_PHASES
};
static const char *const phase_names[N_PHASES] = { "forward", "backward", "update" };

typedef struct
{
  GArray *total; /* of double, seconds, one per counted iteration */
  GArray *phase[N_PHASES];
  float first_loss, last_loss;
} Timings;

static void
timings_clear (Timings *t)
{
  g_clear_pointer (&t->total, g_array_unref);
  for (int i = 0; i < N_PHASES; i++)
    g_clear_pointer (&t->phase[i], g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Timings, timings_clear)

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

static double
median (GArray *values)
{
  g_array_sort (values, compare_doubles);
  guint n = values->len;
  return (g_array_index (values, double, (n - 1) / 2) + g_array_index (values, double, n / 2)) / 2;
}

static double
seconds (void)
{
  return (double) g_get_monotonic_time () / G_USEC_PER_SEC;
}

static gsize
peak_resident_bytes (void)
{
  struct rusage usage;
  return getrusage (RUSAGE_SELF, &usage) == 0 ? (gsize) usage.ru_maxrss * 1024 : 0;
}

/* One training step, with the time of its phases. An update in backward has none of its own. */
static gboolean
run_step (RnPrograms *programs, const RnBatch *batch, gint64 n_steps, double phase[N_PHASES], GError **error)
{
  const double *lr_mults;
  guint n_groups = rn_programs_groups (programs, &lr_mults);
  g_autofree double *lrs = g_new (double, n_groups);
  double norm, max_abs;
  gboolean in_backward = rn_programs_updates_in_backward (programs);
  RnUpdate update = { .lrs = lrs, .momentum = 0.9, .grad_multiplier = 1, .n_steps = n_steps };
  for (guint i = 0; i < n_groups; i++)
    lrs[i] = BENCH_LR * lr_mults[i];
  double t0 = seconds ();
  if (!rn_programs_zero_grads (programs, error)
      || !rn_programs_forward (programs, batch, RN_MODE_TRAIN, 1, error))
    return FALSE;
  double t1 = seconds ();
  if (!(in_backward ? rn_programs_backward_update (programs, &update, error)
                    : rn_programs_backward (programs, error)))
    return FALSE;
  double t2 = seconds ();
  if (!in_backward
      && (!rn_programs_grad_stats (programs, 2, &norm, &max_abs, error)
          || !rn_programs_update (programs, &update, error)))
    return FALSE;
  double t3 = seconds ();
  phase[PHASE_FORWARD] = t1 - t0;
  phase[PHASE_BACKWARD] = t2 - t1;
  phase[PHASE_UPDATE] = t3 - t2;
  return TRUE;
}

static gboolean
time_steps (RnJob *job, int warmup, int iters, Timings *t, GError **error)
{
  RnShape shape = rn_programs_memory (job->programs).worst;
  if (!rn_job_check_fit (job, 0, error) || !rn_programs_reserve (job->programs, error)
      || !rn_param_set_init (rn_programs_params (job->programs), (guint64) job->config.seed, error))
    return FALSE;
  g_autoptr (RnBatch) batch = rn_random_batch_new (job->model, shape.n, shape.height, shape.width,
                                                   BOXES_PER_IMAGE, (guint64) job->config.seed, error);
  if (!batch)
    return FALSE;

  t->total = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_PHASES; i++)
    t->phase[i] = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < warmup + iters; i++)
    {
      double phase[N_PHASES], total = 0;
      if (!run_step (job->programs, batch, i, phase, error))
        return FALSE;
      float loss = rn_programs_loss (job->programs, "loss");
      if (i == 0)
        t->first_loss = loss;
      t->last_loss = loss;
      for (int k = 0; k < N_PHASES; k++)
        total += phase[k];
      rn_job_show_progress (i + 1, warmup + iters, (gpointer) "step");
      if (i < warmup)
        continue;
      g_array_append_val (t->total, total);
      for (int k = 0; k < N_PHASES; k++)
        g_array_append_val (t->phase[k], phase[k]);
    }
  return TRUE;
}

static void
print_text (RnJob *job, Timings *t, gboolean check)
{
  RnMemory m = rn_programs_memory (job->programs);
  gsize resident = peak_resident_bytes ();
  g_print ("batch %d at %dx%d, %s\n", m.worst.n, m.worst.height, m.worst.width, job->device->description);
  g_print ("seconds per iteration  %8.3f   median of %u\n", median (t->total), t->total->len);
  for (int i = 0; i < N_PHASES; i++)
    g_print ("  %-20s %8.3f\n", phase_names[i], median (t->phase[i]));
  g_print ("planned MiB            %8.1f   static %.1f, arena %.1f\n", (double) m.total_bytes / MIB,
           (double) (m.total_bytes - m.arena_bytes) / MIB, (double) m.arena_bytes / MIB);
  g_print ("peak resident MiB      %8.1f   planned + %.1f\n", (double) resident / MIB,
           ((double) resident - (double) m.total_bytes) / MIB);
  g_print ("loss                   %8.4f   at first, %.4f at last\n", (double) t->first_loss,
           (double) t->last_loss);
  if (check)
    g_print ("highest arena byte     %zu of %zu planned; every op wrote its outputs, and nothing else\n",
             rn_programs_highest_byte (job->programs), m.arena_bytes);
}

static void
add_results (JsonBuilder *builder, RnJob *job, Timings *t)
{
  RnMemory m = rn_programs_memory (job->programs);
  rn_json_add_float (builder, "seconds_per_iter", median (t->total));
  json_builder_set_member_name (builder, "phases");
  json_builder_begin_object (builder);
  for (int i = 0; i < N_PHASES; i++)
    rn_json_add_float (builder, phase_names[i], median (t->phase[i]));
  json_builder_end_object (builder);
  rn_json_add_int (builder, "planned_bytes", (gint64) m.total_bytes);
  rn_json_add_int (builder, "peak_resident_bytes", (gint64) peak_resident_bytes ());
  rn_json_add_float (builder, "loss", (double) t->last_loss);
}

static void
print_json (RnJob *job, Timings *t, gboolean check)
{
  RnMemory m = rn_programs_memory (job->programs);
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  rn_json_add_int (builder, "batch", m.worst.n);
  rn_json_add_int (builder, "height", m.worst.height);
  rn_json_add_int (builder, "width", m.worst.width);
  rn_json_add_int (builder, "threads", job->device->n_threads);
  json_builder_set_member_name (builder, "device");
  json_builder_add_string_value (builder, job->device->description);
  rn_json_add_int (builder, "iters", t->total->len);
  add_results (builder, job, t);
  rn_json_add_int (builder, "arena_bytes", (gint64) m.arena_bytes);
  if (check)
    rn_json_add_int (builder, "highest_arena_byte", (gint64) rn_programs_highest_byte (job->programs));
  json_builder_set_member_name (builder, "strategies");
  json_builder_begin_array (builder);
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "name");
  json_builder_add_string_value (builder, "base");
  add_results (builder, job, t);
  json_builder_end_object (builder);
  json_builder_end_array (builder);
  json_builder_end_object (builder);

  rn_json_print (builder);
}

int
rn_cmd_bench (int argc, char **argv)
{
  g_autofree char *shape = NULL;
  gint batch = 0, iters = 5, warmup = 1;
  gboolean json = FALSE, check = FALSE;
  const GOptionEntry entries[] = {
    { "shape", 0, 0, G_OPTION_ARG_STRING, &shape,
      "Padded image size; without it, the worst shape of the data set", "HxW" },
    { "batch", 0, 0, G_OPTION_ARG_INT, &batch, "Images per batch; without it, data.samples_per_gpu", "N" },
    { "iters", 0, 0, G_OPTION_ARG_INT, &iters, "Iterations that count (default 5)", "N" },
    { "warmup", 0, 0, G_OPTION_ARG_INT, &warmup, "Iterations before them (default 1)", "N" },
    { "check", 0, 0, G_OPTION_ARG_NONE, &check, "Compare every byte that an op writes with the plan; slow",
      NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG",
    .summary = "Times the training step on random data. Needs no weights, and with --shape no data set.",
    .examples = "  runner bench configs/retinanet_voc.yaml --shape 608x1024 --threads 2\n"
                "  runner bench configs/retinanet_r18_bccd.yaml --shape 480x640 --iters 10 --json\n"
                "  runner bench configs/retinanet_shapes.yaml --shape 128x160 --iters 1 --check\n",
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };

  GError *error = NULL;
  g_auto (RnOptions) options = { 0 };
  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  if (iters < 1 || warmup < 0 || batch < 0)
    {
      g_set_error (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   "--iters must be at least 1, --warmup and --batch not negative");
      return rn_cli_fail (error);
    }
  RnNode *root = rn_options_load (&options, &error);
  g_autoptr (RnJob) job = root ? rn_job_new (root, &error) : NULL;
  g_auto (Timings) timings = { 0 };
  if (!job || !rn_job_open_shapes (job, shape, batch, FALSE, check, &error)
      || !time_steps (job, warmup, iters, &timings, &error))
    return rn_cli_fail (error);
  if (json)
    print_json (job, &timings, check);
  else
    print_text (job, &timings, check);
  return 0;
}
