/*
 * device-cuda.c: memory, queues and failures of a CUDA device.
 *
 * Work that was queued fails later than the call that queued it, and is reported by some other call: so a
 * failure of the kind that comes from the work itself names where it was reported, and how to find its
 * origin. After one of these nothing works any more in this process.
 */
#include "config.h"

#include "kernels/cuda/device-cuda.h"

#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/results.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/startup.h"
#include "kernels/cuda/try.h"
#include "kernels/no-memory.h"

#include <string.h>

#ifdef RN_SIM
  #include "tests/gpu/sim/sim.h"
#endif

/* ---- failures ---- */

/* Failures of work on the device: the context is lost. */
static gboolean
is_fatal (cudaError_t error)
{
  switch ((int) error)
    {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case 721: /* cudaErrorContained, which older toolkits have no name for */
    case cudaErrorUnknown:
      return TRUE;
    default:
      return FALSE;
    }
}

static char *
describe_fault (const RnCudaDevice *cuda, cudaError_t error, const char *what)
{
  g_autofree char *where =
      cuda->op_scope != NULL ? g_strconcat (" at ", cuda->op_scope, NULL) : g_strdup ("");

  if (is_fatal (error) && !cuda->is_synchronous)
    return g_strdup_printf (
        "%s (%d) in %s, reported%s; it may stem from an earlier op: RN_CUDA_SYNC=1 in the "
        "environment finds it",
        cudaGetErrorName (error), (int) error, what, where);
  return g_strdup_printf ("%s (%d) in %s%s", cudaGetErrorName (error), (int) error, what, where);
}

RnStatus
rn_cuda_check (RnDevice *device, cudaError_t error, const char *what)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;

  if (error == cudaSuccess)
    return RN_STATUS_OK;
  cudaGetLastError (); /* one that does not stay is forgotten, and is not reported by the next launch */
  if (!cuda->is_dead)  /* else the first one says more */
    {
      g_free (cuda->fault);
      cuda->fault = describe_fault (cuda, error, what);
    }
  cuda->is_dead |= is_fatal (error);
  return error == cudaErrorMemoryAllocation ? RN_STATUS_MEMORY : RN_STATUS_DEVICE;
}

/* What the runtime says when the library has failed: it may be for work that was queued before. */
static cudaError_t
runtime_error (const RnCudaDevice *cuda)
{
  cudaError_t error = cudaGetLastError ();

  if (error == cudaSuccess)
    error = cudaStreamQuery (cuda->streams[RN_QUEUE_COMPUTE]);
  return error == cudaErrorNotReady ? cudaSuccess : error;
}

RnStatus
rn_cuda_check_conv (RnDevice *device, RnStatus status)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;

  if (status == RN_STATUS_OK || cuda->is_dead)
    return status;
  const char *text = rn_conv_library_fault (cuda->conv);
  cudaError_t error = cuda->is_plan_only ? cudaSuccess : runtime_error (cuda);
  if (error != cudaSuccess)
    rn_cuda_check (device, error, text);
  else
    {
      g_free (cuda->fault);
      cuda->fault = g_strdup (text);
    }
  return status;
}

static const char *
cuda_fault (RnDevice *device)
{
  return ((RnCudaDevice *) device)->fault;
}

/* ---- memory ---- */

static RnStatus
cuda_synchronize (RnDevice *device)
{
  const RnCudaDevice *cuda = (RnCudaDevice *) device;

  for (int queue = 0; queue < RN_N_QUEUES; queue++)
    RN_TRY (rn_cuda_check (device, cudaStreamSynchronize (cuda->streams[queue]), "cudaStreamSynchronize"));
  return RN_STATUS_OK;
}

static RnStatus
cuda_alloc (RnDevice *device, gsize bytes, void **memory)
{
  return rn_cuda_check (device, cudaMalloc (memory, MAX (bytes, 1)), "cudaMalloc");
}

/* Memory is released when nothing that was queued uses it any more; what cannot be waited for is over. */
static void
cuda_free (RnDevice *device, void *memory, gsize bytes)
{
  if (memory == NULL)
    return;
  cuda_synchronize (device);
  rn_cuda_check (device, cudaFree (memory), "cudaFree");
}

/* Kernels read and write it too, at the address that the host has for it. */
static RnStatus
cuda_alloc_host (RnDevice *device, gsize bytes, void **memory)
{
  RN_TRY (
      rn_cuda_check (device, cudaHostAlloc (memory, MAX (bytes, 1), cudaHostAllocMapped), "cudaHostAlloc"));
  g_array_append_val (((RnCudaDevice *) device)->host_blocks, ((RnCudaHostBlock){ *memory, bytes }));
  return RN_STATUS_OK;
}

