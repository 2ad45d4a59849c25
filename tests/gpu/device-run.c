/* device-run.c: buffers with guards in memory of a device, one run of a kernel on them. */
#include "config.h"

#include "tests/gpu/device-run.h"

#include <string.h>

#define GUARD 256
#define GUARD_BYTE 0xa5

typedef struct
{
  RnDevice *device;
  gboolean is_pinned;
  guint8 *block, *data; /* with guards, and without; block NULL: of another one */
  gsize before, bytes, total;
} Memory;

void
expect_ok (RnDevice *device, RnStatus status)
{
  if (status != RN_STATUS_OK)
    g_error ("%s", rn_device_fault (device, status));
}

/* The largest shift up to @shift that keeps elements aligned; records (U8 vectors) have words in them. */
static gsize
shift_of (const RnTensorDesc *d, gsize shift)
{
  gsize element = d->dtype == RN_U8 && d->rank == 1 ? 4 : rn_dtype_size (d->dtype);
  return shift / element * element;
}

static void
memory_init (Memory *m, RnDevice *device, gsize bytes, gsize shift, gboolean is_pinned)
{
  m->device = device;
  m->is_pinned = is_pinned;
  m->before = GUARD + shift;
  m->bytes = bytes;
  m->total = m->before + bytes + GUARD;
  void *block;
  expect_ok (device, (is_pinned ? device->vtbl->alloc_host : device->vtbl->alloc) (device, m->total, &block));
  m->block = block;
  m->data = m->block + m->before;
  g_autofree guint8 *guards = g_malloc (m->total);
  memset (guards, GUARD_BYTE, m->total);
  expect_ok (device, device->vtbl->copy_in (device, m->block, guards, m->total));
}

/* Copies the values to @host, unless NULL, checks the guards and frees it. */
static void
memory_finish (Memory *m, void *host)
{
  if (m->block == NULL)
    return;
  g_autofree guint8 *copy = g_malloc (m->total);
  expect_ok (m->device, m->device->vtbl->copy_out (m->device, copy, m->block, m->total));
  for (gsize i = 0; i < m->before; i++)
    g_assert_cmphex (copy[i], ==, GUARD_BYTE);
  for (gsize i = m->before + m->bytes; i < m->total; i++)
    g_assert_cmphex (copy[i], ==, GUARD_BYTE);
  if (host != NULL)
    memcpy (host, copy + m->before, m->bytes);
  if (m->is_pinned)
    m->device->vtbl->free_host (m->device, m->block, m->total);
  else
    m->device->vtbl->free (m->device, m->block, m->total);
}

typedef struct
{
  Memory in[RN_OP_MAX_IN], out[RN_OP_MAX_OUT], workspace;
  const void *in_data[RN_OP_MAX_IN];
  void *out_data[RN_OP_MAX_OUT];
} DeviceBuffers;

static void
upload (DeviceBuffers *d, RnDevice *device, const Buffers *b, const RunOptions *options)
{
  const RnOpCall *call = b->call;

  memset (d, 0, sizeof *d);
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (RN_HAS_IN (call, i))
      {
        const RnTensorDesc *desc = &call->in[i];
        memory_init (&d->in[i], device, rn_desc_bytes (desc), shift_of (desc, options->shift),
                     options->pinned_in >> i & 1);
        expect_ok (device, device->vtbl->copy_in (device, d->in[i].data, b->in[i], rn_desc_bytes (desc)));
        d->in_data[i] = d->in[i].data;
      }
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    {
      if (!RN_HAS_OUT (call, i))
        continue;
      const RnTensorDesc *desc = &call->out[i];
      for (int k = 0; k < RN_OP_MAX_IN; k++)
        if (RN_HAS_IN (call, k) && b->in[k] == b->out[i])
          d->out[i].data = d->in[k].data;
      if (d->out[i].data == NULL)
        {
          memory_init (&d->out[i], device, rn_desc_bytes (desc), shift_of (desc, options->shift),
                       options->pinned_out >> i & 1);
          expect_ok (device, device->vtbl->copy_in (device, d->out[i].data, b->out[i], rn_desc_bytes (desc)));
        }
      d->out_data[i] = d->out[i].data;
    }
}

static void
run_prepared (RnDevice *device, RnPrepared *prepared, DeviceBuffers *d, const RnOpCall *call)
{
  g_autoptr (GError) error = NULL;
  void *workspace = NULL;

  rn_device_finalize (device, call, prepared, &error);
  g_assert_no_error (error);
  if (prepared->workspace_bytes > 0)
    {
      memory_init (&d->workspace, device, prepared->workspace_bytes, 0, FALSE);
      workspace = d->workspace.data;
      expect_ok (device, device->vtbl->fill (device, workspace, 0xff, prepared->workspace_bytes));
    }
  if (device->vtbl->begin_op != NULL)
    device->vtbl->begin_op (device, prepared->kernel->name, call, d->in_data, d->out_data, workspace,
                            prepared->workspace_bytes);
  expect_ok (device,
             prepared->kernel->run (device, call, prepared->state, d->in_data, d->out_data, workspace));
  if (device->vtbl->end_op != NULL)
    expect_ok (device, device->vtbl->end_op (device));
  if (device->vtbl->synchronize != NULL)
    expect_ok (device, device->vtbl->synchronize (device));
}

gboolean
run_on_device (RnDevice *device, const RnKernel *kernel, const RnOpCall *call, Buffers *b,
               const RunOptions *options)
{
  RnPrepared prepared = { .kernel = kernel };
  const char *reason = NULL;
  DeviceBuffers d;

  if (kernel->prepare != NULL && kernel->prepare (device, call, &prepared, &reason) != RN_STATUS_OK)
    {
      g_assert_nonnull (reason);
      return FALSE;
    }
  upload (&d, device, b, options);
  run_prepared (device, &prepared, &d, call);
  rn_prepared_release (&prepared);
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    memory_finish (&d.in[i], b->in[i]);
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    memory_finish (&d.out[i], b->out[i]);
  memory_finish (&d.workspace, NULL);
  return TRUE;
}

const RnKernel *
find_kernel (RnDevice *device, RnOp op)
{
  for (int i = 0; device->kernels[i] != NULL; i++)
    if (device->kernels[i]->op == op)
      return device->kernels[i];
  g_assert_not_reached ();
}
