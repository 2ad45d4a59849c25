#include "config.h"

#include "tests/gpu/cudnn-setup.h"

#include "kernels/half.h"

#include <string.h>

#define UNIT \
  {          \
    1, 1     \
  }
const Problem setup_problems[] = {
  { "3x3", BUILD_FORWARD, 2, 16, 9, 11, 24, { 3, 3 }, UNIT, UNIT, UNIT, 1, .alpha = 1 },
  { "3x3-fused",
    BUILD_FORWARD,
    2,
    8,
    9,
    11,
    16,
    { 3, 3 },
    UNIT,
    UNIT,
    UNIT,
    1,
    TRUE,
    TRUE,
    TRUE,
    .alpha = 1 },
  { "1x1-bias", BUILD_FORWARD, 3, 40, 7, 5, 9, UNIT, UNIT, { 0, 0 }, UNIT, 1, TRUE, .alpha = 1 },
  { "1x1-bias-relu",
    BUILD_FORWARD,
    1,
    5,
    7,
    5,
    9,
    UNIT,
    UNIT,
    { 0, 0 },
    UNIT,
    1,
    TRUE,
    FALSE,
    TRUE,
    .alpha = 1 },
  { "7x7-stride", BUILD_FORWARD, 2, 3, 21, 18, 8, { 7, 7 }, { 2, 2 }, { 3, 3 }, UNIT, 1, .alpha = 1 },
  { "uneven", BUILD_FORWARD, 2, 4, 12, 9, 6, { 3, 2 }, { 2, 1 }, { 1, 0 }, { 1, 2 }, 1, .alpha = 1 },
  { "groups", BUILD_FORWARD, 2, 12, 6, 8, 18, { 3, 3 }, UNIT, UNIT, UNIT, 3, TRUE, .alpha = 1 },
  { "depthwise", BUILD_FORWARD, 2, 6, 6, 8, 6, { 3, 3 }, UNIT, { 2, 2 }, { 2, 2 }, 6, .alpha = 1 },
  { "alpha-beta", BUILD_FORWARD, 1, 6, 6, 8, 6, { 3, 3 }, UNIT, UNIT, UNIT, 1, .alpha = 0.5f, .beta = 2 },
  { "data-3x3", BUILD_DATA, 2, 16, 9, 11, 24, { 3, 3 }, UNIT, UNIT, UNIT, 1, .alpha = 1 },
  { "data-stride", BUILD_DATA, 2, 8, 10, 11, 12, { 3, 3 }, { 2, 2 }, UNIT, UNIT, 1, .alpha = 1, .beta = 1 },
  { "data-1x1-stride", BUILD_DATA, 1, 8, 9, 7, 12, UNIT, { 2, 2 }, { 0, 0 }, UNIT, 1, .alpha = 1 },
  { "data-uneven-groups", BUILD_DATA, 2, 4, 12, 9, 6, { 3, 2 }, { 2, 1 }, { 1, 0 }, { 1, 2 }, 2, .alpha = 1 },
  { "filter-3x3", BUILD_FILTER, 3, 16, 9, 11, 24, { 3, 3 }, UNIT, UNIT, UNIT, 1, .alpha = 1 },
  { "filter-stride",
    BUILD_FILTER,
    2,
    3,
    21,
    18,
    8,
    { 7, 7 },
    { 2, 2 },
    { 3, 3 },
    UNIT,
    1,
    .alpha = 1,
    .beta = 1 },
  { "filter-uneven-groups",
    BUILD_FILTER,
    2,
    4,
    12,
    9,
    6,
    { 3, 2 },
    { 2, 1 },
    { 1, 0 },
    { 1, 2 },
    2,
    .alpha = 2 },
  { .name = NULL },
};

const Problem *
setup_problem (const char *name)
{
  const Problem *p = setup_problems;
  while (strcmp (p->name, name) != 0)
    p++;
  return p;
}

static const cudnnDataType_t library_types[] = {
  [RN_F32] = CUDNN_DATA_FLOAT, [RN_F16] = CUDNN_DATA_HALF, [RN_BF16] = CUDNN_DATA_BFLOAT16
};

static float
value_at (int tensor, int64_t i)
{
  guint32 bits = (guint32) (i * 8 + tensor + 1) * 2654435761u;
  bits ^= bits >> 15;
  bits *= 2246822519u;
  return (float) (bits >> 8) * 0x1p-23f - 1;
}

