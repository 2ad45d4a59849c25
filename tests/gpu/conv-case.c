#include "config.h"

#include "tests/gpu/conv-case.h"

#include "kernels/cuda/conv-verify.h"
#include "kernels/half.h"
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/sim/sim.h"

#include <math.h>

static gsize
elements (const RnConvProblem *p, int which)
{
  switch (which)
    {
    case X:
      return (gsize) (p->n * p->c * p->h * p->w);
    case W:
      return (gsize) (p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1]);
    case BIAS:
      return (gsize) p->k;
    default:
      return (gsize) (p->n * p->k * p->oh * p->ow);
    }
}

void
case_init (Case *c, const RnConvProblem *problem, gboolean in_place)
{
  const RnConvProblem *p = problem;

  *c = (Case){ .problem = *problem };
  OK (cudaStreamCreateWithFlags (&c->stream, cudaStreamNonBlocking));
  for (int i = 0; i < N_BUFFERS; i++)
    {
      c->bytes[i] = i == WORKSPACE ? LIMIT : elements (p, i) * rn_dtype_size (p->dtype);
      OK (cudaMalloc (&c->memory[i], c->bytes[i]));
    }
  c->pointers.workspace = c->memory[WORKSPACE];
  if (p->kind != RN_CONV_BACKWARD_DATA)
    c->pointers.x = c->memory[X];
  else
    c->pointers.dx = c->memory[X];
  if (p->kind != RN_CONV_BACKWARD_WEIGHTS)
    c->pointers.w = c->memory[W];
  else
    c->pointers.dw = c->memory[W];
  if (p->kind == RN_CONV_FORWARD)
    c->pointers.y = c->memory[Y];
  else
    c->pointers.dy = c->memory[Y];
  if (p->bias)
    c->pointers.bias = c->memory[BIAS];
  if (p->residual)
    c->pointers.z = in_place ? c->memory[Y] : c->memory[Z];
}

void
case_clear (Case *c)
{
  OK (cudaStreamSynchronize (c->stream));
  for (int i = 0; i < N_BUFFERS; i++)
    OK (cudaFree (c->memory[i]));
  OK (cudaStreamDestroy (c->stream));
}

RnConvLibrary *
library_new (const Case *c, gboolean deterministic, const char *run, const char *cache)
{
  const RnConvOptions options = { .deterministic = deterministic, .plan_file = run, .cache_file = cache };
  g_autoptr (GError) error = NULL;
  RnConvLibrary *library = rn_conv_library_new (0, c->stream, &options, &error);

  g_assert_no_error (error);
  return library;
}

RnConvPlan *
plan_new (RnConvLibrary *library, const RnConvProblem *problem)
{
  RnConvPlan *plan = NULL;
  const char *reason = NULL;
  RnStatus status = rn_conv_plan_new (library, problem, LIMIT, &plan, &reason);

  if (status != RN_STATUS_OK)
    g_error ("%s", reason != NULL ? reason : rn_conv_library_fault (library));
  return plan;
}

void
assert_ok (const RnConvLibrary *library, RnStatus status)
{
  if (status != RN_STATUS_OK)
    g_error ("%s", rn_conv_library_fault (library));
}

void
start (const char *model)
{
  const SimConfig config = { .model = model, .n_devices = 1, .driver_version = 13000 };

  sim_reset (&config);
  sim_cudnn_forget ();
}

RnConvProblem
problem_of (RnConvKind kind, RnDType dtype, gboolean nhwc)
{
  return (RnConvProblem){ .kind = kind,
                          .n = 2,
                          .c = 8,
                          .h = 9,
                          .w = 7,
                          .k = 16,
                          .oh = 5,
                          .ow = 4,
                          .kernel = { 3, 3 },
                          .stride = { 2, 2 },
                          .pad = { 1, 1 },
                          .dilation = { 1, 1 },
                          .groups = 1,
                          .dtype = dtype,
                          .nhwc = nhwc };
}

static float
value (const RnConvProblem *p, const void *data, gsize at)
{
  return p->dtype == RN_F32 ? ((const float *) data)[at] : rn_float_get (p->dtype, data, (int64_t) at);
}

/* Where element (a, b, y, x) of a tensor lies. */
static gsize
index_of (const RnConvProblem *p, const int64_t dims[4], int64_t a, int64_t b, int64_t y, int64_t x)
{
  return (gsize) (p->nhwc ? ((a * dims[2] + y) * dims[3] + x) * dims[1] + b
                          : ((a * dims[1] + b) * dims[2] + y) * dims[3] + x);
}

/*
 * The definition: every product x w belongs to one y; which of the three is the sum depends on the kind.
 * @sums: in double, of the output's elements.
 */
