/* cudnn-plan-cases.c: devices, heuristics, engines, plans that were stored, and packs. */
#include "config.h"

#include "tests/gpu/cudnn-build.h"
#include "tests/gpu/cudnn-cases.h"

#include <string.h>

#define B(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define A(name) CUDNN_ATTR_##name
#define T(name) CUDNN_TYPE_##name
#define DESC CUDNN_TYPE_BACKEND_DESCRIPTOR

static Descriptor
small_graph (void)
{
  const WindowInfo window = { { 1, 1 }, { 1, 1 }, { 1, 1 }, CUDNN_DATA_FLOAT };
  const TensorInfo x = { .id = 1, .type = CUDNN_DATA_HALF, .dims = { 2, 16, 10, 12 }, .nhwc = TRUE },
                   w = { .id = 2, .type = CUDNN_DATA_HALF, .dims = { 16, 16, 3, 3 }, .nhwc = TRUE },
                   y = { .id = 3, .type = CUDNN_DATA_HALF, .dims = { 2, 16, 10, 12 }, .nhwc = TRUE };
  Descriptor op = build_convolution (BUILD_FORWARD, build_tensor (&x), build_tensor (&w), build_tensor (&y),
                                     build_window (&window), 1, 0);
  Descriptor graph = build_graph (1, &op);
  g_assert_cmpint (build_status, ==, 0);
  return graph;
}

/* The first proposal that is neither generic nor compiled at run time, of no great workspace. */
static Proposal
some_proposal (Descriptor profile)
{
  g_autoptr (GArray) proposals = build_proposals (small_graph (), profile, CUDNN_HEUR_MODE_A);
  for (guint i = 0; i < proposals->len; i++)
    {
      const Proposal *p = &g_array_index (proposals, Proposal, i);
      if (p->engine != 0 && !(p->behavior_notes & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION))
        return *p;
    }
  g_error ("no engine");
}

static char *
replaced (const char *text, const char *from, const char *to)
{
  const char *at = strstr (text, from);
  if (at == NULL)
    g_error ("\"%s\" is not in %s", from, text);
  return g_strdup_printf ("%.*s%s%s", (int) (at - text), text, to, at + strlen (from));
}

/* ---- devices ---- */

/* A text with a change; @status of it as a profile, and of a plan for the profile as it was. */
typedef struct
{
  const char *name, *from, *to;
  int status, plan_status;
} ProfileCase;

static const ProfileCase profiles[] = {
  { "same", "{", "{", 0, 0 },
  { "space", "{", " { ", 0, 0 },
  { "other-name", "Tesla T4", "T4", 0, 0 },
  { "other-multiprocessors", "\"multiProcessorCount\":40", "\"multiProcessorCount\":41", 0, 3007 },
  { "other-memory", "15835660288", "15835660289", 0, 0 },
  { "other-driver", "\"driverVer\":13000", "\"driverVer\":13010", 0, 3007 },
  { "other-capability", "\"deviceVer\":750", "\"deviceVer\":800", 0, 3007 },
  { "other-clock", "1590000", "1590001", 0, 0 },
  { "other-l2", "4194304", "1572864", 0, 0 },
  { "other-id", "\"cudaDeviceId\":0", "\"cudaDeviceId\":1", 0, 0 },
  { "other-bus", "\"pciDeviceId\":0", "\"pciDeviceId\":1", 0, 0 },
  { "too-old", "\"deviceVer\":750", "\"deviceVer\":350", 3007, 0 },
  { "member-missing", "\"l2CacheSize\":", "\"m2CacheSize\":", 2000, 0 },
  { "member-of-another-type", "\"regsPerBlock\":65536", "\"regsPerBlock\":\"abc\"", 2000, 0 },
  { "not-closed", "\"}", "\"", 2000, 0 },
};

static void
test_profile (gconstpointer data)
{
  const ProfileCase *c = data;

  cudnn_case_begin ();
  g_autofree char *json = build_plan_json (build_plan (some_proposal (build_profile (build_t4)).config));
  g_autofree char *text = replaced (build_t4, c->from, c->to);
  Descriptor profile = build_profile (text);
  g_assert_cmpint (build_status, ==, c->status);
  if (c->status == 0)
    {
      build_plan_from_json (profile, json);
      g_assert_cmpint (build_status, ==, c->plan_status);
    }
  cudnn_case_end (FALSE);
}

