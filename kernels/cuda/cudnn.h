/*
 * cudnn.h: the part of cuDNN's graph API ("backend") that convolutions need, with a type for each kind of
 * descriptor: the library has one type for all, and does not check which kind it is given.
 *
 * Descriptors are made whole: created, filled and finalized, each step checked. Whatever a descriptor was
 * made from may be freed afterwards. A function that fails returns NULL or FALSE, and the RnCudnn keeps why.
 * Only one thread may use an RnCudnn.
 */
#ifndef KERNELS_CUDA_CUDNN_H
#define KERNELS_CUDA_CUDNN_H

#include <cudnn_graph.h>
#include <glib.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

/* Device profiles, graphs without a handle: 9.8. */
#define RN_CUDNN_MIN_VERSION 90800
/* Before, no plan of a convolution can be written down, so no choice of an engine can be kept. */
#define RN_CUDNN_WRITES_PLANS 91000
/* Before, the library ends the process over the profile of a device of compute capability 10. */
#define RN_CUDNN_PROFILES_10 91100

typedef struct _RnCudnn RnCudnn;

/* Is a library of version @found, as cudnnGetVersion () has it, new enough? Errors: RN_DEVICE_ERROR_MISSING. */
gboolean rn_cudnn_check_version (gsize found, GError **error);
/* Errors: as before. No device is needed. */
RnCudnn *rn_cudnn_new (GError **error);
void rn_cudnn_free (RnCudnn *cudnn);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnn, rn_cudnn_free)

/* "9.19.0". (transfer full) */
char *rn_cudnn_version_text (void);

/* Status of the last failure and its text, "making a convolution: CUDNN_STATUS_BAD_PARAM (2000): ..."; the
 * text is NULL where nothing has failed. Lent until the next failure. */
cudnnStatus_t rn_cudnn_status (const RnCudnn *cudnn);
const char *rn_cudnn_fault (const RnCudnn *cudnn);
/* Is the status an answer (a graph, a type or a size that the library does not support), not a mistake? */
gboolean rn_cudnn_is_unsupported (cudnnStatus_t status);

/* Logs a message where RN_TRACE=dispatch asks for reasons. */
void rn_cudnn_trace (const RnCudnn *cudnn, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* ---- descriptors: these types have no members, a pointer is the library's own ---- */

typedef struct _RnCudnnDevice RnCudnnDevice;
typedef struct _RnCudnnTensor RnCudnnTensor;
typedef struct _RnCudnnWindow RnCudnnWindow; /* padding, strides, dilations of a convolution */
typedef struct _RnCudnnOp RnCudnnOp;
typedef struct _RnCudnnGraph RnCudnnGraph;
typedef struct _RnCudnnConfig RnCudnnConfig; /* an engine with its knobs */
typedef struct _RnCudnnPlan RnCudnnPlan;
typedef struct _RnCudnnPack RnCudnnPack; /* addresses of one execution */

void rn_cudnn_device_free (RnCudnnDevice *device);
void rn_cudnn_tensor_free (RnCudnnTensor *tensor);
void rn_cudnn_window_free (RnCudnnWindow *window);
void rn_cudnn_op_free (RnCudnnOp *op);
void rn_cudnn_graph_free (RnCudnnGraph *graph);
void rn_cudnn_config_free (RnCudnnConfig *config);
void rn_cudnn_plan_free (RnCudnnPlan *plan);
void rn_cudnn_pack_free (RnCudnnPack *pack);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnDevice, rn_cudnn_device_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnTensor, rn_cudnn_tensor_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnWindow, rn_cudnn_window_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnOp, rn_cudnn_op_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnGraph, rn_cudnn_graph_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnConfig, rn_cudnn_config_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnPlan, rn_cudnn_plan_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCudnnPack, rn_cudnn_pack_free)

/* The device that is there, by its number, or one that is not, by its profile in JSON. */
RnCudnnDevice *rn_cudnn_device_new (RnCudnn *cudnn, int ordinal);
RnCudnnDevice *rn_cudnn_device_new_from_json (RnCudnn *cudnn, const char *json);
/* (transfer full) */
char *rn_cudnn_device_to_json (RnCudnn *cudnn, const RnCudnnDevice *device);

#define RN_CUDNN_ALIGNMENT 16 /* bytes, of every tensor's address: with less the fast engines are lost */

