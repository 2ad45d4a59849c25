#include "config.h"

#include "tests/graph/late-device.h"

#include "kernels/host-memory.h"
#include "kernels/kernel-table.h"

#include <string.h>

typedef enum
{
  WORK_OP,
  WORK_SIGNAL,
  WORK_WAIT,
} WorkKind;

typedef struct
{
  WorkKind kind;
  guint64 note; /* of SIGNAL and WAIT: a number that no other signal has; 0 waits for nothing */
  const RnOpCall *call;
  gconstpointer state;
  const void *in[RN_OP_MAX_IN];
  void *out[RN_OP_MAX_OUT];
  void *workspace;
} Work;

typedef struct
{
  RnDevice base;
  LateOrder order;
  GRand *random;
  gboolean deaf;
  RnQueue queue;
  GQueue waiting[RN_N_QUEUES]; /* of Work, owned */
  guint n_done[RN_N_QUEUES];
  GHashTable *last_note; /* event to the note that counts */
  GHashTable *passed;    /* notes */
  guint64 n_notes;
} LateDevice;

static Work *
add (LateDevice *late, RnQueue queue, WorkKind kind)
{
  Work *work = g_new0 (Work, 1);
  work->kind = kind;
  g_queue_push_tail (&late->waiting[queue], work);
  return work;
}

static RnStatus
run_later (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  LateDevice *late = (LateDevice *) device;
  Work *work = add (late, late->queue, WORK_OP);

  work->call = call;
  work->state = state;
  memcpy (work->in, in, sizeof work->in);
  memcpy (work->out, out, sizeof work->out);
  work->workspace = workspace;
  return RN_STATUS_OK;
}

static void
run_now (LateDevice *late, const Work *work)
{
  const RnKernel *kernel = rn_kernels_ref ()[work->call->op];

  g_assert_cmpint (kernel->op, ==, work->call->op);
  g_assert_cmpint (kernel->run (&late->base, work->call, work->state, work->in, work->out, work->workspace),
                   ==, RN_STATUS_OK);
}

/* Does the first of @queue; FALSE: there is none, or it waits. */
static gboolean
advance (LateDevice *late, RnQueue queue)
{
  Work *work = g_queue_peek_head (&late->waiting[queue]);

  if (work == NULL
      || (work->kind == WORK_WAIT && work->note != 0 && !g_hash_table_contains (late->passed, &work->note)))
    return FALSE;
  g_queue_pop_head (&late->waiting[queue]);
  if (work->kind == WORK_SIGNAL)
    g_hash_table_add (late->passed, g_memdup2 (&work->note, sizeof work->note));
  if (work->kind == WORK_OP)
    {
      run_now (late, work);
      late->n_done[queue]++;
    }
  g_free (work);
  return TRUE;
}

static gboolean
advance_any (LateDevice *late)
{
  int first = late->order == LATE_RANDOM ? g_rand_int_range (late->random, 0, RN_N_QUEUES) : 0;

  for (int k = 0; k < RN_N_QUEUES; k++)
    {
      int queue = late->order == LATE_COPIES_FIRST ? RN_N_QUEUES - 1 - k : (first + k) % RN_N_QUEUES;
      if (advance (late, (RnQueue) queue))
        return TRUE;
    }
  return FALSE;
}

static RnStatus
synchronize (RnDevice *device)
{
  LateDevice *late = (LateDevice *) device;

  while (advance_any (late))
    ;
  for (int queue = 0; queue < RN_N_QUEUES; queue++)
    g_assert_cmpuint (g_queue_get_length (&late->waiting[queue]), ==, 0);
  return RN_STATUS_OK;
}

static RnStatus
copy (RnDevice *device, void *dst, const void *src, gsize bytes)
{
  synchronize (device);
  memcpy (dst, src, bytes);
  return RN_STATUS_OK;
}

static RnStatus
fill (RnDevice *device, void *dst, int byte, gsize bytes)
{
  synchronize (device);
  memset (dst, byte, bytes);
  return RN_STATUS_OK;
}

static RnStatus
use_queue (RnDevice *device, RnQueue queue)
{
  ((LateDevice *) device)->queue = queue;
  return RN_STATUS_OK;
}

static RnStatus
signal_event (RnDevice *device, guint event)
{
  LateDevice *late = (LateDevice *) device;
  Work *work = add (late, late->queue, WORK_SIGNAL);

  work->note = ++late->n_notes;
  g_hash_table_insert (late->last_note, GUINT_TO_POINTER (event), g_memdup2 (&work->note, sizeof work->note));
  return RN_STATUS_OK;
}

static RnStatus
wait_event (RnDevice *device, guint event)
{
  LateDevice *late = (LateDevice *) device;
  const guint64 *note = g_hash_table_lookup (late->last_note, GUINT_TO_POINTER (event));

  g_assert_nonnull (note);
  add (late, late->queue, WORK_WAIT)->note = late->deaf ? 0 : *note;
  return RN_STATUS_OK;
}

static void
destroy (RnDevice *device)
{
  LateDevice *late = (LateDevice *) device;

  for (int queue = 0; queue < RN_N_QUEUES; queue++)
    g_queue_clear_full (&late->waiting[queue], g_free);
  g_rand_free (late->random);
  g_hash_table_unref (late->last_note);
  g_hash_table_unref (late->passed);
  g_free (device->description);
  g_free (late);
}

static const RnDeviceVtbl late_vtbl = {
  .name = "late",
  .alloc = rn_host_alloc,
  .free = rn_host_free,
  .alloc_host = rn_host_alloc,
  .free_host = rn_host_free,
  .copy_in = copy,
  .copy_out = copy,
  .fill = fill,
  .synchronize = synchronize,
  .use_queue = use_queue,
  .signal = signal_event,
  .wait = wait_event,
  .destroy = destroy,
};

/* Those of the reference, but for when they run. */
static const RnKernel *const *
late_kernels (void)
{
  static RnKernel kernels[RN_OP_COUNT];
  static const RnKernel *table[RN_OP_COUNT + 1];

  for (int op = 0; op < RN_OP_COUNT; op++)
    {
      kernels[op] = *rn_kernels_ref ()[op];
      kernels[op].run = run_later;
      table[op] = &kernels[op];
    }
  return table;
}

RnDevice *
late_device_new (LateOrder order, guint32 seed, gboolean deaf)
{
  LateDevice *late = g_new0 (LateDevice, 1);

  late->base.vtbl = &late_vtbl;
  late->base.cblk = 1;
  late->base.n_threads = 1;
  late->base.kernels = late_kernels ();
  late->base.description = g_strdup ("late");
  late->order = order;
  late->deaf = deaf;
  late->random = g_rand_new_with_seed (seed);
  late->last_note = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  late->passed = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  return &late->base;
}

guint
late_device_n_done (RnDevice *device, RnQueue queue)
{
  return ((LateDevice *) device)->n_done[queue];
}
