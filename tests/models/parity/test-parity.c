/*
 * test-parity.c: RetinaNet R18-FPN against PyTorch on the CPU device: targets, outputs, losses, gradients,
 * statistics, and ten steps of SGD. make_fixtures.py says what the fixtures hold and why their seeds were
 * chosen.
 *
 * Tolerances. The fixtures are computed in double precision. A float32 sum of up to 4608 products (3x3 over
 * 512 channels) is off by about 1e-6 of its terms' size, and some thirty layers follow each other: 1e-5 for
 * losses, which are averages, 1e-4 of a tensor's largest entry for gradients, 1e-4 for losses after several
 * steps.
 */
#include "config.h"

#include <math.h>
#include "graph/executor.h"
#include "graph/update-graph.h"
#include "tests/models/fixture.h"
#include "tests/models/parity/fixture-file.h"
#include "tests/models/parity/scene.h"

#define LEVELS 5
#define LOSS_TOLERANCE 1e-5
#define TENSOR_TOLERANCE 1e-4
#define CURVE_TOLERANCE 1e-4

typedef struct
{
  RnDevice *device;
  FixtureFile *file;
  Fixture model;
  Scene *scene;
  gboolean fold;
} Test;

/* A plan in an arena of its own. */
typedef struct
{
  RnDevice *device;
  RnPlan *plan;
  RnExecutor *executor;
  void *arena;
} Program;

static void
program_clear (Program *self)
{
  g_clear_pointer (&self->executor, rn_executor_free);
  if (self->arena)
    self->device->vtbl->free (self->device, self->arena, self->plan->arena_bytes);
  g_clear_pointer (&self->plan, rn_plan_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Program, program_clear)

/* Takes @graph. */
static void
program_init (Program *self, RnGraph *graph, RnDevice *device)
{
  g_autoptr (GError) error = NULL;
  self->device = device;
  self->plan = rn_plan_new (graph, device, TRUE, &error);
  g_assert_no_error (error);
  g_assert_cmpint (device->vtbl->alloc (device, self->plan->arena_bytes, &self->arena), ==, RN_STATUS_OK);
  self->executor = rn_executor_new (self->plan, self->arena, self->plan->arena_bytes, &error);
  g_assert_no_error (error);
}

static void
program_run (Program *self, int first, int end)
{
  g_autoptr (GError) error = NULL;
  rn_executor_run (self->executor, first, end, &error);
  g_assert_no_error (error);
}

static void
program_set (Program *self, const char *name, gconstpointer data, gsize bytes)
{
  RnValueId value = rn_graph_find_value (self->plan->graph, name);
  g_assert_cmpint (value, !=, RN_NO_VALUE);
  g_assert_cmpint (
      self->device->vtbl->copy_in (self->device, rn_executor_address (self->executor, value), data, bytes),
      ==, RN_STATUS_OK);
}

/* @n floats of a device's memory. (transfer full) */
static float *
read_floats (RnDevice *device, const void *address, gint64 n)
{
  float *x = g_new (float, n);
  g_assert_nonnull (address);
  g_assert_cmpint (device->vtbl->copy_out (device, x, address, sizeof *x * (gsize) n), ==, RN_STATUS_OK);
  return x;
}

static void
init_mode (Program *program, Test *t, RnMode mode)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnGraph) graph = fixture_graph (&t->model, mode, SCENE_IMAGES, SCENE_HEIGHT, SCENE_WIDTH);
  RnPassOptions options = { .fold_frozen_bn = t->fold, .inplace = TRUE, .cblk = t->device->cblk };
  rn_passes_run (graph, &options, NULL, NULL, &error);
  g_assert_no_error (error);
  program_init (program, g_steal_pointer (&graph), t->device);
}

static void
set_inputs (Program *program, const Scene *scene)
{
  const float grad_scale = 1;
  program_set (program, "image", scene->image, sizeof (float) * SCENE_PIXELS);
  program_set (program, "labels", scene->labels, sizeof (gint16) * SCENE_IMAGES * (gsize) scene->n_anchors);
  program_set (program, "positives", scene->positives, sizeof (RnPositive) * (gsize) scene->n_positives);
  program_set (program, "n_positives", &scene->n_positives, sizeof scene->n_positives);
  program_set (program, "avg_factor", &scene->avg_factor, sizeof scene->avg_factor);
  program_set (program, "grad_scale", &grad_scale, sizeof grad_scale);
}

/* Five classification losses, then five box losses. */
static void
read_losses (Program *program, double losses[2 * LEVELS])
{
  for (int i = 0; i < 2 * LEVELS; i++)
    {
      g_autofree char *name = g_strdup_printf ("%s.%d", i < LEVELS ? "loss_cls" : "loss_bbox", i % LEVELS);
      RnValueId value = rn_graph_find_value (program->plan->graph, name);
      g_autofree float *x = read_floats (program->device, rn_executor_address (program->executor, value), 1);
      losses[i] = x[0];
    }
}

