/*
 * profiler.c: MMCV's ProfilerHook: where the time of some iterations (or epochs) goes, as a trace that
 * Perfetto and chrome://tracing open, and as a table of the slowest ops.
 *
 * It is the last hook of each stage, so that an iteration is recorded with all that its hooks do. Its steps
 * count from the start of the process: a resumed run profiles anew.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include "hooks/unused-key.h"

#include <runner/engine.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  gint64 wait, warmup, active, repeat, skip_first;
} Schedule;

typedef struct
{
  int type, sort_by;
  gint64 row_limit;
  char *dir_name, *worker_name;
} TraceReady;

typedef struct
{
  RnHook hook;
  gboolean by_epoch;
  gint64 profile_iters;
  char **activities;
  Schedule schedule;
  TraceReady on_trace_ready;
  gboolean has_schedule, has_trace_ready;
  char *json_trace_path;
  gboolean record_shapes, profile_memory;
  gint64 max_events;

  gint64 step;     /* that is running, from 0 */
  gint64 n_traces; /* that are written */
  gboolean is_recording, is_done;
} Profiler;

enum
{
  LOG_TRACE,
  TB_TRACE,
};

static const char *const ready_names[] = { "log_trace", "tb_trace", NULL };
/* PyTorch's names; ops do not call each other, so that their own time is all of it. */
static const char *const order_names[] = { "self_cpu_time_total", "cpu_time_total", "cpu_time", "count",
                                           NULL };
static const RnTraceOrder orders[] = { RN_TRACE_BY_TOTAL, RN_TRACE_BY_TOTAL, RN_TRACE_BY_MEAN,
                                       RN_TRACE_BY_COUNT };

static const RnKeySpec schedule_keys[] = {
  RN_KEY (Schedule, wait, RN_KEY_INT, "0", "steps of a cycle without recording", .min = 0, .max = 1e9),
  RN_KEY (Schedule, warmup, RN_KEY_INT, "0", "further steps without recording", .min = 0, .max = 1e9),
  RN_KEY (Schedule, active, RN_KEY_INT, "1", "steps that are recorded, into one trace", .min = 1, .max = 1e9),
  RN_KEY (Schedule, repeat, RN_KEY_INT, "0", "cycles; 0: as many as there is time for", .min = 0, .max = 1e9),
  RN_KEY (Schedule, skip_first, RN_KEY_INT, "0", "steps before the first cycle", .min = 0, .max = 1e9),
  RN_KEY_END,
};

