#include "config.h"

#include "tests/gpu/cudnn-build.h"
#include "tests/gpu/cudnn-cases.h"

#include <stdbool.h>
#include <string.h>

#define B(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define A(name) CUDNN_ATTR_##name
#define T(name) CUDNN_TYPE_##name
#define HALF CUDNN_DATA_HALF

static const CudnnCaseHooks *hooks;

void
cudnn_case_begin (void)
{
  hooks->begin ();
  build_begin ();
}

void
cudnn_case_end (gboolean is_lax)
{
  build_end ();
  hooks->end (is_lax);
}

void
cudnn_case_add (const char *group, const char *name, gconstpointer data, GTestDataFunc test)
{
  g_autofree char *path = g_strdup_printf ("/cudnn/%s/%s", group, name);
  g_test_add_data_func (path, data, test);
}

/* ---- attributes ---- */

typedef struct
{
  int kind, name, type;
  /* Of one value of zeros (descriptors: NULL), of two, of none, of a null pointer, of another type. */
  int set[5];
  int get; /* before it is finalized */
} AttributeCase;

static const AttributeCase attributes[] = {
  { B (TENSOR), A (TENSOR_UNIQUE_ID), T (INT64), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (TENSOR), A (TENSOR_DATA_TYPE), T (DATA_TYPE), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (TENSOR), A (TENSOR_DIMENSIONS), T (INT64), { 0, 0, 2000, 2000, 2010 }, 1001 },
  { B (TENSOR), A (TENSOR_STRIDES), T (INT64), { 0, 0, 2000, 2000, 2010 }, 1001 },
  { B (TENSOR), A (TENSOR_BYTE_ALIGNMENT), T (INT64), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (TENSOR), A (TENSOR_IS_VIRTUAL), T (BOOLEAN), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (TENSOR), A (CONVOLUTION_DILATIONS), T (INT64), { 2000, 2000, 2000, 2000, 2000 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_SPATIAL_DIMS), T (INT64), { 0, 2000, 2000, 2000, 2000 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_COMP_TYPE), T (DATA_TYPE), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_CONV_MODE), T (CONVOLUTION_MODE), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_PRE_PADDINGS), T (INT64), { 0, 0, 2000, 2000, 2010 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_POST_PADDINGS), T (INT64), { 0, 0, 2000, 2000, 2010 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_FILTER_STRIDES), T (INT64), { 0, 0, 2000, 2000, 2010 }, 1001 },
  { B (CONVOLUTION), A (CONVOLUTION_DILATIONS), T (INT64), { 0, 0, 2000, 2000, 2010 }, 1001 },
  { B (POINTWISE), A (POINTWISE_MODE), T (POINTWISE_MODE), { 0, 2000, 2000, 2000, 2000 }, 1001 },
  { B (POINTWISE), A (POINTWISE_MATH_PREC), T (DATA_TYPE), { 0, 2000, 2000, 2000, 2000 }, 1001 },
  { B (POINTWISE), A (POINTWISE_RELU_UPPER_CLIP), T (DOUBLE), { 0, 2000, 2000, 2000, 2000 }, 1001 },
  { B (OPERATION_CONVOLUTION_FORWARD),
    A (OPERATION_CONVOLUTION_FORWARD_X),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_FORWARD),
    A (OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_FORWARD),
    A (OPERATION_CONVOLUTION_FORWARD_ALPHA),
    T (FLOAT),
    { 0, 2000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_FORWARD),
    A (OPERATION_CONVOLUTION_FORWARD_BETA),
    T (DOUBLE),
    { 0, 2000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_DATA),
    A (OPERATION_CONVOLUTION_BWD_DATA_DX),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_DATA),
    A (OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_DATA),
    A (OPERATION_CONVOLUTION_BWD_DATA_ALPHA),
    T (FLOAT),
    { 0, 2000, 2000, 2000, 3000 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_FILTER),
    A (OPERATION_CONVOLUTION_BWD_FILTER_X),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 3000, 2000, 2010 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_FILTER),
    A (OPERATION_CONVOLUTION_BWD_FILTER_DW),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_FILTER),
    A (OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_CONVOLUTION_BACKWARD_FILTER),
    A (OPERATION_CONVOLUTION_BWD_FILTER_ALPHA),
    T (FLOAT),
    { 0, 2000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_POINTWISE),
    A (OPERATION_POINTWISE_PW_DESCRIPTOR),
    T (BACKEND_DESCRIPTOR),
    { 0, 2000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_POINTWISE),
    A (OPERATION_POINTWISE_XDESC),
    T (BACKEND_DESCRIPTOR),
    { 0, 2000, 2000, 2000, 2000 },
    1001 },
  { B (OPERATION_POINTWISE), A (OPERATION_POINTWISE_ALPHA1), T (FLOAT), { 0, 2000, 2000, 2000, 2000 }, 1001 },
  { B (OPERATIONGRAPH), A (OPERATIONGRAPH_OPS), T (BACKEND_DESCRIPTOR), { 2002, 2002, 0, 2000, 2010 }, 1001 },
  { B (OPERATIONGRAPH),
    A (OPERATIONGRAPH_ENGINE_GLOBAL_COUNT),
    T (INT64),
    { 2000, 2000, 2000, 2000, 2000 },
    1001 },
  { B (ENGINEHEUR),
    A (ENGINEHEUR_OPERATION_GRAPH),
    T (BACKEND_DESCRIPTOR),
    { 2000, 2000, 2000, 2000, 2010 },
    1001 },
  { B (ENGINEHEUR), A (ENGINEHEUR_MODE), T (HEUR_MODE), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (ENGINEHEUR),
    A (ENGINEHEUR_DEVICEPROP),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 3000, 2000, 2010 },
    1001 },
  { B (ENGINEHEUR), A (ENGINEHEUR_RESULTS), T (BACKEND_DESCRIPTOR), { 2000, 2000, 2000, 2000, 2000 }, 1001 },
  { B (ENGINE), A (ENGINE_OPERATION_GRAPH), T (BACKEND_DESCRIPTOR), { 2000, 3000, 3000, 2000, 2010 }, 1001 },
  { B (ENGINE), A (ENGINE_GLOBAL_INDEX), T (INT64), { 0, 2000, 2000, 2000, 2000 }, 1001 },
  { B (ENGINE), A (ENGINE_DEVICEPROP), T (BACKEND_DESCRIPTOR), { 2000, 3000, 3000, 2000, 2010 }, 1001 },
  { B (ENGINE), A (ENGINE_NUMERICAL_NOTE), T (NUMERICAL_NOTE), { 3000, 3000, 3000, 2000, 3000 }, 1001 },
  { B (ENGINE), A (ENGINE_BEHAVIOR_NOTE), T (BEHAVIOR_NOTE), { 3000, 3000, 3000, 2000, 3000 }, 1001 },
  { B (ENGINECFG), A (ENGINECFG_ENGINE), T (BACKEND_DESCRIPTOR), { 2000, 3000, 3000, 2000, 2010 }, 1001 },
  { B (ENGINECFG), A (ENGINECFG_WORKSPACE_SIZE), T (INT64), { 3000, 3000, 3000, 2000, 3000 }, 1001 },
  { B (EXECUTION_PLAN),
    A (EXECUTION_PLAN_ENGINE_CONFIG),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 3000, 2000, 2010 },
    1001 },
  { B (EXECUTION_PLAN),
    A (EXECUTION_PLAN_DEVICEPROP),
    T (BACKEND_DESCRIPTOR),
    { 2000, 3000, 3000, 2000, 2010 },
    1001 },
  { B (EXECUTION_PLAN),
    A (EXECUTION_PLAN_WORKSPACE_SIZE),
    T (INT64),
    { 3000, 3000, 3000, 2000, 3000 },
    1001 },
  { B (EXECUTION_PLAN), A (EXECUTION_PLAN_JSON_REPRESENTATION), T (CHAR), { 0, 0, 0, 2000, 0 }, 1001 },
  { B (VARIANT_PACK), A (VARIANT_PACK_UNIQUE_IDS), T (INT64), { 0, 0, 2000, 2000, 3000 }, 1001 },
  { B (VARIANT_PACK), A (VARIANT_PACK_DATA_POINTERS), T (VOID_PTR), { 0, 0, 2000, 2000, 3000 }, 1001 },
  { B (VARIANT_PACK), A (VARIANT_PACK_WORKSPACE), T (VOID_PTR), { 0, 2000, 2000, 2000, 3000 }, 1001 },
  { B (DEVICEPROP), A (DEVICEPROP_DEVICE_ID), T (INT32), { 0, 2000, 2000, 2000, 2010 }, 1001 },
  { B (DEVICEPROP), A (DEVICEPROP_JSON_REPRESENTATION), T (CHAR), { 0, 0, 0, 2000, 0 }, 1001 },
};

