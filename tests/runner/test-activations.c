/* Outputs of modules that hooks read: the right values, while they are still there, and nothing else changes.
 */
#include "config.h"

#include "graph/passes.h"
#include "runner/base/error.h"
#include "runner/hook-list.h"
#include "runner/programs.h"
#include "runner/random-batch.h"
#include "tests/batch-image.h"
#include "tests/graph/interpreter.h"
#include "tests/models/fixture.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

/* ---- A small RetinaNet without a data set ---- */

/* In the order of the network. The laterals are overwritten in place, unless they are kept. */
static const char *const modules[] = {
  "backbone.conv1",   "backbone.layer1.0",    "backbone.layer2.0.downsample",
  "backbone.layer4",  "neck.lateral_convs.0", "neck.fpn_convs.0",
  "neck.fpn_convs.4", "bbox_head.retina_cls", NULL,
};

static const char *const small_model[] = {
  "model.backbone.depth=18",
  "model.backbone.base_channels=8",
  "model.backbone.frozen_stages=-1",
  "model.backbone.init_cfg=null",
  "model.neck.out_channels=12",
  "model.neck.in_channels=[8, 16, 32, 64]",
  "model.bbox_head.in_channels=12",
  "model.bbox_head.feat_channels=12",
  "model.bbox_head.num_classes=3",
  "model.bbox_head.stacked_convs=1",
  NULL,
};

static const char *const learned_norm[] = { "model.backbone.norm_eval=false", NULL };
static const char *const fixed_norm[] = { "model.backbone.norm_eval=true", NULL };

enum
{
  N = 2,
  HEIGHT = 64,
  WIDTH = 96
};

typedef struct
{
  RnDevice *device;
  Fixture model;
  RnBatch *batch;
  gboolean is_folded;
} Net;

static void
net_init (Net *net, const char *const *norm)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) changes = g_ptr_array_new ();

  for (gsize i = 0; small_model[i] != NULL; i++)
    g_ptr_array_add (changes, (gpointer) small_model[i]);
  g_ptr_array_add (changes, (gpointer) norm[0]);
  g_ptr_array_add (changes, NULL);
  fixture_init (&net->model, (const char *const *) changes->pdata);
  net->device = rn_device_new_cpu (2, &error);
  g_assert_no_error (error);
  net->batch = rn_random_batch_new (net->model.model, N, HEIGHT, WIDTH, 3, 1, &error);
  g_assert_no_error (error);
  net->is_folded = norm == fixed_norm;
}

static void
net_clear (Net *net)
{
  rn_random_batch_free (net->batch);
  fixture_clear (&net->model);
  rn_device_free (net->device);
}

static RnPrograms *
programs_new (const Net *net, const char *const *keep)
{
  g_autoptr (GError) error = NULL;
  const RnShape shape = { RN_MODE_TRAIN, N, HEIGHT, WIDTH };
  RnProgramsOptions options = {
    .training = TRUE,
    .rule = { .momentum = TRUE },
    .passes = { .fold_frozen_bn = net->is_folded, .inplace = TRUE, .cblk = net->device->cblk, .keep = keep },
    .plan_cache = 2,
    .check = TRUE
  };
  RnPrograms *programs = rn_programs_new (net->model.model, net->device, &options, &shape, 1, &error);

  g_assert_no_error (error);
  g_assert_true (rn_programs_reserve (programs, &error));
  g_assert_true (rn_param_set_init (rn_programs_params (programs), 7, &error));
  g_assert_true (rn_programs_zero_grads (programs, &error));
  g_assert_no_error (error);
  return programs;
}

/* ---- Values ---- */

static void
set_input (const Interpreter *self, const char *name, const void *data, gsize bytes)
{
  RnValueId value = rn_graph_find_value (self->graph, name);
  g_assert_cmpuint (bytes, <=, rn_desc_bytes (&rn_graph_value (self->graph, value)->desc));
  memcpy (interpreter_address (self, value), data, bytes);
}

/* The forward pass of the graph as the model wrote it: nothing fused, plain layout, a place of its own for
 * every value. */
