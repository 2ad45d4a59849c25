/*
 * arena-check.c: a plan that only allocates what it planned proves nothing; this looks at the bytes.
 *
 * Every byte that holds no living value is POISON: 0xff, which is NaN in every float type and outside the
 * range of the integer types that ops write (pool indices, anchor indices). Before an op its outputs (unless
 * they share storage with an input) and its workspace are poisoned. After it
 *   - every byte that differs from the copy must belong to one of its outputs or its workspace,
 *   - no word of a poisoned output may still be poison; the output of a COPY, whose source may hold anything,
 *     must equal it,
 *   - buffers that died with it are poisoned.
 *
 * Where the device has memory of its own, all that is done on an image of the arena, which is fetched after
 * each op; what was poisoned is sent back.
 */
#include "config.h"

#include "graph/arena-check.h"

#include <string.h>

#define POISON 0xff

typedef struct
{
  guint8 *memory; /* the arena, or its image */
  guint8 *device; /* the arena, where memory is an image of it; else NULL */
  guint8 *copy;
  gsize bytes;
  gsize highest;
} Arena;

struct _RnArenaCheck
{
  const RnPlan *plan;
  Arena arenas[RN_N_SPACES];
};

RnArenaCheck *
rn_arena_check_new (const RnPlan *plan, void *const arenas[RN_N_SPACES], GError **error)
{
  RnArenaCheck *check = g_new0 (RnArenaCheck, 1);
  check->plan = plan;
  check->arenas[RN_SPACE_DEVICE].bytes = plan->arena_bytes;
  check->arenas[RN_SPACE_HOST].bytes = plan->host_arena_bytes;
  for (int space = 0; space < RN_N_SPACES; space++)
    {
      Arena *arena = &check->arenas[space];
      arena->memory = arenas[space];
      arena->copy = g_try_malloc (MAX (arena->bytes, 1));
      if (plan->device->vtbl->synchronize != NULL) /* it works on its own, so its memory is its own */
        {
          arena->device = arenas[space];
          arena->memory = g_try_malloc (MAX (arena->bytes, 1));
        }
      if (arena->copy && (arena->memory || !arena->device))
        continue;
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                   "no memory for the checking copy of an arena of %" G_GSIZE_FORMAT " bytes", arena->bytes);
      rn_arena_check_free (check);
      return NULL;
    }
  return check;
}

void
rn_arena_check_free (RnArenaCheck *check)
{
  if (!check)
    return;
  for (int space = 0; space < RN_N_SPACES; space++)
    {
      g_free (check->arenas[space].copy);
      if (check->arenas[space].device)
        g_free (check->arenas[space].memory);
    }
  g_free (check);
}

static gboolean
check_copy (const RnArenaCheck *check, RnStatus status, GError **error)
{
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "looking at the arena of device %s failed: %s",
               check->plan->device->vtbl->name, rn_device_fault (check->plan->device, status));
  return FALSE;
}

/* A part of the image as it is on the device. */
static gboolean
fetch (RnArenaCheck *check, Arena *arena, gsize offset, gsize bytes, GError **error)
{
  RnDevice *device = check->plan->device;

  if (!arena->device || bytes == 0)
    return TRUE;
  return check_copy (
      check, device->vtbl->copy_out (device, arena->memory + offset, arena->device + offset, bytes), error);
}

/* Likewise to the device, in front of whatever is queued next, in any queue. */
static gboolean
send (RnArenaCheck *check, Arena *arena, gsize offset, gsize bytes, GError **error)
{
  RnDevice *device = check->plan->device;

  if (!arena->device || bytes == 0)
    return TRUE;
  RnStatus status = device->vtbl->copy_in (device, arena->device + offset, arena->memory + offset, bytes);
  if (status == RN_STATUS_OK)
    status = device->vtbl->synchronize (device);
  return check_copy (check, status, error);
}

static gboolean
poison (RnArenaCheck *check, const RnBuffer *b, GError **error)
{
  Arena *arena = &check->arenas[b->space];
  memset (arena->memory + b->offset, POISON, b->bytes);
  memset (arena->copy + b->offset, POISON, b->bytes);
  return send (check, arena, b->offset, b->bytes, error);
}

