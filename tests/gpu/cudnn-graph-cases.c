/* cudnn-graph-cases.c: which graphs are accepted, and which have engines, on a T4 and on an A100. */
#include "config.h"

#include "tests/gpu/cudnn-build.h"
#include "tests/gpu/cudnn-cases.h"

#define FLOAT CUDNN_DATA_FLOAT
#define HALF CUDNN_DATA_HALF
#define BF16 CUDNN_DATA_BFLOAT16

enum
{
  X = 1,
  W,
  Y,
  BIAS,
  Z,
  SUM, /* virtual, as what follows */
  ADDED,
  BIASED,
};

enum
{
  WITH_BIAS = 1 << 0,
  WITH_Z = 1 << 1,
  WITH_RELU = 1 << 2,
  Z_LAST = 1 << 3,       /* the bias is added before z */
  REVERSED = 1 << 4,     /* the last op is given first */
  SWAPPED = 1 << 5,      /* bias + sum instead of sum + bias */
  STORED_SUM = 1 << 7,   /* the convolution's result is not virtual */
  PRODUCT = 1 << 8,      /* sum * bias */
  SHORT_BIAS = 1 << 9,   /* of fewer channels */
  SMALL_Y = 1 << 10,     /* of fewer rows than the convolution gives */
  OTHER_INPUT = 1 << 11, /* the bias is added to what no op writes */
  X_NCHW = 1 << 12,
  W_NCHW = 1 << 13,
  Y_NCHW = 1 << 14,
  PADDED_X = 1 << 15, /* rows of x have gaps */
  STRIDED = 1 << 16,
  DILATED = 1 << 17,
  NCHW = X_NCHW | W_NCHW | Y_NCHW,
};

/* What is 0 is as usual: HALF, aligned to 16, 16 channels, 1 group, alpha 1, sums in FLOAT. */
typedef struct
{
  const char *name;
  Direction direction;
  cudnnDataType_t type;
  unsigned flags;
  gboolean has_engines[2];               /* on a T4, on an A100: others than the generic one, and it too */
  cudnnDataType_t x, w, y, bias, z, sum; /* with has_types, instead of @type */
  gboolean has_types;
  int64_t alignment, c, k, groups;
  float alpha, beta;
  cudnnDataType_t compute;
} GraphCase;

#define BOTH   \
  {            \
    TRUE, TRUE \
  }
#define NEITHER  \
  {              \
    FALSE, FALSE \
  }
#define A100    \
  {             \
    FALSE, TRUE \
  }
#define FUSED (WITH_BIAS | WITH_Z | WITH_RELU)
#define TYPES(x_, w_, y_, bias_, z_, sum_) \
  .x = x_, .w = w_, .y = y_, .bias = bias_, .z = z_, .sum = sum_, .has_types = TRUE
#define CASE(name_, direction_, type_, flags_, engines, ...)                                        \
  {                                                                                                 \
    .name = name_, .direction = direction_, .type = type_, .flags = flags_, .has_engines = engines, \
    __VA_ARGS__                                                                                     \
  }

