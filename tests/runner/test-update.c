/*
 * test-update.c: an update of a real model: what the host adds to the kernels (bias corrections, groups,
 * weight decay by parameter), the statistics of the gradients, and the running mean. Expected values are
 * worked out in double from the formulas of torch.optim.
 */
#include "config.h"

#include "runner/base/error.h"
#include "tests/runner/stepper.h"
#include "tests/tree.h"

#include "models/component.h"

#include <float.h>
#include <string.h>

#define N_STEPS 4
#define EMA_HOOK "custom_hooks=[{type: EMAHook}]"

static char *data;

/* ---- A neck with a convolution that nothing goes through ---- */

typedef struct
{
  int unused;
} Spare;

static const RnKeySpec no_keys[] = { RN_KEY_END };

static gboolean
spare_setup (gpointer self, const RnNode *config, const RnFeatures *in, RnFeatures *out, GError **error)
{
  *out = *in;
  return TRUE;
}

static void
spare_write (gconstpointer self, RnGraph *graph, const RnValueId *in, RnValueId *out)
{
  const RnConv2d conv = { .name = "spare", .out_channels = 1, .kernel = 1, .bias = TRUE };

  rn_conv2d_declare (graph, 3, &conv);
  out[0] = in[0];
}

static const RnNeckDesc spare_neck = {
  .part = { { "SpareNeck", "for tests", sizeof (Spare), no_keys }, NULL },
  .setup = spare_setup,
  .write = spare_write,
};

/* ---- The formulas ---- */

typedef enum
{
  SGD,
  ADAM_L2,
  ADAM_W
} Formula;

typedef struct
{
  const char *optimizer;
  Formula formula;
  gboolean amsgrad;
  double weight_decay;
} Row;

static const Row rows[] = {
  { "optimizer={type: SGD, lr: 0.01, momentum: 0.9, weight_decay: 0.25, paramwise_cfg: {norm_decay_mult: "
    "0.5, "
    "custom_keys: {bbox_head: {lr_mult: 0.5}}}}",
    SGD, FALSE, 0.25 },
  { "optimizer={type: Adam, lr: 0.01, betas: [0.8, 0.99], eps: 1e-6, weight_decay: 0.25, paramwise_cfg: "
    "{norm_decay_mult: 0.5, custom_keys: {bbox_head: {lr_mult: 0.5}}}}",
    ADAM_L2, FALSE, 0.25 },
  { "optimizer={type: AdamW, lr: 0.01, betas: [0.8, 0.99], eps: 1e-6, weight_decay: 0.25, amsgrad: true, "
    "paramwise_cfg: {norm_decay_mult: 0.5, custom_keys: {bbox_head: {lr_mult: 0.5}}}}",
    ADAM_W, TRUE, 0.25 },
};

/* One element's state; zero before the first step. */
typedef struct
{
  double m, v, top;
} State;

static double
next_value (const Row *row, State *s, double p, double g, double lr, double momentum, double decay, int t)
{
  if (row->formula == SGD)
    {
      g += decay * p;
      s->m = t == 1 ? g : momentum * s->m + g;
      return p - lr * s->m;
    }
  if (row->formula == ADAM_W)
    p -= lr * decay * p;
  else
    g += decay * p;
  s->m = momentum * s->m + (1 - momentum) * g;
  s->v = 0.99 * s->v + 0.01 * g * g;
  s->top = row->amsgrad ? fmax (s->top, s->v) : s->v;
  return p - lr * (s->m / (1 - pow (momentum, t))) / (sqrt (s->top / (1 - pow (0.99, t))) + 1e-6);
}

/*
 * A step rounds some ten times, each time by half an ulp of p, of the weighted gradient, or of the step,
 * which has no more than a few lr in Adam and lr * (1 + mu + ...) times the largest gradient, cut to 0.5, in
 * SGD.
 */
static void
assert_near (double got, double want, double before, double lr)
{
  g_assert_cmpfloat (fabs (got - want), <=, 16 * (double) FLT_EPSILON * (fabs (before) + 8 * lr));
}

