/* staging.c: copies through pinned slots. */
#include "config.h"

#include "kernels/cuda/staging.h"

#include "kernels/cuda/try.h"

#include <string.h>

#ifdef RN_SIM
  #include "tests/gpu/sim/sim.h"
#else
  #define sim_host_reads(address, bytes)
  #define sim_host_writes(address, bytes)
#endif

#define N_SLOTS 2
/* A batch of two images of 608x1024 in single precision is 15 MB: it fits into both. */
#define SLOT_BYTES ((gsize) 8 << 20)
#define ALIGNMENT 64
/* Of what comes out: while one piece travels, the one before is copied. Two fit into a slot. */
#define PIECE_BYTES (SLOT_BYTES / 2)

typedef struct
{
  char *memory;
  gsize used;        /* bytes since it was taken */
  cudaEvent_t event; /* its last copy, from when the other slot is used */
  gboolean is_queued;
} Slot;

struct _RnCudaStaging
{
  RnDevice *device;
  Slot slots[N_SLOTS];
  int current;
  cudaEvent_t arrived[2]; /* of pieces that come out */
};

static cudaStream_t
compute_stream (RnDevice *device)
{
  return ((RnCudaDevice *) device)->streams[RN_QUEUE_COMPUTE];
}

RnStatus
rn_cuda_staging_new (RnDevice *device, RnCudaStaging **result)
{
  RnCudaStaging *staging = g_new0 (RnCudaStaging, 1);
  const unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync;
  RnStatus status = RN_STATUS_OK;

  staging->device = device;
  for (int i = 0; i < N_SLOTS && status == RN_STATUS_OK; i++)
    {
      Slot *slot = &staging->slots[i];
      status = rn_cuda_check (
          device, cudaHostAlloc ((void **) &slot->memory, SLOT_BYTES, cudaHostAllocDefault), "cudaHostAlloc");
      if (status == RN_STATUS_OK)
        status = rn_cuda_check (device, cudaEventCreateWithFlags (&slot->event, flags),
                                "cudaEventCreateWithFlags");
    }
  for (gsize i = 0; i < G_N_ELEMENTS (staging->arrived) && status == RN_STATUS_OK; i++)
    status = rn_cuda_check (device, cudaEventCreateWithFlags (&staging->arrived[i], flags),
                            "cudaEventCreateWithFlags");
  if (status != RN_STATUS_OK)
    g_clear_pointer (&staging, rn_cuda_staging_free);
  *result = staging;
  return status;
}

void
rn_cuda_staging_free (RnCudaStaging *staging)
{
  if (staging == NULL)
    return;
  for (int i = 0; i < N_SLOTS; i++)
    {
      if (staging->slots[i].event != NULL)
        cudaEventDestroy (staging->slots[i].event);
      if (staging->slots[i].memory != NULL)
        cudaFreeHost (staging->slots[i].memory);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (staging->arrived); i++)
    if (staging->arrived[i] != NULL)
      cudaEventDestroy (staging->arrived[i]);
  g_free (staging);
}

/* Leaves the slot in use for the other one, and waits until that is free. */
static RnStatus
next_slot (RnCudaStaging *staging)
{
  RnDevice *device = staging->device;
  Slot *old = &staging->slots[staging->current];

  RN_TRY (rn_cuda_check (device, cudaEventRecord (old->event, compute_stream (device)), "cudaEventRecord"));
  old->is_queued = TRUE;
  staging->current = (staging->current + 1) % N_SLOTS;
  Slot *slot = &staging->slots[staging->current];
  if (slot->is_queued)
    RN_TRY (rn_cuda_check (device, cudaEventSynchronize (slot->event), "cudaEventSynchronize"));
  slot->is_queued = FALSE;
  slot->used = 0;
  return RN_STATUS_OK;
}

/* Pinned memory of @bytes, at most SLOT_BYTES, that nothing uses. */
static RnStatus
take (RnCudaStaging *staging, gsize bytes, char **memory)
{
  if (staging->slots[staging->current].used + bytes > SLOT_BYTES)
    RN_TRY (next_slot (staging));
  Slot *slot = &staging->slots[staging->current];
  *memory = slot->memory + slot->used;
  slot->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return RN_STATUS_OK;
}