static const GraphCase graphs[] = {
  CASE ("forward-float-nhwc", BUILD_FORWARD, FLOAT, 0, BOTH),
  CASE ("forward-float-nchw", BUILD_FORWARD, FLOAT, NCHW, BOTH),
  CASE ("forward-half-nhwc", BUILD_FORWARD, HALF, 0, BOTH),
  CASE ("forward-half-nchw", BUILD_FORWARD, HALF, NCHW, BOTH),
  CASE ("forward-bf16-nhwc", BUILD_FORWARD, BF16, 0, A100),
  CASE ("forward-bf16-nchw", BUILD_FORWARD, BF16, NCHW, A100),
  CASE ("data-float-nhwc", BUILD_DATA, FLOAT, 0, BOTH),
  CASE ("data-float-nchw", BUILD_DATA, FLOAT, NCHW, BOTH),
  CASE ("data-half-nhwc", BUILD_DATA, HALF, 0, BOTH),
  CASE ("data-half-nchw", BUILD_DATA, HALF, NCHW, BOTH),
  CASE ("data-bf16-nhwc", BUILD_DATA, BF16, 0, A100),
  CASE ("data-bf16-nchw", BUILD_DATA, BF16, NCHW, A100),
  CASE ("filter-float-nhwc", BUILD_FILTER, FLOAT, 0, BOTH),
  CASE ("filter-float-nchw", BUILD_FILTER, FLOAT, NCHW, BOTH),
  CASE ("filter-half-nhwc", BUILD_FILTER, HALF, 0, BOTH),
  CASE ("filter-half-nchw", BUILD_FILTER, HALF, NCHW, BOTH),
  CASE ("filter-bf16-nhwc", BUILD_FILTER, BF16, 0, A100),
  CASE ("filter-bf16-nchw", BUILD_FILTER, BF16, NCHW, A100),

  CASE ("bias-float", BUILD_FORWARD, FLOAT, WITH_BIAS, BOTH),
  CASE ("bias-half", BUILD_FORWARD, HALF, WITH_BIAS, BOTH),
  CASE ("bias-bf16", BUILD_FORWARD, BF16, WITH_BIAS, A100),
  CASE ("bias-relu-float", BUILD_FORWARD, FLOAT, WITH_BIAS | WITH_RELU, BOTH),
  CASE ("bias-relu-half", BUILD_FORWARD, HALF, WITH_BIAS | WITH_RELU, BOTH),
  CASE ("bias-relu-bf16", BUILD_FORWARD, BF16, WITH_BIAS | WITH_RELU, A100),
  CASE ("bias-z-float", BUILD_FORWARD, FLOAT, WITH_BIAS | WITH_Z, BOTH),
  CASE ("bias-z-half", BUILD_FORWARD, HALF, WITH_BIAS | WITH_Z, BOTH),
  CASE ("bias-z-bf16", BUILD_FORWARD, BF16, WITH_BIAS | WITH_Z, A100),
  CASE ("fused-float", BUILD_FORWARD, FLOAT, FUSED, BOTH),
  CASE ("fused-half", BUILD_FORWARD, HALF, FUSED, BOTH),
  CASE ("fused-bf16", BUILD_FORWARD, BF16, FUSED, A100),
  CASE ("fused-float-nchw", BUILD_FORWARD, FLOAT, FUSED | NCHW, BOTH),
  CASE ("fused-half-nchw", BUILD_FORWARD, HALF, FUSED | NCHW, BOTH),
  CASE ("fused-groups", BUILD_FORWARD, HALF, FUSED, BOTH, .groups = 4),
  CASE ("fused-strided", BUILD_FORWARD, HALF, FUSED | STRIDED, BOTH),
  CASE ("fused-dilated", BUILD_FORWARD, HALF, FUSED | DILATED, BOTH),
  CASE ("fused-odd-channels", BUILD_FORWARD, HALF, FUSED, BOTH, .c = 3, .k = 36),
  CASE ("fused-reversed", BUILD_FORWARD, HALF, FUSED | REVERSED, BOTH),
  CASE ("bias-swapped", BUILD_FORWARD, HALF, WITH_BIAS | SWAPPED, BOTH),
  CASE ("bias-before-z", BUILD_FORWARD, HALF, FUSED | Z_LAST, NEITHER),
  CASE ("no-bias-relu", BUILD_FORWARD, HALF, WITH_RELU, NEITHER),
  CASE ("no-bias-z", BUILD_FORWARD, HALF, WITH_Z, NEITHER),
  CASE ("bias-multiplied", BUILD_FORWARD, HALF, WITH_BIAS | PRODUCT, NEITHER),
  CASE ("bias-float-in-half", BUILD_FORWARD, HALF, FUSED, NEITHER,
        TYPES (HALF, HALF, HALF, FLOAT, HALF, FLOAT)),
  CASE ("z-float-in-half", BUILD_FORWARD, HALF, FUSED, NEITHER, TYPES (HALF, HALF, HALF, HALF, FLOAT, FLOAT)),
  CASE ("y-float-in-half", BUILD_FORWARD, HALF, FUSED, NEITHER, TYPES (HALF, HALF, FLOAT, HALF, HALF, FLOAT)),
  CASE ("virtual-half", BUILD_FORWARD, HALF, FUSED, NEITHER, TYPES (HALF, HALF, HALF, HALF, HALF, HALF)),
  CASE ("stored-sum", BUILD_FORWARD, HALF, FUSED | STORED_SUM, NEITHER),
  CASE ("fused-alpha", BUILD_FORWARD, HALF, FUSED, NEITHER, .alpha = 2),
  CASE ("fused-beta", BUILD_FORWARD, HALF, FUSED, NEITHER, .beta = 1),
  CASE ("short-bias", BUILD_FORWARD, HALF, WITH_BIAS | SHORT_BIAS, NEITHER),
  CASE ("small-y", BUILD_FORWARD, HALF, WITH_BIAS | SMALL_Y, NEITHER),
  CASE ("not-connected", BUILD_FORWARD, HALF, WITH_BIAS | OTHER_INPUT, NEITHER),

  CASE ("kcrs-with-nhwc", BUILD_FORWARD, HALF, W_NCHW, BOTH),
  CASE ("nhwc-to-nchw", BUILD_FORWARD, HALF, Y_NCHW, BOTH),
  CASE ("padded-rows", BUILD_FORWARD, HALF, PADDED_X, BOTH),
  CASE ("half-alignment-2", BUILD_FORWARD, HALF, 0, BOTH, .alignment = 2),
  CASE ("half-alignment-8", BUILD_FORWARD, HALF, 0, BOTH, .alignment = 8),
  CASE ("fused-alignment-4", BUILD_FORWARD, HALF, FUSED, BOTH, .alignment = 4),
  CASE ("float-alignment-4", BUILD_FORWARD, FLOAT, 0, BOTH, .alignment = 4),
  CASE ("3-channels", BUILD_FORWARD, HALF, 0, BOTH, .c = 3),
  CASE ("36-channels-out", BUILD_FORWARD, HALF, WITH_BIAS, BOTH, .k = 36),
  CASE ("groups-half", BUILD_FORWARD, HALF, 0, BOTH, .groups = 4),
  CASE ("groups-float-nchw", BUILD_FORWARD, FLOAT, NCHW, BOTH, .groups = 4),
  CASE ("depthwise", BUILD_FORWARD, HALF, 0, BOTH, .groups = 16),
  CASE ("strided", BUILD_FORWARD, HALF, STRIDED, BOTH),
  CASE ("data-strided", BUILD_DATA, HALF, STRIDED, BOTH),
  CASE ("filter-strided", BUILD_FILTER, HALF, STRIDED, BOTH),
  CASE ("dilated", BUILD_FORWARD, HALF, DILATED, BOTH),
  CASE ("data-dilated", BUILD_DATA, HALF, DILATED, BOTH),
  CASE ("filter-dilated", BUILD_FILTER, HALF, DILATED, BOTH),
  CASE ("forward-beta", BUILD_FORWARD, HALF, 0, BOTH, .beta = 0.5f),
  CASE ("data-beta", BUILD_DATA, HALF, 0, BOTH, .beta = 1),
  CASE ("filter-beta", BUILD_FILTER, HALF, 0, BOTH, .beta = 1),
  CASE ("filter-alpha", BUILD_FILTER, HALF, 0, BOTH, .alpha = 0.5f),
  CASE ("double", BUILD_FORWARD, CUDNN_DATA_DOUBLE, 0, NEITHER),
  CASE ("sums-bf16", BUILD_FORWARD, HALF, 0, NEITHER, .compute = BF16),
  CASE ("sums-double", BUILD_FORWARD, HALF, 0, NEITHER, .compute = CUDNN_DATA_DOUBLE),

  CASE ("forward-half-to-float", BUILD_FORWARD, HALF, 0, NEITHER,
        TYPES (HALF, HALF, FLOAT, HALF, HALF, FLOAT)),
  CASE ("forward-float-to-half", BUILD_FORWARD, HALF, 0, NEITHER,
        TYPES (FLOAT, FLOAT, HALF, HALF, HALF, FLOAT)),
  CASE ("forward-float-weights", BUILD_FORWARD, HALF, 0, NEITHER,
        TYPES (HALF, FLOAT, HALF, HALF, HALF, FLOAT)),
  CASE ("forward-bf16-half", BUILD_FORWARD, HALF, 0, NEITHER, TYPES (BF16, HALF, BF16, HALF, HALF, FLOAT)),
  CASE ("data-half-to-float", BUILD_DATA, HALF, 0, NEITHER, TYPES (FLOAT, HALF, HALF, HALF, HALF, FLOAT)),
  CASE ("data-float-weights", BUILD_DATA, HALF, 0, NEITHER, TYPES (HALF, FLOAT, HALF, HALF, HALF, FLOAT)),
  CASE ("filter-half-to-float", BUILD_FILTER, HALF, 0, NEITHER, TYPES (HALF, FLOAT, HALF, HALF, HALF, FLOAT)),
  CASE ("filter-float-dy", BUILD_FILTER, HALF, 0, NEITHER, TYPES (HALF, HALF, FLOAT, HALF, HALF, FLOAT)),
};

