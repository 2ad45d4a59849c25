/*
 * device.h: where tensors live and ops run, and how a kernel is found for an op.
 *
 * Nothing is decided in the step loop: rn_device_prepare picks the first kernel (by priority) that takes the
 * call, and the plan keeps it.
 */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include <glib.h>
#include "kernels/op.h"

G_BEGIN_DECLS

typedef struct _RnDevice RnDevice;
typedef struct _RnKernel RnKernel;
typedef struct _RnCallCache RnCallCache; /* call-cache.h */

/* A channel block of all channels of the tensor: NHWC. */
#define RN_CBLK_ALL 0

/* A kernel bound to one call: made at plan time, used by every execution. */
typedef struct
{
  const RnKernel *kernel;
  gpointer state;        /* the kernel's own; may be NULL */
  gsize workspace_bytes; /* scratch that run () needs, from the plan's arena, 64-byte aligned */
  /* workspace_bytes is the most of what measure () may choose: whoever prepares the call again behind it gets
   * what the choice needs, which is not more. */
  gboolean is_bound;
  const char
      *detail; /* what a vendor library chose ("jit:avx512_core"), for messages; lent by state; may be NULL */
} RnPrepared;

struct _RnKernel
{
  RnOp op;
  const char *name; /* "cpu:conv2d_fwd:onednn" */
  int priority;     /* larger first; ref kernels have 0 */
  /* Its workspace is the device's limit, however large; of others, a limit that it is below changes nothing.
   */
  gboolean takes_limit;
  /*
   * Describes and chooses, fills state and workspace_bytes of @prepared; creates nothing expensive.
   * RN_STATUS_UNSUPPORTED with a static *reason says that another kernel must take the call. The call has
   * passed rn_op_check. May be NULL: takes every call, no workspace.
   */
  RnStatus (*prepare) (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason);
  /* Creates what is expensive (compiled code). Called once before the first run; may be NULL. */
  RnStatus (*finalize) (RnDevice *device, const RnOpCall *call, RnPrepared *prepared);
  /*
   * Tries what there is to choose from, at the addresses of run (). Called once, behind finalize, while
   * nothing that lies in an arena is needed: what it does to inputs, outputs and workspace there does not
   * matter; parameters and what belongs to them stay as they are. May be NULL.
   */
  RnStatus (*measure) (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const void *const *in,
                       void *const *out, void *workspace);
  /*
   * in[], out[] are indexed by slot, NULL where absent; an output may be the same address as an input that
   * rn_op_alias_mask allows. Padding channels of outputs are written as zero.
   */
  RnStatus (*run) (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                   void *const *out, void *workspace);
  void (*release) (gpointer state); /* may be NULL */
};

/* Where work waits for a device that does it later. Work in one queue is done in order. */
typedef enum
{
  RN_QUEUE_COMPUTE,
  RN_QUEUE_TO_HOST,   /* copies of offload */
  RN_QUEUE_FROM_HOST, /* likewise, back */
  RN_N_QUEUES
} RnQueue;

/* Small results that the host does not wait for at once, by the program that gives them. */
typedef enum
{
  RN_RESULTS_FORWARD, /* losses */
  RN_RESULTS_UPDATE,  /* statistics of the gradients */
  RN_N_RESULTS
} RnResults;

