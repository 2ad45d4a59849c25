/*
 * conv-measure.c: the fastest of the engines that compute what the generic engine computes.
 *
 * It runs before the first step, in the arena, and is the one part of convolutions that waits for the device.
 * That an engine is listed does not mean that it is right on the device at hand: half precision gives NaN on
 * some cards of the GTX 16 series.
 */
#define G_LOG_DOMAIN "rn-kernels"
#include "config.h"

#include "kernels/cuda/conv-plan.h"

#include "kernels/cuda/conv-private.h"
#include "kernels/cuda/conv-verify.h"
#include "kernels/cuda/try.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CANDIDATES 16
#define N_TIMES 3
#define PATIENCE 2                      /* who is so many times slower than the best is not timed again */
#define STAGING_BYTES ((gsize) 4 << 20) /* of pinned memory, for copies both ways */
#define ALIGNMENT ((gsize) 256)         /* of a copy of the residual in the workspace */

typedef struct
{
  RnCudnnPlan *plan;
  RnCudnnConfigInfo info;
  gsize workspace;
  char *json;
} Candidate;

static void
candidate_free (gpointer data)
{
  Candidate *candidate = data;

  rn_cudnn_plan_free (candidate->plan);
  g_free (candidate->json);
  g_free (candidate);
}

/* What a measurement holds. */
typedef struct
{
  RnConvLibrary *library;
  const RnConvProblem *problem;
  RnConvPointers pointers;
  gsize limit;
  gsize element, output_bytes;
  RnConvTolerance tolerance;
  cudaStream_t stream;
  cudaEvent_t events[2];
  guint8 *staging;                 /* pinned */
  guint8 *wanted, *result, *apart; /* [output_bytes] of the host; the last with a residual, else NULL */
} Measuring;

/* ---- the runtime ---- */

static RnStatus
check (Measuring *m, cudaError_t error, const char *what)
{
  if (error == cudaSuccess)
    return RN_STATUS_OK;
  cudaGetLastError (); /* one that does not stay is not to be reported by a later launch */
  return rn_conv_fail (m->library, error == cudaErrorMemoryAllocation ? RN_STATUS_MEMORY : RN_STATUS_DEVICE,
                       "%s (%d) in %s, measuring a convolution", cudaGetErrorName (error), (int) error, what);
}

static RnStatus
wait (Measuring *m)
{
  return check (m, cudaStreamSynchronize (m->stream), "cudaStreamSynchronize");
}

static RnStatus
upload_random (Measuring *m, void *device, int64_t elements, guint32 seed)
{
  const gsize step = STAGING_BYTES / m->element;

  for (gsize first = 0; first < (gsize) elements; first += step)
    {
      gsize n = MIN (step, (gsize) elements - first);
      rn_conv_fill_random (m->problem->dtype, m->staging, first, n, seed);
      RN_TRY (check (m,
                     cudaMemcpyAsync ((guint8 *) device + first * m->element, m->staging, n * m->element,
                                      cudaMemcpyHostToDevice, m->stream),
                     "cudaMemcpyAsync"));
      RN_TRY (wait (m));
    }
  return RN_STATUS_OK;
}

/* The output, to @host. */
static RnStatus
download (Measuring *m, guint8 *host)
{
  const guint8 *output = rn_conv_output (m->problem, &m->pointers);

  for (gsize first = 0; first < m->output_bytes; first += STAGING_BYTES)
    {
      gsize n = MIN (STAGING_BYTES, m->output_bytes - first);
      RN_TRY (check (m, cudaMemcpyAsync (m->staging, output + first, n, cudaMemcpyDeviceToHost, m->stream),
                     "cudaMemcpyAsync"));
      RN_TRY (wait (m));
      memcpy (host + first, m->staging, n);
    }
  return RN_STATUS_OK;
}

/* ---- numbers ---- */

enum
{
  SEED_X = 1,
  SEED_W,
  SEED_BIAS,
  SEED_Z,
  SEED_DY,
  SEED_OUTPUT,
};

/* What is only read, once. */
static RnStatus
upload_inputs (Measuring *m)
{
  const RnConvProblem *p = m->problem;
  const RnConvPointers *at = &m->pointers;

  if (p->kind != RN_CONV_BACKWARD_DATA)
    RN_TRY (upload_random (m, (void *) at->x, p->n * p->c * p->h * p->w, SEED_X));
  if (p->kind != RN_CONV_BACKWARD_WEIGHTS)
    RN_TRY (
        upload_random (m, (void *) at->w, p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1], SEED_W));
  if (p->kind != RN_CONV_FORWARD)
    RN_TRY (upload_random (m, (void *) at->dy, p->n * p->k * p->oh * p->ow, SEED_DY));
  if (p->bias)
    RN_TRY (upload_random (m, (void *) at->bias, p->k, SEED_BIAS));
  if (p->residual && at->z != at->y)
    RN_TRY (upload_random (m, (void *) at->z, rn_conv_output_elements (p), SEED_Z));
  return RN_STATUS_OK;
}

