/*
 * test-update.c: an update of a real model: what the host adds to the kernels (bias corrections, groups,
 * weight decay by parameter), the running mean, and all of it in a checkpoint. Expected values are worked out
 * in double from the formulas of torch.optim.
 */
#include "config.h"

#include "runner/base/error.h"
#include "runner/param-io.h"
#include "runner/task.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include "models/component.h"

#include <float.h>
#include <string.h>

#define N_STEPS 4
#define ALL_TENSORS (RN_TENSORS_OPTIMIZER | RN_TENSORS_PENDING | RN_TENSORS_EMA)
#define EMA_HOOK "custom_hooks=[{type: EMAHook}]"
#define ADAM "optimizer={type: Adam, lr: 0.01}"

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

/* ---- A training that is not run, but driven step by step ---- */

typedef struct
{
  char *dir;
  RnTraining *training;
  RnTask *task;
  const RnBatch *batch;
} Fixture;

static void
fixture_open (Fixture *f, const char *const *changes)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("rn-update-XXXXXX", &error);
  g_assert_no_error (error);
  f->training = small_detector_training (data, f->dir, changes, FALSE, NULL);
  f->task = f->training->task;
  f->task->vtbl->seek (f->task, RN_TASK_TRAIN, 0, 0);
  f->batch = f->task->vtbl->next (f->task, RN_TASK_TRAIN, &error);
  g_assert_no_error (error);
}

static void
fixture_close (Fixture *f)
{
  f->task->vtbl->release (f->task, RN_TASK_TRAIN, f->batch);
  rn_training_free (f->training);
  remove_tree (f->dir);
  g_free (f->dir);
}

static RnPrograms *
programs (const Fixture *f)
{
  return f->training->job->programs;
}

static gint64
n_elements (const Fixture *f, guint i)
{
  return rn_desc_elements (f->task->params[i].desc);
}

typedef gboolean (*ReadFunc) (RnTask *task, guint param, float *values, GError **error);

/* (transfer full) */
static float *
read_values (const Fixture *f, ReadFunc read, guint i)
{
  g_autoptr (GError) error = NULL;
  float *values = g_new (float, (gsize) n_elements (f, i));

  read (f->task, i, values, &error);
  g_assert_no_error (error);
  return values;
}

/* All parameters and buffers, one after the other. (transfer full) of float */
static GArray *
read_all (const Fixture *f, ReadFunc read, gboolean trained_only)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (float));

  for (guint i = 0; i < f->task->n_params; i++)
    if (f->task->params[i].is_trained || !trained_only)
      {
        g_autofree float *values = read_values (f, read, i);
        g_array_append_vals (all, values, (guint) n_elements (f, i));
      }
  return all;
}

static void
assert_same (const GArray *a, const GArray *b)
{
  g_assert_cmpuint (a->len, ==, b->len);
  g_assert_true (memcmp (a->data, b->data, a->len * sizeof (float)) == 0);
}

static void
add_gradients (const Fixture *f)
{
  g_autoptr (GError) error = NULL;
  gboolean is_ok = f->task->vtbl->forward (f->task, f->batch, RN_MODE_TRAIN, 1, &error)
                   && f->task->vtbl->backward (f->task, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

static void
update (const Fixture *f, const RnTaskUpdate *step)
{
  g_autoptr (GError) error = NULL;

  f->task->vtbl->update (f->task, step, &error);
  g_assert_no_error (error);
}

/* With fixed settings. */
static void
train_step (const Fixture *f, gboolean is_first)
{
  g_autoptr (GError) error = NULL;
  double lrs[] = { 0.01, 0.01 };

  f->task->vtbl->zero_grads (f->task, &error);
  g_assert_no_error (error);
  add_gradients (f);
  update (f, &(RnTaskUpdate){ .lrs = lrs, .momentum = 0.9, .grad_multiplier = 1, .is_first = is_first });
}

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
check_param (const Fixture *f, const Row *row, guint i, State *states, const float *before, const float *grad,
             const RnTaskUpdate *step, int t)
{
  const char *name = f->task->params[i].name;
  gboolean is_head = g_str_has_prefix (name, "bbox_head"), is_norm = strstr (name, ".bn.") != NULL;
  double lr = step->lrs[is_head ? 1 : 0], decay = row->weight_decay * (is_norm && !is_head ? 0.5 : 1);
  g_autofree float *after = read_values (f, f->task->vtbl->read_param, i);

  for (gint64 k = 0; k < n_elements (f, i); k++)
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
  Fixture f;
  fixture_open (&f, changes);
  g_assert_cmpuint (f.task->n_groups, ==, 2);
  g_assert_cmpfloat (f.task->lr_mults[0], ==, 1);
  g_assert_cmpfloat (f.task->lr_mults[1], ==, 0.5);
  g_autoptr (GPtrArray) states = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < f.task->n_params; i++)
    g_ptr_array_add (states, g_new0 (State, (gsize) n_elements (&f, i)));

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
      add_gradients (&f);
      for (guint i = 0; i < f.task->n_params; i++)
        {
          g_ptr_array_add (before, read_values (&f, f.task->vtbl->read_param, i));
          g_ptr_array_add (grads, f.task->params[i].is_trained ? read_values (&f, f.task->vtbl->read_grad, i)
                                                               : NULL);
        }
      update (&f, &step);
      for (guint i = 0; i < f.task->n_params; i++)
        if (f.task->params[i].is_trained)
          check_param (&f, row, i, states->pdata[i], before->pdata[i], grads->pdata[i], &step, t);
    }
  fixture_close (&f);
}