static void
check_param (const Stepper *f, const Row *row, guint i, State *states, const float *before, const float *grad,
             const RnTaskUpdate *step, int t)
{
  const char *name = f->task->params[i].name;
  gboolean is_head = g_str_has_prefix (name, "bbox_head"), is_norm = strstr (name, ".bn.") != NULL;
  double lr = step->lrs[is_head ? 1 : 0], decay = row->weight_decay * (is_norm && !is_head ? 0.5 : 1);
  g_autofree float *after = stepper_read (f, f->task->vtbl->read_param, i);

  for (gint64 k = 0; k < stepper_n_elements (f, i); k++)
    {
      double g = CLAMP ((double) grad[k] * step->grad_multiplier, -step->clip_value, step->clip_value);
      double want = next_value (row, &states[k], (double) before[k], g, lr, step->momentum, decay, t);
      assert_near ((double) after[k], want, (double) before[k], lr);
    }
}

/* Learning rates, momentum and multiplier change from step to step, as hooks change them. */
static void
test_formulas (gconstpointer user_data)
{
  const Row *row = user_data;
  const char *const changes[] = { row->optimizer, NULL };
  Stepper f;
  stepper_open (&f, data, changes);
  g_assert_cmpuint (f.task->n_groups, ==, 2);
  g_assert_cmpfloat (f.task->lr_mults[0], ==, 1);
  g_assert_cmpfloat (f.task->lr_mults[1], ==, 0.5);
  g_autoptr (GPtrArray) states = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < f.task->n_params; i++)
    g_ptr_array_add (states, g_new0 (State, (gsize) stepper_n_elements (&f, i)));

  for (int t = 1; t <= N_STEPS; t++)
    {
      double lr = 0.01 / t, lrs[] = { lr, 0.5 * lr };
      RnTaskUpdate step = { .lrs = lrs,
                            .momentum = t < 3 ? 0.8 : 0.7,
                            .grad_multiplier = 1.0 / t,
                            .clip_value = 0.5,
                            .is_first = t == 1 };
      g_autoptr (GError) error = NULL;
      g_autoptr (GPtrArray) before = g_ptr_array_new_with_free_func (g_free),
                            grads = g_ptr_array_new_with_free_func (g_free);
      f.task->vtbl->zero_grads (f.task, &error);
      g_assert_no_error (error);
      stepper_add_gradients (&f);
      for (guint i = 0; i < f.task->n_params; i++)
        {
          g_ptr_array_add (before, stepper_read (&f, f.task->vtbl->read_param, i));
          g_ptr_array_add (grads, f.task->params[i].is_trained ? stepper_read (&f, f.task->vtbl->read_grad, i)
                                                               : NULL);
        }
      stepper_update (&f, &step);
      for (guint i = 0; i < f.task->n_params; i++)
        if (f.task->params[i].is_trained)
          check_param (&f, row, i, states->pdata[i], before->pdata[i], grads->pdata[i], &step, t);
    }
  stepper_close (&f);
}

/* The weights stay. */
static void
test_beta_too_large (void)
{
  static const char *const changes[] = { "optimizer={type: Adam, lr: 0.01}", NULL };
  static const double betas[] = { 1, 1.5, -0.1, NAN };
  double lrs[] = { 0.01 };
  Stepper f;

  stepper_open (&f, data, changes);
  stepper_add_gradients (&f);
  g_autoptr (GArray) before = stepper_read_all (&f, f.task->vtbl->read_param, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (betas); i++)
    {
      g_autoptr (GError) error = NULL;
      RnTaskUpdate step = { .lrs = lrs, .momentum = betas[i], .grad_multiplier = 1, .is_first = TRUE };
      g_assert_false (f.task->vtbl->update (f.task, &step, &error));
      g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
    }
  g_autoptr (GArray) after = stepper_read_all (&f, f.task->vtbl->read_param, FALSE);
  stepper_assert_same (before, after);
  stepper_close (&f);
}

/* ---- Statistics, and what the graph says ---- */