static Descriptor
tensor_of (const GraphCase *c, int id)
{
  const cudnnDataType_t types[] = { [X] = c->x, [W] = c->w,     [Y] = c->y,       [BIAS] = c->bias,
                                    [Z] = c->z, [SUM] = c->sum, [ADDED] = c->sum, [BIASED] = c->sum };
  int64_t channels = c->c != 0 ? c->c : 16, k = c->k != 0 ? c->k : 16,
          groups = c->groups != 0 ? c->groups : 1;
  gboolean is_virtual = id >= SUM && !(id == SUM && c->flags & STORED_SUM);
  TensorInfo info = { .id = id, .nhwc = TRUE, .is_virtual = is_virtual, .alignment = c->alignment };
  int64_t h = c->flags & STRIDED ? 5 : 10, w = c->flags & STRIDED ? 6 : 12;
  const int64_t dims[][4] = { [X] = { 2, channels, 10, 12 },
                              [W] = { k, channels / groups, 3, 3 },
                              [BIAS] = { 1, c->flags & SHORT_BIAS ? k / 2 : k, 1, 1 },
                              [Y] = { 2, k, c->flags & SMALL_Y ? h - 1 : h, w } };
  const int64_t *of =
      id == X || id == W || id == BIAS || (id == Y && !(c->flags & FUSED)) ? dims[id] : dims[Y];
  const int64_t sum[4] = { 2, k, h, w };

  if (c->has_types)
    info.type = types[id];
  else
    info.type = id >= SUM ? FLOAT : c->type;
  if (id > Y && id != BIAS)
    of = sum;
  for (int i = 0; i < 4; i++)
    info.dims[i] = of[i];
  if ((id == X && c->flags & X_NCHW) || (id == W && c->flags & W_NCHW) || (id > W && c->flags & Y_NCHW))
    info.nhwc = FALSE;
  if (id == X && c->flags & PADDED_X)
    {
      const int64_t strides[4] = { 10 * 13 * channels, 1, 13 * channels, channels };
      return build_tensor_of (X, info.type, 4, info.dims, 4, strides, 16, FALSE);
    }
  return build_tensor (&info);
}

