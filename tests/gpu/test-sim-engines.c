/*
 * test-sim-engines.c: engines of the simulated cuDNN as its users meet them: their rank, notes, times and
 * stored plans; and that mistakes are reported which the real one lets pass until it breaks.
 */
#include "config.h"

#include "tests/gpu/cudnn-setup.h"

#include <string.h>

/* ---- engines ---- */

#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)

/* What a filter has to drop comes first, and no filter can tell the last from good ones. */
static void
test_rank (void)
{
  static const struct
  {
    int64_t engine;
    unsigned numerical, behavior;
  } want[] = {
    { SIM_ENGINE_COMPILED, 0, 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION },
    { SIM_ENGINE_HUGE, 0, 0 },
    { SIM_ENGINE_DOWN_CONVERT, NOTE (DOWN_CONVERT_INPUTS), 0 },
    { SIM_ENGINE_RANDOM_ORDER, NOTE (NONDETERMINISTIC), 0 },
    { SIM_ENGINE_TENSOR_CORE, NOTE (TENSOR_CORE), 0 },
    { SIM_ENGINE_NORMAL, 0, 0 },
    { SIM_ENGINE_NORMAL, 0, 0 },
    { SIM_ENGINE_WRONG, 0, 0 },
  };
  Setup s;

  setup_init (&s, setup_problem ("3x3"), RN_F32, TRUE);
  g_autoptr (GArray) a = build_proposals (s.graph, s.profile, CUDNN_HEUR_MODE_A);
  g_assert_cmpuint (a->len, ==, G_N_ELEMENTS (want));
  for (guint i = 0; i < a->len; i++)
    {
      const Proposal *p = &g_array_index (a, Proposal, i);
      g_assert_cmpint (p->engine, ==, want[i].engine);
      g_assert_cmphex (p->numerical_notes, ==, want[i].numerical);
      g_assert_cmphex (p->behavior_notes, ==, want[i].behavior);
      Descriptor plan = build_plan (p->config);
      g_assert_cmpint (build_status, ==,
                       p->engine == SIM_ENGINE_COMPILED
                           ? CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING
                           : CUDNN_STATUS_SUCCESS);
      build_status = CUDNN_STATUS_SUCCESS;
      int64_t workspace = -1, n;
      if (p->engine != SIM_ENGINE_COMPILED)
        {
          CUDNN_OK (cudnnBackendGetAttribute (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                              CUDNN_TYPE_INT64, 1, &n, &workspace));
          g_assert_cmpint (workspace, ==, p->workspace);
          g_assert_cmpint (workspace > (int64_t) 1 << 37, ==, p->engine == SIM_ENGINE_HUGE);
        }
    }
  /* A limit of the workspace that lets a wrong engine pass lets a good one pass. */
  g_assert_cmpint (g_array_index (a, Proposal, 7).workspace, >, g_array_index (a, Proposal, 5).workspace);

  g_autoptr (GArray) fallback = build_proposals (s.graph, s.profile, CUDNN_HEUR_MODE_FALLBACK);
  const Proposal *last = &g_array_index (fallback, Proposal, fallback->len - 1);
  g_assert_cmpint (last->engine, ==, SIM_ENGINE_GENERIC);
  g_assert_cmpint (last->workspace, ==, 0);
  setup_clear (&s);
}

/* The wrong ones seem fastest, the generic one slow. */
static void
test_times (void)
{
  static const int64_t by_time[] = { SIM_ENGINE_WRONG, SIM_ENGINE_NAN, SIM_ENGINE_NORMAL,
                                     SIM_ENGINE_GENERIC };
  Setup s;
  cudaEvent_t before, after;
  float last = 0;

  setup_init (&s, setup_problem ("3x3"), RN_F16, TRUE);
  OK (cudaEventCreateWithFlags (&before, cudaEventDefault));
  OK (cudaEventCreateWithFlags (&after, cudaEventDefault));
  for (gsize i = 0; i < G_N_ELEMENTS (by_time); i++)
    {
      float milliseconds = 0;
      Descriptor plan = build_plan (setup_config (&s, by_time[i], 0));
      OK (cudaEventRecord (before, s.stream));
      CUDNN_OK (cudnnBackendExecute (s.handle, plan, setup_pack (&s)));
      OK (cudaEventRecord (after, s.stream));
      OK (cudaStreamSynchronize (s.stream));
      OK (cudaEventElapsedTime (&milliseconds, before, after));
      g_assert_cmpfloat (milliseconds, >, last);
      last = milliseconds;
    }
  OK (cudaEventDestroy (before));
  OK (cudaEventDestroy (after));
  setup_clear (&s);
}

