/*
 * test-conv-library.c: our descriptors, filter and plans with the real cuDNN, for a device that is not there.
 */
#include "config.h"

#include "kernels/cuda/conv-engines.h"
#include "tests/gpu/profile-library.h"

#include <string.h>

#define MIB ((gsize) 1 << 20)

/* 3x3, 64 channels to 32, on a small map. */
static RnConvProblem
problem_of (RnConvKind kind, RnDType dtype)
{
  return (RnConvProblem){ .kind = kind,
                          .n = 2,
                          .c = 64,
                          .h = 20,
                          .w = 31,
                          .k = 32,
                          .oh = 20,
                          .ow = 31,
                          .kernel = { 3, 3 },
                          .stride = { 1, 1 },
                          .pad = { 1, 1 },
                          .dilation = { 1, 1 },
                          .groups = 1,
                          .dtype = dtype,
                          .nhwc = dtype != RN_F32 };
}

/* ---- problems ---- */

static void
set_nothing (RnConvProblem *p)
{
}

static void
set_empty (RnConvProblem *p)
{
  p->n = 0;
}

static void
set_huge (RnConvProblem *p)
{
  p->n = p->c = p->h = p->w = G_MAXINT32;
  p->oh = p->ow = G_MAXINT32;
}

static void
set_groups (RnConvProblem *p)
{
  p->groups = 3;
}

static void
set_output (RnConvProblem *p)
{
  p->oh = 19;
}

static void
set_window (RnConvProblem *p)
{
  p->kernel[0] = 99;
}

static void
set_padding (RnConvProblem *p)
{
  p->pad[1] = -1;
}

static void
set_type (RnConvProblem *p)
{
  p->dtype = RN_I32;
}

static void
set_tf32 (RnConvProblem *p)
{
  p->dtype = RN_F16;
  p->tf32 = TRUE;
}

static void
set_backward_relu (RnConvProblem *p)
{
  p->kind = RN_CONV_BACKWARD_DATA;
  p->bias = p->relu = TRUE;
}

static void
set_no_bias (RnConvProblem *p)
{
  p->relu = TRUE;
}

static void
set_added_twice (RnConvProblem *p)
{
  p->bias = p->accumulate = TRUE;
}

static void
test_problems (void)
{
  static const struct
  {
    void (*set) (RnConvProblem *problem);
    const char *reason; /* a part; NULL: accepted */
  } cases[] = {
    { set_nothing, NULL },
    { set_empty, "out of range" },
    { set_huge, "too large" },
    { set_groups, "groups" },
    { set_output, "has not the size" },
    { set_window, "has not the size" },
    { set_padding, "out of range" },
    { set_type, "f32, f16 or bf16" },
    { set_tf32, "TF32" },
    { set_backward_relu, "forward" },
    { set_no_bias, "has a bias" },
    { set_added_twice, "residual" },
  };
  g_autoptr (RnConvLibrary) library = profile_library ("t4", TRUE);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnConvProblem problem = problem_of (RN_CONV_FORWARD, RN_F32);
      g_autoptr (RnConvPlan) plan = NULL;
      const char *reason = NULL;
      cases[i].set (&problem);
      RnStatus status = rn_conv_plan_new (library, &problem, 64 * MIB, &plan, &reason);
      if (cases[i].reason == NULL)
        {
          g_assert_cmpint (status, ==, RN_STATUS_OK);
          g_assert_null (reason);
          continue;
        }
      g_assert_cmpint (status, ==, RN_STATUS_UNSUPPORTED);
      g_assert_null (plan);
      g_assert_nonnull (reason);
      if (strstr (reason, cases[i].reason) == NULL)
        g_error ("case %" G_GSIZE_FORMAT ": \"%s\"", i, reason);
    }
}

