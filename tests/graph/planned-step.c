#include "config.h"

#include "tests/graph/planned-step.h"

#include "kernels/half.h"
#include "runner/base/rng.h"

#include <runner/batch.h>
#include <string.h>

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
      gboolean is_positive =
          g_str_has_suffix (param->name, "running_var") || (param->is_norm && !param->is_bias);
      if (!param->is_norm && param->kind != RN_PARAM_BUFFER)
        continue;
      RnRng rng;
      rn_rng_init (&rng, 7, RN_STREAM_SYNTH, g_str_hash (param->name), 0);
      float *values = rn_param_set_value (params, i);
      for (int64_t k = 0; k < rn_desc_elements (&param->desc); k++)
        values[k] = is_positive ? random_in (&rng, 0.5, 1.5) : random_in (&rng, -0.3, 0.3);
    }
}

void
planned_step_init (PlannedStep *step, RnDevice *device, PlannedNet net, const NetOptions *net_options,
                   const RnPassOptions *passes, int n_states)
{
  g_autoptr (GError) error = NULL;
  gboolean has_gradients = passes->update == NULL;

  step->device = device;
  step->params = rn_param_set_new ();
  RnGraph *graph = rn_graph_new (RN_MODE_TRAIN, step->params);
  net (graph, net_options);
  rn_graph_finish_forward (graph, &error);
  g_assert_no_error (error);
  rn_passes_run (graph, passes, NULL, NULL, &error);
  g_assert_no_error (error);
  step->plan = rn_plan_new (graph, device, passes->inplace, &error);
  g_assert_no_error (error);
  g_autofree char *fault = rn_plan_check (step->plan);
  g_assert_cmpstr (fault, ==, NULL);

  rn_param_set_allocate (step->params, device, has_gradients, n_states, &error);
  g_assert_no_error (error);
  rn_param_set_init (step->params, 1, &error);
  g_assert_no_error (error);
  randomize_norms (step->params);
  step->arenas = (RnArenas){ .bytes = { step->plan->arena_bytes, step->plan->host_arena_bytes } };
  for (int space = 0; space < RN_N_SPACES; space++)
    step->arenas.memory[space] = g_malloc0 (step->arenas.bytes[space]);
  step->executor = rn_executor_new_in (step->plan, &step->arenas, &error);
  g_assert_no_error (error);
  rn_executor_enable_check (step->executor, &error);
  g_assert_no_error (error);
}

void
planned_step_clear (PlannedStep *step)
{
  rn_executor_free (step->executor);
  rn_plan_free (step->plan);
  rn_param_set_free (step->params);
  for (int space = 0; space < RN_N_SPACES; space++)
    g_free (step->arenas.memory[space]);
}

void *
planned_step_input (const PlannedStep *step, const char *name)
{
  return rn_executor_address (step->executor, rn_graph_find_value (step->plan->graph, name));
}

static const RnTensorDesc *
input_desc (const PlannedStep *step, const char *name)
{
  const RnGraph *graph = step->plan->graph;
  return &rn_graph_value (graph, rn_graph_find_value (graph, name))->desc;
}

/* Every fifth anchor is positive, every seventh ignored, the others are background. */
static void
write_targets (const PlannedStep *step, RnRng *rng)
{
  int64_t n_anchors = input_desc (step, "labels")->dims[1], n = 0;
  int16_t *labels = planned_step_input (step, "labels");
  RnPositive *positives = planned_step_input (step, "positives"); /* NULL: no loss of boxes */

  for (int32_t image = 0; image < NET_BATCH; image++)
    for (int32_t a = 0; a < n_anchors; a++)
      {
        int16_t *label = &labels[image * n_anchors + a];
        *label = a % 7 == 3 ? -1 : NET_CLASSES;
        if (a % 5 != 0)
          continue;
        *label = (int16_t) rn_rng_below (rng, NET_CLASSES);
        if (positives != NULL)
          {
            positives[n] = (RnPositive){ .image = image, .anchor = a };
            for (int d = 0; d < 4; d++)
              positives[n].target[d] = random_in (rng, -1, 1);
          }
        n++;
      }
  if (positives != NULL)
    *(int64_t *) planned_step_input (step, "n_positives") = n;
  *(float *) planned_step_input (step, "avg_factor") = (float) n;
  *(float *) planned_step_input (step, "grad_scale") = 1;
}

/* Images of which the second one fills a part, with values in the range of the floats. */
static void
write_pixels (const PlannedStep *step, RnRng *rng)
{
  const RnTensorDesc *desc = input_desc (step, "pixels");
  guint8 *pixels = planned_step_input (step, "pixels");
  int32_t (*sizes)[2] = planned_step_input (step, "sizes");
  float *table = planned_step_input (step, "table");

  for (int64_t k = 0; k < rn_desc_elements (desc); k++)
    pixels[k] = (guint8) rn_rng_below (rng, 256);
  for (int64_t n = 0; n < desc->dims[0]; n++)
    {
      sizes[n][0] = (int32_t) (desc->dims[1] - n);
      sizes[n][1] = (int32_t) (desc->dims[2] / 3 - n);
    }
  for (int64_t k = 0; k < desc->dims[0] * 3 * 256; k++)
    table[k] = random_in (rng, -2, 2);
}

void
planned_step_write_inputs (PlannedStep *step)
{
  const RnTensorDesc *image = input_desc (step, "image");
  RnRng rng;

  rn_rng_init (&rng, 3, RN_STREAM_SYNTH, 0, 0);
  if (rn_graph_find_value (step->plan->graph, "pixels") != RN_NO_VALUE)
    write_pixels (step, &rng);
  else
    {
      void *pixels = planned_step_input (step, "image");
      for (int64_t k = 0; k < rn_desc_elements (image); k++)
        rn_float_set (image->dtype, pixels, k, random_in (&rng, -2, 2));
    }
  write_targets (step, &rng);
}

void
planned_step_forward (PlannedStep *step)
{
  g_autoptr (GError) error = NULL;

  planned_step_write_inputs (step);
  rn_executor_run (step->executor, 0, step->plan->graph->turn, &error);
  g_assert_no_error (error);
}

void
planned_step_backward (PlannedStep *step)
{
  g_autoptr (GError) error = NULL;
  const RnGraph *graph = step->plan->graph;

  rn_executor_run (step->executor, graph->turn, (int) graph->ops->len, &error);
  g_assert_no_error (error);
}

GArray *
planned_step_losses (const PlannedStep *step)
{
  const RnGraph *graph = step->plan->graph;
  GArray *losses = g_array_new (FALSE, FALSE, sizeof (float));

  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    if (rn_graph_value (graph, v)->is_output)
      g_array_append_vals (losses, rn_executor_address (step->executor, v), 1);
  return losses;
}

GArray *
planned_step_results (const PlannedStep *step)
{
  GArray *results = planned_step_losses (step);

  for (int i = 0; i < rn_param_set_size (step->params); i++)
    if (rn_param_set_grad (step->params, i) != NULL)
      g_array_append_vals (results, rn_param_set_grad (step->params, i),
                           (guint) rn_desc_elements (&rn_param_set_get (step->params, i)->desc));
  return results;
}