/* Terms of one product of matrices. */
static int64_t
n_added (const Setup *s)
{
  const Problem *p = s->p;
  switch (p->direction)
    {
    case BUILD_FORWARD:
      return p->c / p->groups * p->kernel[0] * p->kernel[1];
    case BUILD_DATA:
      return p->k / p->groups;
    default:
      return s->oh * s->ow;
    }
}

/* A plan that was written and read gives the same bits, with its knob: that shows where a product of matrices
 * adds more than 64 terms. */
static void
test_stored_plans (gconstpointer data)
{
  Setup s;

  setup_init (&s, data, RN_F32, FALSE);
  int64_t n = s.n_elements[setup_output (s.p)];
  g_autofree float *first = setup_execute (&s, SIM_ENGINE_NORMAL, 0);
  Descriptor plan = build_plan (setup_config (&s, SIM_ENGINE_NORMAL, 1));
  g_autofree char *json = build_plan_json (plan);
  g_autofree float *second = setup_execute_plan (&s, plan);
  g_autofree float *again = setup_execute_plan (&s, build_plan_from_json (s.profile, json));
  assert_same (first, second, n, n_added (&s) <= 64);
  assert_same (second, again, n, TRUE);
  g_autofree char *json_again = build_plan_json (build_plan_from_json (s.profile, json));
  g_assert_cmpstr (json, ==, json_again);
  setup_clear (&s);
}

/* The device describes itself as the model that it is, and a plan for another does not run on it. */
static void
test_device (void)
{
  const char *expected[] = { "\"deviceVer\":800,", "\"multiProcessorCount\":108,", "\"driverVer\":13000," };
  char text[2048] = "";
  int64_t n = 0;
  Setup s;

  setup_init (&s, setup_problem ("3x3"), RN_F32, FALSE);
  CUDNN_OK (cudnnBackendGetAttribute (s.profile, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                      sizeof text, &n, text));
  for (gsize i = 0; i < G_N_ELEMENTS (expected); i++)
    g_assert_nonnull (strstr (text, expected[i]));
  Descriptor copy = build_profile (text);
  CUDNN_OK (build_status);
  g_autoptr (GArray) a = build_proposals (s.graph, copy, CUDNN_HEUR_MODE_A);
  g_assert_cmpuint (a->len, >, 0);

  s.profile = build_profile (build_t4);
  Descriptor plan = build_plan (setup_config (&s, SIM_ENGINE_NORMAL, 0));
  CUDNN_OK (build_status);
  g_assert_cmpint (cudnnBackendExecute (s.handle, plan, setup_pack (&s)), ==,
                   CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH);
  FAULT ("cudnnBackendExecute: the plan was made for another device");
  setup_clear (&s);
}

/* ---- what is reported ---- */

typedef struct
{
  const char *name, *fault;
  void (*spoil) (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace);
} Spoiled;

static void
duplicate_id (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  ids[*n] = X;
  pointers[(*n)++] = s->device[X];
}

static void
missing_id (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  (*n)--;
}

static void
unknown_id (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  ids[*n] = 99;
  pointers[(*n)++] = s->device[X];
}

static void
misaligned (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  pointers[0] = s->workspace + 4;
}

static void
on_host (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  pointers[0] = s->host[X];
}

static void
null_pointer (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  pointers[1] = NULL;
}

static void
too_short (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  pointers[0] = s->device[W]; /* fewer bytes than x */
}

static void
overwritten_input (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  pointers[2] = s->device[X];
}