/* Texts are keys: they differ where anything differs. */
static void
test_texts (void)
{
  RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32), other;
  g_autoptr (GHashTable) texts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  int64_t *const numbers[] = { &other.n,         &other.c,         &other.h,           &other.w,
                               &other.k,         &other.oh,        &other.ow,          &other.groups,
                               &other.pad[0],    &other.pad[1],    &other.kernel[0],   &other.kernel[1],
                               &other.stride[0], &other.stride[1], &other.dilation[0], &other.dilation[1] };
  gboolean *const flags[] = { &other.nhwc,     &other.tf32, &other.bias,
                              &other.residual, &other.relu, &other.accumulate };
  guint n = 1;

  g_hash_table_add (texts, rn_conv_problem_text (&p));
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++, n++)
    {
      other = p;
      *numbers[i] += 100;
      g_hash_table_add (texts, rn_conv_problem_text (&other));
    }
  for (gsize i = 0; i < G_N_ELEMENTS (flags); i++, n++)
    {
      other = p;
      *flags[i] = !*flags[i];
      g_hash_table_add (texts, rn_conv_problem_text (&other));
    }
  for (int kind = RN_CONV_BACKWARD_DATA; kind <= RN_CONV_BACKWARD_WEIGHTS; kind++, n++)
    {
      other = p;
      other.kind = (RnConvKind) kind;
      g_hash_table_add (texts, rn_conv_problem_text (&other));
    }
  for (int dtype = RN_F16; dtype <= RN_BF16; dtype++, n++)
    {
      other = p;
      other.dtype = (RnDType) dtype;
      g_hash_table_add (texts, rn_conv_problem_text (&other));
    }
  g_assert_cmpuint (g_hash_table_size (texts), ==, n);
}

/* What is not in RetinaNet: groups, dilation, strides that differ, sums into the output. */
static void
test_accepted (void)
{
  g_autoptr (RnConvLibrary) library = profile_library ("a100", TRUE);

  for (int kind = RN_CONV_FORWARD; kind <= RN_CONV_BACKWARD_WEIGHTS; kind++)
    for (int form = 0; form < 4; form++)
      {
        RnConvProblem p = problem_of ((RnConvKind) kind, form % 2 == 0 ? RN_F32 : RN_F16);
        g_autoptr (RnConvPlan) plan = NULL;
        const char *reason = NULL;
        if (form == 0)
          p.groups = 4;
        else if (form == 1)
          p.dilation[0] = p.pad[0] = 2;
        else if (form == 2)
          p.stride[1] = 2, p.ow = 16;
        else
          p.accumulate = TRUE;
        RnStatus status = rn_conv_plan_new (library, &p, 64 * MIB, &plan, &reason);
        g_autofree char *text = rn_conv_problem_text (&p);
        if (status != RN_STATUS_OK)
          g_error ("%s: %s", text, reason != NULL ? reason : rn_conv_library_fault (library));
      }
}

/* ---- the filter ---- */

#define NOTE(name) (1U << CUDNN_NUMERICAL_NOTE_##name)
#define BEHAVIOR(name) (1U << CUDNN_BEHAVIOR_NOTE_##name)

static void
test_filter (void)
{
  const RnConvFilter strict = { .single = TRUE, .workspace_limit = MIB };
  const RnConvFilter tf32 = { .single = TRUE, .tf32 = TRUE, .workspace_limit = MIB };
  const RnConvFilter half = { .workspace_limit = MIB };
  const struct
  {
    const RnConvFilter *filter;
    guint numerical, behavior;
    gsize workspace;
    gboolean passes;
  } cases[] = {
    { &strict, 0, 0, 0, TRUE },
    { &strict, NOTE (TENSOR_CORE), 0, 0, FALSE },
    { &tf32, NOTE (TENSOR_CORE), 0, 0, TRUE },
    { &half, NOTE (TENSOR_CORE), 0, 0, TRUE },
    { &half, NOTE (TENSOR_CORE) | NOTE (REDUCED_PRECISION_REDUCTION), 0, 0, FALSE },
    { &tf32, NOTE (DOWN_CONVERT_INPUTS), 0, 0, FALSE },
    { &half, NOTE (NONDETERMINISTIC), 0, 0, FALSE },
    { &strict, NOTE (WINOGRAD) | NOTE (WINOGRAD_TILE_4x4), 0, 0, TRUE },
    { &strict, NOTE (FFT) | NOTE (STRICT_NAN_PROP), BEHAVIOR (SUPPORTS_CUDA_GRAPH_NATIVE_API), 0, TRUE },
    { &half, 0, BEHAVIOR (RUNTIME_COMPILATION), 0, FALSE },
    { &half, 0, BEHAVIOR (REQUIRES_FILTER_INT8x32_REORDER), 0, FALSE },
    { &half, 0, 0, MIB, TRUE },
    { &half, 0, 0, MIB + 1, FALSE },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const RnCudnnConfigInfo info = { .engine = 7,
                                       .workspace = cases[i].workspace,
                                       .numerical_notes = cases[i].numerical,
                                       .behavior_notes = cases[i].behavior };
      const char *refusal = rn_conv_engine_refusal (&info, cases[i].filter);
      if ((refusal == NULL) != cases[i].passes)
        g_error ("case %" G_GSIZE_FORMAT ": %s", i, refusal != NULL ? refusal : "taken");
    }
}

