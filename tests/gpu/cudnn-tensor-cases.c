/* cudnn-tensor-cases.c: tensors, convolutions and ops: what they lack, which values and sizes fit. */
#include "config.h"

#include "tests/gpu/cudnn-build.h"
#include "tests/gpu/cudnn-cases.h"

#include <string.h>

#define B(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define A(name) CUDNN_ATTR_##name
#define T(name) CUDNN_TYPE_##name
#define FWD(name) CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_##name
#define DATA(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_##name
#define FILTER(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_##name
#define PW(name) CUDNN_ATTR_OPERATION_POINTWISE_##name

#define FLOAT CUDNN_DATA_FLOAT
#define HALF CUDNN_DATA_HALF
#define BF16 CUDNN_DATA_BFLOAT16

/* ---- what is left out ---- */

typedef struct
{
  const char *name;
  int attribute, status;
  gboolean is_lax;
} MissingCase;

static const MissingCase missing[] = {
  { "tensor-id", A (TENSOR_UNIQUE_ID), 0, TRUE },
  { "tensor-type", A (TENSOR_DATA_TYPE), 0, TRUE },
  { "tensor-dims", A (TENSOR_DIMENSIONS), 2000, FALSE },
  { "tensor-strides", A (TENSOR_STRIDES), 2000, FALSE },
  { "tensor-alignment", A (TENSOR_BYTE_ALIGNMENT), 2000, FALSE },
  { "window-dims", A (CONVOLUTION_SPATIAL_DIMS), 2000, FALSE },
  { "window-type", A (CONVOLUTION_COMP_TYPE), 0, TRUE },
  { "window-mode", A (CONVOLUTION_CONV_MODE), 0, TRUE },
  { "window-pre-paddings", A (CONVOLUTION_PRE_PADDINGS), 0, TRUE },
  { "window-post-paddings", A (CONVOLUTION_POST_PADDINGS), 0, TRUE },
  { "window-strides", A (CONVOLUTION_FILTER_STRIDES), 2000, FALSE },
  { "window-dilations", A (CONVOLUTION_DILATIONS), 2000, FALSE },
  { "pointwise-mode", A (POINTWISE_MODE), 0, TRUE },
  { "pointwise-precision", A (POINTWISE_MATH_PREC), 0, TRUE },
  { "forward-x", FWD (X), 2000, FALSE },
  { "forward-w", FWD (W), 2000, FALSE },
  { "forward-y", FWD (Y), 2000, FALSE },
  { "forward-window", FWD (CONV_DESC), 2000, FALSE },
  { "forward-alpha", FWD (ALPHA), 0, TRUE },
  { "forward-beta", FWD (BETA), 0, TRUE },
  { "data-dx", DATA (DX), 2000, FALSE },
  { "data-w", DATA (W), 2000, FALSE },
  { "data-dy", DATA (DY), 2000, FALSE },
  { "data-window", DATA (CONV_DESC), 2000, FALSE },
  { "data-alpha", DATA (ALPHA), 0, TRUE },
  { "data-beta", DATA (BETA), 0, TRUE },
  { "filter-x", FILTER (X), 2000, FALSE },
  { "filter-dw", FILTER (DW), 2000, FALSE },
  { "filter-dy", FILTER (DY), 2000, FALSE },
  { "filter-window", FILTER (CONV_DESC), 2000, FALSE },
  { "filter-alpha", FILTER (ALPHA), 0, TRUE },
  { "filter-beta", FILTER (BETA), 0, TRUE },
  { "add-descriptor", PW (PW_DESCRIPTOR), 0, TRUE },
  { "add-x", PW (XDESC), 2000, FALSE },
  { "add-b", PW (BDESC), 2000, FALSE },
  { "add-y", PW (YDESC), 2000, FALSE },
};

static const WindowInfo plain_window = { { 1, 1 }, { 1, 1 }, { 1, 1 }, FLOAT };

static Descriptor
tensor_of (int64_t id, cudnnDataType_t type, int64_t n, int64_t c, int64_t h, int64_t w)
{
  return build_tensor (&(TensorInfo){ .id = id, .type = type, .dims = { n, c, h, w }, .nhwc = TRUE });
}

