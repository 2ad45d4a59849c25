#include "config.h"

#include "tests/gpu/cudnn-build.h"

#include <stdbool.h>
#include <string.h>

#define FWD(name) CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_##name
#define DATA(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_##name
#define FILTER(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_##name
#define PW(name) CUDNN_ATTR_OPERATION_POINTWISE_##name

#define COMMON                                                                                            \
  "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"      \
  "\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxRegistersPerSM\":65536,\"maxThreadsPerBlock\":" \
  "1024,"                                                                                                 \
  "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"cudaDeviceId\":0,\"driverVer\":13000,"

const char build_t4[] =
    "{" COMMON "\"multiProcessorCount\":40,\"maxSharedMemoryPerBlockOptin\":65536,"
    "\"reservedSharedMemoryPerBlock\":0,\"maxCtasPerSM\":16,\"maxThreadsPerSM\":1024,"
    "\"totalGlobalMem\":15835660288,\"smClockRateKHz\":1590000,\"memClockRateKHz\":5001000,"
    "\"l2CacheSize\":4194304,\"deviceVer\":750,\"deviceName\":\"Tesla T4\"}";
const char build_a100[] =
    "{" COMMON "\"multiProcessorCount\":108,\"maxSharedMemoryPerBlockOptin\":166912,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxCtasPerSM\":32,\"maxThreadsPerSM\":2048,"
    "\"totalGlobalMem\":42949672960,\"smClockRateKHz\":1410000,\"memClockRateKHz\":1215000,"
    "\"l2CacheSize\":41943040,\"deviceVer\":800,\"deviceName\":\"NVIDIA A100-SXM4-40GB\"}";

cudnnStatus_t build_status;
int build_skip = -1;
static GPtrArray *made;

static void
destroy (gpointer descriptor)
{
  g_assert_cmpint (cudnnBackendDestroyDescriptor (descriptor), ==, CUDNN_STATUS_SUCCESS);
}

void
build_begin (void)
{
  g_assert_null (made);
  made = g_ptr_array_new_with_free_func (destroy);
  build_status = CUDNN_STATUS_SUCCESS;
  build_skip = -1;
}

void
build_end (void)
{
  g_clear_pointer (&made, g_ptr_array_unref);
}

static cudnnStatus_t
keep (cudnnStatus_t status)
{
  if (status != CUDNN_STATUS_SUCCESS)
    build_status = status;
  return status;
}

Descriptor
build_new (cudnnBackendDescriptorType_t kind)
{
  Descriptor d = NULL;
  g_assert_cmpint (cudnnBackendCreateDescriptor (kind, &d), ==, CUDNN_STATUS_SUCCESS);
  g_assert_nonnull (d);
  g_ptr_array_add (made, d);
  return d;
}

cudnnStatus_t
build_set (Descriptor d, int name, cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
  if (name == build_skip)
    return CUDNN_STATUS_SUCCESS;
  return keep (cudnnBackendSetAttribute (d, (cudnnBackendAttributeName_t) name, type, n, values));
}

cudnnStatus_t
build_set_int64 (Descriptor d, int name, int64_t value)
{
  return build_set (d, name, CUDNN_TYPE_INT64, 1, &value);
}

cudnnStatus_t
build_set_enum (Descriptor d, int name, cudnnBackendAttributeType_t type, int value)
{
  return build_set (d, name, type, 1, &value);
}

cudnnStatus_t
build_set_float (Descriptor d, int name, float value)
{
  return build_set (d, name, CUDNN_TYPE_FLOAT, 1, &value);
}