static void
add_products (const RnConvProblem *p, void *const data[N_BUFFERS], double *sums)
{
  const int64_t xd[4] = { p->n, p->c, p->h, p->w }, wd[4] = { p->k, p->c, p->kernel[0], p->kernel[1] },
                yd[4] = { p->n, p->k, p->oh, p->ow };

  for (int64_t n = 0; n < p->n; n++)
    for (int64_t k = 0; k < p->k; k++)
      for (int64_t oy = 0; oy < p->oh; oy++)
        for (int64_t ox = 0; ox < p->ow; ox++)
          for (int64_t c = 0; c < p->c; c++)
            for (int64_t u = 0; u < p->kernel[0]; u++)
              for (int64_t v = 0; v < p->kernel[1]; v++)
                {
                  int64_t iy = oy * p->stride[0] - p->pad[0] + u, ix = ox * p->stride[1] - p->pad[1] + v;
                  if (iy < 0 || iy >= p->h || ix < 0 || ix >= p->w)
                    continue;
                  gsize at_x = index_of (p, xd, n, c, iy, ix), at_w = index_of (p, wd, k, c, u, v),
                        at_y = index_of (p, yd, n, k, oy, ox);
                  if (p->kind == RN_CONV_FORWARD)
                    sums[at_y] += (double) value (p, data[X], at_x) * value (p, data[W], at_w);
                  else if (p->kind == RN_CONV_BACKWARD_DATA)
                    sums[at_x] += (double) value (p, data[Y], at_y) * value (p, data[W], at_w);
                  else
                    sums[at_w] += (double) value (p, data[Y], at_y) * value (p, data[X], at_x);
                }
}

void
check_result (const Case *c, RnConvLibrary *library, RnConvPlan *plan)
{
  const RnConvProblem *p = &c->problem;
  const int out = p->kind == RN_CONV_FORWARD ? Y : p->kind == RN_CONV_BACKWARD_DATA ? X : W;
  const RnConvTolerance tolerance = rn_conv_tolerance (p);
  gboolean in_place = c->pointers.z == c->memory[Y];
  void *host[N_BUFFERS];

  for (int i = 0; i < N_BUFFERS; i++)
    OK (cudaHostAlloc (&host[i], c->bytes[i], cudaHostAllocDefault));
  for (int i = X; i <= Z; i++)
    rn_conv_fill_random (p->dtype, host[i], 0, elements (p, i), 77 + (guint32) i);
  for (int i = X; i <= Z; i++)
    OK (cudaMemcpyAsync (c->memory[i], host[in_place && i == Y ? Z : i], c->bytes[i], cudaMemcpyHostToDevice,
                         c->stream));
  gsize n = elements (p, out);
  g_autofree double *sums = g_new0 (double, n);
  if (p->accumulate)
    for (gsize i = 0; i < n; i++)
      sums[i] = value (p, host[out], i);
  add_products (p, host, sums);
  for (gsize i = 0; i < n && out == Y; i++)
    {
      gsize channel = p->nhwc ? i % (gsize) p->k : i / (gsize) (p->oh * p->ow) % (gsize) p->k;
      sums[i] += p->residual ? value (p, host[Z], i) : 0;
      sums[i] += p->bias ? value (p, host[BIAS], channel) : 0;
      sums[i] = p->relu ? MAX (sums[i], 0) : sums[i];
    }
  assert_ok (library, rn_conv_plan_run (plan, &c->pointers));
  OK (cudaMemcpyAsync (host[out], c->memory[out], c->bytes[out], cudaMemcpyDeviceToHost, c->stream));
  OK (cudaStreamSynchronize (c->stream));
  for (gsize i = 0; i < n; i++)
    {
      double result = value (p, host[out], i);
      if (!(fabs (result - sums[i]) <= tolerance.absolute + tolerance.relative * fabs (sums[i])))
        g_error ("element %" G_GSIZE_FORMAT ": %g, not %g", i, result, sums[i]);
    }
  for (int i = 0; i < N_BUFFERS; i++)
    OK (cudaFreeHost (host[i]));
}

static void
collect (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
  g_string_append_printf (data, "%s\n", message);
}

guint
log_begin (GString *log)
{
  return g_log_set_handler ("rn-kernels", G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_WARNING, collect, log);
}

void
log_end (guint handler)
{
  g_log_remove_handler ("rn-kernels", handler);
}

char *
measure (const Case *c, RnConvLibrary *library, RnConvPlan *plan)
{
  GString *log = g_string_new (NULL);
  guint handler = log_begin (log);

  assert_ok (library, rn_conv_plan_measure (plan, &c->pointers, LIMIT));
  log_end (handler);
  return g_string_free (log, FALSE);
}
