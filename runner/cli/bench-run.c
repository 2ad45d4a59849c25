/* bench-run.c: the steps of a training, without its data, hooks and weights. */
#include "config.h"

#include "runner/cli/bench-run.h"

#include "graph/cost.h"
#include "runner/auto-scale-lr.h"
#include "runner/base/error.h"
#include "runner/cli/json.h"
#include "runner/fit.h"
#include "runner/process-memory.h"
#include "runner/random-batch.h"

#include <math.h>

#define BOXES_PER_IMAGE 12
/* Small enough that random weights do not run away, large enough that the update is real work. */
#define BENCH_LR 1e-5
/* MMCV's default; of fp16 only, as there. */
#define LOSS_SCALE 512.0

const char *const rn_bench_phase_names[RN_BENCH_N_PHASES] = { "forward", "backward", "update" };

struct _RnBenchSteps
{
  RnPrograms *programs;
  RnBatch *batch;
  double *lrs;       /* [groups] */
  double loss_scale; /* 1 without one */
  int window;        /* iterations of a step */
  gint64 n_steps;
};

void
rn_bench_steps_free (RnBenchSteps *steps)
{
  if (steps == NULL)
    return;
  g_clear_pointer (&steps->batch, rn_random_batch_free);
  g_free (steps->lrs);
  g_free (steps);
}

RnBenchSteps *
rn_bench_steps_new (RnJob *job, GError **error)
{
  RnShape shape = rn_programs_memory (job->programs).worst;
  const double *lr_mults;

  if (!rn_job_check_fit (job, 0, error) || !rn_programs_reserve (job->programs, error)
      || !rn_param_set_init (rn_programs_params (job->programs), (guint64) job->config.seed, error)
      || !rn_programs_set_marks (job->programs, error))
    return NULL;
  g_autoptr (RnBenchSteps) steps = g_new0 (RnBenchSteps, 1);
  steps->programs = job->programs;
  steps->loss_scale = job->config.fp16.dtype == RN_F16 ? LOSS_SCALE : 1;
  steps->window = (int) rn_iters_of_step (&job->config);
  steps->batch = rn_random_batch_new (job->model, shape.n, shape.height, shape.width, BOXES_PER_IMAGE,
                                      (guint64) job->config.seed, error);
  if (steps->batch == NULL)
    return NULL;
  guint n_groups = rn_programs_groups (job->programs, &lr_mults);
  steps->lrs = g_new (double, n_groups);
  for (guint i = 0; i < n_groups; i++)
    steps->lrs[i] = BENCH_LR * lr_mults[i];
  return g_steal_pointer (&steps);
}

int
rn_bench_steps_window (const RnBenchSteps *steps)
{
  return steps->window;
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

double
rn_bench_median (const GArray *values)
{
  g_autoptr (GArray) sorted = g_array_copy ((GArray *) values);

  g_array_sort (sorted, compare_doubles);
  return (g_array_index (sorted, double, (sorted->len - 1) / 2)
          + g_array_index (sorted, double, sorted->len / 2))
         / 2;
}

/* The time at which all work is done that was queued. */
static gboolean
read_clock (const RnBenchSteps *steps, double *seconds, GError **error)
{
  RnDevice *device = rn_programs_device (steps->programs);
  RnStatus status = device->vtbl->synchronize != NULL ? device->vtbl->synchronize (device) : RN_STATUS_OK;

  *seconds = (double) g_get_monotonic_time () / G_USEC_PER_SEC;
  if (status != RN_STATUS_OK)
    rn_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "%s", rn_device_fault (device, status));
  return status == RN_STATUS_OK;
}

/* The optimizer's part; an overflow in half precision costs the step, as in training. */
static gboolean
update_after (const RnBenchSteps *steps, const RnUpdate *update, GError **error)
{
  double norm, max_abs;

  return rn_programs_update (steps->programs, update, error)
         && rn_programs_settle_update (steps->programs, &norm, &max_abs, error);
}

/* Iteration @index of a step, which adds to the time of each phase. An update in backward has none of its
 * own. */