static void
test_attributes (void)
{
  static const char zeros[64];

  cudnn_case_begin ();
  for (gsize i = 0; i < G_N_ELEMENTS (attributes); i++)
    {
      const AttributeCase *c = &attributes[i];
      cudnnBackendAttributeName_t name = (cudnnBackendAttributeName_t) c->name;
      cudnnBackendAttributeType_t type = (cudnnBackendAttributeType_t) c->type,
                                  other = type == T (INT64) ? T (FLOAT) : T (INT64);
      const struct
      {
        cudnnBackendAttributeType_t type;
        int64_t n;
        const void *values;
      } calls[] = {
        { type, 1, zeros }, { type, 2, zeros }, { type, 0, zeros }, { type, 1, NULL }, { other, 1, zeros }
      };
      char values[64];
      int64_t n = 0;
      for (gsize j = 0; j < G_N_ELEMENTS (calls); j++)
        {
          Descriptor d = build_new ((cudnnBackendDescriptorType_t) c->kind);
          cudnnStatus_t status = build_set (d, name, calls[j].type, calls[j].n, calls[j].values);
          if ((int) status != c->set[j])
            g_error ("attribute %d, call %d: status %d instead of %d", c->name, (int) j, (int) status,
                     c->set[j]);
        }
      Descriptor d = build_new ((cudnnBackendDescriptorType_t) c->kind);
      g_assert_cmpint (cudnnBackendGetAttribute (d, name, type, 1, &n, values), ==, c->get);
    }
  cudnn_case_end (FALSE);
}