/*
 * The output before an execution: what is added to, the residual that it replaces (@in_place), or NaN, so
 * that what is not written shows. Likewise the workspace, whose contents no engine may rely on.
 */
static RnStatus
prepare_output (Measuring *m, gsize workspace, gboolean in_place)
{
  const RnConvProblem *p = m->problem;
  void *output = rn_conv_output (p, &m->pointers);

  if (workspace > 0)
    RN_TRY (
        check (m, cudaMemsetAsync (m->pointers.workspace, 0xff, workspace, m->stream), "cudaMemsetAsync"));
  if (in_place)
    return upload_random (m, output, rn_conv_output_elements (p), SEED_Z);
  if (p->accumulate)
    return upload_random (m, output, rn_conv_output_elements (p), SEED_OUTPUT);
  return check (m, cudaMemsetAsync (output, 0xff, m->output_bytes, m->stream), "cudaMemsetAsync");
}

/* Where the residual can lie when the output is not to replace it; NULL: nowhere. */
static void *
residual_apart (const Measuring *m, gsize workspace)
{
  gsize at = (workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

  if (m->pointers.z != m->pointers.y)
    return (void *) m->pointers.z;
  if (at > m->limit || m->limit - at < m->output_bytes)
    return NULL;
  return (guint8 *) m->pointers.workspace + at;
}

/* ---- one candidate ---- */

/* RN_STATUS_UNSUPPORTED: the engine failed and the device did not. */
static RnStatus
execute (Measuring *m, const Candidate *candidate, const RnConvPointers *pointers)
{
  g_autoptr (RnCudnnPack) pack = rn_conv_pack_new (m->library, m->problem, pointers, candidate->workspace);

  if (pack == NULL)
    return RN_STATUS_DEVICE;
  gboolean is_ok = rn_cudnn_execute (m->library->cudnn, candidate->plan, pack);
  RN_TRY (wait (m));
  if (!is_ok)
    rn_cudnn_trace (m->library->cudnn, "engine %" G_GINT64_FORMAT " failed: %s", candidate->info.engine,
                    rn_cudnn_fault (m->library->cudnn));
  return is_ok ? RN_STATUS_OK : RN_STATUS_UNSUPPORTED;
}

/* Runs it once and fetches the result. */
static RnStatus
run_once (Measuring *m, const Candidate *candidate, gboolean in_place, guint8 *result)
{
  RnConvPointers pointers = m->pointers;

  RN_TRY (prepare_output (m, candidate->workspace, in_place));
  if (m->problem->residual)
    {
      pointers.z = in_place ? pointers.y : residual_apart (m, candidate->workspace);
      if (pointers.z != pointers.y && pointers.z != m->pointers.z) /* in the workspace */
        RN_TRY (upload_random (m, (void *) pointers.z, rn_conv_output_elements (m->problem), SEED_Z));
    }
  RN_TRY (execute (m, candidate, &pointers));
  return download (m, result);
}

static gboolean
agrees (const Measuring *m)
{
  return rn_conv_agrees (m->problem->dtype, m->result, m->wanted, m->output_bytes / m->element, m->tolerance);
}

/*
 * *@is_right: does it compute what the generic engine does, and the same bits where its output replaces the
 * residual? The library does not promise the latter.
 */
static RnStatus
verify (Measuring *m, const Candidate *candidate, gboolean *is_right)
{
  gboolean has_residual = m->problem->residual;
  gboolean can_be_apart = !has_residual || residual_apart (m, candidate->workspace) != NULL;

  *is_right = FALSE;
  if (can_be_apart)
    {
      RN_TRY (run_once (m, candidate, FALSE, m->result));
      *is_right = agrees (m);
      if (!*is_right || !has_residual)
        return RN_STATUS_OK;
      memcpy (m->apart, m->result, m->output_bytes);
    }
  *is_right = FALSE;
  RN_TRY (run_once (m, candidate, TRUE, m->result));
  *is_right = can_be_apart ? memcmp (m->apart, m->result, m->output_bytes) == 0 : agrees (m);
  return RN_STATUS_OK;
}

static int
compare_times (gconstpointer a, gconstpointer b)
{
  float difference = *(const float *) a - *(const float *) b;
  return difference < 0 ? -1 : difference > 0;
}

/* *@ms: the median of its times, or the first where that is hopeless. */
static RnStatus
time_candidate (Measuring *m, const Candidate *candidate, float best, float *ms)
{
  g_autoptr (RnCudnnPack) pack =
      rn_conv_pack_new (m->library, m->problem, &m->pointers, candidate->workspace);
  float times[N_TIMES];

  if (pack == NULL)
    return RN_STATUS_DEVICE;
  for (int i = 0; i < N_TIMES; i++)
    {
      RN_TRY (check (m, cudaEventRecord (m->events[0], m->stream), "cudaEventRecord"));
      if (!rn_cudnn_execute (m->library->cudnn, candidate->plan, pack))
        return rn_conv_fail_cudnn (m->library);
      RN_TRY (check (m, cudaEventRecord (m->events[1], m->stream), "cudaEventRecord"));
      RN_TRY (wait (m));
      RN_TRY (
          check (m, cudaEventElapsedTime (&times[i], m->events[0], m->events[1]), "cudaEventElapsedTime"));
      *ms = times[i];
      if (best > 0 && times[i] > PATIENCE * best)
        return RN_STATUS_OK;
    }
  qsort (times, N_TIMES, sizeof *times, compare_times);
  *ms = times[N_TIMES / 2];
  return RN_STATUS_OK;
}

/* ---- all candidates ---- */

/* Modes propose the same again and again. */
static gboolean
is_known (const GPtrArray *candidates, const char *json)
{
  for (guint i = 0; i < candidates->len; i++)
    if (strcmp (((const Candidate *) candidates->pdata[i])->json, json) == 0)
      return TRUE;
  return FALSE;
}

/* Appends the engine's plan, if there is one that is new. */
static void
add_candidate (Measuring *m, const RnConvEngine *engine, GPtrArray *candidates)
{
  RnCudnn *cudnn = m->library->cudnn;
  gsize workspace = 0;
  g_autoptr (RnCudnnPlan) plan = rn_cudnn_plan_new (cudnn, engine->config);

  if (plan == NULL || !rn_cudnn_plan_workspace (cudnn, plan, &workspace) || workspace > m->limit)
    return;
  g_autofree char *json = rn_cudnn_plan_to_json (cudnn, plan);
  if (json == NULL || is_known (candidates, json))
    return;
  Candidate *candidate = g_new0 (Candidate, 1);
  candidate->plan = g_steal_pointer (&plan);
  candidate->json = g_steal_pointer (&json);
  candidate->info = engine->info;
  candidate->workspace = workspace;
  g_ptr_array_add (candidates, candidate);
}

/* The generic engine first, where there is one. */
static RnStatus
list_candidates (Measuring *m, GPtrArray *candidates, gboolean *has_generic)
{
  RnConvLibrary *library = m->library;
  const RnConvFilter filter = rn_conv_filter (library, m->problem, m->limit);
  g_autoptr (GPtrArray) engines = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_conv_engine_free);
  g_autoptr (RnCudnnGraph) graph = rn_conv_graph_new (library->cudnn, m->problem);
  g_autoptr (RnConvEngine) generic = NULL;
  const char *reason = NULL;

  if (graph == NULL)
    return rn_conv_fail_cudnn (library);
  if (!rn_conv_engines_ask_all (library->cudnn, library->device, graph, &filter, engines, &generic, &reason))
    return rn_conv_fail_cudnn (library);
  if (generic != NULL)
    add_candidate (m, generic, candidates);
  *has_generic = candidates->len > 0;
  for (guint i = 0; i < engines->len && candidates->len < MAX_CANDIDATES + 1; i++)
    add_candidate (m, engines->pdata[i], candidates);
  return RN_STATUS_OK;
}