/* ---- Statistics, and what the graph says ---- */

static void
test_grad_stats (void)
{
  Fixture f;
  fixture_open (&f, NULL);
  add_gradients (&f);
  g_autoptr (GArray) grads = read_all (&f, f.task->vtbl->read_grad, TRUE);
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
  fixture_close (&f);
}

static void
test_step_facts (void)
{
  static const char *const changes[] = { "model.neck={type: SpareNeck}", NULL };
  Fixture f;

  fixture_open (&f, NULL);
  g_auto (GStrv) none = f.task->vtbl->unreached_params (f.task);
  g_assert_cmpuint (g_strv_length (none), ==, 0);
  g_assert_true (f.task->has_live_batch_norm); /* the small detector's backbone has one */
  fixture_close (&f);

  fixture_open (&f, changes);
  g_auto (GStrv) spare = f.task->vtbl->unreached_params (f.task);
  const char *const want[] = { "neck.spare.weight", "neck.spare.bias", NULL };
  g_assert_true (g_strv_equal ((const char *const *) spare, want));
  fixture_close (&f);
}

/* ---- The running mean ---- */

static void
test_mean (gconstpointer with_buffers)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  gboolean averages = GPOINTER_TO_INT (with_buffers);
  g_autoptr (GError) error = NULL;
  Fixture f;

  fixture_open (&f, changes);
  const RnTaskVtbl *vtbl = f.task->vtbl;
  const RnParamSet *params = rn_programs_params (programs (&f));
  vtbl->update_ema (f.task, 1, averages, &error);
  g_assert_no_error (error);
  g_autoptr (GArray) start = read_all (&f, vtbl->read_param, FALSE);
  train_step (&f, TRUE);
  g_autoptr (GArray) end = read_all (&f, vtbl->read_param, FALSE);
  vtbl->update_ema (f.task, 0.25, averages, &error);
  g_assert_no_error (error);
  vtbl->swap_ema (f.task, &error);
  g_assert_no_error (error);
  g_autoptr (GArray) mean = read_all (&f, vtbl->read_param, FALSE);
  guint at = 0, n_moved = 0;
  for (guint i = 0; i < f.task->n_params; i++)
    {
      gboolean is_copied = rn_param_set_get (params, (int) i)->kind == RN_PARAM_BUFFER && !averages;
      for (gint64 k = 0; k < n_elements (&f, i); k++, at++)
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
  g_autoptr (GArray) back = read_all (&f, vtbl->read_param, FALSE);
  assert_same (back, end);
  fixture_close (&f);
}

/* ---- Checkpoints ---- */

static RnSafetensorsWriter *
writer_new (void)
{
  RnSafetensorsWriter *writer = rn_safetensors_writer_new ();
  rn_safetensors_writer_set_metadata (writer, "format", "runner-checkpoint-1");
  return writer;
}

/* (transfer full) */
static RnSafetensors *
save_and_open (const Fixture *f, RnSafetensorsWriter *writer)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (f->dir, "test.safetensors", NULL);

  rn_safetensors_writer_save (writer, path, &error);
  g_assert_no_error (error);
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  return file;
}