/* ---- the life of a descriptor ---- */

typedef struct
{
  const char *name;
  int kind, status;
  gboolean is_lax;
} EmptyCase;

/* Not here: an engine configuration, on which the library crashes, and a device, which is the first that is
 * there. */
static const EmptyCase empty[] = {
  { "tensor", B (TENSOR), 2000, FALSE },
  { "convolution", B (CONVOLUTION), 2000, FALSE },
  { "pointwise", B (POINTWISE), 0, TRUE },
  { "forward", B (OPERATION_CONVOLUTION_FORWARD), 2000, FALSE },
  { "data", B (OPERATION_CONVOLUTION_BACKWARD_DATA), 2000, FALSE },
  { "filter", B (OPERATION_CONVOLUTION_BACKWARD_FILTER), 2000, FALSE },
  { "pointwise-op", B (OPERATION_POINTWISE), 0, TRUE },
  { "graph", B (OPERATIONGRAPH), 2000, FALSE },
  { "heuristics", B (ENGINEHEUR), 2000, FALSE },
  { "engine", B (ENGINE), 2002, FALSE },
  { "plan", B (EXECUTION_PLAN), 2004, FALSE },
  { "pack", B (VARIANT_PACK), 0, FALSE },
};

static void
test_empty (gconstpointer data)
{
  const EmptyCase *c = data;
  cudnn_case_begin ();
  Descriptor d = build_new ((cudnnBackendDescriptorType_t) c->kind);
  g_assert_cmpint (build_finalize (d), ==, c->status);
  cudnn_case_end (c->is_lax);
}