static void
test_profile_texts (void)
{
  static const char *const wrong[] = { "hello", "{}", "", "[1]" };
  char text[2048] = "";
  int64_t n = 0, n_given = -1;

  cudnn_case_begin ();
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      build_status = CUDNN_STATUS_SUCCESS;
      build_profile (wrong[i]);
      g_assert_cmpint (build_status, ==, 2000);
    }
  build_status = CUDNN_STATUS_SUCCESS;

  /* The end of the string may be counted, and comes back as it was given. */
  for (int end = 0; end < 2; end++)
    {
      Descriptor d = build_new (B (DEVICEPROP));
      build_set (d, A (DEVICEPROP_JSON_REPRESENTATION), T (CHAR), (int64_t) strlen (build_t4) + end,
                 build_t4);
      g_assert_cmpint (build_finalize (d), ==, 0);
      g_assert_cmpint (build_finalize (d), ==, 2000);
      g_assert_cmpint (build_set (d, A (DEVICEPROP_JSON_REPRESENTATION), T (CHAR), 2, "{}"), ==, 2000);
#define GET(n_asked, values) \
  cudnnBackendGetAttribute (d, A (DEVICEPROP_JSON_REPRESENTATION), T (CHAR), n_asked, &n_given, values)
      g_assert_cmpint (GET (0, NULL), ==, 0);
      n = n_given;
      g_assert_cmpint (n, ==, (int64_t) strlen (build_t4) + end);
      n_given = -1;
      g_assert_cmpint (GET (n - 1, text), ==, 2006);
      g_assert_cmpint (n_given, ==, -1);
      g_assert_cmpint (GET (n, text), ==, 0);
      g_assert_cmpstr (text, ==, build_t4);
#undef GET
    }
  cudnn_case_end (FALSE);
}

/* ---- heuristics and engines ---- */

static Descriptor
heuristics_of (Descriptor graph, Descriptor profile)
{
  Descriptor h = build_new (B (ENGINEHEUR));
  build_set_descriptor (h, A (ENGINEHEUR_OPERATION_GRAPH), graph);
  build_set_enum (h, A (ENGINEHEUR_MODE), T (HEUR_MODE), CUDNN_HEUR_MODE_A);
  if (profile != NULL)
    build_set_descriptor (h, A (ENGINEHEUR_DEVICEPROP), profile);
  return h;
}

#define RESULTS(h, type, n_asked, n_given, values) \
  cudnnBackendGetAttribute (h, A (ENGINEHEUR_RESULTS), type, n_asked, n_given, values)

static void
test_heuristics (void)
{
  int64_t n = -1;

  cudnn_case_begin ();
  Descriptor h = heuristics_of (small_graph (), build_profile (build_t4));
  Descriptor configs[] = { build_new (B (ENGINECFG)), build_new (B (ENGINECFG)), build_new (B (ENGINECFG)) };
  g_assert_cmpint (RESULTS (h, DESC, 0, &n, NULL), ==, 1001);
  g_assert_cmpint (build_finalize (h), ==, 0);
  g_assert_cmpint (RESULTS (h, DESC, 3, &n, configs), ==, 0);
  g_assert_cmpint (n, ==, 3);
  g_assert_cmpint (RESULTS (h, DESC, -1, &n, configs), ==, 2000);
  g_assert_cmpint (RESULTS (h, T (INT64), 0, &n, NULL), ==, 2010);
  Descriptor holes[] = { build_new (B (ENGINECFG)), NULL };
  g_assert_cmpint (RESULTS (h, DESC, 2, &n, holes), ==, 0);
  g_assert_cmpint (n, ==, 1);
  cudnn_case_end (FALSE);
}

/* For no device there is no engine. */
static void
test_heuristics_without_device (void)
{
  int64_t n = -1;
  Descriptor configs[2];

  cudnn_case_begin ();
  Descriptor h = heuristics_of (small_graph (), NULL);
  configs[0] = build_new (B (ENGINECFG));
  configs[1] = build_new (B (ENGINECFG));
  g_assert_cmpint (build_finalize (h), ==, 0);
  g_assert_cmpint (RESULTS (h, DESC, 2, &n, configs), ==, 0);
  g_assert_cmpint (n, ==, 0);
  cudnn_case_end (TRUE);
}

static void
test_results_of_another_kind (void)
{
  int64_t n = -1;
  cudnn_case_begin ();
  Descriptor h = heuristics_of (small_graph (), build_profile (build_t4)), tensor = build_new (B (TENSOR));
  g_assert_cmpint (build_finalize (h), ==, 0);
  g_assert_cmpint (RESULTS (h, DESC, 1, &n, &tensor), ==, 0);
  g_assert_cmpint (n, ==, 0);
  cudnn_case_end (TRUE);
}