static gboolean
run_iteration (const RnBenchSteps *steps, int index, double phases[RN_BENCH_N_PHASES], GError **error)
{
  gboolean in_backward = rn_programs_updates_in_backward (steps->programs);
  gboolean is_last = index + 1 == steps->window;
  RnUpdate update = { .lrs = steps->lrs,
                      .momentum = 0.9,
                      .grad_multiplier = 1 / steps->loss_scale,
                      .n_steps = steps->n_steps,
                      .continues = in_backward && index > 0,
                      .waits = in_backward && !is_last,
                      .norm_type = 2,
                      .checks_finite = !in_backward };
  double t0, t1, t2, t3;

  if (!read_clock (steps, &t0, error) || (index == 0 && !rn_programs_zero_grads (steps->programs, error))
      || !rn_programs_forward (steps->programs, steps->batch, RN_MODE_TRAIN,
                               (float) (steps->loss_scale / steps->window), error)
      || !read_clock (steps, &t1, error))
    return FALSE;
  if (!(in_backward ? rn_programs_backward_update (steps->programs, &update, error)
                    : rn_programs_backward (steps->programs, error))
      || !read_clock (steps, &t2, error))
    return FALSE;
  if ((!in_backward && is_last && !update_after (steps, &update, error)) || !read_clock (steps, &t3, error))
    return FALSE;
  phases[RN_BENCH_FORWARD] += t1 - t0;
  phases[RN_BENCH_BACKWARD] += t2 - t1;
  phases[RN_BENCH_UPDATE] += t3 - t2;
  return TRUE;
}

gboolean
rn_bench_steps_run (RnBenchSteps *steps, double phases[RN_BENCH_N_PHASES], double *first_loss, GError **error)
{
  for (int i = 0; i < steps->window; i++)
    {
      if (!run_iteration (steps, i, phases, error))
        return FALSE;
      if (i == 0)
        *first_loss = (double) rn_programs_loss (steps->programs, "loss");
    }
  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    phases[k] /= steps->window;
  steps->n_steps++;
  return TRUE;
}

/* What is taken on a device with memory of its own. */
static gint64
used_bytes (RnDevice *device)
{
  guint64 available = 0, total = 0;

  if (device->vtbl->memory_info != NULL)
    device->vtbl->memory_info (device, &available, &total);
  return (gint64) (total - available);
}

static gboolean
run_steps (RnBenchSteps *steps, const RnBenchOptions *options, RnBenchResult *result, GError **error)
{
  int n_warmup = (options->warmup + steps->window - 1) / steps->window;
  int n_steps = (options->iters + steps->window - 1) / steps->window;
  g_autoptr (GArray) total = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GPtrArray) of_phase = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);

  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    g_ptr_array_add (of_phase, g_array_new (FALSE, FALSE, sizeof (double)));
  for (int i = 0; i < n_warmup + n_steps; i++)
    {
      double phases[RN_BENCH_N_PHASES] = { 0 }, sum = 0, first_loss = 0;
      if (!rn_bench_steps_run (steps, phases, &first_loss, error))
        return FALSE;
      if (i == 0)
        result->first_loss = first_loss;
      result->device_used_bytes =
          MAX (result->device_used_bytes, used_bytes (rn_programs_device (steps->programs)));
      rn_job_show_progress (i + 1, n_warmup + n_steps, (gpointer) "step");
      for (int k = 0; k < RN_BENCH_N_PHASES; k++)
        sum += phases[k];
      if (i < n_warmup)
        continue;
      g_array_append_val (total, sum);
      for (int k = 0; k < RN_BENCH_N_PHASES; k++)
        g_array_append_val ((GArray *) of_phase->pdata[k], phases[k]);
    }
  result->iters = (gint64) n_steps * steps->window;
  result->loss = (double) rn_programs_loss (steps->programs, "loss");
  result->seconds = rn_bench_median (total);
  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    result->phases[k] = rn_bench_median (of_phase->pdata[k]);
  return TRUE;
}