/* The index of the fastest that is right, 0 (the generic one) where none is, and its time. */
static RnStatus
find_best (Measuring *m, const GPtrArray *candidates, guint *best, float *ms)
{
  const Candidate *generic = candidates->pdata[0];
  gboolean in_place = m->problem->residual && residual_apart (m, generic->workspace) == NULL;
  float time = 0;

  *best = 0;
  *ms = 0;
  RnStatus first = run_once (m, generic, in_place, m->wanted);
  if (first != RN_STATUS_OK)
    return first == RN_STATUS_UNSUPPORTED ? rn_conv_fail_cudnn (m->library) : first;
  for (guint i = 1; i < candidates->len; i++)
    {
      const Candidate *candidate = candidates->pdata[i];
      gboolean is_right = FALSE;
      RnStatus status = verify (m, candidate, &is_right);
      if (status != RN_STATUS_OK && status != RN_STATUS_UNSUPPORTED)
        return status;
      if (!is_right)
        {
          g_autofree char *detail = rn_conv_engine_detail (&candidate->info);
          g_autofree char *text = rn_conv_problem_text (m->problem);
          g_message ("%s: %s %s, and is left out", text, detail,
                     status == RN_STATUS_OK ? "does not compute what the generic engine does" : "fails");
          continue;
        }
      RN_TRY (time_candidate (m, candidate, *ms, &time));
      rn_cudnn_trace (m->library->cudnn,
                      "engine %" G_GINT64_FORMAT ", workspace %" G_GSIZE_FORMAT ": %.3f ms",
                      candidate->info.engine, candidate->workspace, (double) time);
      if (*best == 0 || time < *ms)
        {
          *best = i;
          *ms = time;
        }
    }
  return *best == 0 ? time_candidate (m, generic, 0, ms) : RN_STATUS_OK;
}