static Interpreter *
run_plain (const Net *net, RnPrograms *programs, RnGraph **graph)
{
  g_autoptr (GError) error = NULL;
  const RnBatch *b = net->batch;
  const float scale = 1;

  *graph = rn_model_build (net->model.model, rn_programs_params (programs), RN_MODE_TRAIN, N, HEIGHT, WIDTH,
                           &error);
  g_assert_no_error (error);
  rn_pass_freeze (*graph);
  Interpreter *self = interpreter_new (*graph, net->device);
  g_autofree float *image = batch_image (b);
  set_input (self, "image", image, sizeof (float) * N * 3 * HEIGHT * WIDTH);
  set_input (self, "labels", b->labels, sizeof *b->labels * (gsize) (N * b->n_anchors));
  set_input (self, "positives", b->positives, sizeof *b->positives * (gsize) b->n_positives);
  set_input (self, "n_positives", &b->n_positives, sizeof b->n_positives);
  set_input (self, "avg_factor", &b->avg_factor, sizeof b->avg_factor);
  set_input (self, "grad_scale", &scale, sizeof scale);
  interpreter_run (self, 0, (int) (*graph)->ops->len);
  return self;
}

/* Folded, the batch norm and the ReLU behind a convolution are in its output, and behind a projection the
 * addition. */
static const char *
plain_name (const Net *net, const char *module)
{
  if (net->is_folded && g_str_equal (module, "backbone.conv1"))
    return "backbone.relu_fwd";
  if (net->is_folded && g_str_equal (module, "backbone.layer2.0.downsample"))
    return "backbone.layer2.0";
  return module;
}

/*
 * Fused, an addition or a batch norm meets the sum of the convolution at another place of it, and oneDNN sums
 * in another order for another layout. A sum of up to 9 x 64 products of float32 is off by up to some 1e-6 of
 * the largest terms, and 25 convolutions follow each other: 1e-4 of the largest element.
 */
#define TOLERANCE 1e-4

static void
test_values (gconstpointer norm)
{
  Net net;
  g_autoptr (GError) error = NULL;

  net_init (&net, norm);
  g_autoptr (RnPrograms) programs = programs_new (&net, modules);
  g_autoptr (RnGraph) graph = NULL;
  g_autoptr (Interpreter) plain = run_plain (&net, programs, &graph);
  g_assert_true (rn_param_set_init (rn_programs_params (programs), 7, &error)); /* running statistics */
  g_assert_true (rn_programs_forward (programs, net.batch, RN_MODE_TRAIN, 1, &error));
  g_assert_no_error (error);
  for (gsize i = 0; modules[i] != NULL; i++)
    {
      RnTensorDesc desc;
      g_autofree float *values = NULL;
      gboolean is_ok = rn_programs_read_activation (programs, modules[i], &desc, &values, &error);
      g_assert_no_error (error);
      g_assert_true (is_ok);
      RnValueId id = rn_graph_module_output (graph, plain_name (&net, modules[i]));
      const RnTensorDesc *expected = &rn_graph_value (graph, id)->desc;
      const float *want = interpreter_address (plain, id);
      double largest = 0, worst = 0;
      g_assert_cmpint (expected->cblk, ==, 1);
      g_assert_cmpint (desc.rank, ==, 4);
      g_assert_true (memcmp (desc.dims, expected->dims, sizeof desc.dims) == 0);
      for (gint64 k = 0; k < rn_desc_elements (&desc); k++)
        {
          largest = fmax (largest, fabs ((double) want[k]));
          worst = fmax (worst, fabs ((double) want[k] - (double) values[k]));
        }
      g_assert_cmpfloat (largest, >, 0);
      if (!(worst <= TOLERANCE * largest))
        g_error ("%s: off by %g of %g", modules[i], worst, largest);
    }
  g_clear_pointer (&plain, interpreter_free);
  g_clear_pointer (&programs, rn_programs_free);
  net_clear (&net);
}

/* ---- Training is not changed ---- */