static void
no_workspace (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  *workspace = NULL;
}

static void
short_workspace (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  *workspace = s->workspace + s->workspace_bytes - 256;
}

static void
shared_workspace (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  pointers[0] = s->workspace + 256;
}

static void
misaligned_workspace (Setup *s, int64_t *ids, void **pointers, int *n, void **workspace)
{
  *workspace = s->workspace + 8;
}

static const Spoiled spoiled[] = {
  { "duplicate-id", "*: the pack has the id 1 of x 2 times", duplicate_id },
  { "missing-id", "*: the pack has the id 3 of y 0 times", missing_id },
  { "unknown-id", "*: the pack's id 99 is not in the plan", unknown_id },
  { "misaligned", "*: x at * is not aligned to 16 bytes, as its tensor says", misaligned },
  { "on-host", "*: x at * does not lie in device memory", on_host },
  { "null", "*: w at * does not lie in device memory", null_pointer },
  { "too-short", "*: x at * does not lie in device memory", too_short },
  { "overwritten-input", "*: y, which is written, overlaps x", overwritten_input },
  { "no-workspace", "*: the workspace at * is not * bytes of device memory", no_workspace },
  { "short-workspace", "*: the workspace at * is not * bytes of device memory", short_workspace },
  { "shared-workspace", "*: workspace, which is written, overlaps x", shared_workspace },
  { "misaligned-workspace", "*: the workspace at * is not aligned to 16 bytes", misaligned_workspace },
};

/* w has fewer bytes than x, and x as many as y. */
static const Problem spoiled_problem = {
  .direction = BUILD_FORWARD,
  .n = 2,
  .c = 16,
  .h = 9,
  .w = 11,
  .k = 16,
  .kernel = { 1, 1 },
  .stride = { 1, 1 },
  .dilation = { 1, 1 },
  .groups = 1,
  .alpha = 1,
};

static void
test_spoiled (gconstpointer data)
{
  const Spoiled *spoil = data;
  int64_t ids[4] = { X, W, Y };
  void *pointers[4], *workspace;
  int n = 3;
  Setup s;

  setup_init (&s, &spoiled_problem, RN_F32, TRUE);
  for (int i = 0; i < n; i++)
    pointers[i] = s.device[ids[i]];
  workspace = s.workspace;
  spoil->spoil (&s, ids, pointers, &n, &workspace);
  Descriptor plan = build_plan (setup_config (&s, SIM_ENGINE_NORMAL, 0));
  Descriptor p = build_pack (n, ids, pointers, workspace);
  CUDNN_OK (build_status);
  g_assert_cmpint (cudnnBackendExecute (s.handle, plan, p), ==, CUDNN_STATUS_BAD_PARAM);
  FAULT (spoil->fault);
  OK (cudaStreamSynchronize (s.stream));
  setup_clear (&s);
}

/* Nothing that lies in the workspace survives, and nothing beyond it is touched. */
static void
test_workspace (void)
{
  const Problem *p = setup_problem ("3x3");
  Setup s;

  setup_init (&s, p, RN_F32, TRUE);
  Descriptor config = setup_config (&s, SIM_ENGINE_WRONG, 0); /* needs twice of what it uses */
  int64_t bytes = 0, n;
  CUDNN_OK (cudnnBackendGetAttribute (config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                      &bytes));
  g_assert_cmpint (bytes, <, (int64_t) s.workspace_bytes);
  OK (cudaMemsetAsync (s.workspace, 0x11, s.workspace_bytes, s.stream));
  g_autofree float *unused = setup_execute_plan (&s, build_plan (config));
  guint8 *copy = (guint8 *) pinned_memory (s.workspace_bytes);
  OK (cudaMemcpyAsync (copy, s.workspace, s.workspace_bytes, cudaMemcpyDeviceToHost, s.stream));
  OK (cudaStreamSynchronize (s.stream));
  for (gsize i = 0; i < s.workspace_bytes; i += 4)
    {
      guint32 word;
      memcpy (&word, copy + i, sizeof word);
      if (i < (gsize) bytes)
        g_assert_cmphex (word, !=, 0x11111111);
      else
        g_assert_cmphex (word, ==, 0x11111111);
    }
  g_assert_cmphex (copy[bytes - 1], ==, 0xff);
  OK (cudaFreeHost (copy));
  setup_clear (&s);
}

