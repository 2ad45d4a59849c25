/*
 * programs-memory.c: the memory of a run: taken in one go before the first step, and given back where a plan
 * leaves it idle.
 */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/programs-private.h"

#include "runner/base/size.h"
#include "runner/process-memory.h"

#include <string.h>

RnMemory
rn_programs_memory (RnPrograms *p)
{
  return p->memory;
}

/* @what: whose memory, "" or " on device cuda" */
static gboolean
check_fits (const RnPrograms *p, guint64 bytes, guint64 available, const char *what, GError **error)
{
  if (bytes <= available)
    return TRUE;
  g_autofree char *needed = rn_size_format (bytes), *free_text = rn_size_format (available);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
               "batch %d at %dx%d needs %s and %s are available%s", p->memory.worst.n, p->memory.worst.height,
               p->memory.worst.width, needed, free_text, what);
  return FALSE;
}

/* Linux grants more memory than there is, and kills whoever touches it. Where the device's memory is the
 * process's own, both arenas count. */
static gboolean
check_available (const RnPrograms *p, GError **error)
{
  const RnDeviceVtbl *vtbl = p->device->vtbl;
  guint64 host = rn_available_memory (), bytes = p->memory.total_bytes, available = 0, total = 0;

  if (vtbl->memory_info == NULL)
    return check_fits (p, bytes + p->memory.host_bytes, host, "", error);
  g_autofree char *what = g_strconcat (" on device ", vtbl->name, NULL);
  vtbl->memory_info (p->device, &available, &total);
  return check_fits (p, bytes, available, what, error)
         && check_fits (p, p->memory.host_bytes, host, " in host memory", error);
}

static gboolean
reserve_arena (RnPrograms *p, GError **error)
{
  const RnDeviceVtbl *vtbl = p->device->vtbl;
  void **arena = &p->arenas.memory[RN_SPACE_DEVICE];
  RnStatus status = vtbl->alloc (p->device, p->memory.arena_bytes, arena);

  p->arenas.bytes[RN_SPACE_DEVICE] = p->memory.arena_bytes;
  if (status == RN_STATUS_OK)
    status = vtbl->fill (p->device, *arena, 0,
                         p->memory.arena_bytes); /* a device short of memory fails here, not in epoch 2 */
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
               "no memory on device %s for the arena of %.1f MiB (batch %d at %dx%d): %s", vtbl->name,
               (double) p->memory.arena_bytes / (1 << 20), p->memory.worst.n, p->memory.worst.height,
               p->memory.worst.width, rn_device_fault (p->device, status));
  return FALSE;
}

static void
release_arena (RnPrograms *p)
{
  p->device->vtbl->free (p->device, p->arenas.memory[RN_SPACE_DEVICE], p->arenas.bytes[RN_SPACE_DEVICE]);
  p->arenas.memory[RN_SPACE_DEVICE] = NULL;
  p->arenas.bytes[RN_SPACE_DEVICE] = 0;
}

static gboolean
synchronize (RnPrograms *p, GError **error)
{
  const RnDeviceVtbl *vtbl = p->device->vtbl;
  RnStatus status = vtbl->synchronize != NULL ? vtbl->synchronize (p->device) : RN_STATUS_OK;

  if (status != RN_STATUS_OK)
    g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "device %s failed: %s", vtbl->name,
                 rn_device_fault (p->device, status));
  return status == RN_STATUS_OK;
}

/*
 * Kernels choose by measuring in an arena that has room for each of their choices, where executors are made.
 * Then all is planned again with what the chosen ones need, and the arena is taken once more. The first one
 * is the most that the run ever holds: offsets are found by trying, and where smaller workspaces come to a
 * larger arena, all stays as it was planned.
 */
static gboolean
measure_kernels (RnPrograms *p, GError **error)
{
  gsize bound = p->memory.arena_bytes;

  if (!p->is_bound)
    return TRUE;
  g_message ("measuring kernels for %d shape%s", p->n_shapes, p->n_shapes == 1 ? "" : "s");
  for (int i = 0; i < p->n_shapes; i++)
    if (rn_programs_prepare (p, p->shapes[i], error) == NULL)
      return FALSE;
  if (!synchronize (p, error) || !rn_programs_plan_again (p, error))
    return FALSE;
  if (p->memory.arena_bytes > bound)
    {
      p->device->plans_bounds = TRUE;
      if (!rn_programs_plan_again (p, error))
        return FALSE;
    }
  if (p->memory.arena_bytes == bound)
    return TRUE;
  g_autofree char *before = rn_size_format (bound), *after = rn_size_format (p->memory.arena_bytes);
  g_message ("memory: the arena is %s; with room for every choice of the kernels it was %s", after, before);
  release_arena (p);
  return reserve_arena (p, error);
}