static void
read_all (RnPrograms *programs, GArray *grads, GArray *values)
{
  RnParamSet *params = rn_programs_params (programs);
  RnDevice *device = rn_programs_device (programs);
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      gsize bytes = rn_desc_bytes (&param->desc);
      g_autofree char *buffer = g_malloc (bytes);
      g_assert_cmpint (device->vtbl->copy_out (device, buffer, rn_param_set_value (params, i), bytes), ==,
                       RN_STATUS_OK);
      g_array_append_vals (values, buffer, (guint) bytes);
      if (!param->trainable)
        continue;
      g_assert_cmpint (device->vtbl->copy_out (device, buffer, rn_param_set_grad (params, i), bytes), ==,
                       RN_STATUS_OK);
      g_array_append_vals (grads, buffer, (guint) bytes);
    }
}

static void
test_same_bits (gconstpointer norm)
{
  Net net;
  g_autoptr (GError) error = NULL;

  net_init (&net, norm);
  g_autoptr (RnPrograms) with = programs_new (&net, modules);
  g_autoptr (RnPrograms) without = programs_new (&net, NULL);
  RnPrograms *both[] = { with, without };
  GArray *grads[2], *values[2];
  float losses[2];

  for (int i = 0; i < 2; i++)
    {
      grads[i] = g_array_new (FALSE, FALSE, 1);
      values[i] = g_array_new (FALSE, FALSE, 1);
      gboolean is_ok = rn_programs_forward (both[i], net.batch, RN_MODE_TRAIN, 1, &error)
                       && rn_programs_backward (both[i], &error);
      g_assert_no_error (error);
      g_assert_true (is_ok);
      losses[i] = rn_programs_loss (both[i], "loss");
      read_all (both[i], grads[i], values[i]);
    }
  g_assert_cmpmem (&losses[0], sizeof losses[0], &losses[1], sizeof losses[1]);
  g_assert_cmpmem (grads[0]->data, grads[0]->len, grads[1]->data, grads[1]->len);
  g_assert_cmpmem (values[0]->data, values[0]->len, values[1]->data, values[1]->len);
  for (int i = 0; i < 2; i++)
    {
      g_array_unref (grads[i]);
      g_array_unref (values[i]);
    }
  /* What is kept is counted: at the turn all of it is alive, and one of it would not be. */
  RnMemory more = rn_programs_memory (with), less = rn_programs_memory (without);
  g_assert_cmpuint (more.total_bytes - more.arena_bytes, ==, less.total_bytes - less.arena_bytes);
  g_assert_cmpuint (more.live_bound_bytes, >=, less.live_bound_bytes);
  g_clear_pointer (&with, rn_programs_free);
  g_clear_pointer (&without, rn_programs_free);
  net_clear (&net);
}

static gsize
live_at_turn (RnPrograms *programs)
{
  g_autoptr (GError) error = NULL;
  const RnPlan *plan = rn_programs_get_plan (programs, (RnShape){ RN_MODE_TRAIN, N, HEIGHT, WIDTH }, &error);
  g_assert_no_error (error);
  g_autofree char *fault = rn_plan_check (plan);
  g_assert_cmpstr (fault, ==, NULL);
  return rn_plan_live_bytes (plan, plan->graph->turn);
}

/* A lateral's sum is written over it: kept, it is one tensor more. */
static void
test_memory (void)
{
  static const char *const lateral[] = { "neck.lateral_convs.0", NULL };
  Net net;
  g_autoptr (GError) error = NULL;

  net_init (&net, learned_norm);
  g_autoptr (RnPrograms) with = programs_new (&net, lateral);
  g_autoptr (RnPrograms) without = programs_new (&net, NULL);
  RnTensorDesc desc;
  g_autofree float *values = NULL;
  g_assert_true (rn_programs_forward (with, net.batch, RN_MODE_TRAIN, 1, &error));
  g_assert_true (rn_programs_read_activation (with, lateral[0], &desc, &values, &error));
  g_assert_cmpuint (live_at_turn (with) - live_at_turn (without), ==, rn_desc_bytes (&desc));
  g_clear_pointer (&with, rn_programs_free);
  g_clear_pointer (&without, rn_programs_free);
  net_clear (&net);
}

