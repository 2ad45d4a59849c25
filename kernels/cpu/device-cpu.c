/*
 * device-cpu.c: the CPU device. oneDNN and our kernels share one OpenMP pool. The number of threads is a
 * setting of the thread that calls (OpenMP's nthreads-var): prepare, finalize and run kernels on the thread
 * that made the device.
 */
#include "config.h"

#include "kernels/cpu/device-cpu.h"

#include "kernels/host-memory.h"

#include <omp.h>
#include <string.h>

#ifdef HAVE_ONEDNN
  #include "kernels/cpu/onednn.h"
#endif

static void
cpu_destroy (RnDevice *device)
{
#ifdef HAVE_ONEDNN
  RnCpuDevice *self = (RnCpuDevice *) device;
  if (self->stream != NULL)
    dnnl_stream_destroy (self->stream);
  if (self->engine != NULL)
    dnnl_engine_destroy (self->engine);
#endif
  g_free (device->description);
  g_free (device);
}

static const RnDeviceVtbl cpu_vtbl = {
  .name = "cpu",
  .alloc = rn_host_alloc,
  .free = rn_host_free,
  .alloc_host = rn_host_alloc,
  .free_host = rn_host_free,
  .trim = rn_host_trim,
  .copy_in = rn_host_copy,
  .copy_out = rn_host_copy,
  .fill = rn_host_fill,
  .destroy = cpu_destroy,
};

/* 16 channels fill an AVX-512 register, 8 an AVX one; two SSE registers do 8 as well. */
static int64_t
native_block (void)
{
  return __builtin_cpu_supports ("avx512f") ? 16 : 8;
}

#ifdef HAVE_ONEDNN
static gboolean
open_onednn (RnCpuDevice *self, GError **error)
{
  if (dnnl_engine_create (&self->engine, dnnl_cpu, 0) != dnnl_success
      || dnnl_stream_create (&self->stream, self->engine, dnnl_stream_default_flags) != dnnl_success)
    {
      g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, "oneDNN offers no CPU engine");
      return FALSE;
    }
  /*
   * Generated code is shared by equal convolutions of plans. A plan keeps its own as long as it is kept; more
   * entries than those of the last few plans (R50 has 309) would only hold what dropped plans leave behind:
   * measured with 60 shapes of a small model, 4096 entries take 90 MiB more and still grow in the eighth
   * epoch.
   */
  dnnl_set_primitive_cache_capacity (1024);

  self->parent.cblk = rn_onednn_preferred_block (self->engine, native_block ());
  const dnnl_version_t *v = dnnl_version ();
  const char *isa = dnnl_cpu_isa2str (dnnl_get_effective_cpu_isa ());
  self->parent.description = g_strdup_printf (
      "oneDNN %d.%d.%d, %s, %d threads", v->major, v->minor, v->patch,
      g_str_has_prefix (isa, "cpu_isa_") ? isa + strlen ("cpu_isa_") : isa, self->parent.n_threads);
  return TRUE;
}
#else
static gboolean
open_onednn (RnCpuDevice *self, GError **error)
{
  self->parent.cblk = native_block ();
  self->parent.description = g_strdup_printf ("without oneDNN, %d threads", self->parent.n_threads);
  return TRUE;
}
#endif

RnDevice *
rn_device_new_cpu (int n_threads, GError **error)
{
  g_return_val_if_fail (n_threads >= 1, NULL);

  g_autoptr (RnDevice) device = (RnDevice *) g_new0 (RnCpuDevice, 1);
  device->vtbl = &cpu_vtbl;
  device->n_threads = n_threads;
  device->kernels = rn_kernels_all ();
  omp_set_num_threads (n_threads);
  if (!open_onednn ((RnCpuDevice *) device, error))
    return NULL;
  return g_steal_pointer (&device);
}