/* Appends what adds tensor @id to @last, and gives the op's result; it is Y if nothing follows. */
static Descriptor
add_sum (const GraphCase *c, int id, Descriptor last, gboolean is_last, Descriptor *ops, int *n)
{
  Descriptor addend = tensor_of (c, id);
  Descriptor result = tensor_of (c, is_last ? Y : id == Z ? ADDED : BIASED);
  Descriptor mode = build_pointwise (c->flags & PRODUCT ? CUDNN_POINTWISE_MUL : CUDNN_POINTWISE_ADD);

  ops[(*n)++] = c->flags & SWAPPED ? build_pointwise_op (mode, addend, last, result)
                                   : build_pointwise_op (mode, last, addend, result);
  return result;
}

static Descriptor
graph_of (const GraphCase *c)
{
  WindowInfo window = { { 1, 1 }, { 1, 1 }, { 1, 1 }, c->compute };
  Descriptor ops[4], last;
  gboolean is_fused = (c->flags & FUSED) != 0;
  int n = 0;

  if (c->flags & STRIDED)
    window.stride[0] = window.stride[1] = 2;
  if (c->flags & DILATED)
    window.pad[0] = window.pad[1] = window.dilation[0] = window.dilation[1] = 2;
  last = tensor_of (c, is_fused ? SUM : Y);
  ops[n++] = build_convolution (c->direction, tensor_of (c, X), tensor_of (c, W), last,
                                build_window (&window), c->alpha != 0 ? c->alpha : 1, c->beta);
  if (c->flags & OTHER_INPUT)
    last = tensor_of (c, ADDED);
  int order[2] = { c->flags & Z_LAST ? BIAS : Z, c->flags & Z_LAST ? Z : BIAS };
  for (int i = 0; i < 2; i++)
    if (c->flags & (order[i] == Z ? WITH_Z : WITH_BIAS))
      {
        gboolean more = i == 0 && c->flags & (order[1] == Z ? WITH_Z : WITH_BIAS);
        last = add_sum (c, order[i], last, !more && !(c->flags & WITH_RELU), ops, &n);
      }
  if (c->flags & WITH_RELU)
    ops[n++] = build_pointwise_op (build_pointwise (CUDNN_POINTWISE_RELU_FWD), last, NULL, tensor_of (c, Y));
  for (int i = 0; i < n / 2 && c->flags & REVERSED; i++)
    {
      Descriptor swapped = ops[i];
      ops[i] = ops[n - 1 - i];
      ops[n - 1 - i] = swapped;
    }
  return build_graph (n, ops);
}

