#include "config.h"

#include "datasets/scan.h"

#define MAX_THREADS 8
#define QUIET_TIME (2 * G_TIME_SPAN_SECOND) /* before progress is shown */
#define STEP_TIME (G_TIME_SPAN_SECOND / 4)  /* between two calls */

typedef struct
{
  RnScanVisit visit;
  gpointer data;
  int64_t n;

  GMutex lock; /* guards the rest */
  GCond finished;
  int64_t next, done;
  int running; /* threads */
  int64_t failed;
  GError *error; /* of item @failed */
} Scan;

static void
note_failure (Scan *scan, int64_t item, GError *error)
{
  if (scan->error != NULL && scan->failed < item)
    {
      g_error_free (error);
      return;
    }
  g_clear_error (&scan->error);
  scan->error = error;
  scan->failed = item;
}

static gpointer
scan_thread (gpointer data)
{
  Scan *scan = data;

  g_mutex_lock (&scan->lock);
  while (scan->next < scan->n && scan->error == NULL)
    {
      int64_t item = scan->next++;
      GError *error = NULL;

      g_mutex_unlock (&scan->lock);
      scan->visit (scan->data, item, &error);
      g_mutex_lock (&scan->lock);
      scan->done++;
      if (error != NULL)
        note_failure (scan, item, error);
    }
  scan->running--;
  g_cond_signal (&scan->finished);
  g_mutex_unlock (&scan->lock);
  return NULL;
}

/* With the lock held; gives it up while it waits and while it reports. */
static void
wait_for_threads (Scan *scan, const char *what, const RnDatasetOptions *options)
{
  gint64 next_report = g_get_monotonic_time () + QUIET_TIME;

  while (scan->running > 0)
    {
      if (g_cond_wait_until (&scan->finished, &scan->lock, next_report))
        continue;
      next_report = g_get_monotonic_time () + STEP_TIME;
      if (options->progress != NULL)
        {
          int64_t done = scan->done;

          g_mutex_unlock (&scan->lock);
          options->progress (what, done, scan->n, options->user_data);
          g_mutex_lock (&scan->lock);
        }
    }
}

gboolean
rn_scan (int64_t n, RnScanVisit visit, gpointer data, const char *what, const RnDatasetOptions *options,
         GError **error)
{
  Scan scan = { .visit = visit, .data = data, .n = n };
  GThread *threads[MAX_THREADS];
  int n_threads = options->n_threads > 0 ? options->n_threads : (int) g_get_num_processors ();

  n_threads = (int) CLAMP (n, 1, MIN (n_threads, MAX_THREADS));
  g_mutex_init (&scan.lock);
  g_cond_init (&scan.finished);
  scan.running = n_threads;
  for (int i = 0; i < n_threads; i++)
    threads[i] = g_thread_new ("scan", scan_thread, &scan);
  g_mutex_lock (&scan.lock);
  wait_for_threads (&scan, what, options);
  g_mutex_unlock (&scan.lock);
  for (int i = 0; i < n_threads; i++)
    g_thread_join (threads[i]);
  g_cond_clear (&scan.finished);
  g_mutex_clear (&scan.lock);
  if (scan.error == NULL)
    return TRUE;
  g_propagate_error (error, scan.error);
  return FALSE;
}
