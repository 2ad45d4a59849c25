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

#define BLOCK_BYTES ((gsize) 4096)
#define ALIGNMENT 16

/* On its way, or arrived, but not yet where it was asked for. */
typedef struct
{
  void *host_dst;
  char *memory;
  gsize bytes;
} Result;

struct _RnCudaResults
{
  char *memory; /* BLOCK_BYTES, pinned */
  gsize used;
  GArray *due;         /* of Result */
  cudaEvent_t arrived; /* the last of them */
};

RnStatus
rn_cuda_results_new (RnDevice *device, RnCudaResults **result)
{
  RnCudaResults *results = g_new0 (RnCudaResults, 1);

  results->due = g_array_new (FALSE, FALSE, sizeof (Result));
  RnStatus status = rn_cuda_check (
      device, cudaHostAlloc ((void **) &results->memory, BLOCK_BYTES, cudaHostAllocDefault), "cudaHostAlloc");
  if (status == RN_STATUS_OK)
    status = rn_cuda_check (
        device, cudaEventCreateWithFlags (&results->arrived, cudaEventDisableTiming | cudaEventBlockingSync),
        "cudaEventCreateWithFlags");
  if (status != RN_STATUS_OK)
    g_clear_pointer (&results, rn_cuda_results_free);
  *result = results;
  return status;
}

void
rn_cuda_results_free (RnCudaResults *results)
{
  if (results->arrived != NULL)
    cudaEventDestroy (results->arrived);
  if (results->memory != NULL)
    cudaFreeHost (results->memory);
  g_array_unref (results->due);
  g_free (results);
}

/* A place in the block; there is one. */
static char *
take (RnCudaResults *results, gsize bytes)
{
  char *memory = results->memory + results->used;

  results->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return memory;
}

RnStatus
rn_cuda_copy_out_later (RnDevice *device, void *host_dst, const void *src, gsize bytes)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  RnCudaResults *results = cuda->results;
  cudaStream_t stream = cuda->streams[RN_QUEUE_COMPUTE];

  if (cuda->is_dead)
    return RN_STATUS_DEVICE;
  if (bytes > BLOCK_BYTES || rn_cuda_is_host_block (cuda, src))
    return rn_cuda_copy_out (device, host_dst, src, bytes);
  if (results->used + bytes > BLOCK_BYTES)
    RN_TRY (rn_cuda_settle (device));

  Result result = { .host_dst = host_dst, .memory = take (results, bytes), .bytes = bytes };
  RN_TRY (rn_cuda_check (device, cudaMemcpyAsync (result.memory, src, bytes, cudaMemcpyDeviceToHost, stream),
                         "cudaMemcpyAsync of a result"));
  RN_TRY (rn_cuda_check (device, cudaEventRecord (results->arrived, stream), "cudaEventRecord"));
  g_array_append_val (results->due, result);
  return RN_STATUS_OK;
}

RnStatus
rn_cuda_settle (RnDevice *device)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  RnCudaResults *results = cuda->results;
  RnStatus status = RN_STATUS_OK;

  if (results->due->len > 0)
    status = cuda->is_dead ? RN_STATUS_DEVICE
                           : rn_cuda_check (device, cudaEventSynchronize (results->arrived),
                                            "cudaEventSynchronize of results");
  for (guint i = 0; i < results->due->len && status == RN_STATUS_OK; i++)
    {
      const Result *result = &g_array_index (results->due, Result, i);
      sim_host_reads (result->memory, result->bytes);
      memcpy (result->host_dst, result->memory, result->bytes);
    }
  g_array_set_size (results->due, 0);
  results->used = 0;
  return status;
}