/* ---- Faults ---- */

static void
assert_no_module (RnPrograms *programs, const char *module, const char *expected)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (rn_programs_check_module (programs, module, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  g_assert_cmpstr (error->message, ==, expected);
}

static void
test_names (void)
{
  Net net;
  g_autoptr (GError) error = NULL;

  net_init (&net, fixed_norm);
  g_autoptr (RnPrograms) programs = programs_new (&net, modules);
  for (gsize i = 0; modules[i] != NULL; i++)
    g_assert_true (rn_programs_check_module (programs, modules[i], &error));
  assert_no_module (programs, "backbone.layr4",
                    "the model has no module \"backbone.layr4\"; nearest: \"backbone.layer4\"");
  assert_no_module (programs, "neck.fpn_conv.0",
                    "the model has no module \"neck.fpn_conv.0\"; nearest: \"neck.fpn_convs.0\"");
  assert_no_module (programs, "backbone.layer",
                    "the model has no module \"backbone.layer\"; nearest: "
                    "\"backbone.layer1\"");
  assert_no_module (programs, "", "the model has no module \"\"");
  assert_no_module (programs, "backbone.layer1.0.bn1",
                    "the module \"backbone.layer1.0.bn1\" has no output of its own here: it is computed "
                    "together with the one in front of it; nearest: \"backbone.layer1.0.conv1\"");

  /* Not asked for, or too late. */
  RnTensorDesc desc;
  float *values = NULL;
  g_assert_true (rn_programs_forward (programs, net.batch, RN_MODE_TRAIN, 1, &error));
  g_assert_false (rn_programs_read_activation (programs, "backbone.layer3", &desc, &values, &error));
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
  g_clear_error (&error);
  g_assert_true (rn_programs_backward (programs, &error));
  g_assert_false (rn_programs_read_activation (programs, "backbone.layer4", &desc, &values, &error));
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
  g_assert_null (values);
  g_clear_pointer (&programs, rn_programs_free);
  net_clear (&net);
}

/* ---- A hook in a run ---- */

typedef struct
{
  RnHook hook;
  char *module, *other;
  double sum;
  gint64 n;
} ReaderHook;

static double activation_sum;
static gint64 n_activations;

static const RnKeySpec reader_keys[] = {
  RN_KEY (ReaderHook, module, RN_KEY_STRING, "backbone", "module"),
  RN_KEY (ReaderHook, other, RN_KEY_STRING, "backbone", "module"),
  RN_KEY_END,
};

static gboolean
reader_prepare (RnHook *hook, RnWants *wants, GError **error)
{
  rn_wants_activation (wants, ((ReaderHook *) hook)->module);
  rn_wants_activation (wants, ((ReaderHook *) hook)->other);
  return TRUE;
}

static gboolean
reader_after_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  RnTensorDesc desc;
  g_autofree float *values = NULL;

  if (!rn_runner_read_activation (runner, ((ReaderHook *) hook)->module, &desc, &values, error))
    return FALSE;
  g_assert_cmpint (desc.dims[0], ==, 2);
  g_assert_cmpint (desc.dims[1], ==, 4);
  g_assert_cmpint (desc.dims[2], ==, 4);
  g_assert_cmpint (desc.dims[3], ==, 4);
  for (gint64 i = 0; i < rn_desc_elements (&desc); i++)
    {
      g_assert_cmpfloat (values[i], >=, 0); /* the ReLU is in it */
      activation_sum += (double) values[i];
    }
  n_activations++;
  return TRUE;
}

RN_HOOK_DEFINE (reader, ReaderHook, .name = "ReaderHook", .summary = "for tests",
                .priority = RN_PRIORITY_HIGH, .needs = RN_NEEDS_ACTIVATIONS | RN_NEEDS_LOSS,
                .keys = reader_keys, .prepare = reader_prepare, .after_train_iter = reader_after_iter);
RN_HOOK_DEFINE (late, ReaderHook, .name = "LateHook", .summary = "for tests", .needs = RN_NEEDS_ACTIVATIONS,
                .keys = reader_keys, .prepare = reader_prepare, .after_train_iter = reader_after_iter);
