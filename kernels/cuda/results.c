/* results.c: copies to the host that are waited for later. */
#include "config.h"

#include "kernels/cuda/results.h"

#include "kernels/cuda/staging.h"
#include "kernels/cuda/try.h"

#include <string.h>

#ifdef RN_SIM
  #include "tests/gpu/sim/sim.h"
#else
  #define sim_host_reads(address, bytes)
#endif

#define BLOCK_BYTES ((gsize) 2048)
#define ALIGNMENT 16

/* On its way, or arrived, but not yet where it was asked for. */
typedef struct
{
  void *host_dst;
  char *memory;
  gsize bytes;
} Result;

/* Results of one kind. */
typedef struct
{
  char *memory; /* BLOCK_BYTES, pinned; in that of the first */
  gsize used;
  GArray *due;         /* of Result */
  cudaEvent_t arrived; /* the last of them */
} Block;

struct _RnCudaResults
{
  char *memory; /* of all blocks, pinned */
  Block blocks[RN_N_RESULTS];
};

RnStatus
rn_cuda_results_new (RnDevice *device, RnCudaResults **result)
{
  RnCudaResults *results = g_new0 (RnCudaResults, 1);
  RnStatus status = rn_cuda_check (
      device, cudaHostAlloc ((void **) &results->memory, RN_N_RESULTS * BLOCK_BYTES, cudaHostAllocDefault),
      "cudaHostAlloc");

  for (int i = 0; i < RN_N_RESULTS; i++)
    {
      Block *block = &results->blocks[i];
      block->due = g_array_new (FALSE, FALSE, sizeof (Result));
      if (status != RN_STATUS_OK)
        continue;
      block->memory = results->memory + (gsize) i * BLOCK_BYTES;
      status = rn_cuda_check (
          device, cudaEventCreateWithFlags (&block->arrived, cudaEventDisableTiming | cudaEventBlockingSync),
          "cudaEventCreateWithFlags");
    }
  if (status != RN_STATUS_OK)
    g_clear_pointer (&results, rn_cuda_results_free);
  *result = results;
  return status;
}

void
rn_cuda_results_free (RnCudaResults *results)
{
  for (int i = 0; i < RN_N_RESULTS; i++)
    {
      if (results->blocks[i].arrived != NULL)
        cudaEventDestroy (results->blocks[i].arrived);
      g_array_unref (results->blocks[i].due);
    }
  if (results->memory != NULL)
    cudaFreeHost (results->memory);
  g_free (results);
}

/* A place in the block; there is one. */
static char *
take (Block *block, gsize bytes)
{
  char *memory = block->memory + block->used;

  block->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return memory;
}

RnStatus
rn_cuda_copy_out_later (RnDevice *device, RnResults results, void *host_dst, const void *src, gsize bytes)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  Block *block = &cuda->results->blocks[results];
  cudaStream_t stream = cuda->streams[RN_QUEUE_COMPUTE];

  if (cuda->is_dead)
    return RN_STATUS_DEVICE;
  if (bytes > BLOCK_BYTES || rn_cuda_is_host_block (cuda, src))
    return rn_cuda_copy_out (device, host_dst, src, bytes);
  if (block->used + bytes > BLOCK_BYTES)
    RN_TRY (rn_cuda_settle (device, results));

  Result result = { .host_dst = host_dst, .memory = take (block, bytes), .bytes = bytes };
  RN_TRY (rn_cuda_check (device, cudaMemcpyAsync (result.memory, src, bytes, cudaMemcpyDeviceToHost, stream),
                         "cudaMemcpyAsync of a result"));
  RN_TRY (rn_cuda_check (device, cudaEventRecord (block->arrived, stream), "cudaEventRecord"));
  g_array_append_val (block->due, result);
  return RN_STATUS_OK;
}

RnStatus
rn_cuda_settle (RnDevice *device, RnResults results)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  Block *block = &cuda->results->blocks[results];
  RnStatus status = RN_STATUS_OK;

  if (block->due->len > 0)
    status = cuda->is_dead ? RN_STATUS_DEVICE
                           : rn_cuda_check (device, cudaEventSynchronize (block->arrived),
                                            "cudaEventSynchronize of results");
  for (guint i = 0; i < block->due->len && status == RN_STATUS_OK; i++)
    {
      const Result *result = &g_array_index (block->due, Result, i);
      sim_host_reads (result->memory, result->bytes);
      memcpy (result->host_dst, result->memory, result->bytes);
    }
  g_array_set_size (block->due, 0);
  block->used = 0;
  return status;
}