/* Engines that need no compiler, of two modes; @generic: is the one of index 0 among them? */
static int
count_engines (Descriptor graph, Descriptor profile, gboolean *generic)
{
  static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
  int n = 0;

  *generic = FALSE;
  for (gsize m = 0; m < G_N_ELEMENTS (modes); m++)
    {
      g_autoptr (GArray) proposals = build_proposals (graph, profile, modes[m]);
      for (guint i = 0; i < proposals->len; i++)
        {
          const Proposal *p = &g_array_index (proposals, Proposal, i);
          if (p->engine == 0)
            *generic = TRUE;
          else if (!(p->behavior_notes & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION))
            n++;
        }
    }
  return n;
}

static void
test_graph (gconstpointer data)
{
  const GraphCase *c = data;
  const char *const profiles[2] = { build_t4, build_a100 };

  cudnn_case_begin ();
  Descriptor graph = graph_of (c);
  g_assert_cmpint (build_status, ==, 0);
  for (int i = 0; i < 2; i++)
    {
      gboolean generic;
      int n = count_engines (graph, build_profile (profiles[i]), &generic);
      g_assert_cmpint (build_status, ==, 0);
      g_assert_cmpint (n > 0, ==, c->has_engines[i]);
      g_assert_cmpint (generic, ==, c->has_engines[i]);
    }
  cudnn_case_end (FALSE);
}

/* ---- graphs that are refused, or should be ---- */

static const WindowInfo plain_window = { { 1, 1 }, { 1, 1 }, { 1, 1 }, FLOAT };

static Descriptor
square (int64_t id, gboolean is_virtual)
{
  return build_tensor (&(TensorInfo){ .id = id,
                                      .type = is_virtual ? FLOAT : HALF,
                                      .dims = { 2, 16, 10, 12 },
                                      .nhwc = TRUE,
                                      .is_virtual = is_virtual });
}