static gboolean
measure_memory (RnJob *job, gboolean check, RnBenchResult *result, GError **error)
{
  RnMemory m = rn_programs_memory (job->programs);
  const RnPlan *plan = rn_programs_get_plan (job->programs, m.worst, error);
  gsize highest[RN_N_SPACES] = { rn_programs_highest_byte (job->programs),
                                 rn_programs_highest_host_byte (job->programs) };
  guint64 current, peak;

  if (plan == NULL || (!check && !rn_programs_find_marks (job->programs, highest, error)))
    return FALSE;
  RnPlanWork work = rn_cost_work (plan);
  rn_process_memory (&current, &peak);
  result->planned_bytes = (gint64) m.total_bytes;
  result->arena_bytes = (gint64) m.arena_bytes;
  result->host_bytes = (gint64) m.host_bytes;
  result->highest_arena_byte = (gint64) highest[RN_SPACE_DEVICE];
  result->highest_host_byte = (gint64) highest[RN_SPACE_HOST];
  result->measured_bytes = (gint64) (m.total_bytes - m.arena_bytes + highest[RN_SPACE_DEVICE]);
  result->peak_resident_bytes = (gint64) peak;
  if (result->device_used_bytes > 0)
    result->outside_plan_bytes =
        result->device_used_bytes - result->device_opened_bytes - result->planned_bytes;
  result->step_macs = work.step;
  result->recompute_macs = work.recompute;
  return TRUE;
}

gboolean
rn_bench_run (RnJob *job, const RnBenchOptions *options, RnBenchResult *result, GError **error)
{
  *result = (RnBenchResult){ .device_opened_bytes = used_bytes (job->device) };
  g_autoptr (RnBenchSteps) steps = rn_bench_steps_new (job, error);
  return steps != NULL && run_steps (steps, options, result, error)
         && measure_memory (job, options->check, result, error);
}

/* ---- as JSON ---- */

#define INT(member_)                                  \
  {                                                   \
    #member_, G_STRUCT_OFFSET(RnBenchResult, member_) \
  }
static const struct
{
  const char *name;
  gsize offset;
} int_members[] = { INT (iters),
                    INT (planned_bytes),
                    INT (arena_bytes),
                    INT (host_bytes),
                    INT (highest_arena_byte),
                    INT (highest_host_byte),
                    INT (measured_bytes),
                    INT (peak_resident_bytes),
                    INT (device_opened_bytes),
                    INT (device_used_bytes),
                    INT (outside_plan_bytes),
                    INT (step_macs),
                    INT (recompute_macs) };
#undef INT

void
rn_bench_result_add (const RnBenchResult *result, JsonBuilder *builder)
{
  rn_json_add_float (builder, "seconds_per_iter", result->seconds);
  json_builder_set_member_name (builder, "phases");
  json_builder_begin_object (builder);
  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    rn_json_add_float (builder, rn_bench_phase_names[k], result->phases[k]);
  json_builder_end_object (builder);
  for (gsize i = 0; i < G_N_ELEMENTS (int_members); i++)
    rn_json_add_int (builder, int_members[i].name, G_STRUCT_MEMBER (gint64, result, int_members[i].offset));
  rn_json_add_float (builder, "first_loss", result->first_loss);
  rn_json_add_float (builder, "loss", result->loss);
}

/* A loss that is not finite was written as null. */
static double
read_float (JsonObject *object, const char *name)
{
  return json_object_get_null_member (object, name) ? (double) NAN
                                                    : json_object_get_double_member (object, name);
}

gboolean
rn_bench_result_read (RnBenchResult *result, JsonObject *object)
{
  static const char *const floats[] = { "seconds_per_iter", "phases", "first_loss", "loss" };

  for (gsize i = 0; i < G_N_ELEMENTS (floats); i++)
    if (!json_object_has_member (object, floats[i]))
      return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (int_members); i++)
    {
      if (!json_object_has_member (object, int_members[i].name))
        return FALSE;
      G_STRUCT_MEMBER (gint64, result, int_members[i].offset) =
          json_object_get_int_member (object, int_members[i].name);
    }
  JsonObject *phases = json_object_get_object_member (object, "phases");
  for (int k = 0; k < RN_BENCH_N_PHASES; k++)
    result->phases[k] = read_float (phases, rn_bench_phase_names[k]);
  result->seconds = read_float (object, "seconds_per_iter");
  result->first_loss = read_float (object, "first_loss");
  result->loss = read_float (object, "loss");
  return TRUE;
}
