/* runtime.c: entry points of the runtime for the device, its memory, copies and errors. */
#include "config.h"
#include "tests/gpu/sim/internal.h"
#include <string.h>

/* ---- versions and devices ---- */

cudaError_t
cudaDriverGetVersion (int *version)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaDriverGetVersion");
  if (error == cudaSuccess)
    *version = sim_config ()->driver_version;
  return error;
}

cudaError_t
cudaRuntimeGetVersion (int *version)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaRuntimeGetVersion");
  if (error == cudaSuccess)
    *version = CUDART_VERSION;
  return error;
}

cudaError_t
cudaGetDeviceCount (int *count)
{
  SIM_LOCK ();
  *count = 0;
  cudaError_t error = sim_call ("cudaGetDeviceCount");
  if (error == cudaSuccess)
    *count = sim_config ()->n_devices;
  return error;
}

static bool
is_device (int ordinal)
{
  return ordinal >= 0 && ordinal < sim_config ()->n_devices;
}

cudaError_t
cudaSetDevice (int ordinal)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaSetDevice");
  if (error != cudaSuccess)
    return error;
  return is_device (ordinal) ? cudaSuccess : sim_return (cudaErrorInvalidDevice);
}

/* In toolkits before 13 the name is a macro, for the function of this struct. */
cudaError_t
cudaGetDeviceProperties (struct cudaDeviceProp *properties, int ordinal)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaGetDeviceProperties");
  if (error != cudaSuccess)
    return error;
  if (!is_device (ordinal))
    return sim_return (cudaErrorInvalidDevice);
  const SimModel *model = sim_model ();
  *properties = (struct cudaDeviceProp){
    .totalGlobalMem = sim_config ()->memory_bytes,
    .sharedMemPerBlock = 49152,
    .sharedMemPerBlockOptin = model->shared_optin,
    .regsPerBlock = 65536,
    .regsPerMultiprocessor = 65536,
    .warpSize = 32,
    .maxThreadsPerBlock = 1024,
    .maxThreadsDim = { 1024, 1024, 64 },
    .maxGridSize = { G_MAXINT, 65535, 65535 },
    .major = model->capability[0],
    .minor = model->capability[1],
    .multiProcessorCount = model->n_multiprocessors,
    .maxThreadsPerMultiProcessor = model->threads_per_sm,
    .maxBlocksPerMultiProcessor = model->blocks_per_sm,
    .l2CacheSize = (int) model->l2_bytes,
    .memoryBusWidth = model->bus_bits,
    .concurrentKernels = 1,
    .asyncEngineCount = 2,
    .unifiedAddressing = 1,
  };
  g_strlcpy (properties->name, model->name, sizeof properties->name);
  return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t
cudaMemGetInfo (size_t *free, size_t *total)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaMemGetInfo");
  if (error != cudaSuccess)
    return error;
  *total = sim_config ()->memory_bytes;
  *free = *total - sim_bytes ();
  return cudaSuccess;
}