static Descriptor
weights (int64_t id)
{
  return build_tensor (&(TensorInfo){ .id = id, .type = HALF, .dims = { 16, 16, 3, 3 }, .nhwc = TRUE });
}

static void
test_refused (void)
{
  cudnn_case_begin ();
  Descriptor none = build_graph (0, &(Descriptor){ NULL });
  g_assert_nonnull (none);
  g_assert_cmpint (build_status, ==, 2000);

  build_status = CUDNN_STATUS_SUCCESS;
  Descriptor op = build_convolution (BUILD_FORWARD, square (X, FALSE), weights (W), square (Y, FALSE),
                                     build_window (&plain_window), 1, 0);
  g_assert_cmpint (build_status, ==, 0);
  build_graph (2, (Descriptor[]){ op, op });
  g_assert_cmpint (build_status, ==, 2000);

  /* z is y by name: what is written is read before. */
  build_status = CUDNN_STATUS_SUCCESS;
  Descriptor sum = square (SUM, TRUE), added = square (ADDED, TRUE),
             mode = build_pointwise (CUDNN_POINTWISE_ADD);
  Descriptor bias =
      build_tensor (&(TensorInfo){ .id = BIAS, .type = HALF, .dims = { 1, 16, 1, 1 }, .nhwc = TRUE });
  Descriptor circle[] = { build_convolution (BUILD_FORWARD, square (X, FALSE), weights (W), sum,
                                             build_window (&plain_window), 1, 0),
                          build_pointwise_op (mode, sum, square (Y, FALSE), added),
                          build_pointwise_op (mode, added, bias, square (Y, FALSE)) };
  g_assert_cmpint (build_status, ==, 0);
  build_graph (3, circle);
  g_assert_cmpint (build_status, ==, 2000);
  cudnn_case_end (FALSE);
}

static void
test_one_id_twice (void)
{
  cudnn_case_begin ();
  Descriptor op = build_convolution (BUILD_FORWARD, square (X, FALSE), weights (X), square (Y, FALSE),
                                     build_window (&plain_window), 1, 0);
  build_graph (1, &op);
  g_assert_cmpint (build_status, ==, 0);
  cudnn_case_end (TRUE);
}

static void
test_read_and_written (void)
{
  cudnn_case_begin ();
  Descriptor x = square (X, FALSE);
  Descriptor op = build_convolution (BUILD_FORWARD, x, weights (W), x, build_window (&plain_window), 1, 0);
  build_graph (1, &op);
  g_assert_cmpint (build_status, ==, 0);
  cudnn_case_end (TRUE);
}

static void
test_without_engines (void)
{
  gboolean generic;
  cudnn_case_begin ();
  Descriptor profile = build_profile (build_t4), window = build_window (&plain_window);
  Descriptor alone = build_pointwise_op (build_pointwise (CUDNN_POINTWISE_ADD), square (X, FALSE),
                                         square (Z, FALSE), square (Y, FALSE));
  g_assert_cmpint (count_engines (build_graph (1, &alone), profile, &generic), ==, 0);
  Descriptor two[] = {
    build_convolution (BUILD_FORWARD, square (1, FALSE), weights (2), square (3, FALSE), window, 1, 0),
    build_convolution (BUILD_FORWARD, square (4, FALSE), weights (5), square (6, FALSE), window, 1, 0)
  };
  g_assert_cmpint (count_engines (build_graph (2, two), profile, &generic), ==, 0);
  g_assert_cmpint (build_status, ==, 0);
  cudnn_case_end (FALSE);
}

void
cudnn_graph_cases_add (void)
{
  CUDNN_CASES_ADD ("graph", graphs, test_graph);
  g_test_add_func ("/cudnn/graph/refused", test_refused);
  g_test_add_func ("/cudnn/graph/one-id-twice", test_one_id_twice);
  g_test_add_func ("/cudnn/graph/read-and-written", test_read_and_written);
  g_test_add_func ("/cudnn/graph/without-engines", test_without_engines);
}