/* What a device type supplies. Slots marked (optional) may be NULL. */
typedef struct
{
  const char *name; /* "cpu", "cuda" */
  RnStatus (*alloc) (RnDevice *device, gsize bytes, void **memory);
  void (*free) (RnDevice *device, void *memory, gsize bytes);
  /* Memory of the host that ops can copy from and to: pinned where that makes a difference. */
  RnStatus (*alloc_host) (RnDevice *device, gsize bytes, void **memory);
  void (*free_host) (RnDevice *device, void *memory, gsize bytes);
  /*
   * (optional) Gives the whole pages of a part of allocated memory, of the device or of the host, back to the
   * system. Their values are lost; they come back when they are used. Returns the bytes that were there.
   */
  gsize (*trim) (RnDevice *device, void *memory, gsize bytes);
  /* Between any memory of the process and memory of the device or of alloc_host. copy_out waits until the
   * bytes are there. */
  RnStatus (*copy_in) (RnDevice *device, void *dst, const void *host_src, gsize bytes);
  RnStatus (*copy_out) (RnDevice *device, void *host_dst, const void *src, gsize bytes);
  /*
   * (optional, both or none) A small result that the host does not wait for: the copy is queued. settle waits
   * until all of @results have arrived, for nothing that was queued behind them, and puts the bytes where
   * they were asked for; when it fails they are lost. After it none of them is due.
   */
  RnStatus (*copy_out_later) (RnDevice *device, RnResults results, void *host_dst, const void *src,
                              gsize bytes);
  RnStatus (*settle) (RnDevice *device, RnResults results);
  RnStatus (*fill) (RnDevice *device, void *dst, int byte, gsize bytes);
  RnStatus (*synchronize) (RnDevice *device); /* (optional) waits for queued work */
  /*
   * (optional, all or none) Of a device with queues. Copies and fills above belong to RN_QUEUE_COMPUTE;
   * use_queue says where the kernels that run next go. signal notes how far the queue in use has got, as
   * event number @event (any small number; the last note counts); wait lets the queue in use wait for it.
   */
  RnStatus (*use_queue) (RnDevice *device, RnQueue queue);
  RnStatus (*signal) (RnDevice *device, guint event);
  RnStatus (*wait) (RnDevice *device, guint event);
  /*
   * (optional) The op that runs next, for messages and checks: @scope names it, addresses are as in run ().
   * Lent until the next call.
   */
  void (*begin_op) (RnDevice *device, const char *scope, const RnOpCall *call, const void *const *in,
                    void *const *out, void *workspace, gsize workspace_bytes);
  /* (optional) The kernels of a plan have measured; what they chose is kept for a run that goes on. */
  RnStatus (*keep_choices) (RnDevice *device);
  /*
   * (optional, both or none) For checkpoints. choices: what the kernels of the plans so far have chosen,
   * text; NULL where nothing is kept. (transfer full) take_choices: those of the run that goes on, of @size
   * bytes and not to be trusted, before anything is planned; NULL: its checkpoint has none, and was made on
   * this device. What cannot be taken is chosen again, with a warning.
   */
  char *(*choices) (RnDevice *device);
  void (*take_choices) (RnDevice *device, const char *text, gsize size);
  /* (optional) The op of begin_op has been queued: in a mode for finding faults, waits for it. */
  RnStatus (*end_op) (RnDevice *device);
  /* (optional) What the last failure was, in words, or NULL. Lent. */
  const char *(*fault) (RnDevice *device);
  void (*memory_info) (RnDevice *device, guint64 *free, guint64 *total); /* (optional) bytes */
  void (*destroy) (RnDevice *device);
} RnDeviceVtbl;

struct _RnDevice
{
  const RnDeviceVtbl *vtbl;
  int64_t cblk; /* channel block of activations that its kernels like best; RN_CBLK_ALL: all channels */
  gboolean masks_with_sums; /* sums of RELU_BWD cost it less than reading the gradient once more */
  int n_threads;
  const RnKernel *const *kernels; /* NULL-ended, sorted by priority, largest first */
  gsize workspace_limit;          /* most scratch bytes of one op; 0: no limit */
  gboolean plans_bounds; /* behind measure () too, calls are prepared with the workspace that was a bound */
  char *const *prefer,
      *const *forbid; /* kernel name patterns (glob), from the configuration; NULL-ended or NULL; lent */
  /* (nullable) lent: kernels of calls are looked up here first, and kept here. Plans are then only to be
   * looked at: nothing that they hold can run. */
  RnCallCache *calls;
  char *description; /* "oneDNN 2.6.3, AVX-512, 2 threads": saved in checkpoints, a difference warns at resume
                      */
};

/*
 * rn_device_new_cpu:
 * @n_threads: threads of the kernels, at least 1
 *
 * The CPU device: oneDNN where it was built in, OpenMP kernels, and the reference. The whole process has one
 * setting of threads.
 */
RnDevice *rn_device_new_cpu (int n_threads, GError **error);
/* Reference kernels only, layout NCHW: the oracle of the tests. */
RnDevice *rn_device_new_ref (void);
void rn_device_free (RnDevice *device);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnDevice, rn_device_free)

/*
 * Finds the kernel for @call. With RN_TRACE=dispatch in the environment each refusal is logged. Errors
 * (RN_DEVICE_ERROR_KERNEL) name op and shapes.
 */
gboolean rn_device_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, GError **error);
/* What a failure with @status was: in the device's words, or the name of the status. Lent. */
const char *rn_device_fault (RnDevice *device, RnStatus status);
gboolean rn_device_finalize (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, GError **error);
void rn_prepared_release (RnPrepared *prepared);

/* All kernels compiled in, for `runner ops`: NULL-ended. Lent. */
const RnKernel *const *rn_kernels_all (void);

G_END_DECLS

#endif