/* (transfer full) */
static RnSafetensors *
save_task (const Fixture *f, guint what)
{
  g_autoptr (RnSafetensorsWriter) writer = writer_new ();

  f->task->vtbl->add_tensors (f->task, writer, what);
  return save_and_open (f, writer);
}

static guint
load (const Fixture *f, const RnSafetensors *file)
{
  g_autoptr (GError) error = NULL;
  guint found = 0;

  f->task->vtbl->load_tensors (f->task, file, &found, &error);
  g_assert_no_error (error);
  return found;
}

static void
assert_refused (const Fixture *f, const RnSafetensors *file, const char *pattern)
{
  g_autoptr (GError) error = NULL;
  guint found = 0;

  g_assert_false (f->task->vtbl->load_tensors (f->task, file, &found, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not look like \"%s\"", error->message, pattern);
}

/* What is loaded goes on as what was saved: same gradients and mean, same bits after more steps. */
static void
test_round_trip (gconstpointer optimizer)
{
  const char *const changes[] = { optimizer, EMA_HOOK, NULL };
  g_autoptr (GError) error = NULL;
  Fixture a, b;
  fixture_open (&a, changes);
  fixture_open (&b, changes);

  for (int i = 0; i < 3; i++)
    train_step (&a, i == 0);
  a.task->vtbl->update_ema (a.task, 1, TRUE, &error);
  g_assert_no_error (error);
  train_step (&a, FALSE);
  g_autoptr (RnSafetensors) file = save_task (&a, ALL_TENSORS);
  g_assert_cmpuint (load (&b, file), ==, ALL_TENSORS);
  g_autoptr (GArray) grads_a = read_all (&a, a.task->vtbl->read_grad, TRUE),
                     grads_b = read_all (&b, b.task->vtbl->read_grad, TRUE);
  assert_same (grads_a, grads_b);
  for (int i = 0; i < 2; i++)
    {
      train_step (&a, FALSE);
      train_step (&b, FALSE);
    }
  for (int swapped = 0; swapped < 2; swapped++)
    {
      g_autoptr (GArray) params_a = read_all (&a, a.task->vtbl->read_param, FALSE),
                         params_b = read_all (&b, b.task->vtbl->read_param, FALSE);
      assert_same (params_a, params_b);
      gboolean is_ok = a.task->vtbl->swap_ema (a.task, &error) && b.task->vtbl->swap_ema (b.task, &error);
      g_assert_no_error (error);
      g_assert_true (is_ok);
    }
  fixture_close (&a);
  fixture_close (&b);
}

static void
test_less_in_the_file (void)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  Fixture f;

  fixture_open (&f, changes);
  g_autoptr (RnSafetensors) weights = save_task (&f, 0);
  g_assert_cmpuint (load (&f, weights), ==, 0);
  g_autoptr (RnSafetensors) before = save_task (&f, ALL_TENSORS); /* the first step, which makes the state */
  g_assert_cmpuint (load (&f, before), ==, RN_TENSORS_PENDING | RN_TENSORS_EMA);
  train_step (&f, TRUE);
  g_autoptr (RnSafetensors) some = save_task (&f, RN_TENSORS_OPTIMIZER | RN_TENSORS_EMA);
  g_assert_cmpuint (load (&f, some), ==, RN_TENSORS_OPTIMIZER | RN_TENSORS_EMA);
  fixture_close (&f);
}

/* A run without running mean leaves that of the file out. */
static void
test_more_in_the_file (void)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  Fixture with, without;

  fixture_open (&with, changes);
  fixture_open (&without, NULL);
  train_step (&with, TRUE);
  g_autoptr (RnSafetensors) file = save_task (&with, ALL_TENSORS);
  g_assert_cmpuint (load (&without, file), ==, RN_TENSORS_OPTIMIZER | RN_TENSORS_PENDING);
  fixture_close (&with);
  fixture_close (&without);
}

