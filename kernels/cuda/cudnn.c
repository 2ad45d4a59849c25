/* cudnn.c: the library itself: its version, its failures, its handle. */
#define G_LOG_DOMAIN "rn-kernels"
#include "config.h"

#include "kernels/cuda/cudnn-private.h"

#include "kernels/trace-dispatch.h"
#include "runner/base/error.h"

#include <dlfcn.h>

#define MAX_REASON 512 /* of the library's own text */

struct _RnCudnn
{
  cudnnHandle_t handle; /* NULL until rn_cudnn_open */
  cudnnStatus_t status;
  char *fault;
  gboolean is_traced;
};

static char *
version_text (gsize version)
{
  /* 8907 was 8.9.7; since 9 it is 90800. */
  gsize unit = version >= 90000 ? 10000 : 1000;
  return g_strdup_printf ("%" G_GSIZE_FORMAT ".%" G_GSIZE_FORMAT ".%" G_GSIZE_FORMAT, version / unit,
                          version % unit / 100, version % 100);
}

char *
rn_cudnn_version_text (void)
{
  return version_text (cudnnGetVersion ());
}

gboolean
rn_cudnn_check_version (gsize found, GError **error)
{
  /* The library keeps its interface within a major version, and new attributes come with a minor one. */
  gsize needed = MAX (RN_CUDNN_MIN_VERSION, CUDNN_VERSION / 100 * 100);
  Dl_info info;

  if (found >= needed && found / 10000 == CUDNN_VERSION / 10000)
    return TRUE;
  g_autofree char *wanted = version_text (needed), *has = version_text (found);
  rn_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
                "CUDA: %s is cuDNN %s, this build needs %s or a newer one of the same major version",
                dladdr ((gconstpointer) cudnnGetVersion, &info) != 0 ? info.dli_fname : "libcudnn", has,
                wanted);
  return FALSE;
}

RnCudnn *
rn_cudnn_new (GError **error)
{
  if (!rn_cudnn_check_version (cudnnGetVersion (), error))
    return NULL;
  RnCudnn *cudnn = g_new0 (RnCudnn, 1);
  cudnn->is_traced = rn_traces_dispatch ();
  return cudnn;
}

void
rn_cudnn_free (RnCudnn *cudnn)
{
  if (cudnn == NULL)
    return;
  if (cudnn->handle != NULL)
    cudnnDestroy (cudnn->handle);
  g_free (cudnn->fault);
  g_free (cudnn);
}

cudnnStatus_t
rn_cudnn_status (const RnCudnn *cudnn)
{
  return cudnn->status;
}

const char *
rn_cudnn_fault (const RnCudnn *cudnn)
{
  return cudnn->fault;
}

gboolean
rn_cudnn_is_unsupported (cudnnStatus_t status)
{
  return CUDNN_STATUS_CATEGORY (status) == CUDNN_STATUS_NOT_SUPPORTED;
}

void
rn_cudnn_trace (const RnCudnn *cudnn, const char *format, ...)
{
  va_list args;

  if (!cudnn->is_traced)
    return;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_message ("dispatch: cuDNN: %s", text);
}

void
rn_cudnn_keep_fault (RnCudnn *cudnn, cudnnStatus_t status, const char *what, const char *reason)
{
  g_free (cudnn->fault);
  cudnn->status = status;
  cudnn->fault = g_strdup_printf ("%s: %s (%d)%s%s", what, cudnnGetErrorString (status), (int) status,
                                  *reason != '\0' ? ": " : "", reason);
  rn_cudnn_trace (cudnn, "%s", cudnn->fault);
}

gboolean
rn_cudnn_check (RnCudnn *cudnn, cudnnStatus_t status, const char *what)
{
  char reason[MAX_REASON] = "";

  if (status == CUDNN_STATUS_SUCCESS)
    return TRUE;
  cudnnGetLastErrorString (reason, sizeof reason);
  reason[sizeof reason - 1] = '\0';
  rn_cudnn_keep_fault (cudnn, status, what, g_strstrip (reason));
  return FALSE;
}

/* ---- execution ---- */

gboolean
rn_cudnn_open (RnCudnn *cudnn, cudaStream_t stream)
{
  if (cudnn->handle == NULL && !rn_cudnn_check (cudnn, cudnnCreate (&cudnn->handle), "opening cuDNN"))
    {
      cudnn->handle = NULL;
      return FALSE;
    }
  return rn_cudnn_set_stream (cudnn, stream);
}

gboolean
rn_cudnn_set_stream (RnCudnn *cudnn, cudaStream_t stream)
{
  return rn_cudnn_check (cudnn, cudnnSetStream (cudnn->handle, stream), "setting the stream of cuDNN");
}

gboolean
rn_cudnn_execute (RnCudnn *cudnn, const RnCudnnPlan *plan, const RnCudnnPack *pack)
{
  return rn_cudnn_check (cudnn,
                         cudnnBackendExecute (cudnn->handle, (cudnnBackendDescriptor_t) (gsize) plan,
                                              (cudnnBackendDescriptor_t) (gsize) pack),
                         "running a plan");
}
