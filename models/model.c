/* model.c: what all detectors share: construction, the inputs of a graph, and the checks of a batch's shape.
 */
#include "config.h"

#include "models/model.h"

#include <runner/batch.h>
#include "models/detector.h"

/* Largest batch and side: far above what fits into memory, and small enough for all products below to fit
 * into 64 bits. */
#define MAX_BATCH 65536
#define MAX_SIDE 65536

static const RnDetectorDesc *
desc_of (const RnModel *model)
{
  return (const RnDetectorDesc *) model->detector.desc;
}

RnModel *
rn_model_new (const RnNode *model_config, int num_classes, GError **error)
{
  g_autoptr (RnModel) model = g_new0 (RnModel, 1);
  if (!rn_part_new (&model->detector, "model", model_config, NULL, error)
      || !desc_of (model)->setup (model, model_config, num_classes, error))
    return NULL;
  return g_steal_pointer (&model);
}

void
rn_model_free (RnModel *model)
{
  if (!model)
    return;
  rn_part_clear (&model->detector);
  g_free (model);
}

static RnLossInputs
add_loss_inputs (RnGraph *graph, int n, int64_t n_anchors)
{
  const RnTensorDesc scalar = rn_desc_vector (RN_F32, 1);
  const RnTensorDesc labels = { RN_I16, 2, { n, n_anchors, 1, 1 }, 1 };
  return (RnLossInputs){
    .labels = rn_graph_input (graph, "labels", labels),
    .positives = rn_graph_input (graph, "positives",
                                 rn_desc_vector (RN_U8, n * n_anchors * (int64_t) sizeof (RnPositive))),
    .n_positives = rn_graph_input (graph, "n_positives", rn_desc_vector (RN_I64, 1)),
    .avg_factor = rn_graph_input (graph, "avg_factor", scalar),
    .grad_scale = rn_graph_input (graph, "grad_scale", scalar),
  };
}

RnGraph *
rn_model_build (RnModel *model, RnParamSet *params, RnMode mode, int n, int height, int width, GError **error)
{
  int sizes[RN_MAX_LEVELS][2];
  int64_t n_anchors = -1;
  if (n >= 1 && n <= MAX_BATCH && height >= 1 && height <= MAX_SIDE && width >= 1 && width <= MAX_SIDE)
    {
      rn_model_feature_sizes (model, height, width, sizes);
      n_anchors = rn_anchors_count (&model->head.anchors, (const int (*)[2]) sizes);
    }
  if (n_anchors < 0)
    {
      g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
                   "a batch of %d images of %dx%d pixels is not possible", n, height, width);
      return NULL;
    }

  g_autoptr (RnGraph) graph = rn_graph_new (mode, params);
  RnValueId image = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, n, 3, height, width, 1));
  if (mode == RN_MODE_INFER)
    desc_of (model)->write (model, graph, image, (const int (*)[2]) sizes, NULL);
  else
    {
      RnLossInputs inputs = add_loss_inputs (graph, n, n_anchors);
      desc_of (model)->write (model, graph, image, (const int (*)[2]) sizes, &inputs);
    }
  return rn_graph_finish_forward (graph, error) ? g_steal_pointer (&graph) : NULL;
}

int
rn_model_num_classes (const RnModel *model)
{
  return model->head.num_classes;
}

const char *const *
rn_model_loss_names (const RnModel *model)
{
  return desc_of (model)->loss_names;
}

const char *
rn_model_pretrained (const RnModel *model)
{
  return model->pretrained;
}

gboolean
rn_model_has_frozen_stages (const RnModel *model)
{
  return model->has_frozen_stages;
}

const RnModelMemory *
rn_model_memory (const RnModel *model)
{
  return &model->memory;
}

const RnAnchorGenerator *
rn_model_anchors (const RnModel *model)
{
  return &model->head.anchors;
}

const RnMaxIoUAssigner *
rn_model_assigner (const RnModel *model)
{
  return &model->assigner;
}

const RnBoxCoder *
rn_model_coder (const RnModel *model)
{
  return &model->head.coder;
}

const RnTestConfig *
rn_model_test_config (const RnModel *model)
{
  return &model->test;
}

int
rn_model_feature_sizes (const RnModel *model, int height, int width, int (*sizes)[2])
{
  for (int i = 0; i < model->features.n; i++)
    {
      int stride = model->features.level[i].stride;
      sizes[i][0] = (height - 1) / stride + 1;
      sizes[i][1] = (width - 1) / stride + 1;
    }
  return model->features.n;
}