/* A smaller limit gives an engine that needs less, and the generic one needs nothing. */
static void
test_limit (void)
{
  g_autoptr (RnConvLibrary) library = profile_library ("h200", TRUE);
  RnConvProblem p = problem_of (RN_CONV_BACKWARD_WEIGHTS, RN_F32);
  gsize last = G_MAXSIZE;

  p.h = p.oh = 152;
  p.w = p.ow = 256;
  for (gsize limit = 256 * MIB; limit > 0; limit = limit > MIB ? limit / 16 : 0)
    {
      g_autoptr (RnConvPlan) plan = NULL;
      const char *reason = NULL;
      g_assert_cmpint (rn_conv_plan_new (library, &p, limit, &plan, &reason), ==, RN_STATUS_OK);
      g_assert_cmpuint (rn_conv_plan_workspace (plan), <=, MIN (limit, last));
      last = rn_conv_plan_workspace (plan);
    }
  g_autoptr (RnConvPlan) plan = NULL;
  const char *reason = NULL;
  g_assert_cmpint (rn_conv_plan_new (library, &p, 0, &plan, &reason), ==, RN_STATUS_OK);
  g_assert_cmpuint (rn_conv_plan_workspace (plan), ==, 0);
}

/* A device that would measure may take what none by rank takes, and not more than the limit. */
static void
test_at_most (void)
{
  g_autoptr (RnConvLibrary) by_rank = profile_library ("h200", TRUE),
                            measuring = profile_library ("h200", FALSE);
  guint n_larger = 0;

  for (int kind = RN_CONV_FORWARD; kind <= RN_CONV_BACKWARD_WEIGHTS; kind++)
    {
      const RnConvProblem p = problem_of ((RnConvKind) kind, RN_F32);
      const char *reason = NULL;
      g_autoptr (RnConvPlan) first = NULL, most = NULL;
      g_assert_cmpint (rn_conv_plan_new (by_rank, &p, MIB, &first, &reason), ==, RN_STATUS_OK);
      g_assert_cmpint (rn_conv_plan_new (measuring, &p, MIB, &most, &reason), ==, RN_STATUS_OK);
      g_assert_cmpuint (rn_conv_plan_workspace (most), <=, MIB);
      g_assert_cmpuint (rn_conv_plan_workspace (most), >=, rn_conv_plan_workspace (first));
      n_larger += rn_conv_plan_workspace (most) > rn_conv_plan_workspace (first);
    }
  g_assert_true ((n_larger > 0)
                 == (cudnnGetVersion () >= RN_CUDNN_WRITES_PLANS)); /* older ones never measure */
}

/* ---- descriptors ---- */

static RnCudnn *
cudnn_new (void)
{
  g_autoptr (GError) error = NULL;
  RnCudnn *cudnn = rn_cudnn_new (&error);

  g_assert_no_error (error);
  g_assert_null (rn_cudnn_fault (cudnn));
  return cudnn;
}