/* Other mistakes that the real library crashes on, or never notices. */
static void
test_mistakes (void)
{
  Setup s;

  setup_init (&s, setup_problem ("3x3"), RN_F32, TRUE);
  Descriptor op = build_new (CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  g_assert_cmpint (build_set_descriptor (op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, s.graph), ==,
                   CUDNN_STATUS_BAD_PARAM);
  FAULT ("*attribute 704 of a forward convolution is set to an operation graph*");
  setup_clear (&s);

  setup_init (&s, setup_problem ("3x3"), RN_F32, TRUE);
  Descriptor gone;
  CUDNN_OK (cudnnBackendCreateDescriptor (CUDNN_BACKEND_TENSOR_DESCRIPTOR, &gone));
  CUDNN_OK (cudnnBackendDestroyDescriptor (gone));
  g_assert_cmpint (cudnnBackendFinalize (gone), ==, CUDNN_STATUS_BAD_PARAM);
  FAULT ("cudnnBackendFinalize: * is not a descriptor, or was destroyed");
  setup_clear (&s);

  setup_init (&s, setup_problem ("3x3"), RN_F32, TRUE);
  Descriptor plan = build_plan (setup_config (&s, SIM_ENGINE_NORMAL, 0));
  g_autofree char *json = build_plan_json (plan);
  Descriptor loaded = build_new (CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  build_set (loaded, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t) strlen (json),
             json);
  g_assert_cmpint (build_finalize (loaded), !=, CUDNN_STATUS_SUCCESS);
  FAULT ("a plan is read from JSON without a device; cuDNN crashes");
  setup_clear (&s);

  setup_init (&s, setup_problem ("3x3"), RN_F32, TRUE);
  g_assert_cmpint (cudnnBackendExecute (s.handle, s.graph, setup_pack (&s)), ==, CUDNN_STATUS_BAD_PARAM);
  FAULT ("cudnnBackendExecute: an operation graph and a variant pack instead of a plan and a pack");
  setup_clear (&s);
}

/* A failure of the runtime comes back as one of cuDNN, and leaves nothing behind. */
static void
test_failures (void)
{
  Setup s;

  setup_init (&s, setup_problem ("3x3"), RN_F32, TRUE);
  Descriptor plan = build_plan (setup_config (&s, SIM_ENGINE_NORMAL, 0)), p = setup_pack (&s);
  sim_fail_call (1, cudaErrorLaunchOutOfResources);
  g_assert_cmpint (cudnnBackendExecute (s.handle, plan, p), ==, CUDNN_STATUS_EXECUTION_FAILED_CUDART);
  cudaGetLastError ();
  sim_fail_call (1, cudaErrorMemoryAllocation);
  cudnnHandle_t handle;
  g_assert_cmpint (cudnnCreate (&handle), ==, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
  cudaGetLastError ();
  setup_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (const Problem *p = setup_problems; p->name != NULL; p++)
    {
      g_autofree char *path = g_strdup_printf ("/sim-engines/stored-plans/%s", p->name);
      g_test_add_data_func (path, p, test_stored_plans);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (spoiled); i++)
    {
      g_autofree char *path = g_strdup_printf ("/sim-engines/spoiled/%s", spoiled[i].name);
      g_test_add_data_func (path, &spoiled[i], test_spoiled);
    }
  g_test_add_func ("/sim-engines/rank", test_rank);
  g_test_add_func ("/sim-engines/times", test_times);
  g_test_add_func ("/sim-engines/device", test_device);
  g_test_add_func ("/sim-engines/workspace", test_workspace);
  g_test_add_func ("/sim-engines/mistakes", test_mistakes);
  g_test_add_func ("/sim-engines/failures", test_failures);
  return g_test_run ();
}