typedef struct
{
  int64_t id;          /* of the tensor in its graph */
  RnDType dtype;       /* F32, F16 or BF16 */
  int64_t dims[4];     /* N C H W, or of weights K C R S */
  gboolean nhwc;       /* stored with the channels innermost */
  gboolean is_virtual; /* never stored, in single precision */
} RnCudnnTensorInfo;

RnCudnnTensor *rn_cudnn_tensor_new (RnCudnn *cudnn, const RnCudnnTensorInfo *info);

/* Two spatial dimensions, cross-correlation, sums in single precision. */
RnCudnnWindow *rn_cudnn_window_new (RnCudnn *cudnn, const int64_t pad[2], const int64_t stride[2],
                                    const int64_t dilation[2]);

/* y = conv (x, w) + beta y; dx = convT (dy, w) + beta dx; dw = wgrad (x, dy) + beta dw; beta 0 or 1. */
RnCudnnOp *rn_cudnn_op_forward_new (RnCudnn *cudnn, const RnCudnnWindow *window, const RnCudnnTensor *x,
                                    const RnCudnnTensor *w, const RnCudnnTensor *y, float beta);
RnCudnnOp *rn_cudnn_op_backward_data_new (RnCudnn *cudnn, const RnCudnnWindow *window,
                                          const RnCudnnTensor *dy, const RnCudnnTensor *w,
                                          const RnCudnnTensor *dx, float beta);
RnCudnnOp *rn_cudnn_op_backward_weights_new (RnCudnn *cudnn, const RnCudnnWindow *window,
                                             const RnCudnnTensor *x, const RnCudnnTensor *dy,
                                             const RnCudnnTensor *dw, float beta);
/* y = a + b, where b may have one element per channel. */
RnCudnnOp *rn_cudnn_op_add_new (RnCudnn *cudnn, const RnCudnnTensor *a, const RnCudnnTensor *b,
                                const RnCudnnTensor *y);
RnCudnnOp *rn_cudnn_op_relu_new (RnCudnn *cudnn, const RnCudnnTensor *x, const RnCudnnTensor *y);

RnCudnnGraph *rn_cudnn_graph_new (RnCudnn *cudnn, RnCudnnOp *const *ops, int n_ops);

/* Appends what a mode of the heuristics proposes for the graph, best first, to @configs (of RnCudnnConfig,
 * owned by it). That there is nothing is no failure. */
gboolean rn_cudnn_heuristics (RnCudnn *cudnn, const RnCudnnGraph *graph, const RnCudnnDevice *device,
                              cudnnBackendHeurMode_t mode, GPtrArray *configs);

typedef struct
{
  int64_t engine;        /* global index; 0: the generic engine */
  gsize workspace;       /* bytes */
  guint numerical_notes; /* 1 << cudnnBackendNumericalNote_t */
  guint behavior_notes;  /* 1 << cudnnBackendBehaviorNote_t */
} RnCudnnConfigInfo;

gboolean rn_cudnn_config_describe (RnCudnn *cudnn, const RnCudnnConfig *config, RnCudnnConfigInfo *info);

/* For the device that the heuristics were asked for. */
RnCudnnPlan *rn_cudnn_plan_new (RnCudnn *cudnn, const RnCudnnConfig *config);
/* A plan that was written down: refused by another version of the library and for another device. */
RnCudnnPlan *rn_cudnn_plan_new_from_json (RnCudnn *cudnn, const RnCudnnDevice *device, const char *json);
/* (transfer full) */
char *rn_cudnn_plan_to_json (RnCudnn *cudnn, const RnCudnnPlan *plan);
gboolean rn_cudnn_plan_workspace (RnCudnn *cudnn, const RnCudnnPlan *plan, gsize *bytes);

/*
 * @ids, @pointers: [n], a different id each; addresses are of the device, aligned to RN_CUDNN_ALIGNMENT.
 * @workspace: may be NULL where the plan needs none. The library checks none of this before it runs: it is
 * checked here.
 */
RnCudnnPack *rn_cudnn_pack_new (RnCudnn *cudnn, const int64_t *ids, void *const *pointers, int n,
                                void *workspace);

/* ---- execution: on a device that is there ---- */

gboolean rn_cudnn_open (RnCudnn *cudnn, cudaStream_t stream);
gboolean rn_cudnn_set_stream (RnCudnn *cudnn, cudaStream_t stream);
/* Queues it on the stream. */
gboolean rn_cudnn_execute (RnCudnn *cudnn, const RnCudnnPlan *plan, const RnCudnnPack *pack);

G_END_DECLS

#endif