cudnnStatus_t
build_set_descriptor (Descriptor d, int name, Descriptor value)
{
  return build_set (d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

cudnnStatus_t
build_finalize (Descriptor d)
{
  return keep (cudnnBackendFinalize (d));
}

Descriptor
build_profile (const char *json)
{
  Descriptor d = build_new (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  build_set (d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t) strlen (json), json);
  build_finalize (d);
  return d;
}

void
build_set_tensor (Descriptor d, int64_t id, cudnnDataType_t type, int n_dims, const int64_t *dims,
                  int n_strides, const int64_t *strides, int64_t alignment)
{
  build_set_int64 (d, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  build_set_enum (d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  build_set (d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n_dims, dims);
  build_set (d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n_strides, strides);
  build_set_int64 (d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
}

Descriptor
build_tensor_of (int64_t id, cudnnDataType_t type, int n_dims, const int64_t *dims, int n_strides,
                 const int64_t *strides, int64_t alignment, gboolean is_virtual)
{
  Descriptor d = build_new (CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  bool flag = is_virtual;
  build_set_tensor (d, id, type, n_dims, dims, n_strides, strides, alignment);
  if (is_virtual)
    build_set (d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &flag);
  build_finalize (d);
  return d;
}

Descriptor
build_tensor (const TensorInfo *info)
{
  const int64_t c = info->dims[1], h = info->dims[2], w = info->dims[3];
  const int64_t nhwc[4] = { c * h * w, 1, w * c, c }, nchw[4] = { c * h * w, h * w, w, 1 };
  return build_tensor_of (info->id, info->type, 4, info->dims, 4, info->nhwc ? nhwc : nchw,
                          info->alignment != 0 ? info->alignment : 16, info->is_virtual);
}

Descriptor
build_window (const WindowInfo *info)
{
  Descriptor d = build_new (CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  build_set_int64 (d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  build_set_enum (d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, info->compute);
  build_set_enum (d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  build_set (d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, info->pad);
  build_set (d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, info->pad);
  build_set (d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, info->stride);
  build_set (d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, info->dilation);
  build_finalize (d);
  return d;
}

Descriptor
build_convolution (Direction direction, Descriptor x, Descriptor w, Descriptor y, Descriptor window,
                   float alpha, float beta)
{
  static const struct
  {
    cudnnBackendDescriptorType_t kind;
    int x, w, y, window, alpha, beta;
  } names[] = {
    [BUILD_FORWARD] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, FWD (X), FWD (W), FWD (Y),
                        FWD (CONV_DESC), FWD (ALPHA), FWD (BETA) },
    [BUILD_DATA] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, DATA (DX), DATA (W),
                     DATA (DY), DATA (CONV_DESC), DATA (ALPHA), DATA (BETA) },
    [BUILD_FILTER] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, FILTER (X),
                       FILTER (DW), FILTER (DY), FILTER (CONV_DESC), FILTER (ALPHA), FILTER (BETA) },
  };
  Descriptor d = build_new (names[direction].kind);
  build_set_descriptor (d, names[direction].x, x);
  build_set_descriptor (d, names[direction].w, w);
  build_set_descriptor (d, names[direction].y, y);
  build_set_descriptor (d, names[direction].window, window);
  build_set_float (d, names[direction].alpha, alpha);
  build_set_float (d, names[direction].beta, beta);
  build_finalize (d);
  return d;
}

Descriptor
build_pointwise (cudnnPointwiseMode_t mode)
{
  Descriptor d = build_new (CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  build_set_enum (d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  build_set_enum (d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  build_finalize (d);
  return d;
}

Descriptor
build_pointwise_op (Descriptor pointwise, Descriptor x, Descriptor b, Descriptor y)
{
  Descriptor d = build_new (CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  build_set_descriptor (d, PW (PW_DESCRIPTOR), pointwise);
  build_set_descriptor (d, PW (XDESC), x);
  if (b != NULL)
    build_set_descriptor (d, PW (BDESC), b);
  build_set_descriptor (d, PW (YDESC), y);
  build_finalize (d);
  return d;
}

Descriptor
build_graph (int n, const Descriptor *ops)
{
  Descriptor d = build_new (CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  build_set (d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, ops);
  build_finalize (d);
  return d;
}

static unsigned
get_notes (Descriptor engine, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type)
{
  int notes[32];
  int64_t n = 0;
  unsigned all = 0;
  g_assert_cmpint (cudnnBackendGetAttribute (engine, name, type, 32, &n, notes), ==, CUDNN_STATUS_SUCCESS);
  for (int64_t i = 0; i < n; i++)
    all |= 1u << notes[i];
  return all;
}

GArray *
build_proposals (Descriptor graph, Descriptor profile, cudnnBackendHeurMode_t mode)
{
  GArray *proposals = g_array_new (FALSE, FALSE, sizeof (Proposal));
  Descriptor heuristics = build_new (CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  int64_t n_most = 0, n = 0;

  build_set_descriptor (heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  build_set_enum (heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  build_set_descriptor (heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, profile);
  build_finalize (heuristics);
  if (build_status != CUDNN_STATUS_SUCCESS)
    return proposals;
  g_assert_cmpint (cudnnBackendGetAttribute (heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n_most, NULL),
                   ==, CUDNN_STATUS_SUCCESS);
  g_autofree Descriptor *configs = g_new (Descriptor, n_most);
  for (int64_t i = 0; i < n_most; i++)
    configs[i] = build_new (CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  g_assert_cmpint (cudnnBackendGetAttribute (heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, n_most, &n, configs),
                   ==, CUDNN_STATUS_SUCCESS);
  for (int64_t i = 0; i < n; i++)
    {
      Proposal p = { .config = configs[i] };
      Descriptor engine = build_new (CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      int64_t one = 0;
      g_assert_cmpint (cudnnBackendGetAttribute (p.config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine),
                       ==, CUDNN_STATUS_SUCCESS);
      cudnnBackendGetAttribute (engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &p.engine);
      cudnnBackendGetAttribute (p.config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                &p.workspace);
      p.numerical_notes = get_notes (engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
      p.behavior_notes = get_notes (engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
      g_array_append_val (proposals, p);
    }
  return proposals;
}

Descriptor
build_plan (Descriptor config)
{
  Descriptor d = build_new (CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  build_set_descriptor (d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  build_finalize (d);
  return d;
}

Descriptor
build_plan_from_json (Descriptor profile, const char *json)
{
  Descriptor d = build_new (CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  build_set_descriptor (d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, profile);
  build_set (d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t) strlen (json),
             json);
  build_finalize (d);
  return d;
}

char *
build_plan_json (Descriptor plan)
{
  int64_t n = 0;
  g_assert_cmpint (cudnnBackendGetAttribute (plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                             CUDNN_TYPE_CHAR, 0, &n, NULL),
                   ==, CUDNN_STATUS_SUCCESS);
  char *json = g_malloc0 ((gsize) n + 1);
  g_assert_cmpint (cudnnBackendGetAttribute (plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                             CUDNN_TYPE_CHAR, n, &n, json),
                   ==, CUDNN_STATUS_SUCCESS);
  return json;
}

Descriptor
build_pack (int n, const int64_t *ids, void *const *pointers, void *workspace)
{
  Descriptor d = build_new (CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  build_set (d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
  build_set (d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
  build_set (d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  build_finalize (d);
  return d;
}
