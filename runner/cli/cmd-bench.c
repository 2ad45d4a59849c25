/* cmd-bench.c: `runner bench`: what memory strategies cost and save, measured on random data, without data
 * set or weights. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/check.h"
#include "runner/cli/bench-pairs.h"
#include "runner/cli/bench-table.h"
#include "runner/cli/common.h"
#include "runner/cli/json.h"
#include "runner/cli/shape.h"
#include "runner/config/config.h"

#define MIB (1024.0 * 1024.0)

typedef struct
{
  char *shape, *strategies, *budget, *png;
  gint batch, iters, warmup, repeat;
  gboolean json, check, single;
  char **against; /* lines, or NULL */
} Options;

static void
options_clear (Options *own)
{
  g_free (own->shape);
  g_free (own->strategies);
  g_free (own->budget);
  g_free (own->png);
  g_strfreev (own->against);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

/* ---- one measurement, in this process ---- */

static void
print_single_text (RnJob *job, const RnBenchResult *r, gboolean check)
{
  RnMemory m = rn_programs_memory (job->programs);

  g_print ("batch %d at %dx%d, %s\n", m.worst.n, m.worst.height, m.worst.width, job->device->description);
  g_print ("seconds per iteration  %8.3f   median of %" G_GINT64_FORMAT "\n", r->seconds, r->iters);
  for (int i = 0; i < RN_BENCH_N_PHASES; i++)
    g_print ("  %-20s %8.3f\n", rn_bench_phase_names[i], r->phases[i]);
  g_print ("planned MiB            %8.1f   static %.1f, arena %.1f\n", (double) m.total_bytes / MIB,
           (double) (m.total_bytes - m.arena_bytes) / MIB, (double) m.arena_bytes / MIB);
  if (m.host_bytes > 0)
    g_print ("host memory MiB        %8.1f   beside it: what waits there\n", (double) m.host_bytes / MIB);
  g_print ("measured MiB           %8.1f   up to the last byte that was written\n",
           (double) r->measured_bytes / MIB);
  if (r->device_used_bytes > 0)
    g_print ("outside the plan MiB   %8.1f   on the device since it was opened, with %.1f taken by then\n",
             (double) r->outside_plan_bytes / MIB, (double) r->device_opened_bytes / MIB);
  g_print ("peak resident MiB      %8.1f   planned + %.1f\n", (double) r->peak_resident_bytes / MIB,
           (double) (r->peak_resident_bytes - r->planned_bytes - r->host_bytes) / MIB);
  g_print ("loss                   %8.4f   at first, %.4f at last\n", r->first_loss, r->loss);
  if (check)
    g_print ("highest arena byte     %" G_GINT64_FORMAT
             " of %zu planned; every op wrote its outputs, and nothing else\n",
             r->highest_arena_byte, m.arena_bytes);
}

static void
print_single_json (RnJob *job, const RnBenchResult *result)
{
  RnMemory m = rn_programs_memory (job->programs);
  g_autoptr (JsonBuilder) builder = json_builder_new ();

  json_builder_begin_object (builder);
  rn_json_add_int (builder, "batch", m.worst.n);
  rn_json_add_int (builder, "height", m.worst.height);
  rn_json_add_int (builder, "width", m.worst.width);
  rn_json_add_int (builder, "threads", job->device->n_threads);
  rn_json_add_string (builder, "device", job->device->description);
  rn_bench_result_add (result, builder);
  json_builder_end_object (builder);
  rn_json_print (builder);
}

/* @root: (transfer full) (nullable): NULL with an error that is set. */
static RnJob *
open_job (RnNode *root, const Options *own, GError **error)
{
  g_autoptr (RnJob) job = root != NULL ? rn_job_new (root, error) : NULL;

  if (job == NULL || !rn_job_check (job, error)
      || !rn_job_open_shapes (job, own->shape, own->batch, FALSE, own->check, error))
    return NULL;
  return g_steal_pointer (&job);
}

static int
measure_single (const RnOptions *options, const Options *own)
{
  const RnBenchOptions bench = { .iters = own->iters, .warmup = own->warmup, .check = own->check };
  GError *error = NULL;
  RnBenchResult result;
  g_autoptr (RnJob) job = open_job (rn_options_load_with_budget (options, own->budget, &error), own, &error);
  if (job == NULL || !rn_bench_run (job, &bench, &result, &error))
    return rn_cli_fail (error);
  if (own->json)
    print_single_json (job, &result);
  else
    print_single_text (job, &result, own->check);
  return 0;
}

/* ---- pairs of steps, in this process ---- */

/* The file with the lines of --against. (transfer full) */
static RnNode *
load_against (const RnOptions *options, const Options *own, GError **error)
{
  g_autoptr (RnNode) root = rn_options_load_with_budget (options, own->budget, error);

  for (char **line = own->against; root != NULL && *line != NULL; line++)
    if (!rn_config_override (root, *line, error))
      {
        g_prefix_error (error, "--against: ");
        return NULL;
      }
  return g_steal_pointer (&root);
}

static int
measure_pairs (const RnOptions *options, const Options *own)
{
  GError *error = NULL;
  g_auto (RnBenchPairs) pairs = { 0 };
  g_autoptr (RnJob) without =
      open_job (rn_options_load_with_budget (options, own->budget, &error), own, &error);
  g_autoptr (RnJob) with =
      without != NULL ? open_job (load_against (options, own, &error), own, &error) : NULL;
  RnJob *const jobs[2] = { without, with };

  if (with == NULL || !rn_bench_pairs_run (jobs, own->iters, own->warmup, &pairs, &error))
    return rn_cli_fail (error);
  if (own->json)
    rn_bench_pairs_print_json (&pairs);
  else
    rn_bench_pairs_print_text (&pairs);
  return 0;
}

/* ---- the table ---- */

static void add (GStrvBuilder *builder, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
add (GStrvBuilder *builder, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_strv_builder_add (builder, text);
}

/* The command line of one measurement. (transfer full) */
static char **
single_arguments (const RnOptions *options, const Options *own)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  g_strv_builder_add_many (builder, "bench", options->config_path, "--single", "--json", NULL);
  add (builder, "--iters=%d", own->iters);
  add (builder, "--warmup=%d", own->warmup);
  if (own->batch > 0)
    add (builder, "--batch=%d", own->batch);
  if (own->shape != NULL)
    add (builder, "--shape=%s", own->shape);
  if (own->check)
    add (builder, "--check");
  if (options->work_dir != NULL)
    add (builder, "--work-dir=%s", options->work_dir);
  if (options->device != NULL)
    add (builder, "--device=%s", options->device);
  if (options->threads != 0)
    add (builder, "--threads=%d", options->threads);
  if (options->seed != RN_NULL_INT)
    add (builder, "--seed=%" G_GINT64_FORMAT, options->seed);
  if (options->deterministic)
    add (builder, "--deterministic");
  for (char **dir = options->plugin_path; dir != NULL && *dir != NULL; dir++)
    add (builder, "--plugin-path=%s", *dir);
  for (char **text = options->overrides; text != NULL && *text != NULL; text++)
    add (builder, "--set=%s", *text);
  return g_strv_builder_end (builder);
}

static int
measure_table (const RnOptions *options, const Options *own)
{
  g_auto (GStrv) arguments = single_arguments (options, own);
  g_auto (GStrv) names = own->strategies != NULL ? g_strsplit (own->strategies, ",", -1) : NULL;
  RnBenchTableOptions table_options = { .arguments = arguments, .repeat = own->repeat };
  GError *error = NULL;

  if (own->budget != NULL && !rn_size_parse (own->budget, &table_options.budget_bytes, &error))
    {
      g_prefix_error (&error, "--budget: ");
      return rn_cli_fail (error);
    }
  g_autoptr (RnNode) root = rn_options_load (options, &error);
  g_autoptr (RnBenchTable) table = root != NULL ? rn_bench_table_new (names, root, &error) : NULL;
  if (table == NULL)
    return rn_cli_fail (error);
  int code = rn_bench_table_run (table, &table_options);
  if (code != 0)
    return code;
  g_autofree char *base = g_path_get_basename (options->config_path);
  g_autofree char *title = g_strdup_printf ("%s, batch %d at %dx%d, %s", base, table->batch, table->height,
                                            table->width, table->device);
  if (own->json)
    rn_bench_table_print_json (table);
  else
    rn_bench_table_print_text (table, own->check);
  if (own->png != NULL && !rn_bench_table_write_png (table, title, own->png, &error))
    return rn_cli_fail (error);
  return 0;
}

static gboolean
check_options (const Options *own, GError **error)
{
  const char *fault = NULL;

  if (own->iters < 1 || own->warmup < 0 || own->batch < 0)
    fault = "--iters must be at least 1, --warmup and --batch not negative";
  else if (own->repeat < 1)
    fault = "--repeat must be at least 1";
  else if (own->single && (own->strategies != NULL || own->png != NULL))
    fault = "--single measures the file as it is: there are no rows for --strategies or --png";
  else if (own->against != NULL && (own->single || own->strategies != NULL || own->png != NULL || own->check))
    fault = "--against has one result: there is nothing for --single, --strategies, --png and --check";
  if (fault != NULL)
    g_set_error_literal (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, fault);
  return fault == NULL;
}

int
rn_cmd_bench (int argc, char **argv)
{
  g_auto (Options) own = { .iters = 5, .warmup = 1, .repeat = 3 };
  const GOptionEntry entries[] = {
    { "shape", 0, 0, G_OPTION_ARG_STRING, &own.shape,
      "Padded image size; without it, the worst shape of the data set", "HxW" },
    { "batch", 0, 0, G_OPTION_ARG_INT, &own.batch, "Images per batch; without it, data.samples_per_gpu",
      "N" },
    { "iters", 0, 0, G_OPTION_ARG_INT, &own.iters,
      "Iterations that count, in each process (default 5); rounded up to whole steps of the optimizer", "N" },
    { "warmup", 0, 0, G_OPTION_ARG_INT, &own.warmup, "Iterations before them (default 1)", "N" },
    { "repeat", 0, 0, G_OPTION_ARG_INT, &own.repeat, "Processes of each row (default 3)", "N" },
    { "strategies", 0, 0, G_OPTION_ARG_STRING, &own.strategies,
      "Rows beside base: names of `runner strategies`, also joined with +, all, budget (default: "
      "fp16,accumulation,with_cp,all,budget)",
      "A,B+C,..." },
    { "budget", 0, 0, G_OPTION_ARG_STRING, &own.budget,
      "Memory of the row budget (default: three fifths of what base needs, in whole MiB)", "SIZE" },
    { "single", 0, 0, G_OPTION_ARG_NONE, &own.single, "No table: measure the file as it is, in this process",
      NULL },
    { "against", 0, 0, G_OPTION_ARG_STRING_ARRAY, &own.against,
      "No table: the file as it is and with this line, step by step in turn in one process; may stand "
      "several times",
      "KEY=VALUE" },
    { "check", 0, 0, G_OPTION_ARG_NONE, &own.check,
      "Compare every byte that an op writes with the plan; slow", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &own.json, "Print JSON", NULL },
    { "png", 0, 0, G_OPTION_ARG_FILENAME, &own.png, "Draw the table too", "FILE.png" },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG",
    .summary =
        "Measures what memory strategies save and cost: memory and time of the training step, on random "
        "data, each in a process of its own. Needs no weights, and with --shape no data set.",
    .examples = "  runner bench configs/retinanet_voc.yaml --shape 608x1024 --threads 2 --png bench.png\n"
                "  runner bench configs/retinanet_r18_bccd.yaml --shape 480x640 --budget 300MiB --json\n"
                "  runner bench configs/retinanet_shapes.yaml --shape 128x160 --strategies "
                "depth_first,in_backward,depth_first+in_backward\n"
                "  runner bench configs/retinanet_shapes.yaml --shape 128x160 --single --iters 1 --check\n"
                "  runner bench configs/retinanet_voc.yaml --shape 608x1024 --against memory.budget=720MiB\n",
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };
  GError *error = NULL;
  g_auto (RnOptions) options = { 0 };

  if (!rn_options_parse (&usage, argc, argv, &options, &error) || !check_options (&own, &error))
    return rn_cli_fail (error);
  if (own.against != NULL)
    return measure_pairs (&options, &own);
  return own.single ? measure_single (&options, &own) : measure_table (&options, &own);
}