static void
cuda_free_host (RnDevice *device, void *memory, gsize bytes)
{
  GArray *blocks = ((RnCudaDevice *) device)->host_blocks;

  if (memory == NULL)
    return;
  for (guint i = 0; i < blocks->len; i++)
    if (g_array_index (blocks, RnCudaHostBlock, i).memory == memory)
      {
        g_array_remove_index_fast (blocks, i);
        break;
      }
  cuda_synchronize (device);
  rn_cuda_check (device, cudaFreeHost (memory), "cudaFreeHost");
}

static RnStatus
cuda_fill (RnDevice *device, void *dst, int byte, gsize bytes)
{
  cudaStream_t stream = ((RnCudaDevice *) device)->streams[RN_QUEUE_COMPUTE];
  return bytes == 0 ? RN_STATUS_OK
                    : rn_cuda_check (device, cudaMemsetAsync (dst, byte, bytes, stream), "cudaMemsetAsync");
}

static void
cuda_memory_info (RnDevice *device, guint64 *free, guint64 *total)
{
  gsize available = 0, all = 0;

  rn_cuda_check (device, cudaMemGetInfo (&available, &all), "cudaMemGetInfo");
  *free = available;
  *total = all;
}

/* ---- queues ---- */

static RnStatus
cuda_use_queue (RnDevice *device, RnQueue queue)
{
  ((RnCudaDevice *) device)->queue = queue;
  return RN_STATUS_OK;
}

/* Event number @number, made when it is first asked for. */
static RnStatus
find_event (RnDevice *device, guint number, cudaEvent_t *event)
{
  GPtrArray *events = ((RnCudaDevice *) device)->events;

  while (number >= events->len)
    {
      cudaEvent_t made;
      RN_TRY (rn_cuda_check (device, cudaEventCreateWithFlags (&made, cudaEventDisableTiming),
                             "cudaEventCreateWithFlags"));
      g_ptr_array_add (events, made);
    }
  *event = g_ptr_array_index (events, number);
  return RN_STATUS_OK;
}

static RnStatus
cuda_signal (RnDevice *device, guint number)
{
  cudaEvent_t event;

  RN_TRY (find_event (device, number, &event));
  return rn_cuda_check (device, cudaEventRecord (event, rn_cuda_stream (device)), "cudaEventRecord");
}

static RnStatus
cuda_wait (RnDevice *device, guint number)
{
  cudaEvent_t event;

  RN_TRY (find_event (device, number, &event));
  return rn_cuda_check (device, cudaStreamWaitEvent (rn_cuda_stream (device), event, 0),
                        "cudaStreamWaitEvent");
}

/* ---- ops ---- */

#ifdef RN_SIM
/* Does output @s of the call hold nothing before it? */
static bool
is_fresh (const RnOpCall *call, int s, const void *const *in, void *const *out)
{
  if (rn_op_update_mask (call->op) >> s & 1)
    return false;
  for (int k = 0; k < RN_OP_MAX_IN; k++)
    if (RN_HAS_IN (call, k) && in[k] == out[s])
      return false;
  return true;
}

/* A kernel does not know how large its buffers are; the plan does. */
static void
declare_ranges (const char *scope, const RnOpCall *call, const void *const *in, void *const *out,
                void *workspace, gsize workspace_bytes)
{
  SimRange ranges[RN_OP_MAX_IN + RN_OP_MAX_OUT + 1];
  int n = 0;

  for (int s = 0; s < RN_OP_MAX_IN; s++)
    if (RN_HAS_IN (call, s))
      ranges[n++] = (SimRange){ in[s], rn_desc_bytes (&call->in[s]), false, false };
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    if (RN_HAS_OUT (call, s))
      ranges[n++] = (SimRange){ out[s], rn_desc_bytes (&call->out[s]), true, is_fresh (call, s, in, out) };
  if (workspace_bytes > 0)
    ranges[n++] = (SimRange){ workspace, workspace_bytes, true, true };
  sim_declare_ranges (scope, ranges, n);
}
#endif

static void
cuda_begin_op (RnDevice *device, const char *scope, const RnOpCall *call, const void *const *in,
               void *const *out, void *workspace, gsize workspace_bytes)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;

  cuda->op_scope = scope;
  cuda->op_call = call;
#ifdef RN_SIM
  declare_ranges (scope, call, in, out, workspace, workspace_bytes);
#endif
}

static RnStatus
cuda_keep_choices (RnDevice *device)
{
  return rn_cuda_check_conv (device, rn_conv_library_save (((RnCudaDevice *) device)->conv));
}