static Descriptor
tensor (const Setup *s, int id, gboolean is_virtual)
{
  const Problem *p = s->p;
  TensorInfo info = { .id = id,
                      .type = is_virtual ? CUDNN_DATA_FLOAT : library_types[s->dtype],
                      .dims = { p->n, p->k, s->oh, s->ow },
                      .nhwc = s->nhwc,
                      .is_virtual = is_virtual };
  if (id == X)
    memcpy (info.dims, (int64_t[]){ p->n, p->c, p->h, p->w }, sizeof info.dims);
  if (id == W)
    memcpy (info.dims, (int64_t[]){ p->k, p->c / p->groups, p->kernel[0], p->kernel[1] }, sizeof info.dims);
  if (id == BIAS)
    memcpy (info.dims, (int64_t[]){ 1, p->k, 1, 1 }, sizeof info.dims);
  return build_tensor (&info);
}

static Descriptor
graph (const Setup *s)
{
  const Problem *p = s->p;
  WindowInfo info = { .compute = CUDNN_DATA_FLOAT };
  Descriptor ops[4], last;
  int n = 0;

  for (int i = 0; i < 2; i++)
    {
      info.pad[i] = p->pad[i];
      info.stride[i] = p->stride[i];
      info.dilation[i] = p->dilation[i];
    }
  last = p->bias ? tensor (s, SUM, TRUE) : tensor (s, Y, FALSE);
  ops[n++] = build_convolution (p->direction, tensor (s, X, FALSE), tensor (s, W, FALSE), last,
                                build_window (&info), p->alpha, p->beta);
  if (p->residual)
    {
      Descriptor added = tensor (s, ADDED, TRUE);
      ops[n++] =
          build_pointwise_op (build_pointwise (CUDNN_POINTWISE_ADD), last, tensor (s, Z, FALSE), added);
      last = added;
    }
  if (p->bias)
    {
      Descriptor biased = p->relu ? tensor (s, BIASED, TRUE) : tensor (s, Y, FALSE);
      ops[n++] =
          build_pointwise_op (build_pointwise (CUDNN_POINTWISE_ADD), last, tensor (s, BIAS, FALSE), biased);
      last = biased;
    }
  if (p->relu)
    ops[n++] =
        build_pointwise_op (build_pointwise (CUDNN_POINTWISE_RELU_FWD), last, NULL, tensor (s, Y, FALSE));
  return build_graph (n, ops);
}

/* Weights KRSC in memory where activations are NHWC. */
static int64_t
weights_at (const Setup *s, int64_t i)
{
  const Problem *p = s->p;
  int64_t c = p->c / p->groups, area = p->kernel[0] * p->kernel[1];
  return s->nhwc ? i / (c * area) * (c * area) + i % area * c + i / area % c : i;
}

void
setup_upload (Setup *s, int id)
{
  gsize size = rn_dtype_size (s->dtype), bytes = (gsize) s->n_elements[id] * size;
  void *pinned = pinned_memory (bytes);

  for (int64_t i = 0; i < s->n_elements[id]; i++)
    rn_float_set (s->dtype, pinned, id == W ? weights_at (s, i) : i, s->host[id][i]);
  OK (cudaMemcpyAsync (s->device[id], pinned, bytes, cudaMemcpyHostToDevice, s->stream));
  OK (cudaStreamSynchronize (s->stream));
  OK (cudaFreeHost (pinned));
}

float *
setup_download (Setup *s, int id)
{
  gsize size = rn_dtype_size (s->dtype), bytes = (gsize) s->n_elements[id] * size;
  void *pinned = pinned_memory (bytes);
  float *values = g_new (float, s->n_elements[id]);

  OK (cudaMemcpyAsync (pinned, s->device[id], bytes, cudaMemcpyDeviceToHost, s->stream));
  OK (cudaStreamSynchronize (s->stream));
  for (int64_t i = 0; i < s->n_elements[id]; i++)
    values[i] = rn_float_get (s->dtype, pinned, id == W ? weights_at (s, i) : i);
  OK (cudaFreeHost (pinned));
  return values;
}

static gboolean
has_tensor (const Problem *p, int id)
{
  return id <= Y || (id == BIAS && p->bias) || (id == Z && p->residual);
}