/* ---- memory of alloc_host: kernels use it where it is, so the host waits for them ---- */

gboolean
rn_cuda_is_host_block (const RnCudaDevice *cuda, const void *address)
{
  for (guint i = 0; i < cuda->host_blocks->len; i++)
    {
      const RnCudaHostBlock *block = &g_array_index (cuda->host_blocks, RnCudaHostBlock, i);
      if ((const char *) address >= block->memory && (const char *) address < block->memory + block->bytes)
        return TRUE;
    }
  return FALSE;
}

static RnStatus
copy_on_host (RnDevice *device, void *dst, const void *src, gsize bytes)
{
  RN_TRY (device->vtbl->synchronize (device));
  sim_host_reads (src, bytes);
  sim_host_writes (dst, bytes);
  memcpy (dst, src, bytes);
  return RN_STATUS_OK;
}

/* ---- copies ---- */

RnStatus
rn_cuda_copy_in (RnDevice *device, void *dst, const void *host_src, gsize bytes)
{
  RnCudaStaging *staging = ((RnCudaDevice *) device)->staging;

  if (rn_cuda_is_host_block ((RnCudaDevice *) device, dst))
    return copy_on_host (device, dst, host_src, bytes);
  for (gsize at = 0; at < bytes; at += SLOT_BYTES)
    {
      gsize n = MIN (bytes - at, SLOT_BYTES);
      char *memory;
      RN_TRY (take (staging, n, &memory));
      sim_host_writes (memory, n);
      memcpy (memory, (const char *) host_src + at, n);
      RN_TRY (rn_cuda_check (
          device,
          cudaMemcpyAsync ((char *) dst + at, memory, n, cudaMemcpyHostToDevice, compute_stream (device)),
          "cudaMemcpyAsync to the device"));
    }
  return RN_STATUS_OK;
}

/* A piece on its way out. */
typedef struct
{
  char *memory;
  gsize at, bytes;
} Piece;

static RnStatus
queue_piece (RnDevice *device, const char *src, Piece *piece, cudaEvent_t arrived)
{
  RN_TRY (take (((RnCudaDevice *) device)->staging, piece->bytes, &piece->memory));
  RN_TRY (rn_cuda_check (device,
                         cudaMemcpyAsync (piece->memory, src + piece->at, piece->bytes,
                                          cudaMemcpyDeviceToHost, compute_stream (device)),
                         "cudaMemcpyAsync to the host"));
  return rn_cuda_check (device, cudaEventRecord (arrived, compute_stream (device)), "cudaEventRecord");
}

static RnStatus
receive_piece (RnDevice *device, char *dst, const Piece *piece, cudaEvent_t arrived)
{
  RN_TRY (
      rn_cuda_check (device, cudaEventSynchronize (arrived), "cudaEventSynchronize of a copy to the host"));
  sim_host_reads (piece->memory, piece->bytes);
  memcpy (dst + piece->at, piece->memory, piece->bytes);
  return RN_STATUS_OK;
}

/* A slot is taken again only when the piece before the last one has been received, and that lies in it. */
RnStatus
rn_cuda_copy_out (RnDevice *device, void *host_dst, const void *src, gsize bytes)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  Piece pieces[2] = { { 0 } };
  RnStatus status = RN_STATUS_OK;
  gsize n = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;

  if (cuda->is_dead)
    return RN_STATUS_DEVICE;
  if (rn_cuda_is_host_block (cuda, src))
    return copy_on_host (device, host_dst, src, bytes);
  for (gsize k = 0; k <= n && n > 0 && status == RN_STATUS_OK; k++)
    {
      if (k < n)
        {
          pieces[k % 2] =
              (Piece){ .at = k * PIECE_BYTES, .bytes = MIN (bytes - k * PIECE_BYTES, PIECE_BYTES) };
          status = queue_piece (device, src, &pieces[k % 2], cuda->staging->arrived[k % 2]);
        }
      if (k > 0 && status == RN_STATUS_OK)
        status = receive_piece (device, host_dst, &pieces[(k - 1) % 2], cuda->staging->arrived[(k - 1) % 2]);
    }
  return status;
}