static char *
cuda_choices (RnDevice *device)
{
  return rn_conv_library_choices (((RnCudaDevice *) device)->conv);
}

static void
cuda_take_choices (RnDevice *device, const char *text, gsize size)
{
  rn_conv_library_take_choices (((RnCudaDevice *) device)->conv, text, size);
}

static RnStatus
cuda_end_op (RnDevice *device)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;
  RnStatus status = RN_STATUS_OK;

  if (cuda->is_synchronous)
    status = rn_cuda_check (device, cudaStreamSynchronize (rn_cuda_stream (device)),
                            rn_op_name (cuda->op_call->op));
#ifdef RN_SIM
  sim_declare_ranges (NULL, NULL, 0);
#endif
  cuda->op_scope = NULL;
  cuda->op_call = NULL;
  return status;
}

/* ---- a device that is there ---- */

static void
cuda_destroy (RnDevice *device)
{
  RnCudaDevice *cuda = (RnCudaDevice *) device;

  if (cuda->streams[RN_N_QUEUES - 1] != NULL)
    cuda_synchronize (device);
  g_clear_pointer (&cuda->conv, rn_conv_library_free);
  g_clear_pointer (&cuda->staging, rn_cuda_staging_free);
  g_clear_pointer (&cuda->results, rn_cuda_results_free);
  for (guint i = 0; cuda->events != NULL && i < cuda->events->len; i++)
    cudaEventDestroy (g_ptr_array_index (cuda->events, i));
  for (int queue = 0; queue < RN_N_QUEUES; queue++)
    if (cuda->streams[queue] != NULL)
      cudaStreamDestroy (cuda->streams[queue]);
  g_clear_pointer (&cuda->events, g_ptr_array_unref);
  g_clear_pointer (&cuda->host_blocks, g_array_unref);
  g_free (cuda->fault);
  g_free (device->description);
  g_free (cuda);
}

static const RnDeviceVtbl cuda_vtbl = {
  .name = "cuda",
  .alloc = cuda_alloc,
  .free = cuda_free,
  .alloc_host = cuda_alloc_host,
  .free_host = cuda_free_host,
  .copy_in = rn_cuda_copy_in,
  .copy_out = rn_cuda_copy_out,
  .copy_out_later = rn_cuda_copy_out_later,
  .settle = rn_cuda_settle,
  .fill = cuda_fill,
  .synchronize = cuda_synchronize,
  .use_queue = cuda_use_queue,
  .signal = cuda_signal,
  .wait = cuda_wait,
  .begin_op = cuda_begin_op,
  .end_op = cuda_end_op,
  .keep_choices = cuda_keep_choices,
  .choices = cuda_choices,
  .take_choices = cuda_take_choices,
  .fault = cuda_fault,
  .memory_info = cuda_memory_info,
  .destroy = cuda_destroy,
};

/* Streams, and what copies go through. */
static RnStatus
create_queues (RnCudaDevice *cuda)
{
  RnDevice *device = &cuda->base;

  for (int queue = 0; queue < RN_N_QUEUES; queue++)
    RN_TRY (rn_cuda_check (device, cudaStreamCreateWithFlags (&cuda->streams[queue], cudaStreamNonBlocking),
                           "cudaStreamCreateWithFlags"));
  RN_TRY (rn_cuda_staging_new (device, &cuda->staging));
  return rn_cuda_results_new (device, &cuda->results);
}

/* With the name that the driver has for it. */
static RnStatus
describe_device (RnCudaDevice *cuda)
{
  struct cudaDeviceProp properties;
  g_autofree char *cudnn = rn_cudnn_version_text ();

  RN_TRY (rn_cuda_check (&cuda->base, cudaGetDeviceProperties (&properties, cuda->options.ordinal),
                         "cudaGetDeviceProperties"));
  cuda->capability = 10 * properties.major + properties.minor;
  cuda->base.description = g_strdup_printf ("%s (sm_%d), cuDNN %s, %s", properties.name, cuda->capability,
                                            cudnn, cuda->base.cblk == RN_CBLK_ALL ? "NHWC" : "NCHW");
  return RN_STATUS_OK;
}

static gboolean
open_device (RnCudaDevice *cuda, GError **error)
{
  RnStatus status = rn_cuda_check (&cuda->base, cudaSetDevice (cuda->options.ordinal), "cudaSetDevice");

  if (status == RN_STATUS_OK)
    status = describe_device (cuda);
  if (status == RN_STATUS_OK)
    status = create_queues (cuda);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR,
               status == RN_STATUS_MEMORY ? RN_DEVICE_ERROR_MEMORY : RN_DEVICE_ERROR_MISSING,
               "CUDA device %d cannot be used: %s", cuda->options.ordinal, cuda->fault);
  return FALSE;
}