static cudaError_t
allocate (void **memory, size_t bytes, bool is_pinned)
{
  *memory = NULL;
  if (bytes == 0)
    return cudaSuccess;
  *memory = sim_memory_allocate (bytes, is_pinned);
  return sim_return (*memory ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t
cudaMalloc (void **memory, size_t bytes)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaMalloc");
  return error == cudaSuccess ? allocate (memory, bytes, false) : error;
}

cudaError_t
cudaHostAlloc (void **memory, size_t bytes, unsigned flags)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaHostAlloc");
  if (error != cudaSuccess)
    return error;
  if (flags & ~(unsigned) (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
    return sim_return (cudaErrorInvalidValue);
  return allocate (memory, bytes, true);
}

/* A call that failed releases all the same: it says what earlier work has come to. */
static cudaError_t
release (void *memory, bool is_pinned, const char *entry_point)
{
  cudaError_t error = sim_call (entry_point);
  if (!memory)
    return error;
  const SimAllocation *a = sim_memory_find (memory);
  if (!a || a->address != memory || a->is_pinned != is_pinned)
    {
      g_autofree char *where = sim_memory_describe (memory);
      sim_fault ("%s: not the start of what it releases: %s", entry_point, where);
      return sim_return (cudaErrorInvalidValue);
    }
  const SimOp *op = sim_ranges_pending (sim_host_clock (), a->address, a->bytes, true);
  if (op && !sim_has_failed ())
    sim_fault ("%s: allocation %u is released, and the host has not waited for '%s' (stream %u)", entry_point,
               a->number, op->what, op->stream);
  if (op)
    sim_streams_finish_all ();
  sim_ranges_forget (a->address, a->bytes);
  sim_memory_release (a);
  return error;
}

cudaError_t
cudaFree (void *memory)
{
  SIM_LOCK ();
  return release (memory, false, "cudaFree");
}

cudaError_t
cudaFreeHost (void *memory)
{
  SIM_LOCK ();
  return release (memory, true, "cudaFreeHost");
}

/* ---- copies ---- */

typedef struct
{
  guint8 *to;
  const guint8 *from; /* NULL: fills with value */
  gsize bytes;
  int value;
} Copy;

static void
copy_run (void *closure)
{
  const Copy *c = closure;
  if (c->from)
    memcpy (c->to, c->from, c->bytes);
  else
    memset (c->to, c->value, c->bytes);
}

static const char *const kind_names[] = { "cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                          "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
                                          "cudaMemcpyDefault" };

/* Whether [@address, @address + @bytes) is memory of the device, or pinned, as @kind has it for this @side.
 */
static bool
check_side (const char *entry_point, const char *side, const void *address, gsize bytes, bool on_device,
            enum cudaMemcpyKind kind)
{
  bool is_device = sim_is_device_range (address, bytes), is_pinned = sim_is_pinned_range (address, bytes);
  if (kind == cudaMemcpyDefault ? is_device || is_pinned : on_device ? is_device : is_pinned)
    return true;
  g_autofree char *where = sim_memory_describe (address);
  const SimAllocation *a = sim_memory_find (address);
  if (a && !is_device && !is_pinned)
    sim_fault ("%s: %zu bytes of the %s reach past %s", entry_point, bytes, side, where);
  else if (!a && !on_device)
    sim_fault ("%s: the %s, %p, is not pinned memory; the copy would not be asynchronous", entry_point, side,
               address);
  else
    sim_fault ("%s: %s is not for this %s: %s", entry_point, kind_names[kind], side, where);
  return false;
}

static cudaError_t
queue_copy (const char *entry_point, Copy copy, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  if (!sim_streams_check (stream, entry_point))
    return sim_return (cudaErrorInvalidResourceHandle);
  if (copy.bytes == 0)
    return cudaSuccess;
  if ((unsigned) kind >= G_N_ELEMENTS (kind_names))
    return sim_return (cudaErrorInvalidValue);
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
       from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!check_side (entry_point, "destination", copy.to, copy.bytes, to_device, kind)
      || (copy.from && !check_side (entry_point, "source", copy.from, copy.bytes, from_device, kind)))
    return sim_return (cudaErrorInvalidMemcpyDirection);
  if (copy.from && copy.to < copy.from + copy.bytes && copy.from < copy.to + copy.bytes)
    {
      g_autofree char *where = sim_memory_describe (copy.to);
      sim_fault ("%s: source and destination overlap: %s", entry_point, where);
      return sim_return (cudaErrorInvalidValue);
    }
  const SimRange ranges[2] = { { .address = copy.to, .bytes = copy.bytes, .writes = true },
                               { .address = copy.from, .bytes = copy.bytes } };
  return sim_streams_add (stream, entry_point, ranges, copy.from ? 2 : 1, copy_run,
                          g_memdup2 (&copy, sizeof copy), g_free);
}

cudaError_t
cudaMemcpyAsync (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaMemcpyAsync");
  if (error != cudaSuccess)
    return error;
  return queue_copy ("cudaMemcpyAsync", (Copy){ .to = to, .from = from, .bytes = bytes }, kind, stream);
}

cudaError_t
cudaMemsetAsync (void *memory, int value, size_t bytes, cudaStream_t stream)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaMemsetAsync");
  if (error != cudaSuccess)
    return error;
  Copy fill = { .to = memory, .bytes = bytes, .value = value };
  return queue_copy ("cudaMemsetAsync", fill, cudaMemcpyDeviceToDevice, stream);
}

