/* test-gradient.c: the backward part that the passes write, run on the reference device, against finite
 * differences of the losses. */
#include "config.h"

#include "runner/base/rng.h"
#include "tests/graph/interpreter.h"
#include "tests/graph/nets.h"

#include <math.h>
#include <runner/batch.h>
#include <string.h>

typedef void (*Net) (RnGraph *graph, const NetOptions *options);

typedef struct
{
  const char *name;
  Net net;
  NetOptions net_options;
  gboolean fold;
  int64_t cblk;
  gboolean mask_sums;
} Case;

typedef struct
{
  RnDevice *device;
  RnParamSet *params;
  RnGraph *graph;
  Interpreter *interpreter;
} Step;

/* ---- making a step ---- */

static float
random_in (RnRng *rng, double low, double high)
{
  return (float) (low + (high - low) * rn_rng_uniform (rng));
}

/* Batch norms get statistics, scales and offsets that are not the neutral ones. */
static void
randomize_norms (RnParamSet *params)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      gboolean is_var = g_str_has_suffix (param->name, "running_var");
      if (!param->is_norm && param->kind != RN_PARAM_BUFFER)
        continue;
      RnRng rng;
      rn_rng_init (&rng, 7, RN_STREAM_SYNTH, g_str_hash (param->name), 0);
      float *values = rn_param_set_value (params, i);
      for (int64_t k = 0; k < rn_desc_elements (&param->desc); k++)
        values[k] = is_var || (param->is_norm && !param->is_bias) ? random_in (&rng, 0.5, 1.5)
                                                                  : random_in (&rng, -0.3, 0.3);
    }
}

static void *
input (const Step *step, const char *name)
{
  return interpreter_address (step->interpreter, rn_graph_find_value (step->graph, name));
}

/* Every fifth anchor is positive, every seventh ignored, the others are background. */
static void
fill_inputs (const Step *step)
{
  RnRng rng;
  rn_rng_init (&rng, 3, RN_STREAM_SYNTH, 0, 0);
  const RnValue *image = rn_graph_value (step->graph, rn_graph_find_value (step->graph, "image"));
  float *pixels = input (step, "image");
  for (int64_t k = 0; k < rn_desc_elements (&image->desc); k++)
    pixels[k] = random_in (&rng, -2, 2);

  const RnValue *labels = rn_graph_value (step->graph, rn_graph_find_value (step->graph, "labels"));
  int64_t n_anchors = labels->desc.dims[1];
  int16_t *label = input (step, "labels");
  RnPositive *positives = input (step, "positives");
  int64_t n = 0;
  for (int32_t image_index = 0; image_index < NET_BATCH; image_index++)
    for (int32_t a = 0; a < n_anchors; a++)
      {
        int16_t *l = &label[image_index * n_anchors + a];
        *l = a % 7 == 3 ? -1 : NET_CLASSES;
        if (a % 5 != 0)
          continue;
        *l = (int16_t) rn_rng_below (&rng, NET_CLASSES);
        positives[n] = (RnPositive){ .image = image_index, .anchor = a };
        for (int d = 0; d < 4; d++)
          positives[n].target[d] = random_in (&rng, -1, 1);
        n++;
      }
  *(int64_t *) input (step, "n_positives") = n;
  *(float *) input (step, "avg_factor") = (float) n;
  *(float *) input (step, "grad_scale") = 1;
}

static void
step_init (Step *step, const Case *c)
{
  g_autoptr (GError) error = NULL;
  const RnPassOptions options = { .fold_frozen_bn = c->fold, .cblk = c->cblk, .mask_sums = c->mask_sums };
  step->device = rn_device_new_ref ();
  step->params = rn_param_set_new ();
  step->graph = rn_graph_new (RN_MODE_TRAIN, step->params);
  c->net (step->graph, &c->net_options);
  rn_graph_finish_forward (step->graph, &error);
  g_assert_no_error (error);
  rn_passes_run (step->graph, &options, NULL, NULL, &error);
  g_assert_no_error (error);

  rn_param_set_allocate (step->params, step->device, TRUE, FALSE, &error);
  g_assert_no_error (error);
  rn_param_set_init (step->params, 1, &error);
  g_assert_no_error (error);
  randomize_norms (step->params);
  step->interpreter = interpreter_new (step->graph, step->device);
  fill_inputs (step);
}

static void
step_clear (Step *step)
{
  interpreter_free (step->interpreter);
  rn_graph_free (step->graph);
  rn_param_set_free (step->params);
  rn_device_free (step->device);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Step, step_clear)

static void
run_step (const Step *step)
{
  g_autoptr (GError) error = NULL;
  rn_param_set_zero_grads (step->params, &error);
  g_assert_no_error (error);
  interpreter_run (step->interpreter, 0, (int) step->graph->ops->len);
}