static void
assert_fault (const RnCudnn *cudnn, cudnnStatus_t status, const char *part)
{
  g_assert_cmpint (rn_cudnn_status (cudnn), ==, status);
  g_assert_nonnull (rn_cudnn_fault (cudnn));
  if (strstr (rn_cudnn_fault (cudnn), part) == NULL)
    g_error ("\"%s\" has not \"%s\"", rn_cudnn_fault (cudnn), part);
}

/* The library's own reason is in the text. */
static void
test_wrong_descriptors (void)
{
  static const int64_t ones[2] = { 1, 1 }, zeros[2] = { 0, 0 };
  g_autoptr (RnCudnn) cudnn = cudnn_new ();
  RnCudnnTensorInfo info = { .id = 1, .dtype = RN_I64, .dims = { 2, 8, 10, 10 } };

  g_assert_null (rn_cudnn_tensor_new (cudnn, &info));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "neither f32 nor f16 nor bf16");
  info.dtype = RN_F32;
  info.dims[0] = -2;
  g_assert_null (rn_cudnn_tensor_new (cudnn, &info));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "making a tensor: CUDNN_STATUS_BAD_PARAM (2000): ");
  info.dims[0] = 2;
  g_assert_null (rn_cudnn_window_new (cudnn, zeros, zeros, ones));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "describing a convolution");

  g_autoptr (RnCudnnWindow) window = rn_cudnn_window_new (cudnn, zeros, ones, ones);
  g_autoptr (RnCudnnTensor) x = rn_cudnn_tensor_new (cudnn, &info);
  const RnCudnnTensorInfo weights = { .id = 2, .dtype = RN_F32, .dims = { 4, 8, 3, 3 } };
  g_autoptr (RnCudnnTensor) w = rn_cudnn_tensor_new (cudnn, &weights);
  const RnCudnnTensorInfo right = { .id = 3, .dtype = RN_F32, .dims = { 2, 4, 8, 8 } };
  g_autoptr (RnCudnnTensor) y = rn_cudnn_tensor_new (cudnn, &right);
  g_autoptr (RnCudnnOp) op = rn_cudnn_op_forward_new (cudnn, window, x, w, y, 0);
  g_assert_nonnull (op);
  const RnCudnnTensorInfo wrong = { .id = 3, .dtype = RN_F32, .dims = { 2, 4, 9, 8 } };
  g_autoptr (RnCudnnTensor) too_high = rn_cudnn_tensor_new (cudnn, &wrong);
  g_assert_nonnull (too_high);
  g_assert_null (rn_cudnn_op_forward_new (cudnn, window, x, w, too_high, 0));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "making a convolution: CUDNN_STATUS_BAD_PARAM (2000): ");
  g_assert_false (rn_cudnn_is_unsupported (rn_cudnn_status (cudnn)));
  g_assert_true (rn_cudnn_is_unsupported (CUDNN_STATUS_NOT_SUPPORTED_SHAPE));
}

/* The library looks at addresses when it runs, if at all. */
static void
test_addresses (void)
{
  g_autoptr (RnCudnn) cudnn = cudnn_new ();
  const int64_t ids[2] = { 1, 2 }, twice[2] = { 1, 1 };
  void *good[2] = { GSIZE_TO_POINTER (4096), GSIZE_TO_POINTER (8192) };
  void *crooked[2] = { GSIZE_TO_POINTER (4096), GSIZE_TO_POINTER (8200) };
  void *missing[2] = { GSIZE_TO_POINTER (4096), NULL };
  g_autoptr (RnCudnnPack) pack = rn_cudnn_pack_new (cudnn, ids, good, 2, NULL);

  g_assert_nonnull (pack);
  g_assert_null (rn_cudnn_pack_new (cudnn, ids, crooked, 2, NULL));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "not aligned to 16 bytes");
  g_assert_null (rn_cudnn_pack_new (cudnn, ids, missing, 2, NULL));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "no address");
  g_assert_null (rn_cudnn_pack_new (cudnn, twice, good, 2, NULL));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "named twice");
  g_assert_null (rn_cudnn_pack_new (cudnn, ids, good, 2, GSIZE_TO_POINTER (4100)));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "the workspace is not aligned");
}