static void
test_grad_stats (void)
{
  Stepper f;
  stepper_open (&f, data, NULL);
  stepper_add_gradients (&f);
  g_autoptr (GArray) grads = stepper_read_all (&f, f.task->vtbl->read_grad, TRUE);
  static const double types[] = { 1, 2, 3, INFINITY };
  double largest = 0;
  for (guint i = 0; i < grads->len; i++)
    largest = fmax (largest, fabs ((double) g_array_index (grads, float, i)));
  g_assert_cmpfloat (largest, >, 0);

  for (guint k = 0; k < G_N_ELEMENTS (types); k++)
    {
      g_autoptr (GError) error = NULL;
      RnGradStats stats = { 0 };
      double sum = 0;
      for (guint i = 0; i < grads->len; i++)
        sum += pow (fabs ((double) g_array_index (grads, float, i)), types[k]);
      double want = isinf (types[k]) ? largest : pow (sum, 1 / types[k]);
      f.task->vtbl->grad_stats (f.task, types[k], &stats, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (stats.max_abs, ==, largest);
      g_assert_cmpfloat (fabs (stats.norm - want), <=, (double) FLT_EPSILON * want); /* one float rounding */
    }
  stepper_close (&f);
}

/* ---- Guarded steps ---- */

/* A step of the gradients of the batch; @guard: with max_norm, norm_type and checks_finite. */
static void
step_guarded (Stepper *f, const RnTaskUpdate *guard, gboolean overflows, gboolean is_first, gboolean is_done)
{
  const double lrs[] = { 0.01, 0.01 };
  RnTaskUpdate step = *guard;
  g_autoptr (GError) error = NULL;
  RnGradStats want = { 0 }, stats = { 0 };
  gboolean was_done = !is_done;

  f->task->vtbl->zero_grads (f->task, &error);
  g_assert_no_error (error);
  stepper_add_gradients (f);
  for (guint i = 0; overflows && i < f->task->n_params; i++)
    if (f->task->params[i].is_trained)
      {
        g_autofree float *grad = stepper_read (f, f->task->vtbl->read_grad, i);
        grad[i % stepper_n_elements (f, i)] = i % 2 ? (float) INFINITY : (float) NAN;
        f->task->vtbl->write_grad (f->task, i, grad, &error);
        g_assert_no_error (error);
      }
  f->task->vtbl->grad_stats (f->task, guard->norm_type, &want, &error);
  g_assert_no_error (error);
  step.lrs = lrs;
  step.momentum = 0.75;
  step.grad_multiplier = 0.5;
  step.is_first = is_first;
  stepper_update (f, &step);
  f->task->vtbl->settle_update (f->task, &stats, &was_done, &error);
  g_assert_no_error (error);
  g_assert_cmpint (was_done, ==, is_done);
  g_assert_true (isnan (want.norm) ? isnan (stats.norm) : stats.norm == want.norm);
  g_assert_true (isnan (want.max_abs) ? isnan (stats.max_abs) : stats.max_abs == want.max_abs);
}

/* The same as where the host looks at the statistics, and scales. */
static void
step_by_host (Stepper *f, const RnTaskUpdate *guard, gboolean is_first)
{
  const double lrs[] = { 0.01, 0.01 };
  RnTaskUpdate step = { .lrs = lrs, .momentum = 0.75, .grad_multiplier = 0.5, .is_first = is_first };
  g_autoptr (GError) error = NULL;
  RnGradStats stats = { 0 };

  f->task->vtbl->zero_grads (f->task, &error);
  g_assert_no_error (error);
  stepper_add_gradients (f);
  f->task->vtbl->grad_stats (f->task, guard->norm_type, &stats, &error);
  g_assert_no_error (error);
  if (guard->max_norm > 0)
    step.grad_multiplier *= fmin (1, guard->max_norm / (stats.norm * step.grad_multiplier + 1e-6));
  stepper_update (f, &step);
}

/* Steps that are skipped, ahead of the first one and behind it, leave no trace: not in weights, states or the
 * number of steps that Adam knows. */
static void
test_guarded (gconstpointer optimizer)
{
  const char *const changes[] = { optimizer, NULL };
  static const RnTaskUpdate guards[] = { { .norm_type = INFINITY, .checks_finite = TRUE },
                                         { .norm_type = 2, .max_norm = 0.125, .checks_finite = TRUE },
                                         { .norm_type = 3, .max_norm = 0x1p+40, .checks_finite = TRUE } };

  for (gsize k = 0; k < G_N_ELEMENTS (guards); k++)
    {
      Stepper guarded, plain;

      stepper_open (&guarded, data, changes);
      stepper_open (&plain, data, changes);
      for (int i = 0; i < 3; i++)
        {
          g_autoptr (GArray) before = stepper_read_all (&guarded, guarded.task->vtbl->read_param, TRUE);
          step_guarded (&guarded, &guards[k], TRUE, i == 0, FALSE);
          g_autoptr (GArray) skipped = stepper_read_all (&guarded, guarded.task->vtbl->read_param, TRUE);
          stepper_assert_same (before, skipped);
          step_guarded (&guarded, &guards[k], FALSE, i == 0, TRUE);
          step_by_host (&plain, &guards[k], i == 0);
          g_autoptr (GArray) a = stepper_read_all (&guarded, guarded.task->vtbl->read_param, TRUE);
          g_autoptr (GArray) b = stepper_read_all (&plain, plain.task->vtbl->read_param, TRUE);
          stepper_assert_same (a, b);
          g_assert_cmpint (memcmp (a->data, before->data, a->len * sizeof (float)), !=, 0);
        }
      stepper_close (&plain);
      stepper_close (&guarded);
    }
}

/* ---- Results that come late ---- */

typedef struct
{
  void *host_dst;
  gsize bytes;
  guint8 values[RN_STATS_COUNT * sizeof (float)];
} Due;

static GArray *due[RN_N_RESULTS]; /* of Due */

static RnStatus
copy_out_later (RnDevice *device, RnResults results, void *host_dst, const void *src, gsize bytes)
{
  Due result = { .host_dst = host_dst, .bytes = bytes };

  g_assert_cmpuint (bytes, <=, sizeof result.values);
  memcpy (result.values, src, bytes);
  g_array_append_val (due[results], result);
  return RN_STATUS_OK;
}

static RnStatus
settle (RnDevice *device, RnResults results)
{
  for (guint i = 0; i < due[results]->len; i++)
    {
      const Due *result = &g_array_index (due[results], Due, i);
      memcpy (result->host_dst, result->values, result->bytes);
    }
  g_array_set_size (due[results], 0);
  return RN_STATUS_OK;
}

/* A run that ends between a guarded step and its outcome leaves nothing that would be written to its memory
 * later. */
static void
test_late_results (void)
{
  const char *const changes[] = { NULL };
  const double lrs[] = { 0.01, 0.01 };
  const RnTaskUpdate step = { .lrs = lrs,
                              .momentum = 0.75,
                              .grad_multiplier = 1,
                              .is_first = TRUE,
                              .norm_type = 2,
                              .checks_finite = TRUE };
  g_autoptr (GError) error = NULL;
  RnGradStats stats = { 0 };
  gboolean is_done = FALSE;
  Stepper f;

  stepper_open (&f, data, changes);
  RnDevice *device = f.training->job->device;
  RnDeviceVtbl vtbl = *device->vtbl;
  for (int i = 0; i < RN_N_RESULTS; i++)
    due[i] = g_array_new (FALSE, FALSE, sizeof (Due));
  vtbl.copy_out_later = copy_out_later;
  vtbl.settle = settle;
  device->vtbl = &vtbl;

  stepper_add_gradients (&f);
  stepper_update (&f, &step);
  g_assert_true (f.task->vtbl->settle_update (f.task, &stats, &is_done, &error));
  g_assert_true (is_done && stats.norm > 0);
  g_assert_cmpuint (due[RN_RESULTS_UPDATE]->len, ==, 0);
  g_assert_cmpuint (due[RN_RESULTS_FORWARD]->len, >, 0);
  stepper_update (&f, &step);
  g_assert_cmpuint (due[RN_RESULTS_UPDATE]->len, ==, 1);
  stepper_close (&f);
  for (int i = 0; i < RN_N_RESULTS; i++)
    {
      g_assert_cmpuint (due[i]->len, ==, 0);
      g_array_unref (due[i]);
    }
}

static void
test_step_facts (void)
{
  static const char *const changes[] = { "model.neck={type: SpareNeck}", NULL };
  Stepper f;

  stepper_open (&f, data, NULL);
  g_auto (GStrv) none = f.task->vtbl->unreached_params (f.task);
  g_assert_cmpuint (g_strv_length (none), ==, 0);
  g_assert_true (f.task->has_live_batch_norm); /* the small detector's backbone has one */
  stepper_close (&f);

  stepper_open (&f, data, changes);
  g_auto (GStrv) spare = f.task->vtbl->unreached_params (f.task);
  const char *const want[] = { "neck.spare.weight", "neck.spare.bias", NULL };
  g_assert_true (g_strv_equal ((const char *const *) spare, want));
  stepper_close (&f);
}

/* ---- The running mean ---- */

static void
test_mean (gconstpointer with_buffers)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  gboolean averages = GPOINTER_TO_INT (with_buffers);
  g_autoptr (GError) error = NULL;
  Stepper f;

  stepper_open (&f, data, changes);
  const RnTaskVtbl *vtbl = f.task->vtbl;
  const RnParamSet *params = rn_programs_params (stepper_programs (&f));
  vtbl->update_ema (f.task, 1, averages, &error);
  g_assert_no_error (error);
  g_autoptr (GArray) start = stepper_read_all (&f, vtbl->read_param, FALSE);
  stepper_train (&f, TRUE);
  g_autoptr (GArray) end = stepper_read_all (&f, vtbl->read_param, FALSE);
  vtbl->update_ema (f.task, 0.25, averages, &error);
  g_assert_no_error (error);
  vtbl->swap_ema (f.task, &error);
  g_assert_no_error (error);
  g_autoptr (GArray) mean = stepper_read_all (&f, vtbl->read_param, FALSE);
  guint at = 0, n_moved = 0;
  for (guint i = 0; i < f.task->n_params; i++)
    {
      gboolean is_copied = rn_param_set_get (params, (int) i)->kind == RN_PARAM_BUFFER && !averages;
      for (gint64 k = 0; k < stepper_n_elements (&f, i); k++, at++)
        {
          float was = g_array_index (start, float, at), is = g_array_index (end, float, at);
          float want = is_copied ? is : was + 0.25f * (is - was);
          n_moved += was != is;
          g_assert_cmpfloat (g_array_index (mean, float, at), ==, want);
        }
    }
  g_assert_cmpuint (n_moved, >, mean->len / 2);

  vtbl->swap_ema (f.task, &error);
  g_assert_no_error (error);
  g_autoptr (GArray) back = stepper_read_all (&f, vtbl->read_param, FALSE);
  stepper_assert_same (back, end);
  stepper_close (&f);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  small_detector_register ();
  g_assert_true (rn_registry_add (rn_registry_family ("neck"), &spare_neck.part.component, &error));
  data = small_detector_data ();
  g_test_add_data_func ("/runner/update/formulas/sgd", &rows[0], test_formulas);
  g_test_add_data_func ("/runner/update/formulas/adam", &rows[1], test_formulas);
  g_test_add_data_func ("/runner/update/formulas/adamw", &rows[2], test_formulas);
  g_test_add_func ("/runner/update/beta-too-large", test_beta_too_large);
  g_test_add_func ("/runner/update/grad-stats", test_grad_stats);
  g_test_add_data_func ("/runner/update/guarded/sgd", "optimizer={type: SGD, lr: 0.01, momentum: 0.9}",
                        test_guarded);
  g_test_add_data_func ("/runner/update/guarded/adam", "optimizer={type: Adam, lr: 0.01, amsgrad: true}",
                        test_guarded);
  g_test_add_data_func ("/runner/update/guarded/bf16", "memory.momentum=bf16", test_guarded);
  g_test_add_func ("/runner/update/late-results", test_late_results);
  g_test_add_func ("/runner/update/step-facts", test_step_facts);
  g_test_add_data_func ("/runner/update/mean/buffers-copied", GINT_TO_POINTER (FALSE), test_mean);
  g_test_add_data_func ("/runner/update/mean/buffers-averaged", GINT_TO_POINTER (TRUE), test_mean);
  int result = g_test_run ();
  remove_tree (data);
  g_free (data);
  return result;
}
