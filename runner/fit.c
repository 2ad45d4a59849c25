/* fit.c: what is free against what is needed, and what would fit. */
#include "config.h"

#include "runner/fit.h"

#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/budget.h"
#include "runner/largest-batch.h"
#include "runner/predict.h"
#include "runner/process-memory.h"

/* As one argument list: the batch, and @lines. (transfer full) */
static char *
with_batch (int batch, char *const *lines)
{
  g_autofree char *line = g_strdup_printf ("data.samples_per_gpu=%d", batch);
  g_autoptr (GPtrArray) all = g_ptr_array_new ();

  g_ptr_array_add (all, line);
  for (int i = 0; lines[i] != NULL; i++)
    g_ptr_array_add (all, lines[i]);
  g_ptr_array_add (all, NULL);
  return rn_lines_to_arguments ((char *const *) all->pdata);
}

/* What would fit; NULL: nothing that is known here. (transfer full) */
static char *
advise (const RnJob *job, const RnRoom *room)
{
  g_autoptr (RnBudget) budget =
      rn_budget_new (job, job->shapes, rn_job_show_progress, (gpointer) "looking for what fits", NULL);
  if (budget == NULL)
    return NULL;

  const RnCandidate *found = rn_budget_find (budget, room, NULL);
  if (found != NULL)
    {
      g_autofree char *arguments = rn_lines_to_arguments (found->lines);
      g_autofree char *size = rn_size_format (rn_room_needed (room, &found->prediction.memory));
      return g_strdup_printf ("what fits, in %s and %.2f times the time of a step by prediction: %s", size,
                              found->seconds / rn_budget_base (budget)->seconds, arguments);
    }

  const RnCandidate *smallest = rn_budget_smallest (budget, room, NULL);
  if (smallest == NULL)
    return NULL;
  g_autoptr (RnPredictor) predictor = rn_predictor_new (job, job->shapes);
  g_autoptr (GPtrArray) sets = g_ptr_array_new ();
  g_auto (RnLargestBatch) largest = { 0 };
  g_ptr_array_add (sets, smallest->lines);
  rn_largest_batch (predictor, sets, room, &largest);
  g_autofree char *least = rn_size_format (rn_room_needed (room, &smallest->prediction.memory));
  if (largest.batch == 0)
    {
      g_autofree char *arguments = rn_lines_to_arguments (smallest->lines);
      return g_strdup_printf ("the least that other lines give is %s, with %s; what needs less: a smaller "
                              "img_scale",
                              least, arguments[0] != '\0' ? arguments : "none");
    }
  g_autofree char *arguments = with_batch (largest.batch, smallest->lines);
  g_autofree char *size = rn_size_format (rn_room_needed (room, &largest.fits.memory));
  return g_strdup_printf ("with this batch the least is %s; what fits, in %s: %s", least, size, arguments);
}

/* Of a device with memory of its own: what lies in the process's beside it. */
static gboolean
check_host (const RnMemory *memory, gsize other_bytes, GError **error)
{
  guint64 available = rn_available_memory (), needed = memory->host_bytes + other_bytes;

  if (needed <= available)
    return TRUE;
  g_autofree char *total = rn_size_format (needed), *loaders = rn_size_format (other_bytes);
  g_autofree char *moved = rn_size_format (memory->host_bytes), *free_text = rn_size_format (available);
  g_set_error (
      error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
      "loaders (%s) and what moves to host memory (%s) need %s there and %s are available; what needs "
      "less: a smaller data.prefetch, fewer data.workers_per_gpu%s",
      loaders, moved, total, free_text, memory->host_bytes > 0 ? ", no memory.offload" : "");
  return FALSE;
}

gboolean
rn_job_check_fit (const RnJob *job, gsize other_bytes, GError **error)
{
  RnMemory memory = rn_programs_memory (job->programs);
  RnRoom room = rn_room_free (job);
  guint64 available = room.bytes, needed = rn_room_needed (&room, &memory);

  if (!room.counts_host && !check_host (&memory, other_bytes, error))
    return FALSE;
  other_bytes = room.counts_host ? other_bytes : 0; /* they are in memory of the host */
  room.bytes = available > other_bytes ? available - other_bytes : 0;
  if (needed <= room.bytes)
    return TRUE;
  g_autofree char *advice = advise (job, &room);
  g_autofree char *total = rn_size_format (needed + other_bytes), *free_text = rn_size_format (available);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
               "batch %d at %dx%d needs %s and %s are available; %s", memory.worst.n, memory.worst.height,
               memory.worst.width, total, free_text,
               advice != NULL ? advice : "`runner plan` shows what needs less");
  return FALSE;
}