static const TensorInfo small_tensor = { .id = 1, .type = HALF, .dims = { 2, 3, 4, 5 } };

static void
test_null (void)
{
  int64_t n = 0, value = 0;
  cudnn_case_begin ();
  g_assert_cmpint (cudnnBackendDestroyDescriptor (NULL), ==, 2002);
  g_assert_cmpint (cudnnBackendFinalize (NULL), ==, 2002);
  g_assert_cmpint (cudnnBackendSetAttribute (NULL, A (TENSOR_UNIQUE_ID), T (INT64), 1, &value), ==, 2002);
  g_assert_cmpint (cudnnBackendGetAttribute (NULL, A (TENSOR_UNIQUE_ID), T (INT64), 1, &n, &value), ==, 2000);
  g_assert_cmpint (cudnnBackendExecute (NULL, NULL, NULL), ==, 2000);
  g_assert_cmpint (cudnnCreate (NULL), ==, 2000);
  g_assert_cmpint (cudnnSetStream (NULL, NULL), ==, 2000);
  g_assert_cmpint (cudnnDestroy (NULL), ==, 0);
  cudnn_case_end (FALSE);
}

static void
test_unknown_kind (void)
{
  Descriptor d = NULL;
  cudnn_case_begin ();
  g_assert_cmpint (cudnnBackendCreateDescriptor ((cudnnBackendDescriptorType_t) 999, &d), ==, 4003);
  cudnn_case_end (FALSE);
}

static gboolean
has_driver (void)
{
  cudnnHandle_t handle = NULL;
  if (cudnnCreate (&handle) != CUDNN_STATUS_SUCCESS)
    return FALSE;
  cudnnDestroy (handle);
  return TRUE;
}

static void
test_no_driver (void)
{
  cudnnHandle_t handle = NULL;
  int32_t ordinal = 0;

  cudnn_case_begin ();
  if (has_driver ())
    g_test_skip ("there is a driver");
  else
    {
      g_assert_cmpint (cudnnCreate (&handle), ==, 1001);
      g_assert_null (handle);
      Descriptor d = build_new (B (DEVICEPROP));
      build_set (d, A (DEVICEPROP_DEVICE_ID), T (INT32), 1, &ordinal);
      g_assert_cmpint (build_finalize (d), ==, 1001);
      g_assert_cmpint (build_finalize (build_new (B (DEVICEPROP))), ==, 1001);
      g_assert_cmpint (
          cudnnBackendExecute (NULL, build_new (B (EXECUTION_PLAN)), build_new (B (VARIANT_PACK))), ==, 2000);
    }
  cudnn_case_end (FALSE);
}

static void
test_finalized (void)
{
  cudnn_case_begin ();
  Descriptor d = build_tensor (&small_tensor);
  g_assert_cmpint (build_status, ==, 0);
  g_assert_cmpint (build_set_int64 (d, A (TENSOR_UNIQUE_ID), 2), ==, 2000);
  g_assert_cmpint (build_finalize (d), ==, 2000);

  /* What is refused can be made good. */
  Descriptor late = build_new (B (TENSOR));
  g_assert_cmpint (build_finalize (late), ==, 2000);
  const int64_t dims[] = { 1, 1, 1, 1 };
  build_status = CUDNN_STATUS_SUCCESS;
  build_set_tensor (late, 1, HALF, 4, dims, 4, dims, 16);
  g_assert_cmpint (build_finalize (late), ==, 0);
  g_assert_cmpint (build_status, ==, 0);
  cudnn_case_end (FALSE);
}