/* ---- devices and plans as texts ---- */

static void
test_profiles (void)
{
  static const char *const refused[] = { "", "{", "[]", "nonsense", "{}", "{\"deviceVer\": 750}", "\xff" };
  const RnConvOptions options = { .deterministic = TRUE };
  g_autofree char *deep = g_strnfill (1 << 19, '['); /* the library alone would run out of stack */
  g_autofree char *text = profile_text ("t4");
  g_autoptr (GError) error = NULL;

  for (gsize i = 0; i <= G_N_ELEMENTS (refused); i++)
    {
      const char *json = i < G_N_ELEMENTS (refused) ? refused[i] : deep;
      g_assert_null (rn_conv_library_new_for_profile (json, &options, &error));
      g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING);
      g_clear_error (&error);
    }
  /* One member is missing: the library says so. */
  char *member = strstr (text, "\"warpSize\"");
  member[1] = 'W';
  g_assert_null (rn_conv_library_new_for_profile (text, &options, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING);
  if (strstr (error->message, "cuDNN does not take the profile of the device") == NULL)
    g_error ("%s", error->message);
}

/* Nothing runs on a profile. */
static void
test_plan_only (void)
{
  g_autoptr (RnConvLibrary) library = profile_library ("h200", TRUE);
  const RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F16);
  const RnConvPointers pointers = { .x = GSIZE_TO_POINTER (4096) };
  g_autoptr (RnConvPlan) plan = NULL;
  const char *reason = NULL;

  g_assert_cmpint (rn_conv_plan_new (library, &p, 64 * MIB, &plan, &reason), ==, RN_STATUS_OK);
  g_assert_cmpint (rn_conv_plan_run (plan, &pointers), ==, RN_STATUS_DEVICE);
  g_assert_cmpstr (rn_conv_library_fault (library), ==, "a device that is not there runs nothing");
  g_assert_cmpint (rn_conv_plan_measure (plan, &pointers, 64 * MIB), ==, RN_STATUS_DEVICE);
  g_assert_cmpint (rn_conv_library_set_stream (library, NULL), ==, RN_STATUS_DEVICE);
}

static RnCudnnDevice *
device_of (RnCudnn *cudnn, const char *profile)
{
  g_autofree char *json = profile_text (profile);
  RnCudnnDevice *device = rn_cudnn_device_new_from_json (cudnn, json);

  g_assert_nonnull (device);
  return device;
}

/* What a profile says comes back, and makes the same device. */
static void
test_profile_again (void)
{
  g_autoptr (RnCudnn) cudnn = cudnn_new ();
  g_autoptr (RnCudnnDevice) device = device_of (cudnn, "h200");
  g_autofree char *json = rn_cudnn_device_to_json (cudnn, device);

  g_assert_nonnull (json);
  g_assert_nonnull (strstr (json, "NVIDIA H200"));
  g_autoptr (RnCudnnDevice) again = rn_cudnn_device_new_from_json (cudnn, json);
  g_assert_nonnull (again);
  g_autofree char *same = rn_cudnn_device_to_json (cudnn, again);
  g_assert_cmpstr (same, ==, json);
}