static void
test_other_optimizer (void)
{
  static const char *const adam[] = { ADAM, NULL };
  Fixture a, b;

  fixture_open (&a, NULL);
  fixture_open (&b, adam);
  train_step (&a, TRUE);
  g_autoptr (RnSafetensors) of_sgd = save_task (&a, RN_TENSORS_OPTIMIZER);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "*tensors of this model loaded*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*state of another optimizer (momentum)*");
  g_assert_cmpuint (load (&b, of_sgd), ==, 0);
  g_test_assert_expected_messages ();
  fixture_close (&a);
  fixture_close (&b);
}

static gboolean
read_zeros (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memset (dst, 0, size);
  return TRUE;
}

static void
test_bad_steps (void)
{
  static const char *const adam[] = { ADAM, NULL };
  const RnTensorDesc descs[] = { rn_desc_vector (RN_I64, 1), rn_desc_vector (RN_I32, 2),
                                 rn_desc_vector (RN_F32, 1) };
  Fixture f;

  fixture_open (&f, adam);
  for (guint i = 0; i <= G_N_ELEMENTS (descs); i++)
    {
      g_autoptr (RnSafetensorsWriter) writer = writer_new ();
      RnParamSet *params = rn_programs_params (programs (&f));
      RnDevice *device = rn_programs_device (programs (&f));
      rn_params_add_to (params, device, RN_ARRAY_VALUES, "", writer);
      rn_params_add_to (params, device, RN_ARRAY_STATE, "exp_avg/", writer);
      rn_params_add_to (params, device, RN_ARRAY_STATE + (RnParamArray) 1, "exp_avg_sq/", writer);
      if (i < G_N_ELEMENTS (descs)) /* the last file has none */
        rn_safetensors_writer_add (writer, "optimizer/steps", &descs[i], read_zeros, NULL, NULL);
      g_autoptr (RnSafetensors) file = save_and_open (&f, writer);
      assert_refused (&f, file, "*optimizer/steps is no number of steps*");
    }
  fixture_close (&f);
}

/* One tensor of an array, and all the others missing. */
static void
test_partial (void)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  static const char *const prefixes[] = { "pending/", "momentum/", "ema/" };
  Fixture f;

  fixture_open (&f, changes);
  for (guint k = 0; k < G_N_ELEMENTS (prefixes); k++)
    {
      g_autoptr (RnSafetensorsWriter) writer = writer_new ();
      g_autofree char *pattern = g_strdup_printf ("*%s has 1 of * tensors", prefixes[k]);
      g_autofree char *name = g_strconcat (prefixes[k], "backbone.bn.bias", NULL);
      const RnTensorDesc *desc = NULL;
      for (guint i = 0; i < f.task->n_params; i++)
        if (g_str_equal (f.task->params[i].name, "backbone.bn.bias"))
          desc = f.task->params[i].desc;
      g_assert_nonnull (desc);
      f.task->vtbl->add_tensors (f.task, writer, 0);
      rn_safetensors_writer_add (writer, name, desc, read_zeros, NULL, NULL);
      g_autoptr (RnSafetensors) file = save_and_open (&f, writer);
      assert_refused (&f, file, pattern);
    }
  fixture_close (&f);
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
  g_test_add_func ("/runner/update/grad-stats", test_grad_stats);
  g_test_add_func ("/runner/update/step-facts", test_step_facts);
  g_test_add_data_func ("/runner/update/mean/buffers-copied", GINT_TO_POINTER (FALSE), test_mean);
  g_test_add_data_func ("/runner/update/mean/buffers-averaged", GINT_TO_POINTER (TRUE), test_mean);
  g_test_add_data_func ("/runner/update/round-trip/sgd", "optimizer={type: SGD, lr: 0.01, momentum: 0.9}",
                        test_round_trip);
  g_test_add_data_func ("/runner/update/round-trip/adam", ADAM, test_round_trip);
  g_test_add_data_func ("/runner/update/round-trip/amsgrad",
                        "optimizer={type: AdamW, lr: 0.01, amsgrad: true}", test_round_trip);
  g_test_add_func ("/runner/update/less-in-the-file", test_less_in_the_file);
  g_test_add_func ("/runner/update/more-in-the-file", test_more_in_the_file);
  g_test_add_func ("/runner/update/other-optimizer", test_other_optimizer);
  g_test_add_func ("/runner/update/bad-steps", test_bad_steps);
  g_test_add_func ("/runner/update/partial", test_partial);
  int result = g_test_run ();
  remove_tree (data);
  g_free (data);
  return result;
}