static const RnKeySpec ready_keys[] = {
  RN_KEY (TraceReady, type, RN_KEY_ENUM, NULL, "log_trace: a table in the log; tb_trace: a file in dir_name",
          .names = ready_names, .flags = RN_KEY_REQUIRED),
  RN_KEY (TraceReady, sort_by, RN_KEY_ENUM, "self_cpu_time_total",
          "order of the table, largest first; cpu_time is the mean", .names = order_names),
  RN_KEY (TraceReady, row_limit, RN_KEY_INT, "20", "rows of the table", .min = 1, .max = 1e6),
  RN_KEY (TraceReady, dir_name, RN_KEY_STRING, "null", "folder; null: tf_tracing_logs in the work dir",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (TraceReady, worker_name, RN_KEY_STRING, "null", "begins the file's name; null: host and process",
          .flags = RN_KEY_NULLABLE),
  RN_UNUSED_KEY ("use_gzip", "traces are not compressed"),
  RN_KEY_END,
};

static const RnKeySpec keys[] = {
  RN_KEY (Profiler, by_epoch, RN_KEY_BOOL, "true", "a step is an epoch; false: an iteration"),
  RN_KEY (Profiler, profile_iters, RN_KEY_INT, "1", "steps until the profiler ends", .min = 1, .max = 1e9),
  RN_KEY (Profiler, activities, RN_KEY_STRING_LIST, "[cpu]", "cpu; cuda is accepted and records nothing"),
  RN_KEY (Profiler, schedule, RN_KEY_MAP, NULL, "which steps are recorded; default: all",
          .keys = schedule_keys, .present = G_STRUCT_OFFSET (Profiler, has_schedule)),
  RN_KEY (Profiler, on_trace_ready, RN_KEY_MAP, NULL, "what becomes of a trace, beside json_trace_path",
          .keys = ready_keys, .present = G_STRUCT_OFFSET (Profiler, has_trace_ready)),
  RN_KEY (Profiler, json_trace_path, RN_KEY_STRING, "null",
          "file for the trace; null: TIME.trace.json in the work dir, unless on_trace_ready is given",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (Profiler, record_shapes, RN_KEY_BOOL, "false", "shapes of each op"),
  RN_KEY (Profiler, profile_memory, RN_KEY_BOOL, "false", "bytes of the arena in use, at every op"),
  RN_KEY (Profiler, max_events, RN_KEY_INT, "500000",
          "events of a trace, about 100 bytes each; more are dropped", .min = 1, .max = RN_TRACE_MAX_EVENTS),
  RN_UNUSED_KEY ("with_stack", "an op has no stack; its module is in the trace"),
  RN_UNUSED_KEY ("with_flops", "`runner plan` prints multiply-adds"),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  const Profiler *self = (const Profiler *) hook;

  for (char **name = self->activities; name != NULL && *name != NULL; name++)
    if (strcmp (*name, "cpu") != 0 && strcmp (*name, "cuda") != 0)
      return rn_node_error (rn_node_get (hook->config, "activities"), error,
                            "no activity \"%s\"; there are cpu and cuda", *name);
  return TRUE;
}

/* ---- Schedule ---- */

static gboolean
is_active (const Profiler *self, gint64 step)
{
  if (!self->has_schedule)
    return TRUE;
  const Schedule *s = &self->schedule;
  gint64 cycle = s->wait + s->warmup + s->active, at = step - s->skip_first;
  return at >= 0 && (s->repeat == 0 || at / cycle < s->repeat) && at % cycle >= s->wait + s->warmup;
}

/* The last step of a cycle's recording. */
static gboolean
is_end_of_cycle (const Profiler *self, gint64 step)
{
  if (!self->has_schedule)
    return FALSE;
  const Schedule *s = &self->schedule;
  return (step - s->skip_first) % (s->wait + s->warmup + s->active) == s->wait + s->warmup + s->active - 1;
}

static gboolean
start (Profiler *self, GError **error)
{
  RnTraceOptions options = { self->max_events, self->record_shapes, self->profile_memory };

  if (!rn_trace_start (&options))
    return rn_hook_error (error,
                          "another ProfilerHook is recording; what works: one, or schedules that do not "
                          "overlap");
  self->is_recording = TRUE;
  return TRUE;
}

/* ---- What becomes of a trace ---- */

static char *
worker_path (const Profiler *self, const RnRunner *runner)
{
  const TraceReady *ready = &self->on_trace_ready;
  g_autofree char *dir = ready->dir_name != NULL
                             ? g_strdup (ready->dir_name)
                             : g_build_filename (rn_runner_work_dir (runner), "tf_tracing_logs", NULL);
  g_autofree char *worker = ready->worker_name != NULL
                                ? g_strdup (ready->worker_name)
                                : g_strdup_printf ("%s_%d", g_get_host_name (), (int) getpid ());
  g_autofree char *name =
      g_strdup_printf ("%s.%" G_GINT64_FORMAT ".pt.trace.json", worker, g_get_real_time () / 1000);

  return g_build_filename (dir, name, NULL);
}

/* "a.json", then "a.2.json", ... */
static char *
json_path (const Profiler *self, const RnRunner *runner)
{
  g_autofree char *path =
      self->json_trace_path != NULL
          ? g_strdup (self->json_trace_path)
          : g_strdup_printf ("%s/%s.trace.json", rn_runner_work_dir (runner), rn_runner_timestamp (runner));

  if (self->n_traces == 0)
    return g_steal_pointer (&path);
  gsize stem = strlen (path) - (g_str_has_suffix (path, ".json") ? strlen (".json") : 0);
  return g_strdup_printf ("%.*s.%" G_GINT64_FORMAT "%s", (int) stem, path, self->n_traces + 1, path + stem);
}

/* No trace is worth the end of a training. @path: taken over */
static void
write_trace (char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *owned = path, *dir = g_path_get_dirname (path);

  if (g_mkdir_with_parents (dir, 0777) != 0)
    g_warning ("no trace: %s: %s", dir, g_strerror (errno));
  else if (!rn_trace_write (path, &error))
    g_warning ("no trace: %s", error->message);
  else
    g_message ("saved %s", path);
}

static void
deliver (Profiler *self, RnRunner *runner)
{
  gint64 n_dropped = rn_trace_stop ();

  self->is_recording = FALSE;
  if (n_dropped > 0)
    g_warning ("the trace is full: %" G_GINT64_FORMAT
               " events were dropped; what helps: fewer profile_iters, by_epoch: false, a larger max_events",
               n_dropped);
  if (self->has_trace_ready && self->on_trace_ready.type == LOG_TRACE)
    {
      g_autofree char *table =
          rn_trace_table (orders[self->on_trace_ready.sort_by], (guint) self->on_trace_ready.row_limit);
      g_message ("%s", table);
    }
  else if (self->has_trace_ready)
    write_trace (worker_path (self, runner));
  if (self->json_trace_path != NULL || !self->has_trace_ready)
    write_trace (json_path (self, runner));
  self->n_traces++;
  rn_trace_clear ();
}

/* ---- Stages ---- */

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  Profiler *self = (Profiler *) hook;
  return !is_active (self, 0) || start (self, error);
}

static gboolean
end_step (Profiler *self, RnRunner *runner, GError **error)
{
  gint64 ended = self->step++;

  self->is_done = self->step == self->profile_iters;
  gboolean goes_on = !self->is_done && is_active (self, self->step) && !is_end_of_cycle (self, ended);
  if (self->is_recording && !goes_on)
    deliver (self, runner);
  return self->is_done || self->is_recording || !is_active (self, self->step) || start (self, error);
}

static void
count_memory (RnRunner *runner)
{
  guint64 current, peak;

  rn_runner_memory (runner, &current, &peak);
  rn_trace_count ("process bytes", (double) current);
}

static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  if (!((const Profiler *) hook)->is_recording)
    return TRUE;
  g_autofree char *name = g_strdup_printf ("iteration %" G_GINT64_FORMAT, rn_runner_iter (runner) + 1);
  rn_trace_mark (name);
  count_memory (runner);
  return TRUE;
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  Profiler *self = (Profiler *) hook;
  return self->is_done || self->by_epoch || end_step (self, runner, error);
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  Profiler *self = (Profiler *) hook;
  return self->is_done || !self->by_epoch || end_step (self, runner, error);
}

/* A run that ends before its time, be it by a failure, leaves what there is. */
static gboolean
after_run (RnHook *hook, RnRunner *runner, GError **error)
{
  Profiler *self = (Profiler *) hook;

  if (self->is_recording)
    deliver (self, runner);
  return TRUE;
}

static void
clear (RnHook *hook)
{
  if (((const Profiler *) hook)->is_recording)
    rn_trace_clear ();
}

RN_HOOK_DEFINE (profiler, Profiler, .name = "ProfilerHook",
                .summary = "records ops, hooks and loader threads: a trace for Perfetto, or a table",
                .priority = RN_PRIORITY_LOWEST, .keys = keys, .init = init, .clear = clear,
                .before_run = before_run, .before_train_iter = before_train_iter,
                .after_train_iter = after_train_iter, .after_train_epoch = after_train_epoch,
                .after_run = after_run);