static void
test_heuristics_without_mode (void)
{
  cudnn_case_begin ();
  build_skip = A (ENGINEHEUR_MODE);
  g_assert_cmpint (build_finalize (heuristics_of (small_graph (), build_profile (build_t4))), ==, 0);
  cudnn_case_end (TRUE);
}

static void
test_config (void)
{
  int64_t value = -1, n = -1;
  int notes[16];

  cudnn_case_begin ();
  Descriptor config = some_proposal (build_profile (build_t4)).config, engine = build_new (B (ENGINE));
#define GET(d, name, type, n_asked, values) cudnnBackendGetAttribute (d, A (name), type, n_asked, &n, values)
  g_assert_cmpint (GET (config, ENGINECFG_WORKSPACE_SIZE, T (INT64), 1, &value), ==, 0);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpint (value, >=, 0);
  g_assert_cmpint (GET (config, ENGINECFG_WORKSPACE_SIZE, T (FLOAT), 1, &value), ==, 2010);
  g_assert_cmpint (GET (config, ENGINECFG_WORKSPACE_SIZE, T (INT64), 0, NULL), ==, 0);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpint (GET (config, ENGINECFG_WORKSPACE_SIZE, T (INT64), 2, &value), ==, 2000);

  Descriptor null = NULL, tensor = build_new (B (TENSOR));
  g_assert_cmpint (GET (config, ENGINECFG_ENGINE, DESC, 1, &null), ==, 2000);
  g_assert_cmpint (GET (config, ENGINECFG_ENGINE, DESC, 1, &tensor), ==, 2000);
  g_assert_cmpint (GET (config, ENGINECFG_ENGINE, DESC, 1, &engine), ==, 0);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpint (GET (engine, ENGINE_GLOBAL_INDEX, T (INT64), 1, &value), ==, 0);
  g_assert_cmpint (value, >, 0);
  g_assert_cmpint (GET (engine, ENGINE_GLOBAL_INDEX, T (FLOAT), 1, &value), ==, 2010);
  g_assert_cmpint (GET (engine, ENGINE_NUMERICAL_NOTE, T (NUMERICAL_NOTE), 0, NULL), ==, 0);
  g_assert_cmpint (GET (engine, ENGINE_NUMERICAL_NOTE, T (NUMERICAL_NOTE), 16, notes), ==, 0);
  g_assert_cmpint (GET (engine, ENGINE_NUMERICAL_NOTE, T (INT64), 1, notes), ==, 2010);
  g_assert_cmpint (GET (engine, ENGINE_BEHAVIOR_NOTE, T (BEHAVIOR_NOTE), 16, notes), ==, 0);
  g_assert_cmpint (GET (engine, ENGINE_BEHAVIOR_NOTE, T (INT64), 1, notes), ==, 2010);
#undef GET
  cudnn_case_end (FALSE);
}

/* An engine by its number: the generic one is always there. */
static void
test_engines (void)
{
  static const int64_t numbers[] = { 0, -1, 100000 };
  int64_t workspace = -1, n;

  cudnn_case_begin ();
  Descriptor graph = small_graph (), profile = build_profile (build_t4);
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    {
      Descriptor engine = build_new (B (ENGINE));
      build_set_descriptor (engine, A (ENGINE_OPERATION_GRAPH), graph);
      build_set_descriptor (engine, A (ENGINE_DEVICEPROP), profile);
      build_set_int64 (engine, A (ENGINE_GLOBAL_INDEX), numbers[i]);
      g_assert_cmpint (build_finalize (engine), ==, i == 0 ? 0 : 3000);
      if (i > 0)
        continue;
      Descriptor config = build_new (B (ENGINECFG));
      build_set_descriptor (config, A (ENGINECFG_ENGINE), engine);
      g_assert_cmpint (build_finalize (config), ==, 0);
      Descriptor plan = build_plan (config);
      g_assert_cmpint (build_status, ==, 0);
      g_assert_cmpint (
          cudnnBackendGetAttribute (plan, A (EXECUTION_PLAN_WORKSPACE_SIZE), T (INT64), 1, &n, &workspace),
          ==, 0);
      g_assert_cmpint (workspace, ==, 0);
    }
  Descriptor engine = build_new (B (ENGINE));
  build_set_descriptor (engine, A (ENGINE_OPERATION_GRAPH), graph);
  build_set_descriptor (engine, A (ENGINE_DEVICEPROP), profile);
  g_assert_cmpint (build_finalize (engine), ==, 3000);
  cudnn_case_end (FALSE);
}

/* ---- plans ---- */