static void
test_missing (gconstpointer data)
{
  const MissingCase *c = data;
  const int attribute = c->attribute;

  cudnn_case_begin ();
  Descriptor x = tensor_of (1, HALF, 2, 8, 10, 12), w = tensor_of (2, HALF, 8, 8, 3, 3),
             y = tensor_of (3, HALF, 2, 8, 10, 12), bias = tensor_of (4, HALF, 1, 8, 1, 1);
  Descriptor window = build_window (&plain_window), sum = build_pointwise (CUDNN_POINTWISE_ADD);
  build_skip = attribute;
  if (g_str_has_prefix (c->name, "tensor"))
    tensor_of (5, HALF, 2, 8, 10, 12);
  else if (g_str_has_prefix (c->name, "window"))
    build_window (&plain_window);
  else if (g_str_has_prefix (c->name, "pointwise"))
    build_pointwise (CUDNN_POINTWISE_ADD);
  else if (g_str_has_prefix (c->name, "add"))
    build_pointwise_op (sum, x, bias, y);
  else
    build_convolution (g_str_has_prefix (c->name, "forward") ? BUILD_FORWARD
                       : g_str_has_prefix (c->name, "data")  ? BUILD_DATA
                                                             : BUILD_FILTER,
                       x, w, y, window, 1, 0);
  g_assert_cmpint (build_status, ==, c->status);
  cudnn_case_end (c->is_lax);
}

/* Setting copies: a tensor that is finalized too late does not count, one that is destroyed does. */
static void
test_copies (void)
{
  cudnn_case_begin ();
  Descriptor w = tensor_of (2, HALF, 8, 8, 3, 3), y = tensor_of (3, HALF, 2, 8, 10, 12);
  Descriptor window = build_window (&plain_window), late = build_new (B (TENSOR)), gone;
  Descriptor op = build_convolution (BUILD_FORWARD, late, w, y, window, 1, 0);
  const int64_t dims[] = { 2, 8, 10, 12 }, strides[] = { 960, 1, 96, 8 };
  g_assert_cmpint (build_status, ==, 2000);
  build_set_tensor (late, 1, HALF, 4, dims, 4, strides, 16);
  g_assert_cmpint (build_finalize (late), ==, 0);
  g_assert_cmpint (build_finalize (op), ==, 2000);
  g_assert_cmpint (build_set_descriptor (op, FWD (X), late), ==, 0);
  g_assert_cmpint (build_finalize (op), ==, 0);

  build_status = CUDNN_STATUS_SUCCESS;
  g_assert_cmpint (cudnnBackendCreateDescriptor (B (TENSOR), &gone), ==, 0);
  build_set_tensor (gone, 1, HALF, 4, dims, 4, strides, 16);
  g_assert_cmpint (build_finalize (gone), ==, 0);
  op = build_new (B (OPERATION_CONVOLUTION_FORWARD));
  build_set_descriptor (op, FWD (X), gone);
  g_assert_cmpint (cudnnBackendDestroyDescriptor (gone), ==, 0);
  build_set_descriptor (op, FWD (W), w);
  build_set_descriptor (op, FWD (Y), y);
  build_set_descriptor (op, FWD (CONV_DESC), window);
  build_set_float (op, FWD (ALPHA), 1);
  build_set_float (op, FWD (BETA), 0);
  g_assert_cmpint (build_finalize (op), ==, 0);
  build_graph (1, &op);
  g_assert_cmpint (build_status, ==, 0);

  Descriptor graph = build_new (B (OPERATIONGRAPH)), empty_op = build_new (B (OPERATION_CONVOLUTION_FORWARD));
  g_assert_cmpint (build_set (graph, A (OPERATIONGRAPH_OPS), T (BACKEND_DESCRIPTOR), 1, &empty_op), ==, 2004);
  cudnn_case_end (FALSE);
}

/* ---- tensors, convolutions, sizes ---- */

typedef struct
{
  const char *name;
  cudnnDataType_t type;
  int n_dims, n_strides;
  int64_t dims[8], strides[8], alignment;
  int status;
} TensorCase;