static void
assert_relative (const FixtureLine *line, guint n, guint i, double value, double tolerance)
{
  double expected = fixture_value (line, i);
  if (!(fabs (value - expected) <= tolerance * fabs (expected)))
    g_error ("%s %u: number %u is %.9g, PyTorch has %.9g, relative tolerance %.3g", line->kind, n, i, value,
             expected, tolerance);
}

static void
assert_losses (Program *program, const FixtureLine *line)
{
  double losses[2 * LEVELS];
  read_losses (program, losses);
  for (guint i = 0; i < 2 * LEVELS; i++)
    assert_relative (line, 0, i, losses[i], LOSS_TOLERANCE);
}

/* ---- what is compared ---- */

/* The file lists anchors that are not background, image by image. Box targets are logarithms and quotients of
 * pixels in float32. */
static void
check_targets (const Test *t)
{
  guint n = 0;
  gint64 n_positives = 0;
  for (int image = 0; image < SCENE_IMAGES; image++)
    for (gint64 a = 0; a < t->scene->n_anchors; a++)
      {
        int label = t->scene->labels[image * t->scene->n_anchors + a];
        if (label == SCENE_CLASSES)
          continue;
        const FixtureLine *line = fixture_file_get (t->file, "label", n++);
        g_assert_nonnull (line);
        g_assert_cmpint (image, ==, (int) fixture_value (line, 0));
        g_assert_cmpint (a, ==, (gint64) fixture_value (line, 1));
        g_assert_cmpint (label, ==, (int) fixture_value (line, 2));
        if (label < 0)
          continue;
        const RnPositive *positive = &t->scene->positives[n_positives++];
        g_assert_cmpint (positive->image, ==, image);
        g_assert_cmpint (positive->anchor, ==, a);
        for (guint d = 0; d < 4; d++)
          g_assert_cmpfloat_with_epsilon (positive->target[d], fixture_value (line, 3 + d), 1e-6);
      }
  g_assert_null (fixture_file_get (t->file, "label", n));
  g_assert_cmpint (n_positives, ==, t->scene->n_positives);
  g_assert_cmpfloat (t->scene->avg_factor, ==,
                     fixture_value (fixture_file_get (t->file, "avg_factor", 0), 0));
}

static void
check_inference (Test *t)
{
  g_auto (Program) program = { 0 };
  init_mode (&program, t, RN_MODE_INFER);
  program_set (&program, "image", t->scene->image, sizeof (float) * SCENE_PIXELS);
  program_run (&program, 0, (int) program.plan->graph->ops->len);
  for (guint i = 0; i < 2 * LEVELS; i++)
    {
      const FixtureLine *line = fixture_file_get (t->file, "output", i);
      RnValueId value = rn_graph_find_value (program.plan->graph, line->name);
      gint64 n = rn_desc_elements (&rn_graph_value (program.plan->graph, value)->desc);
      g_autofree float *x = read_floats (t->device, rn_executor_address (program.executor, value), n);
      fixture_assert_tensor (t->file, line, x, n, TENSOR_TOLERANCE);
    }
}

static void
check_loss_mode (Test *t)
{
  g_auto (Program) program = { 0 };
  init_mode (&program, t, RN_MODE_LOSS);
  set_inputs (&program, t->scene);
  program_run (&program, 0, (int) program.plan->graph->ops->len);
  assert_losses (&program, fixture_file_get (t->file, "eval_loss", 0));
}

static void
check_params (const Test *t, const char *kind)
{
  const RnParamSet *params = t->model.params;
  guint n = 0;
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *p = rn_param_set_get (params, i);
      gboolean gradient = g_str_equal (kind, "gradient");
      if (gradient ? !p->trainable : p->kind != RN_PARAM_BUFFER)
        continue;
      const FixtureLine *line = fixture_file_get (t->file, kind, n++);
      g_assert_nonnull (line);
      g_assert_cmpstr (line->name, ==, p->name); /* also the order of PyTorch's modules */
      gint64 elements = rn_desc_elements (&p->desc);
      const void *address = gradient ? rn_param_set_grad (params, i) : rn_param_set_value (params, i);
      g_autofree float *x = read_floats (t->device, address, elements);
      fixture_assert_tensor (t->file, line, x, elements, TENSOR_TOLERANCE);
    }
  g_assert_null (fixture_file_get (t->file, kind, n));
}