typedef struct
{
  const char *name, *from, *to;
  int status;
} TextCase;

static const TextCase texts[] = {
  { "same", "{", "{", 0 },
  { "space", "{", "{ ", 0 },
  { "newer", "\"cudnnVersion\":", "\"cudnnVersion\":1", 1002 },
  { "older", "\"cudnnVersion\":9", "\"cudnnVersion\":8", 1002 },
  { "version-of-another-type", "\"cudnnVersion\":", "\"cudnnVersion\":\"x\",\"was\":", 2000 },
  { "version-missing", "\"cudnnVersion\":", "\"was\":", 2000 },
  { "schema", "\"schemaVersion\":", "\"schemaVersion\":9", 1003 },
  { "schema-missing", "\"schemaVersion\":", "\"was\":", 2000 },
  { "engine-unknown", "\"engineId\":", "\"engineId\":9999", 3000 },
  { "engine-negative", "\"engineId\":", "\"engineId\":-", 3000 },
  { "engine-of-another-type", "\"engineId\":", "\"engineId\":\"a\",\"was\":", 2000 },
  { "engine-id-missing", "\"engineId\":", "\"was\":", 2000 },
  { "engine-missing", "\"engine\":", "\"was\":", 2000 },
  { "graph-missing", "\"operationGraph\":", "\"was\":", 2000 },
  { "device-missing", "\"GPUProfile\":", "\"was\":", 2000 },
  { "device-member-missing", "\"warpSize\":", "\"was\":", 2000 },
  { "size", "\"dim\":[2,16,10,12]", "\"dim\":[2,16,10,13]", 2000 },
  { "fewer-dims", "\"dim\":[2,16,10,12]", "\"dim\":[2,16,10]", 2000 },
  { "type", "CUDNN_DATA_HALF", "CUDNN_DATA_BLAH", 2000 },
  { "unknown-tensor", "\"X\":\"1\"", "\"X\":\"9\"", 2000 },
  { "tensor-missing", "\"X\":\"1\",", "", 2000 },
  { "not-closed", "}}}", "}}", 2000 },
  { "more-behind", "}}}", "}}}x", 2000 },
};

static void
test_text (gconstpointer data)
{
  const TextCase *c = data;
  cudnn_case_begin ();
  Descriptor profile = build_profile (build_t4);
  g_autofree char *json = build_plan_json (build_plan (some_proposal (profile).config));
  g_autofree char *text = replaced (json, c->from, c->to);
  g_assert_cmpint (build_status, ==, 0);
  build_plan_from_json (profile, text);
  g_assert_cmpint (build_status, ==, c->status);
  cudnn_case_end (FALSE);
}