#define NCHW 24, 12, 4, 1
static const TensorCase tensors[] = {
  { "nchw", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 16, 0 },
  { "nhwc", FLOAT, 4, 4, { 1, 2, 3, 4 }, { 24, 1, 8, 2 }, 16, 0 },
  { "padded-rows", FLOAT, 4, 4, { 1, 2, 3, 4 }, { 64, 16, 5, 1 }, 16, 0 },
  { "1-dim", FLOAT, 1, 1, { 3 }, { 1 }, 16, 0 },
  { "5-dims", FLOAT, 5, 5, { 1, 2, 3, 4, 5 }, { 120, 60, 20, 5, 1 }, 16, 0 },
  { "8-dims", FLOAT, 8, 8, { 1, 1, 1, 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1, 1, 1, 1 }, 16, 0 },
  { "fewer-strides", FLOAT, 4, 3, { 1, 2, 3, 4 }, { NCHW }, 16, 2000 },
  { "zero-dim", FLOAT, 4, 4, { 1, 0, 3, 4 }, { NCHW }, 16, 0 },
  { "negative-dim", FLOAT, 4, 4, { 1, -2, 3, 4 }, { NCHW }, 16, 2000 },
  { "zero-stride", FLOAT, 4, 4, { 1, 2, 3, 4 }, { 24, 12, 4, 0 }, 16, 0 },
  { "negative-stride", FLOAT, 4, 4, { 1, 2, 3, 4 }, { 24, 12, 4, -1 }, 16, 2000 },
  { "overlapping", FLOAT, 4, 4, { 2, 2, 3, 4 }, { 1, 1, 1, 1 }, 16, 0 },
  { "alignment-0", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 0, 2000 },
  { "alignment-negative", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, -16, 2000 },
  { "float-alignment-2", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 2, 2000 },
  { "float-alignment-3", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 3, 2000 },
  { "float-alignment-4", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 4, 0 },
  { "float-alignment-12", FLOAT, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 12, 0 },
  { "half-alignment-1", HALF, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 1, 2000 },
  { "half-alignment-2", HALF, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 2, 0 },
  { "half-alignment-6", HALF, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 6, 0 },
  { "bf16-alignment-1", BF16, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 1, 2000 },
  { "bf16", BF16, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 256, 0 },
  { "double", CUDNN_DATA_DOUBLE, 4, 4, { 1, 2, 3, 4 }, { NCHW }, 16, 0 },
};

static void
test_tensor (gconstpointer data)
{
  const TensorCase *c = data;
  cudnn_case_begin ();
  build_tensor_of (1, c->type, c->n_dims, c->dims, c->n_strides, c->strides, c->alignment, FALSE);
  g_assert_cmpint (build_status, ==, c->status);
  cudnn_case_end (FALSE);
}

typedef struct
{
  const char *name;
  WindowInfo info;
  int status;
} WindowCase;

static const WindowCase windows[] = {
  { "plain", { { 1, 1 }, { 1, 1 }, { 1, 1 }, FLOAT }, 0 },
  { "uneven", { { 3, 0 }, { 2, 1 }, { 1, 2 }, FLOAT }, 0 },
  { "stride-0", { { 0, 0 }, { 1, 0 }, { 1, 1 }, FLOAT }, 2000 },
  { "stride-negative", { { 0, 0 }, { -1, 1 }, { 1, 1 }, FLOAT }, 2000 },
  { "pad-negative", { { 0, -1 }, { 1, 1 }, { 1, 1 }, FLOAT }, 2000 },
  { "dilation-0", { { 0, 0 }, { 1, 1 }, { 0, 1 }, FLOAT }, 2000 },
  { "dilation-negative", { { 0, 0 }, { 1, 1 }, { 1, -1 }, FLOAT }, 2000 },
  { "half", { { 0, 0 }, { 1, 1 }, { 1, 1 }, HALF }, 0 },
};

static void
test_window (gconstpointer data)
{
  const WindowCase *c = data;
  cudnn_case_begin ();
  build_window (&c->info);
  g_assert_cmpint (build_status, ==, c->status);
  cudnn_case_end (FALSE);
}

/* Other numbers of dimensions than the lists have. */
static void
test_window_counts (void)
{
  static const int names[] = { A (CONVOLUTION_PRE_PADDINGS), A (CONVOLUTION_POST_PADDINGS),
                               A (CONVOLUTION_FILTER_STRIDES), A (CONVOLUTION_DILATIONS) };
  const int64_t ones[] = { 1, 1, 1 };

  cudnn_case_begin ();
  for (int64_t n_dims = 0; n_dims <= 4; n_dims++)
    for (int odd = -1; odd < 4; odd++)
      {
        Descriptor d = build_new (B (CONVOLUTION));
        build_set_int64 (d, A (CONVOLUTION_SPATIAL_DIMS), n_dims);
        build_set_enum (d, A (CONVOLUTION_COMP_TYPE), T (DATA_TYPE), FLOAT);
        build_set_enum (d, A (CONVOLUTION_CONV_MODE), T (CONVOLUTION_MODE), CUDNN_CROSS_CORRELATION);
        for (int i = 0; i < 4; i++)
          build_set (d, names[i], T (INT64), i == odd ? 1 + 2 * (odd % 2) : 2, ones);
        g_assert_cmpint (build_finalize (d), ==, n_dims == 2 && odd < 0 ? 0 : 2000);
      }
  cudnn_case_end (FALSE);
}

typedef struct
{
  const char *name;
  int64_t x[4], w[4], y[4], stride, pad, dilation;
  int status;
} SizeCase;

