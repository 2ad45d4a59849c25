/* The first op that gives a NaN, and the trace of a step, of a small RetinaNet on noise. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/job.h"
#include "runner/random-batch.h"
#include "tests/runner/chrome-trace.h"
#include "tests/small-model.h"
#include "tests/tree.h"

#include <runner/engine.h>

#include <math.h>
#include <string.h>

#define SIZE 64

typedef struct
{
  RnJob *job;
  RnBatch *batch;
} Fixture;

static void
fixture_open (Fixture *f)
{
  static const char *const overrides[] = { "threads=1", "classes=[circle, square, triangle]", SMALL_MODEL,
                                           NULL };
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "configs", "retinanet_shapes.yaml", NULL);
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));
  RnShape shape = { RN_MODE_TRAIN, 2, SIZE, SIZE };
  RnNode *root = rn_config_load (path, overrides, &error);

  g_assert_no_error (error);
  g_array_append_val (shapes, shape);
  f->job = rn_job_new (root, &error);
  g_assert_no_error (error);
  gboolean is_ok = rn_job_open_model (f->job, &error)
                   && rn_job_open_programs (f->job, shapes, TRUE, FALSE, &error)
                   && rn_programs_reserve (f->job->programs, &error)
                   && rn_param_set_init (rn_programs_params (f->job->programs), 1, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
  f->batch = rn_random_batch_new (f->job->model, 2, SIZE, SIZE, 3, 1, &error);
  g_assert_no_error (error);
}

static void
fixture_close (Fixture *f)
{
  rn_random_batch_free (f->batch);
  rn_job_free (f->job);
}

static void
forward (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  rn_programs_forward (f->job->programs, f->batch, RN_MODE_TRAIN, 1, &error);
  g_assert_no_error (error);
}

static char *
find (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  char *where = NULL;

  rn_programs_find_non_finite (f->job->programs, f->batch, &where, &error);
  g_assert_no_error (error);
  return where;
}

/* Element @i of the parameter @name, on the CPU. */
static float *
element (Fixture *f, const char *name, gsize i)
{
  RnParamSet *params = rn_programs_params (f->job->programs);

  for (int k = 0; k < rn_param_set_size (params); k++)
    if (strcmp (rn_param_set_get (params, k)->name, name) == 0)
      return (float *) rn_param_set_value (params, k) + i;
  g_error ("no parameter %s", name);
}

static void
test_none (gconstpointer data)
{
  Fixture *f = (Fixture *) data;
  forward (f);
  float loss = rn_programs_loss (f->job->programs, "loss");
  g_assert_true (isfinite (loss));
  g_autofree char *where = find (f);
  g_assert_null (where);
  g_assert_cmpfloat (rn_programs_loss (f->job->programs, "loss"), ==, loss);
  /* The next iteration goes on as if nothing had been. */
  forward (f);
  g_assert_cmpfloat (rn_programs_loss (f->job->programs, "loss"), ==, loss);
}

static void
test_weight (gconstpointer data)
{
  Fixture *f = (Fixture *) data;
  static const char *const names[] = { "backbone.layer2.0.conv1", "neck.fpn_convs.1.conv",
                                       "bbox_head.retina_reg" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *name = g_strconcat (names[i], ".weight", NULL);
      float *weight = element (f, name, 5), saved = *weight;
      *weight = i == 0 ? INFINITY : NAN;
      forward (f);
      g_autofree char *where = find (f);
      *weight = saved;
      g_assert_nonnull (where);
      g_assert_true (g_str_has_prefix (where, names[i]));
      g_assert_nonnull (strstr (where, name)); /* which is not finite itself */
      g_assert_nonnull (strstr (where, "values are NaN or infinite after conv2d_fwd"));
    }
  g_autofree char *where = find (f);
  g_assert_null (where);
}