static gboolean
is_input (const RnArenaCheck *check, const RnBuffer *b)
{
  return b->value != RN_NO_VALUE && rn_graph_value (check->plan->graph, b->value)->kind == RN_VALUE_INPUT;
}

/* Index of the first poisoned word (byte for a tail) of [p, p + n), or n. */
static gsize
find_poison (const guint8 *p, gsize n)
{
  gsize i = 0;
  for (; i + 4 <= n; i += 4)
    {
      guint32 word;
      memcpy (&word, p + i, 4);
      if (word == G_MAXUINT32)
        return i;
    }
  for (; i < n; i++)
    if (p[i] == POISON)
      return i;
  return n;
}

gboolean
rn_arena_check_start (RnArenaCheck *check, GError **error)
{
  for (int space = 0; space < RN_N_SPACES; space++)
    {
      memset (check->arenas[space].copy, POISON, check->arenas[space].bytes);
      if (!fetch (check, &check->arenas[space], 0, check->arenas[space].bytes, error))
        return FALSE;
    }
  for (int b = 0; b < check->plan->n_buffers; b++)
    {
      const RnBuffer *buffer = &check->plan->buffers[b];
      Arena *arena = &check->arenas[buffer->space];
      if (is_input (check, buffer))
        {
          memcpy (arena->copy + buffer->offset, arena->memory + buffer->offset, buffer->bytes);
          arena->highest = MAX (arena->highest, buffer->offset + buffer->bytes);
        }
    }
  for (int space = 0; space < RN_N_SPACES; space++)
    {
      Arena *arena = &check->arenas[space];
      if (arena->bytes > 0)
        memcpy (arena->memory, arena->copy, arena->bytes);
      if (!send (check, arena, 0, arena->bytes, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_arena_check_host_wrote (RnArenaCheck *check, int buffer, GError **error)
{
  const RnBuffer *b = &check->plan->buffers[buffer];
  Arena *arena = &check->arenas[b->space];
  if (!fetch (check, arena, b->offset, b->bytes, error))
    return FALSE;
  memcpy (arena->copy + b->offset, arena->memory + b->offset, b->bytes);
  return TRUE;
}

/* The buffers that op @i may write: outputs, then the workspace. Returns how many; sets *n_fresh to the
 * number of those (placed first) that begin with this op. */
static int
written_buffers (const RnArenaCheck *check, int i, int *buffers, int *n_fresh)
{
  const RnPlan *plan = check->plan;
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  int n = 0;
  for (int fresh = 1; fresh >= 0; fresh--)
    {
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        {
          int b = op->out[s] != RN_NO_VALUE ? plan->buffer_of[op->out[s]] : -1;
          if (b >= 0 && (plan->buffers[b].first == i && !is_input (check, &plan->buffers[b])) == fresh)
            buffers[n++] = b;
        }
      if (fresh)
        *n_fresh = n;
    }
  if (plan->workspace_of[i] >= 0)
    buffers[n++] = plan->workspace_of[i];
  return n;
}

gboolean
rn_arena_check_before (RnArenaCheck *check, int i, GError **error)
{
  int buffers[RN_OP_MAX_OUT + 1], n_fresh;
  written_buffers (check, i, buffers, &n_fresh);
  for (int k = 0; k < n_fresh; k++)
    if (!poison (check, &check->plan->buffers[buffers[k]], error))
      return FALSE;
  return check->plan->workspace_of[i] < 0
         || poison (check, &check->plan->buffers[check->plan->workspace_of[i]], error);
}

static gboolean
fail (const RnArenaCheck *check, int i, RnSpace space, gsize offset, const char *what, GError **error)
{
  const RnGraphOp *op = rn_graph_op (check->plan->graph, i);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL,
               "%s: op %d (%s, %s) %s at %sarena byte %" G_GSIZE_FORMAT, op->scope, i, rn_op_name (op->op),
               check->plan->prepared[i].kernel->name, what, space == RN_SPACE_HOST ? "host " : "", offset);
  return FALSE;
}

/* The first byte in [from, to) at which the arena and its copy differ, or @to. */
static gsize
first_difference (const Arena *arena, gsize from, gsize to)
{
  if (memcmp (arena->memory + from, arena->copy + from, to - from) == 0)
    return to;
  while (arena->memory[from] == arena->copy[from])
    from++;
  return from;
}

static int
compare_offsets (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnBuffer *buffers = user_data;
  gsize x = buffers[*(const int *) a].offset, y = buffers[*(const int *) b].offset;
  return x < y ? -1 : x > y;
}

/* Offset in the fresh buffer @b of what op @i left unwritten, or its size. */
static gsize
find_unwritten (const RnArenaCheck *check, int i, const RnBuffer *b)
{
  const RnPlan *plan = check->plan;
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  const guint8 *written = check->arenas[b->space].memory + b->offset;
  int source = op->op == RN_OP_COPY ? plan->buffer_of[op->in[0]] : -1;

  if (op->op != RN_OP_COPY)
    return find_poison (written, b->bytes);
  if (source < 0) /* of the parameter set */
    return b->bytes;
  const RnBuffer *from = &plan->buffers[source];
  const guint8 *read = check->arenas[from->space].memory + from->offset;
  gsize at = memcmp (written, read, b->bytes) == 0 ? b->bytes : 0;
  while (at < b->bytes && written[at] == read[at])
    at++;
  return at;
}

/* Outside @buffers, which are sorted by offset, nothing of the arena may have changed. */
static gboolean
check_rest (RnArenaCheck *check, int i, RnSpace space, const int *buffers, int n, GError **error)
{
  Arena *arena = &check->arenas[space];
  gsize from = 0;

  for (int k = 0; k <= n; k++)
    {
      const RnBuffer *b = k < n ? &check->plan->buffers[buffers[k]] : NULL;
      if (b && b->space != space)
        continue;
      gsize to = b ? b->offset : arena->bytes;
      if (to > from)
        {
          gsize at = first_difference (arena, from, to);
          if (at < to)
            return fail (check, i, space, at, "wrote outside its outputs and workspace", error);
        }
      if (b)
        {
          memcpy (arena->copy + b->offset, arena->memory + b->offset, b->bytes);
          from = MAX (from, b->offset + b->bytes);
        }
    }
  return TRUE;
}

gboolean
rn_arena_check_after (RnArenaCheck *check, int i, GError **error)
{
  const RnPlan *plan = check->plan;
  int buffers[RN_OP_MAX_OUT + 1], n_fresh;
  int n = written_buffers (check, i, buffers, &n_fresh);

  for (int space = 0; space < RN_N_SPACES; space++)
    if (!fetch (check, &check->arenas[space], 0, check->arenas[space].bytes, error))
      return FALSE;
  for (int k = 0; k < n_fresh; k++)
    {
      const RnBuffer *b = &plan->buffers[buffers[k]];
      gsize at = find_unwritten (check, i, b);
      if (at < b->bytes)
        return fail (check, i, b->space, b->offset + at, "left a part of its output unwritten", error);
    }
  RnOpMeasure *measure = &plan->measures[i];
  measure->planned_bytes = measure->written_bytes = 0;
  for (int k = 0; k < n; k++)
    {
      const RnBuffer *b = &plan->buffers[buffers[k]];
      Arena *arena = &check->arenas[b->space];
      gsize end = b->bytes;
      while (end > 0 && arena->memory[b->offset + end - 1] == POISON)
        end--;
      arena->highest = MAX (arena->highest, b->offset + end);
      measure->planned_bytes += b->bytes;
      measure->written_bytes += end;
    }

  g_qsort_with_data (buffers, n, sizeof *buffers, compare_offsets, plan->buffers);
  for (int space = 0; space < RN_N_SPACES; space++)
    if (!check_rest (check, i, (RnSpace) space, buffers, n, error))
      return FALSE;

  if (i + 1 < (int) plan->graph->ops->len) /* after the last op the host reads the outputs */
    for (int b = 0; b < plan->n_buffers; b++)
      if (plan->buffers[b].last == i && !poison (check, &plan->buffers[b], error))
        return FALSE;
  return TRUE;
}

gsize
rn_arena_check_highest_byte (const RnArenaCheck *check, RnSpace space)
{
  return check->arenas[space].highest;
}