/* ---- finite differences ---- */

/* The sum of all losses. */
static double
total_loss (const Step *step)
{
  double sum = 0;
  interpreter_run (step->interpreter, 0, step->graph->turn);
  for (RnValueId v = 0; v < (int) step->graph->values->len; v++)
    if (rn_graph_value (step->graph, v)->is_output)
      sum += *(const float *) interpreter_address (step->interpreter, v);
  return sum;
}

static double
norm_of (const float *values, int64_t n)
{
  double sum = 0;
  for (int64_t k = 0; k < n; k++)
    sum += (double) values[k] * values[k];
  return sqrt (sum);
}

static double
largest_of (const float *values, int64_t n)
{
  double largest = 0;
  for (int64_t k = 0; k < n; k++)
    largest = MAX (largest, fabs ((double) values[k]));
  return largest;
}

/*
 * The loss's difference between two points is the integral of its slope from one to the other. That holds as
 * well where ReLUs and maxima change sides in between; the slope has jumps there, by which a plain difference
 * quotient would be wrong. So the slope that the gradient gives is integrated from -H to H along a direction
 * of length 1, and compared with the difference of the losses.
 *
 * Errors, as shares of the slope. Integral: a piece is cut until its ends agree to SPLIT, so it is right to
 * SPLIT / 2, or at DEPTH, where one jump of twice the slope is left in 1 / 2^DEPTH of the way. Difference:
 * the loss is near 1 and rounded to 2^-24, which is 1e-5 over the way; the slopes are 2e-3 and more, so 5e-3
 * of the smallest.
 */
#define H 5e-3
#define SPLIT 4e-3
#define DEPTH 8
#define TOLERANCE 7e-3

typedef struct
{
  const Step *step;
  int param;
  const float *from, *direction; /* [n] */
  int64_t n;
  double size; /* of the slope */
} Line;

static void
move_to (const Line *line, double t)
{
  float *values = rn_param_set_value (line->step->params, line->param);
  for (int64_t k = 0; k < line->n; k++)
    values[k] = (float) (line->from[k] + t * line->direction[k]);
}

static double
slope_at (const Line *line, double t)
{
  const float *grad = rn_param_set_grad (line->step->params, line->param);
  double slope = 0;
  move_to (line, t);
  run_step (line->step);
  for (int64_t k = 0; k < line->n; k++)
    slope += (double) grad[k] * line->direction[k];
  return slope;
}

static double
loss_at (const Line *line, double t)
{
  move_to (line, t);
  return total_loss (line->step);
}

static double
integrate (const Line *line, double a, double slope_a, double b, double slope_b, int depth)
{
  if (depth == 0 || (depth < DEPTH - 1 && fabs (slope_a - slope_b) < SPLIT * line->size))
    return (b - a) * (slope_a + slope_b) / 2;
  double middle = (a + b) / 2, slope = slope_at (line, middle);
  return integrate (line, a, slope_a, middle, slope, depth - 1)
         + integrate (line, middle, slope, b, slope_b, depth - 1);
}

static void
check_direction (const Step *step, int i, const char *what, const float *direction, double size)
{
  int64_t n = rn_desc_elements (&rn_param_set_get (step->params, i)->desc);
  g_autofree float *from = g_memdup2 (rn_param_set_value (step->params, i), (gsize) n * sizeof (float));
  const Line line = { step, i, from, direction, n, size };
  double mean_slope = integrate (&line, -H, slope_at (&line, -H), H, slope_at (&line, H), DEPTH) / (2 * H);
  double difference = (loss_at (&line, H) - loss_at (&line, -H)) / (2 * H);
  move_to (&line, 0);
  g_test_message ("%s, %s: slope %g, difference %g", rn_param_set_get (step->params, i)->name, what,
                  mean_slope, difference);
  g_assert_cmpfloat (fabs (mean_slope - difference), <, TOLERANCE * size);
}

/* Along one entry, and along the whole gradient, where the slope is the largest. */
static void
check_tensor (const Step *step, int i)
{
  int64_t n = rn_desc_elements (&rn_param_set_get (step->params, i)->desc), top = 0;
  run_step (step);
  g_autofree float *grad = g_memdup2 (rn_param_set_grad (step->params, i), (gsize) n * sizeof (float));
  g_autofree float *direction = g_new0 (float, n);
  double norm = norm_of (grad, n), largest = largest_of (grad, n);
  g_assert_cmpfloat (norm, >, 0);

  while (fabs ((double) grad[top]) < largest)
    top++;
  direction[top] = 1;
  check_direction (step, i, "largest entry", direction, largest);
  for (int64_t k = 0; k < n; k++)
    direction[k] = (float) (grad[k] / norm);
  check_direction (step, i, "along the gradient", direction, norm);
}