/* All weights are finite, a product of them is not. */
static void
test_overflow (gconstpointer data)
{
  Fixture *f = (Fixture *) data;
  float *weight = element (f, "backbone.layer1.0.conv1.weight", 0), saved = *weight;

  *weight = 3e38f;
  forward (f);
  g_autofree char *where = find (f);
  *weight = saved;
  g_assert_nonnull (where);
  g_assert_true (g_str_has_prefix (where, "backbone.layer1.0."));
  g_assert_null (strstr (where, "whose parameter"));
}

static void
test_image (gconstpointer data)
{
  Fixture *f = (Fixture *) data;
  const guint8 *blue = f->batch->pixels + 3 * SIZE * SIZE + 2; /* of the second image */
  float *value = &f->batch->table[1][2][blue[0]], saved = *value;
  int n = 0;

  for (int i = 0; i < SIZE * SIZE; i++)
    n += blue[3 * i] == blue[0];
  *value = NAN;
  g_autofree char *where = find (f);
  *value = saved;
  g_autofree char *expected = g_strdup_printf ("the images of the batch: %d pixel values", n);
  g_assert_cmpstr (where, ==, expected);
}

/* Every op of the step, once, inside its phase, with its module and shapes. */
static void
test_trace (gconstpointer data)
{
  Fixture *f = (Fixture *) data;
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-step-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "trace.json", NULL);
  RnTraceOptions options = { 100000, TRUE, TRUE };
  const RnPlan *plan =
      rn_programs_get_plan (f->job->programs, (RnShape){ RN_MODE_TRAIN, 2, SIZE, SIZE }, &error);

  g_assert_no_error (error);
  guint n_ops = plan->graph->ops->len;
  g_assert_true (rn_trace_start (&options));
  forward (f);
  g_assert_true (rn_programs_backward (f->job->programs, &error));
  rn_trace_stop ();
  g_assert_true (rn_trace_write (path, &error));
  rn_trace_clear ();
  g_autoptr (ChromeTrace) trace = chrome_trace_read (path);
  remove_tree (dir);

  g_assert_cmpuint (chrome_trace_count (trace, "op", NULL), ==, n_ops);
  g_assert_cmpuint (chrome_trace_count (trace, "phase", "forward"), ==, 1);
  g_assert_cmpuint (chrome_trace_count (trace, "phase", "backward"), ==, 1);
  g_assert_cmpuint (GPOINTER_TO_UINT (g_hash_table_lookup (trace->counters, "arena bytes in use")), ==,
                    n_ops);
  const ChromeSpan *phase[] = { chrome_trace_find (trace, "phase", "forward"),
                                chrome_trace_find (trace, "phase", "backward") };
  guint i = 0;
  for (guint k = 0; k < trace->spans->len; k++)
    {
      const ChromeSpan *span = g_ptr_array_index (trace->spans, k);
      if (strcmp (span->category, "op") != 0)
        continue;
      const ChromeSpan *around = phase[(int) i >= plan->graph->turn];
      const RnGraphOp *op = rn_graph_op (plan->graph, (int) i);
      g_autofree char *shapes = rn_op_describe (&plan->calls[i]);
      g_assert_cmpint (span->start, >=, around->start);
      g_assert_cmpint (span->end, <=, around->end);
      g_assert_cmpstr (span->name, ==, rn_op_name (op->op));
      g_assert_cmpstr (span->scope, ==, op->scope);
      g_assert_cmpstr (span->kernel, ==, plan->prepared[i].kernel->name);
      g_assert_cmpstr (span->shapes, ==, shapes);
      i++;
    }
}

int
main (int argc, char **argv)
{
  Fixture fixture;

  g_test_init (&argc, &argv, NULL);
  fixture_open (&fixture); /* for all: tests leave it as it was */
  g_test_add_data_func ("/runner/non-finite/none", &fixture, test_none);
  g_test_add_data_func ("/runner/non-finite/weight", &fixture, test_weight);
  g_test_add_data_func ("/runner/non-finite/overflow", &fixture, test_overflow);
  g_test_add_data_func ("/runner/non-finite/image", &fixture, test_image);
  g_test_add_data_func ("/runner/non-finite/trace", &fixture, test_trace);
  int status = g_test_run ();
  fixture_close (&fixture);
  return status;
}