/* A plan is read again for the same device and version, and is refused for all others. */
static void
test_stored_plan (void)
{
  g_autoptr (RnCudnn) cudnn = cudnn_new ();
  g_autoptr (RnCudnnDevice) device = device_of (cudnn, "t4");
  g_autoptr (RnCudnnDevice) other = device_of (cudnn, "a100");
  const RnConvProblem p = problem_of (RN_CONV_BACKWARD_DATA, RN_F16);
  g_autoptr (RnCudnnGraph) graph = rn_conv_graph_new (cudnn, &p);
  g_autoptr (GPtrArray) configs = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_cudnn_config_free);
  gsize workspace, again_workspace;

  g_assert_true (rn_cudnn_heuristics (cudnn, graph, device, CUDNN_HEUR_MODE_A, configs));
  g_assert_cmpuint (configs->len, >, 0);
  g_autoptr (RnCudnnPlan) plan = rn_cudnn_plan_new (cudnn, configs->pdata[0]);
  g_autofree char *json = rn_cudnn_plan_to_json (cudnn, plan);
  g_assert_true ((json != NULL) == (cudnnGetVersion () >= RN_CUDNN_WRITES_PLANS));
  if (json == NULL)
    return;
  g_autoptr (RnCudnnPlan) again = rn_cudnn_plan_new_from_json (cudnn, device, json);
  g_assert_nonnull (again);
  g_autofree char *again_json = rn_cudnn_plan_to_json (cudnn, again);
  g_assert_cmpstr (again_json, ==, json);
  g_assert_true (rn_cudnn_plan_workspace (cudnn, plan, &workspace));
  g_assert_true (rn_cudnn_plan_workspace (cudnn, again, &again_workspace));
  g_assert_cmpuint (workspace, ==, again_workspace);

  g_assert_null (rn_cudnn_plan_new_from_json (cudnn, other, json));
  assert_fault (cudnn, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "reading a plan");
  g_autofree char *damaged = g_strndup (json, strlen (json) / 2);
  g_assert_null (rn_cudnn_plan_new_from_json (cudnn, device, damaged));
  assert_fault (cudnn, CUDNN_STATUS_BAD_PARAM, "reading a plan");
  char *version = strstr (json, "\"cudnnVersion\":9");
  g_assert_nonnull (version);
  version[strlen ("\"cudnnVersion\":")] = '8';
  g_assert_null (rn_cudnn_plan_new_from_json (cudnn, device, json));
  assert_fault (cudnn, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, "reading a plan");
}

/* ---- RN_TRACE=dispatch ---- */

static void
collect (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
  g_string_append_printf (data, "%s\n", message);
}

static void
test_trace (void)
{
  g_autoptr (GString) log = g_string_new (NULL);
  guint handler = g_log_set_handler ("rn-kernels", G_LOG_LEVEL_MESSAGE, collect, log);

  for (int is_on = 0; is_on < 2; is_on++)
    {
      const RnConvProblem p = problem_of (RN_CONV_BACKWARD_DATA, RN_F32);
      g_autoptr (RnConvPlan) plan = NULL;
      const char *reason = NULL;
      if (is_on)
        g_setenv ("RN_TRACE", "other,dispatch", TRUE);
      g_autoptr (RnConvLibrary) library = profile_library ("h200", TRUE);
      g_assert_cmpint (rn_conv_plan_new (library, &p, 64 * MIB, &plan, &reason), ==, RN_STATUS_OK);
      g_assert_cmpint (log->len > 0, ==, is_on);
    }
  g_unsetenv ("RN_TRACE");
  g_log_remove_handler ("rn-kernels", handler);
  g_assert_nonnull (strstr (log->str, "backward_data 2x64x20x31 -> 2x32x20x31 k3x3"));
  g_assert_nonnull (strstr (log->str, ": no: its tensor cores round single precision"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/conv-library/problems", test_problems);
  g_test_add_func ("/conv-library/texts", test_texts);
  g_test_add_func ("/conv-library/accepted", test_accepted);
  g_test_add_func ("/conv-library/filter", test_filter);
  g_test_add_func ("/conv-library/limit", test_limit);
  g_test_add_func ("/conv-library/at-most", test_at_most);
  g_test_add_func ("/conv-library/wrong-descriptors", test_wrong_descriptors);
  g_test_add_func ("/conv-library/addresses", test_addresses);
  g_test_add_func ("/conv-library/profiles", test_profiles);
  g_test_add_func ("/conv-library/plan-only", test_plan_only);
  g_test_add_func ("/conv-library/profile-again", test_profile_again);
  g_test_add_func ("/conv-library/stored-plan", test_stored_plan);
  g_test_add_func ("/conv-library/trace", test_trace);
  return g_test_run ();
}