static const SizeCase sizes[] = {
  { "same", { 2, 8, 10, 12 }, { 16, 8, 3, 3 }, { 2, 16, 10, 12 }, 1, 1, 1, 0 },
  { "height", { 2, 8, 10, 12 }, { 16, 8, 3, 3 }, { 2, 16, 9, 12 }, 1, 1, 1, 2000 },
  { "width", { 2, 8, 10, 12 }, { 16, 8, 3, 3 }, { 2, 16, 10, 13 }, 1, 1, 1, 2000 },
  { "batch", { 2, 8, 10, 12 }, { 16, 8, 3, 3 }, { 1, 16, 10, 12 }, 1, 1, 1, 2000 },
  { "empty-batch", { 0, 8, 10, 12 }, { 16, 8, 3, 3 }, { 0, 16, 10, 12 }, 1, 1, 1, 2000 },
  { "channels-out", { 2, 8, 10, 12 }, { 16, 8, 3, 3 }, { 2, 8, 10, 12 }, 1, 1, 1, 2000 },
  { "channels-in", { 2, 8, 10, 12 }, { 16, 7, 3, 3 }, { 2, 16, 10, 12 }, 1, 1, 1, 2000 },
  { "more-channels-in", { 2, 8, 10, 12 }, { 16, 16, 3, 3 }, { 2, 16, 10, 12 }, 1, 1, 1, 2000 },
  { "groups-2", { 2, 8, 10, 12 }, { 16, 4, 3, 3 }, { 2, 16, 10, 12 }, 1, 1, 1, 0 },
  { "groups-8", { 2, 8, 10, 12 }, { 8, 1, 3, 3 }, { 2, 8, 10, 12 }, 1, 1, 1, 0 },
  { "groups-do-not-divide", { 2, 8, 10, 12 }, { 15, 4, 3, 3 }, { 2, 15, 10, 12 }, 1, 1, 1, 2000 },
  { "kernel-too-large", { 2, 8, 2, 2 }, { 16, 8, 5, 5 }, { 2, 16, 1, 1 }, 1, 0, 1, 2000 },
  { "stride-2", { 2, 8, 11, 13 }, { 16, 8, 3, 3 }, { 2, 16, 6, 7 }, 2, 1, 1, 0 },
  { "dilation-2", { 2, 8, 10, 12 }, { 16, 8, 3, 3 }, { 2, 16, 10, 12 }, 1, 2, 2, 0 },
};

static void
test_size (gconstpointer data)
{
  const SizeCase *c = data;
  for (int direction = BUILD_FORWARD; direction <= BUILD_FILTER; direction++)
    {
      cudnn_case_begin ();
      const WindowInfo info = {
        { c->pad, c->pad }, { c->stride, c->stride }, { c->dilation, c->dilation }, FLOAT
      };
      build_convolution ((Direction) direction, tensor_of (1, FLOAT, c->x[0], c->x[1], c->x[2], c->x[3]),
                         tensor_of (2, FLOAT, c->w[0], c->w[1], c->w[2], c->w[3]),
                         tensor_of (3, FLOAT, c->y[0], c->y[1], c->y[2], c->y[3]), build_window (&info), 1,
                         0);
      g_assert_cmpint (build_status, ==, c->status);
      cudnn_case_end (FALSE);
    }
}

static void
test_dims (void)
{
  const int64_t dims[] = { 2, 8, 10 }, strides[] = { 80, 1, 8 };
  cudnn_case_begin ();
  Descriptor x = build_tensor_of (1, HALF, 3, dims, 3, strides, 16, FALSE),
             w = tensor_of (2, HALF, 8, 8, 3, 3), y = tensor_of (3, HALF, 2, 8, 10, 12);
  build_convolution (BUILD_FORWARD, x, w, y, build_window (&plain_window), 1, 0);
  g_assert_cmpint (build_status, ==, 2000);

  build_status = CUDNN_STATUS_SUCCESS;
  Descriptor bias = build_tensor_of (4, HALF, 1, dims, 1, &(int64_t){ 1 }, 16, FALSE);
  build_pointwise_op (build_pointwise (CUDNN_POINTWISE_ADD), y, bias, tensor_of (5, HALF, 2, 8, 10, 12));
  g_assert_cmpint (build_status, ==, 2000);
  cudnn_case_end (FALSE);
}

void
cudnn_tensor_cases_add (void)
{
  g_test_add_func ("/cudnn/copies", test_copies);
  g_test_add_func ("/cudnn/window-counts", test_window_counts);
  g_test_add_func ("/cudnn/dims", test_dims);
  CUDNN_CASES_ADD ("missing", missing, test_missing);
  CUDNN_CASES_ADD ("tensor", tensors, test_tensor);
  CUDNN_CASES_ADD ("window", windows, test_window);
  CUDNN_CASES_ADD ("size", sizes, test_size);
}