static gboolean
reserve_host_arena (RnPrograms *p, GError **error)
{
  void **arena = &p->arenas.memory[RN_SPACE_HOST];

  if (p->memory.host_arena_bytes == 0)
    return TRUE;
  p->arenas.bytes[RN_SPACE_HOST] = p->memory.host_arena_bytes;
  RnStatus status = p->device->vtbl->alloc_host (p->device, p->memory.host_arena_bytes, arena);
  if (status != RN_STATUS_OK)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                   "no host memory for %.1f MiB that memory.offload moves there: %s",
                   (double) p->memory.host_arena_bytes / (1 << 20), rn_device_fault (p->device, status));
      return FALSE;
    }
  memset (*arena, 0, p->memory.host_arena_bytes);
  return TRUE;
}

gboolean
rn_programs_reserve (RnPrograms *p, GError **error)
{
  if (p->reserved)
    return TRUE;
  if (!p->planned && !rn_programs_plan (p, NULL, NULL, error))
    return FALSE;
  if (!check_available (p, error))
    return FALSE;
  gboolean has_gradients = p->options.training && !p->options.update_in_backward;
  int n_states = p->options.training ? rn_programs_n_states (p) : 0;
  if (!rn_param_set_allocate (p->params, p->device, has_gradients, n_states, error)
      || (p->options.training && p->options.ema && !rn_param_set_allocate_ema (p->params, error))
      || !reserve_arena (p, error) || !reserve_host_arena (p, error) || !measure_kernels (p, error))
    return FALSE;
  if (p->update_plan)
    {
      p->update = rn_executor_new_in (p->update_plan, &p->arenas, error);
      if (!p->update)
        return FALSE;
    }
  p->reserved = TRUE;
  return TRUE;
}

/* ---- giving back ---- */

/* The program that ran last; NULL before the first one. */
static const RnProgram *
last_program (const RnPrograms *p)
{
  const RnProgram *last = NULL;
  for (guint i = 0; i < p->cache->len; i++)
    {
      const RnProgram *program = p->cache->pdata[i];
      if (program->executor && (!last || program->last_use > last->last_use))
        last = program;
    }
  return last;
}

/* What lies above @used in the arena of @space. */
static gsize
trim_arena (RnPrograms *p, RnSpace space, gsize used)
{
  char *arena = p->arenas.memory[space];
  gsize bytes = p->arenas.bytes[space];
  return arena && used < bytes ? p->device->vtbl->trim (p->device, arena + used, bytes - used) : 0;
}

gsize
rn_programs_trim (RnPrograms *p)
{
  const RnProgram *last = last_program (p);
  if (!last || !p->device->vtbl->trim)
    return 0;
  gsize update = p->update_plan ? p->update_plan->arena_bytes : 0; /* it follows each step */
  return trim_arena (p, RN_SPACE_DEVICE, MAX (last->plan->arena_bytes, update))
         + trim_arena (p, RN_SPACE_HOST, last->plan->host_arena_bytes);
}

/* ---- how far programs write ---- */

#define MARK 0xa5
#define PIECE (1 << 16) /* bytes that are looked at at a time */

static gboolean
marks_error (const RnPrograms *p, RnStatus status, GError **error)
{
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "looking at the arena failed: %s",
               rn_device_fault (p->device, status));
  return FALSE;
}

gboolean
rn_programs_set_marks (RnPrograms *p, GError **error)
{
  RnStatus status = p->device->vtbl->fill (p->device, p->arenas.memory[RN_SPACE_DEVICE], MARK,
                                           p->arenas.bytes[RN_SPACE_DEVICE]);

  if (status != RN_STATUS_OK)
    return marks_error (p, status, error);
  if (p->arenas.memory[RN_SPACE_HOST] != NULL)
    memset (p->arenas.memory[RN_SPACE_HOST], MARK, p->arenas.bytes[RN_SPACE_HOST]);
  return TRUE;
}

/* Bytes of @piece up to the last that is no mark. */
static gsize
marked_end (const guint8 *piece, gsize bytes)
{
  while (bytes > 0 && piece[bytes - 1] == MARK)
    bytes--;
  return bytes;
}

gboolean
rn_programs_find_marks (RnPrograms *p, gsize highest[RN_N_SPACES], GError **error)
{
  g_autofree guint8 *piece = g_malloc (PIECE);
  const guint8 *arena = p->arenas.memory[RN_SPACE_DEVICE], *host = p->arenas.memory[RN_SPACE_HOST];
  gsize end = p->arenas.bytes[RN_SPACE_DEVICE], written = 0;

  for (; end > 0 && written == 0; end -= MIN (end, PIECE))
    {
      gsize bytes = MIN (end, PIECE);
      RnStatus status = p->device->vtbl->copy_out (p->device, piece, arena + end - bytes, bytes);
      if (status != RN_STATUS_OK)
        return marks_error (p, status, error);
      if ((written = marked_end (piece, bytes)) > 0)
        written += end - bytes;
    }
  highest[RN_SPACE_DEVICE] = written;
  highest[RN_SPACE_HOST] = host != NULL ? marked_end (host, p->arenas.bytes[RN_SPACE_HOST]) : 0;
  return TRUE;
}