static void
test_get (void)
{
  int64_t values[8], n = -1;
  bool is_virtual = true;

  cudnn_case_begin ();
  Descriptor d = build_tensor (&small_tensor);
#define GET(name, type, n_asked, n_given, values) \
  cudnnBackendGetAttribute (d, A (name), type, n_asked, n_given, values)
  g_assert_cmpint (GET (TENSOR_DIMENSIONS, T (INT64), 8, &n, values), ==, 0);
  g_assert_cmpint (n, ==, 4);
  g_assert_cmpint (values[0], ==, 2);
  g_assert_cmpint (values[3], ==, 5);
  values[2] = -7;
  g_assert_cmpint (GET (TENSOR_DIMENSIONS, T (INT64), 2, &n, values), ==, 0);
  g_assert_cmpint (n, ==, 2);
  g_assert_cmpint (values[2], ==, -7);
  g_assert_cmpint (GET (TENSOR_DIMENSIONS, T (INT64), 0, &n, NULL), ==, 0);
  g_assert_cmpint (n, ==, 4);
  g_assert_cmpint (GET (TENSOR_DIMENSIONS, T (INT64), 4, NULL, values), ==, 0);
  g_assert_cmpint (GET (TENSOR_DIMENSIONS, T (INT64), -1, &n, values), ==, 2000);
  g_assert_cmpint (GET (TENSOR_DIMENSIONS, T (FLOAT), 4, &n, values), ==, 2010);
  g_assert_cmpint (GET (CONVOLUTION_DILATIONS, T (INT64), 4, &n, values), ==, 2000);
  g_assert_cmpint (GET (TENSOR_UNIQUE_ID, T (INT64), 0, &n, values), ==, 2000);
  g_assert_cmpint (GET (TENSOR_IS_VIRTUAL, T (BOOLEAN), 1, &n, &is_virtual), ==, 0);
  g_assert_cmpint (n, ==, 1);
  g_assert_false (is_virtual);
#undef GET
  cudnn_case_end (FALSE);
}

static void
test_texts (void)
{
  static const cudnnStatus_t statuses[] = { 0,    1001, 1002, 1003, 2000, 2002, 2004, 2006,
                                            2010, 3000, 3007, 3008, 4003, 5000, 5003, 9999 };
  static const char *const names[] = { "CUDNN_STATUS_SUCCESS",
                                       "CUDNN_STATUS_NOT_INITIALIZED",
                                       "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
                                       "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH",
                                       "CUDNN_STATUS_BAD_PARAM",
                                       "CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
                                       "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED",
                                       "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT",
                                       "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE",
                                       "CUDNN_STATUS_NOT_SUPPORTED",
                                       "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
                                       "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
                                       "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
                                       "CUDNN_STATUS_EXECUTION_FAILED",
                                       "CUDNN_STATUS_EXECUTION_FAILED_CUDART",
                                       "CUDNN_UNKNOWN_STATUS" };
  char text[256] = "";

  cudnn_case_begin ();
  for (gsize i = 0; i < G_N_ELEMENTS (statuses); i++)
    g_assert_cmpstr (cudnnGetErrorString (statuses[i]), ==, names[i]);
  g_assert_cmpint (build_finalize (build_new (B (TENSOR))), ==, 2000);
  cudnnGetLastErrorString (text, sizeof text);
  g_assert_cmpstr (text, !=, "");
  cudnnGetLastErrorString (text, sizeof text);
  g_assert_cmpstr (text, ==, "");
  cudnn_case_end (FALSE);
}

void
cudnn_cases_add (const CudnnCaseHooks *given)
{
  hooks = given;
  g_test_add_func ("/cudnn/attributes", test_attributes);
  g_test_add_func ("/cudnn/null", test_null);
  g_test_add_func ("/cudnn/unknown-kind", test_unknown_kind);
  g_test_add_func ("/cudnn/no-driver", test_no_driver);
  g_test_add_func ("/cudnn/finalized", test_finalized);
  g_test_add_func ("/cudnn/get", test_get);
  g_test_add_func ("/cudnn/texts", test_texts);
  CUDNN_CASES_ADD ("empty", empty, test_empty);
  cudnn_tensor_cases_add ();
  cudnn_graph_cases_add ();
  cudnn_plan_cases_add ();
}