static int64_t
output_size (const Problem *p, int axis, int64_t source)
{
  return (source + 2 * p->pad[axis] - p->dilation[axis] * (p->kernel[axis] - 1) - 1) / p->stride[axis] + 1;
}

void
setup_init (Setup *s, const Problem *p, RnDType dtype, gboolean nhwc)
{
  const SimConfig config = {
    .model = "a100", .n_devices = 1, .driver_version = CUDART_VERSION, .schedule = SIM_LATE
  };
  int32_t ordinal = 0;

  sim_reset (&config);
  sim_expect_faults (true);
  sim_cudnn_forget ();
  build_begin ();
  *s = (Setup){ .p = p, .dtype = dtype, .nhwc = nhwc };
  s->oh = output_size (p, 0, p->h);
  s->ow = output_size (p, 1, p->w);
  s->n_elements[X] = p->n * p->c * p->h * p->w;
  s->n_elements[W] = p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1];
  s->n_elements[Y] = s->n_elements[Z] = p->n * p->k * s->oh * s->ow;
  s->n_elements[BIAS] = p->k;
  s->stream = new_stream ();
  for (int id = X; id <= Z; id++)
    if (has_tensor (p, id))
      {
        s->host[id] = g_new (float, s->n_elements[id]);
        for (int64_t i = 0; i < s->n_elements[id]; i++)
          {
            rn_float_set (dtype, &s->host[id][i], 0, value_at (id, i));
            s->host[id][i] = rn_float_get (dtype, &s->host[id][i], 0);
          }
        s->device[id] = device_memory ((gsize) s->n_elements[id] * rn_dtype_size (dtype));
        setup_upload (s, id);
      }
  s->workspace_bytes = 1 << 20;
  s->workspace = (guint8 *) device_memory (s->workspace_bytes);
  CUDNN_OK (cudnnCreate (&s->handle));
  CUDNN_OK (cudnnSetStream (s->handle, s->stream));
  s->profile = build_new (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  build_set (s->profile, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &ordinal);
  build_finalize (s->profile);
  s->graph = graph (s);
  CUDNN_OK (build_status);
}

void
setup_clear (Setup *s)
{
  for (int id = X; id <= Z; id++)
    {
      g_free (s->host[id]);
      if (s->device[id] != NULL)
        OK (cudaFree (s->device[id]));
    }
  OK (cudaFree (s->workspace));
  OK (cudaStreamDestroy (s->stream));
  CUDNN_OK (cudnnDestroy (s->handle));
  build_end ();
  g_assert_cmpuint (sim_cudnn_n_live (), ==, 0);
  g_assert_cmpuint (sim_n_live (), ==, 0);
}

int
setup_output (const Problem *p)
{
  return p->direction == BUILD_FORWARD ? Y : p->direction == BUILD_DATA ? X : W;
}

Descriptor
setup_pack (const Setup *s)
{
  int64_t ids[SUM];
  void *pointers[SUM];
  int n = 0;

  for (int id = X; id <= Z; id++)
    if (s->device[id] != NULL)
      {
        ids[n] = id;
        pointers[n++] = s->device[id];
      }
  return build_pack (n, ids, pointers, s->workspace);
}

Descriptor
setup_config (const Setup *s, int64_t engine, int nth)
{
  static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };

  for (int m = 0; m < 2; m++)
    {
      g_autoptr (GArray) proposals = build_proposals (s->graph, s->profile, modes[m]);
      int n = nth;
      for (guint i = 0; i < proposals->len; i++)
        if (g_array_index (proposals, Proposal, i).engine == engine && n-- == 0)
          return g_array_index (proposals, Proposal, i).config;
    }
  return NULL;
}

float *
setup_execute_plan (Setup *s, Descriptor plan)
{
  setup_upload (s, setup_output (s->p));
  CUDNN_OK (build_status);
  CUDNN_OK (cudnnBackendExecute (s->handle, plan, setup_pack (s)));
  OK (cudaStreamSynchronize (s->stream));
  NO_FAULT ();
  return setup_download (s, setup_output (s->p));
}

float *
setup_execute (Setup *s, int64_t engine, int nth)
{
  Descriptor config = setup_config (s, engine, nth);
  g_assert_nonnull (config);
  return setup_execute_plan (s, build_plan (config));
}

void
assert_same (const float *a, const float *b, int64_t n, gboolean same)
{
  g_assert_cmpint (memcmp (a, b, (gsize) n * sizeof (float)) == 0, ==, same);
}
