/*
 * cudnn-setup.h: a convolution with its data on the simulated device, ready for executions by cuDNN: what
 * tests of the simulated cuDNN share.
 */
#ifndef TESTS_GPU_CUDNN_SETUP_H
#define TESTS_GPU_CUDNN_SETUP_H

#include "tests/gpu/cudnn-build.h"
#include "tests/gpu/sim-fixture.h"
#include "tests/gpu/sim/sim-cudnn.h"

#include <cudnn.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

#define CUDNN_OK(call) g_assert_cmpint ((call), ==, CUDNN_STATUS_SUCCESS)

/* Ids of the tensors. */
enum
{
  X = 1,
  W,
  Y,
  BIAS,
  Z,
  ADDED, /* virtual */
  BIASED,
  SUM,
};

typedef struct
{
  const char *name;
  Direction direction;
  int64_t n, c, h, w, k;
  int kernel[2], stride[2], pad[2], dilation[2], groups;
  gboolean bias, residual, relu;
  float alpha, beta;
} Problem;

/* Ends with a name of NULL. */
extern const Problem setup_problems[];
const Problem *setup_problem (const char *name);

typedef struct
{
  const Problem *p;
  RnDType dtype;
  gboolean nhwc;
  int64_t oh, ow;
  int64_t n_elements[SUM]; /* of X, W, Y, BIAS, Z */
  float *host[SUM];        /* representable in dtype; weights KCRS, activations in the layout */
  void *device[SUM];
  gsize workspace_bytes;
  guint8 *workspace;
  cudaStream_t stream;
  cudnnHandle_t handle;
  Descriptor profile, graph;
} Setup;

/* On an A100, on which faults are kept. */
void setup_init (Setup *s, const Problem *p, RnDType dtype, gboolean nhwc);
/* Everything is released, and that nothing is left. */
void setup_clear (Setup *s);

/* The id of what is written. */
int setup_output (const Problem *p);
/* Host to device, and back, in the order of @host; (transfer full). */
void setup_upload (Setup *s, int id);
float *setup_download (Setup *s, int id);
Descriptor setup_pack (const Setup *s);
/* The configuration number @nth of @engine; NULL: it is not proposed. */
Descriptor setup_config (const Setup *s, int64_t engine, int nth);
/* Executes on fresh inputs; the output's values. (transfer full) */
float *setup_execute_plan (Setup *s, Descriptor plan);
float *setup_execute (Setup *s, int64_t engine, int nth);

/* The bits of @n values are the same, or, without @same, those of some differ. */
void assert_same (const float *a, const float *b, int64_t n, gboolean same);

G_END_DECLS

#endif