static void
test_plan (void)
{
  static const char *const wrong[] = { "hello", "{}", "", "[1]" };
  int64_t n = -1, workspace = -1;

  cudnn_case_begin ();
  Descriptor profile = build_profile (build_t4);
  Proposal proposal = some_proposal (profile);
  Descriptor plan = build_plan (proposal.config);
  g_assert_cmpint (build_status, ==, 0);
#define GET(name, type, n_asked, values) \
  cudnnBackendGetAttribute (plan, A (EXECUTION_PLAN_##name), type, n_asked, &n, values)
  g_assert_cmpint (GET (WORKSPACE_SIZE, T (INT64), 1, &workspace), ==, 0);
  g_assert_cmpint (workspace, ==, proposal.workspace);
  g_assert_cmpint (GET (JSON_REPRESENTATION, T (CHAR), 0, NULL), ==, 0);
  g_assert_cmpint (n, >, 1000);
  g_autofree char *text = g_malloc0 ((gsize) n + 1);
  int64_t length = n;
  n = -1;
  g_assert_cmpint (GET (JSON_REPRESENTATION, T (CHAR), length - 1, text), ==, 2006);
  g_assert_cmpint (n, ==, -1);
  g_assert_cmpint (GET (JSON_REPRESENTATION, T (CHAR), length, text), ==, 0);
  g_assert_cmpint (n, ==, length);
  g_assert_cmpint ((int64_t) strlen (text), ==, length);
#undef GET

  /* Written and read, it is the same, whatever was set first, and with the end counted. */
  Descriptor again = build_new (B (EXECUTION_PLAN));
  build_set (again, A (EXECUTION_PLAN_JSON_REPRESENTATION), T (CHAR), length + 1, text);
  build_set_descriptor (again, A (EXECUTION_PLAN_DEVICEPROP), profile);
  g_assert_cmpint (build_finalize (again), ==, 0);
  g_autofree char *second = build_plan_json (again);
  g_assert_cmpstr (second, ==, text);
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      build_status = CUDNN_STATUS_SUCCESS;
      build_plan_from_json (profile, wrong[i]);
      g_assert_cmpint (build_status, ==, 2000);
    }

  Descriptor unfinished = build_new (B (EXECUTION_PLAN));
  build_set_descriptor (unfinished, A (EXECUTION_PLAN_ENGINE_CONFIG), build_new (B (ENGINECFG)));
  g_assert_cmpint (build_finalize (unfinished), ==, 2004);
  cudnn_case_end (FALSE);
}

/* A plan outlives all that it was made from. */
static void
test_plan_lives (void)
{
  Descriptor plan = NULL;

  cudnn_case_begin ();
  Descriptor config = some_proposal (build_profile (build_t4)).config;
  g_assert_cmpint (cudnnBackendCreateDescriptor (B (EXECUTION_PLAN), &plan), ==, 0);
  build_set_descriptor (plan, A (EXECUTION_PLAN_ENGINE_CONFIG), config);
  build_end ();
  build_begin ();
  g_assert_cmpint (build_finalize (plan), ==, 0);
  g_autofree char *json = build_plan_json (plan);
  g_assert_cmpint (cudnnBackendDestroyDescriptor (plan), ==, 0);
  build_plan_from_json (build_profile (build_t4), json);
  g_assert_cmpint (build_status, ==, 0);
  cudnn_case_end (FALSE);
}

/* ---- packs: nothing but the counts is checked ---- */

static void
test_pack (void)
{
  const int64_t ids[] = { 1, 2, 3 }, same[] = { 1, 1, 3 };
  void *const pointers[] = { (void *) 256, (void *) 512, (void *) 1024 }, *const nulls[] = { NULL, NULL,
                                                                                             NULL };
  void *workspace = NULL;
  const struct
  {
    const int64_t *ids;
    void *const *pointers;
    int n_ids, n_pointers, status;
  } packs[] = { { ids, pointers, 3, 3, 0 }, { ids, pointers, 3, 2, 2000 }, { same, pointers, 3, 3, 0 },
                { ids, nulls, 3, 3, 0 },    { ids, NULL, 3, 0, 2000 },     { NULL, pointers, 0, 3, 2000 } };
  int64_t n;

  cudnn_case_begin ();
  for (gsize i = 0; i < G_N_ELEMENTS (packs); i++)
    {
      Descriptor d = build_new (B (VARIANT_PACK));
      if (packs[i].n_ids > 0)
        build_set (d, A (VARIANT_PACK_UNIQUE_IDS), T (INT64), packs[i].n_ids, packs[i].ids);
      if (packs[i].n_pointers > 0)
        build_set (d, A (VARIANT_PACK_DATA_POINTERS), T (VOID_PTR), packs[i].n_pointers, packs[i].pointers);
      g_assert_cmpint (build_set (d, A (VARIANT_PACK_WORKSPACE), T (VOID_PTR), 1, &workspace), ==, 0);
      g_assert_cmpint (build_finalize (d), ==, packs[i].status);
      if (packs[i].status != 0)
        continue;
      g_assert_cmpint (build_set (d, A (VARIANT_PACK_WORKSPACE), T (VOID_PTR), 1, &workspace), ==, 2000);
      g_assert_cmpint (build_finalize (d), ==, 2000);
      g_assert_cmpint (
          cudnnBackendGetAttribute (d, A (VARIANT_PACK_WORKSPACE), T (VOID_PTR), 1, &n, &workspace), ==, 0);
      g_assert_null (workspace);
    }
  cudnn_case_end (FALSE);
}

void
cudnn_plan_cases_add (void)
{
  CUDNN_CASES_ADD ("profile", profiles, test_profile);
  CUDNN_CASES_ADD ("plan-text", texts, test_text);
  g_test_add_func ("/cudnn/profile/texts", test_profile_texts);
  g_test_add_func ("/cudnn/heuristics/results", test_heuristics);
  g_test_add_func ("/cudnn/heuristics/without-device", test_heuristics_without_device);
  g_test_add_func ("/cudnn/heuristics/another-kind", test_results_of_another_kind);
  g_test_add_func ("/cudnn/heuristics/without-mode", test_heuristics_without_mode);
  g_test_add_func ("/cudnn/config", test_config);
  g_test_add_func ("/cudnn/engines", test_engines);
  g_test_add_func ("/cudnn/plan/json", test_plan);
  g_test_add_func ("/cudnn/plan/lives", test_plan_lives);
  g_test_add_func ("/cudnn/pack", test_pack);
}