/* The first step's losses, gradients and statistics. The momentum and values stay as drawn. */
static void
check_gradients (Test *t, Program *train)
{
  g_autoptr (GError) error = NULL;
  rn_param_set_zero_grads (t->model.params, &error);
  g_assert_no_error (error);
  program_run (train, 0, train->plan->graph->turn);
  assert_losses (train, fixture_file_get (t->file, "loss", 0));
  program_run (train, train->plan->graph->turn, (int) train->plan->graph->ops->len);
  check_params (t, "gradient");
  if (fixture_file_get (t->file, "buffer", 0))
    check_params (t, "buffer");
}

static void
check_curve (Test *t, Program *train)
{
  const RnUpdateSpec spec = { .rule = { .momentum = TRUE, .weight_decay = 1e-4 }, .n_groups = 1 };
  const float norm_type = 2;
  float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = { [RN_HYPER_MOMENTUM] = 0.9f,
                                                   [RN_HYPER_GRAD_MULTIPLIER] = 1,
                                                   [RN_HYPER_FIRST] = 1,
                                                   [RN_HYPER_COUNT + RN_GROUP_LR] = 1e-4f };
  g_auto (Program) update = { 0 };
  program_init (&update, rn_update_graph_new (t->model.params, &spec, NULL), t->device);

  const FixtureLine *line;
  for (guint step = 0; (line = fixture_file_get (t->file, "step", step)); step++)
    {
      g_autoptr (GError) error = NULL;
      double losses[2 * LEVELS], sums[2] = { 0 };
      rn_param_set_zero_grads (t->model.params, &error);
      g_assert_no_error (error);
      set_inputs (train, t->scene);
      program_run (train, 0, train->plan->graph->turn);
      read_losses (train, losses);
      for (int i = 0; i < 2 * LEVELS; i++)
        sums[i / LEVELS] += losses[i];
      for (guint i = 0; i < 2; i++)
        assert_relative (line, step, i, sums[i], CURVE_TOLERANCE);
      program_run (train, train->plan->graph->turn, (int) train->plan->graph->ops->len);

      hyper[RN_HYPER_FIRST] = step == 0;
      program_set (&update, "norm_type", &norm_type, sizeof norm_type);
      program_set (&update, "hyper", hyper, sizeof hyper);
      program_run (&update, 0, (int) update.plan->graph->ops->len);
    }
  g_assert_null (fixture_file_get (t->file, "step", 10));
  g_assert_nonnull (fixture_file_get (t->file, "step", 9));
}

/* ---- tests ---- */

static void
run (const char *name, const char *const *changes, gboolean fold)
{
  g_autoptr (GError) error = NULL;
  /* one thread: on maps as small as these, more would only wait for each other */
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error);
  g_assert_no_error (error);
  g_auto (Fixture) model = { 0 };
  fixture_init (&model, changes);
  g_autoptr (FixtureFile) file = fixture_file_read (name);
  g_autoptr (Scene) scene = scene_new (file->seed, model.model);
  Test t = { .device = device, .file = file, .model = model, .scene = scene, .fold = fold };
  check_targets (&t);

  g_autoptr (RnGraph) first = fixture_graph (&model, RN_MODE_TRAIN, SCENE_IMAGES, SCENE_HEIGHT, SCENE_WIDTH);
  rn_param_set_allocate (model.params, device, TRUE, TRUE, &error); /* the first graph has named them all */
  g_assert_no_error (error);
  scene_draw_params (file->seed, model.params, device);
  g_auto (Program) train = { 0 };
  init_mode (&train, &t, RN_MODE_TRAIN);
  check_inference (&t);
  check_loss_mode (&t);
  set_inputs (&train, scene);
  check_gradients (&t, &train);
  scene_draw_params (file->seed, model.params, device);
  check_curve (&t, &train);
}

#define R18                                                                                  \
  "model.backbone.depth=18", "model.neck.in_channels=null", "model.bbox_head.num_classes=3", \
      "model.test_cfg.nms_pre=-1"

static void
test_frozen (gconstpointer fold)
{
  const char *changes[] = { R18, NULL };
  run ("frozen", changes, GPOINTER_TO_INT (fold));
}

static void
test_training (void)
{
  const char *changes[] = { R18, "model.backbone.frozen_stages=-1", "model.backbone.norm_eval=false", NULL };
  run ("training", changes, TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#ifndef HAVE_ONEDNN
  if (g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") != 0)
    {
      g_print ("1..0 # SKIP the reference convolutions take about an hour; make check-long runs them\n");
      return 0;
    }
#endif
  g_test_add_data_func ("/models/parity/frozen-norms-folded", GINT_TO_POINTER (TRUE), test_frozen);
  g_test_add_data_func ("/models/parity/frozen-norms-apart", GINT_TO_POINTER (FALSE), test_frozen);
  g_test_add_func ("/models/parity/training-norms", test_training);
  return g_test_run ();
}