/* ---- a device for plans alone ---- */

static const RnDeviceVtbl profile_vtbl = {
  .name = "cuda",
  RN_NO_MEMORY_SLOTS,
  .destroy = cuda_destroy,
};

/* The number or text that @member of a profile is. (transfer full) (nullable) */
static char *
profile_member (const char *json, const char *member)
{
  g_autofree char *pattern = g_strdup_printf ("\"%s\"\\s*:\\s*\"?([^\",}]*)", member);
  g_autoptr (GRegex) regex = g_regex_new (pattern, 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;

  return g_regex_match (regex, json, 0, &match) ? g_match_info_fetch (match, 1) : NULL;
}

static gboolean
open_profile (RnCudaDevice *cuda, GError **error)
{
  g_autofree char *version = profile_member (cuda->options.profile, "deviceVer"),
                  *name = profile_member (cuda->options.profile, "deviceName"),
                  *cudnn = rn_cudnn_version_text ();
  gint64 number = version != NULL ? g_ascii_strtoll (version, NULL, 10) : 0;

  if (number < 100 || number > 9990)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
                   "the device profile says no deviceVer, such as 750 for a T4");
      return FALSE;
    }
  if (number < 10 * RN_CUDA_MIN_CAPABILITY)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
                   "the device profile is of compute capability %d.%d; what works: %d.%d and later",
                   (int) (number / 100), (int) (number / 10 % 10), RN_CUDA_MIN_CAPABILITY / 10,
                   RN_CUDA_MIN_CAPABILITY % 10);
      return FALSE;
    }
  if (number / 100 == 10 && cudnnGetVersion () < RN_CUDNN_PROFILES_10)
    {
      g_set_error (
          error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
          "cuDNN %s crashes over the profile of a device of compute capability 10; what works: cuDNN "
          "%d.%d or later, or the profile of another card",
          cudnn, RN_CUDNN_PROFILES_10 / 10000, RN_CUDNN_PROFILES_10 % 10000 / 100);
      return FALSE;
    }
  cuda->capability = (int) (number / 10);
  cuda->is_plan_only = TRUE;
  cuda->base.vtbl = &profile_vtbl;
  cuda->base.description =
      g_strdup_printf ("profile of %s (sm_%d), cuDNN %s, %s", name != NULL ? name : "a device",
                       cuda->capability, cudnn, cuda->base.cblk == RN_CBLK_ALL ? "NHWC" : "NCHW");
  return TRUE;
}

/* ---- both ---- */

static int64_t
choose_layout (const RnCudaOptions *options)
{
  switch (options->layout)
    {
    case RN_CUDA_LAYOUT_NHWC:
      return RN_CBLK_ALL;
    case RN_CUDA_LAYOUT_NCHW:
      return 1;
    case RN_CUDA_LAYOUT_AUTO:
      break;
    }
  return options->half || options->tf32 ? RN_CBLK_ALL : 1;
}

static gboolean
open_convolutions (RnCudaDevice *cuda, GError **error)
{
  const RnCudaOptions *options = &cuda->options;
  const RnConvOptions conv = { .deterministic = options->deterministic,
                               .plan_file = options->plan_file,
                               .cache_file = options->cache_file };

  cuda->conv = options->profile != NULL
                   ? rn_conv_library_new_for_profile (options->profile, &conv, error)
                   : rn_conv_library_new (options->ordinal, cuda->streams[RN_QUEUE_COMPUTE], &conv, error);
  return cuda->conv != NULL;
}

RnDevice *
rn_cuda_device_new (const RnCudaOptions *options, GError **error)
{
  g_return_val_if_fail (options != NULL, NULL);
  RnCudaDevice *cuda = g_new0 (RnCudaDevice, 1);
  g_autoptr (RnDevice) device = &cuda->base;

  device->vtbl = &cuda_vtbl;
  device->cblk = choose_layout (options);
  device->masks_with_sums = TRUE;
  device->n_threads = 1;
  device->kernels = rn_cuda_kernels ();
  cuda->options = *options;
  cuda->events = g_ptr_array_new ();
  cuda->host_blocks = g_array_new (FALSE, FALSE, sizeof (RnCudaHostBlock));
  cuda->is_synchronous = g_strcmp0 (g_getenv ("RN_CUDA_SYNC"), "1") == 0;

  gboolean is_open = options->profile != NULL ? open_profile (cuda, error) : open_device (cuda, error);
  return is_open && open_convolutions (cuda, error) ? g_steal_pointer (&device) : NULL;
}