static void
test_finite_differences (gconstpointer data)
{
  g_auto (Step) step = { 0 };
  step_init (&step, data);
  int n_checked = 0;
  for (int i = 0; i < rn_param_set_size (step.params); i++)
    {
      if (!rn_param_set_get (step.params, i)->trainable)
        {
          g_assert_null (rn_param_set_grad (step.params, i));
          continue;
        }
      check_tensor (&step, i);
      n_checked++;
    }
  g_assert_cmpint (n_checked, >, 0);
}

/* ---- the same gradients in other forms ---- */

static void
assert_same_gradients (const Step *a, const Step *b, double tolerance)
{
  for (int i = 0; i < rn_param_set_size (a->params); i++)
    {
      const RnParam *param = rn_param_set_get (a->params, i);
      if (!param->trainable)
        continue;
      const float *ga = rn_param_set_grad (a->params, i), *gb = rn_param_set_grad (b->params, i);
      int64_t n = rn_desc_elements (&param->desc);
      double bound = tolerance * largest_of (ga, n);
      for (int64_t k = 0; k < n; k++)
        g_assert_cmpfloat (fabs ((double) ga[k] - (double) gb[k]), <=, bound);
    }
}

static void
compare (const Case *a, const Case *b, double tolerance)
{
  g_auto (Step) step_a = { 0 };
  g_auto (Step) step_b = { 0 };
  step_init (&step_a, a);
  step_init (&step_b, b);
  run_step (&step_a);
  run_step (&step_b);
  assert_same_gradients (&step_a, &step_b, tolerance);
}

/* Folding changes only where fp32 rounds: 1e-4 of the largest entry of each tensor is what users are
 * promised. */
static void
test_fold (void)
{
  compare (&(Case){ .net = net_residual, .fold = FALSE, .cblk = 1 },
           &(Case){ .net = net_residual, .fold = TRUE, .cblk = 1 }, 1e-4);
}

/* The layout changes nothing but the order of sums: some hundred terms of fp32. */
static void
test_layout (void)
{
  compare (&(Case){ .net = net_pyramid, .fold = TRUE, .cblk = 1 },
           &(Case){ .net = net_pyramid, .fold = TRUE, .cblk = 8 }, 1e-5);
}

/* Sums that a mask gives are rounded to fp32 before a mean is taken off them: a few of its steps in gamma's
 * gradient, and nothing elsewhere. */
static void
test_mask_sums (void)
{
  compare (&(Case){ .net = net_residual, .fold = TRUE, .cblk = 1 },
           &(Case){ .net = net_residual, .fold = TRUE, .cblk = 1, .mask_sums = TRUE }, 1e-6);
  compare (&(Case){ .net = net_pyramid, .fold = TRUE, .cblk = 1 },
           &(Case){ .net = net_pyramid, .fold = TRUE, .cblk = 1, .mask_sums = TRUE }, 0);
}

/* Gradients are added to what is there: two runs without clearing give twice the gradient, exactly. */
static void
test_accumulation (void)
{
  const Case c = { .net = net_residual, .fold = FALSE, .cblk = 1 };
  g_auto (Step) once = { 0 };
  g_auto (Step) twice = { 0 };
  step_init (&once, &c);
  step_init (&twice, &c);
  run_step (&once);
  run_step (&twice);
  interpreter_run (twice.interpreter, 0, (int) twice.graph->ops->len);
  for (int i = 0; i < rn_param_set_size (once.params); i++)
    {
      const float *g = rn_param_set_grad (once.params, i), *g2 = rn_param_set_grad (twice.params, i);
      for (int64_t k = 0; g && k < rn_desc_elements (&rn_param_set_get (once.params, i)->desc); k++)
        g_assert_cmpfloat (2 * g[k], ==, g2[k]);
    }
}

static const Case cases[] = {
  { "residual/eval-bn", net_residual, { .bn_training = FALSE }, FALSE, 1, FALSE },
  { "residual/training-bn", net_residual, { .bn_training = TRUE }, TRUE, 1, FALSE },
  { "residual/frozen", net_residual, { .frozen_stem = TRUE }, TRUE, 1, FALSE },
  { "residual/mask-sums", net_residual, { .bn_training = FALSE }, TRUE, 1, TRUE },
  { "pyramid", net_pyramid, { .bn_training = FALSE }, TRUE, 1, FALSE },
  { "pyramid/training-bn-frozen", net_pyramid, { .bn_training = TRUE, .frozen_stem = TRUE }, TRUE, 8, FALSE },
};

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/graph/gradient/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_finite_differences);
    }
  g_test_add_func ("/graph/gradient/fold", test_fold);
  g_test_add_func ("/graph/gradient/layout", test_layout);
  g_test_add_func ("/graph/gradient/mask-sums", test_mask_sums);
  g_test_add_func ("/graph/gradient/accumulation", test_accumulation);
  return g_test_run ();
}