static void
measuring_clear (Measuring *m)
{
  for (int i = 0; i < 2; i++)
    if (m->events[i] != NULL)
      cudaEventDestroy (m->events[i]);
  if (m->staging != NULL)
    cudaFreeHost (m->staging);
  cudaGetLastError (); /* of an engine that failed, or of these: no later launch is to report it */
  g_free (m->wanted);
  g_free (m->result);
  g_free (m->apart);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Measuring, measuring_clear)

static RnStatus
measuring_init (Measuring *m)
{
  void *staging = NULL;

  m->wanted = g_try_malloc (m->output_bytes);
  m->result = g_try_malloc (m->output_bytes);
  if (m->problem->residual)
    m->apart = g_try_malloc (m->output_bytes);
  if (m->wanted == NULL || m->result == NULL || (m->problem->residual && m->apart == NULL))
    return rn_conv_fail (m->library, RN_STATUS_MEMORY, "no memory to measure a convolution");
  for (int i = 0; i < 2; i++)
    RN_TRY (
        check (m, cudaEventCreateWithFlags (&m->events[i], cudaEventDefault), "cudaEventCreateWithFlags"));
  RN_TRY (check (m, cudaHostAlloc (&staging, STAGING_BYTES, cudaHostAllocDefault), "cudaHostAlloc"));
  m->staging = staging;
  return upload_inputs (m);
}

/* With nothing to compare there is no choice by time: the one by rank is kept, as others are. */
static RnStatus
keep_first (RnConvPlan *plan)
{
  RnConvChoice *choice = plan->choice;
  g_autofree char *json = rn_cudnn_plan_to_json (plan->library->cudnn, choice->plan);

  if (json == NULL)
    return rn_conv_fail_cudnn (plan->library);
  choice->is_measured = TRUE;
  rn_conv_plan_take (plan, rn_conv_choice_ref (choice), json, 0);
  return RN_STATUS_OK;
}

RnStatus
rn_conv_plan_measure (RnConvPlan *plan, const RnConvPointers *pointers, gsize workspace_limit)
{
  RnConvLibrary *library = plan->library;
  const RnConvProblem *problem = &plan->problem;
  gsize element = rn_dtype_size (problem->dtype);
  g_autoptr (GPtrArray) candidates = g_ptr_array_new_with_free_func (candidate_free);
  gboolean has_generic = FALSE;
  guint best = 0;
  float ms = 0;

  if (library->is_plan_only)
    return rn_conv_fail (library, RN_STATUS_DEVICE, "a device that is not there runs nothing");
  if (library->by_rank || rn_conv_plan_adopt (plan))
    return RN_STATUS_OK;
  g_auto (Measuring) m = { .library = library,
                           .problem = problem,
                           .pointers = *pointers,
                           .limit = MIN (workspace_limit, plan->workspace_limit),
                           .element = element,
                           .output_bytes = (gsize) rn_conv_output_elements (problem) * element,
                           .tolerance = rn_conv_tolerance (problem),
                           .stream = library->stream };
  RN_TRY (list_candidates (&m, candidates, &has_generic));
  if (!has_generic)
    return keep_first (plan);
  RN_TRY (measuring_init (&m));
  RN_TRY (find_best (&m, candidates, &best, &ms));

  Candidate *chosen = candidates->pdata[best];
  g_autofree char *detail = rn_conv_engine_detail (&chosen->info);
  RnConvChoice *choice = rn_conv_choice_new (g_steal_pointer (&chosen->plan), chosen->workspace, detail);
  choice->is_measured = TRUE;
  rn_conv_plan_take (plan, choice, chosen->json, (double) ms * 1e-3);
  return RN_STATUS_OK;
}