/* Says nothing of what it wants. */
RN_HOOK_DEFINE (rude, ReaderHook, .name = "RudeHook", .summary = "for tests", .keys = reader_keys,
                .prepare = reader_prepare);

/* The message of a run that does not start or does not end well; NULL for one that does. */
static char *
run_with (const char *hooks)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *data = small_detector_data ();
  const char *const changes[] = { "runner.max_epochs=1", hooks, NULL };

  activation_sum = 0;
  n_activations = 0;
  g_autoptr (RnTraining) training = small_detector_training (data, data, changes, FALSE, &error);
  if (training != NULL)
    rn_runner_run (training->runner, &error);
  g_clear_pointer (&training, rn_training_free);
  remove_tree (data);
  return error != NULL ? g_strdup (error->message) : NULL;
}

static void
test_run (void)
{
  g_autofree char *good = run_with ("custom_hooks=[{type: ReaderHook}]");
  g_assert_cmpstr (good, ==, NULL);
  g_assert_cmpint (n_activations, ==, SMALL_EPOCH);
  g_assert_cmpfloat (activation_sum, >, 0);

  g_autofree char *misspelt = run_with ("custom_hooks=[{type: ReaderHook, other: backbne}]");
  g_assert_cmpstr (misspelt, ==, "ReaderHook: the model has no module \"backbne\"; nearest: \"backbone\"");
  g_autofree char *late = run_with ("custom_hooks=[{type: LateHook}]");
  g_assert_cmpstr (late, ==,
                   "LateHook: after_train_iter: activations are there in after_train_iter, before the "
                   "optimizer hook (priority below 40)");
  g_autofree char *rude = run_with ("custom_hooks=[{type: RudeHook}]");
  g_assert_cmpstr (rude, ==,
                   "RudeHook: asks for the output of backbone, but its descriptor has no "
                   "RN_NEEDS_ACTIVATIONS in .needs");
}

static void
test_wants (void)
{
  g_autoptr (RnHookList) list = rn_hook_list_new ();
  g_autoptr (RnWants) wants = rn_wants_new ();
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (rn_hook_list_needs (list), ==, 0);
  g_assert_true (rn_hook_list_add (list, NULL, "ReaderHook", NULL, &error));
  g_assert_true (rn_hook_list_add (list, NULL, "EMAHook", NULL, &error));
  g_assert_cmpuint (rn_hook_list_needs (list), ==, RN_NEEDS_ACTIVATIONS | RN_NEEDS_LOSS | RN_NEEDS_EMA);
  g_assert_true (rn_hook_list_prepare (list, wants, &error));
  g_assert_cmpuint (wants->needs, ==, rn_hook_list_needs (list));
  g_autofree const char **names = rn_wants_modules (wants); /* asked for twice, there once */
  g_assert_cmpstr (names[0], ==, "backbone");
  g_assert_null (names[1]);
}

int
main (int argc, char **argv)
{
  static const RnHookDesc *const hooks[] = { &rn_hook_desc_reader, &rn_hook_desc_late, &rn_hook_desc_rude };
  g_test_init (&argc, &argv, NULL);
  rn_hooks_register ();
  small_detector_register ();
  for (gsize i = 0; i < G_N_ELEMENTS (hooks); i++)
    g_assert_true (rn_hook_register (hooks[i], NULL));
  g_test_add_data_func ("/activations/values/learned-norm", learned_norm, test_values);
  g_test_add_data_func ("/activations/values/fixed-norm", fixed_norm, test_values);
  g_test_add_data_func ("/activations/same-bits/learned-norm", learned_norm, test_same_bits);
  g_test_add_data_func ("/activations/same-bits/fixed-norm", fixed_norm, test_same_bits);
  g_test_add_func ("/activations/memory", test_memory);
  g_test_add_func ("/activations/names", test_names);
  g_test_add_func ("/activations/run", test_run);
  g_test_add_func ("/activations/wants", test_wants);
  return g_test_run ();
}