/* ---- what the host does with pinned memory ---- */

static void
check_host_access (const void *address, gsize bytes, bool writes)
{
  SIM_LOCK ();
  sim_start ();
  const char *verb = writes ? "writes" : "reads";
  const SimAllocation *a = sim_memory_find (address);
  g_autofree char *where = sim_memory_describe (address);
  if (a && !a->is_pinned)
    sim_fault ("the host %s device memory: %s", verb, where);
  const SimOp *op = sim_ranges_pending (sim_host_clock (), address, bytes, writes);
  if (op)
    sim_fault ("race: the host %s %zu bytes of %s, and has not waited for '%s' (stream %u)", verb, bytes,
               where, op->what, op->stream);
}

void
sim_host_reads (const void *address, size_t bytes)
{
  check_host_access (address, bytes, false);
}

void
sim_host_writes (const void *address, size_t bytes)
{
  check_host_access (address, bytes, true);
}

/* ---- errors ---- */

cudaError_t
cudaGetLastError (void)
{
  SIM_LOCK ();
  return sim_last_error (true);
}

cudaError_t
cudaPeekAtLastError (void)
{
  SIM_LOCK ();
  return sim_last_error (false);
}

/* Of the errors that the simulation gives out, or is told to; texts of our own. */
static const struct
{
  cudaError_t error;
  const char *name, *text;
} errors[] = {
#define ERROR(name, text)                    \
  {                                          \
    cudaError##name, "cudaError" #name, text \
  }
  { cudaSuccess, "cudaSuccess", "no error" },
  ERROR (InvalidValue, "invalid argument"),
  ERROR (MemoryAllocation, "out of memory"),
  ERROR (InitializationError, "initialization error"),
  ERROR (InvalidConfiguration, "invalid configuration argument"),
  ERROR (InvalidMemcpyDirection, "invalid copy direction for memcpy"),
  ERROR (StubLibrary, "CUDA driver is a stub library"),
  ERROR (InsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
  ERROR (DevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
  ERROR (NoDevice, "no CUDA-capable device is detected"),
  ERROR (InvalidDevice, "invalid device ordinal"),
  ERROR (NoKernelImageForDevice, "no kernel image is available for execution on the device"),
  ERROR (ECCUncorrectable, "uncorrectable ECC error encountered"),
  ERROR (InvalidResourceHandle, "invalid resource handle"),
  ERROR (NotReady, "device not ready"),
  ERROR (IllegalAddress, "an illegal memory access was encountered"),
  ERROR (LaunchOutOfResources, "too many resources requested for launch"),
  ERROR (Assert, "device-side assert triggered"),
  ERROR (HardwareStackError, "hardware stack error"),
  ERROR (IllegalInstruction, "an illegal instruction was encountered"),
  ERROR (MisalignedAddress, "misaligned address"),
  ERROR (LaunchFailure, "unspecified launch failure"),
  ERROR (SystemNotReady, "system not yet initialized"),
  ERROR (SystemDriverMismatch, "system has unsupported display driver / cuda driver combination"),
  ERROR (CompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW"),
  ERROR (Unknown, "unknown error"),
#undef ERROR
};

const char *
cudaGetErrorName (cudaError_t error)
{
  for (guint i = 0; i < G_N_ELEMENTS (errors); i++)
    if (errors[i].error == error)
      return errors[i].name;
  return "unrecognized error code";
}

const char *
cudaGetErrorString (cudaError_t error)
{
  for (guint i = 0; i < G_N_ELEMENTS (errors); i++)
    if (errors[i].error == error)
      return errors[i].text;
  return "unrecognized error code";
}
