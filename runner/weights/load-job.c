/* load-job.c: the weights of a trained model, and what its configuration has to agree with. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/weights/load.h"

#include "runner/base/error.h"
#include "runner/checkpoint.h"
#include "runner/config/config.h"
#include "runner/config/diff.h"

#include <string.h>

gboolean
rn_weights_check_classes (const RnWeights *weights, const char *const *names, GError **error)
{
  const char *const *was = rn_weights_classes (weights);

  if (was == NULL || rn_checkpoint_compare_classes (was, names, error))
    return TRUE;
  g_prefix_error (error, "%s: ", rn_weights_path (weights));
  return FALSE;
}

/* ---- The configuration of the training ---- */

/* Parts of a model that concern its training, or the choice among its detections, alone. */
static gboolean
is_about_training (const char *path)
{
  static const char *const parts[] = { "model.backbone.init_cfg",  "model.backbone.frozen_stages",
                                       "model.backbone.norm_eval", "model.backbone.with_cp",
                                       "model.init_cfg",           "model.pretrained",
                                       "model.train_cfg",          "model.test_cfg",
                                       "model.bbox_head.loss_cls", "model.bbox_head.loss_bbox" };

  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    if (g_str_has_prefix (path, parts[i]))
      return TRUE;
  return FALSE;
}

static void
warn_of_difference (const char *path, const RnNode *was, const RnNode *is, gpointer user_data)
{
  if (is_about_training (path))
    return;
  g_autofree char *text = rn_config_diff_text (was, is);
  g_warning ("%s: %s: %s; detections may be wrong", rn_weights_path (user_data), path, text);
}

void
rn_weights_compare_config (const RnWeights *weights, const RnNode *root)
{
  const char *paths[] = { "model", rn_node_path (root, "data.test") != NULL ? "data.test.pipeline"
                                                                            : "data.val.pipeline" };
  const char *text = rn_weights_config (weights);
  g_autoptr (RnNode) was = text != NULL ? rn_config_load_text (text, "checkpoint", NULL, NULL) : NULL;

  for (gsize i = 0; was != NULL && i < G_N_ELEMENTS (paths); i++)
    {
      const RnNode *old_part = rn_node_path (was, paths[i]), *new_part = rn_node_path (root, paths[i]);
      if (old_part != NULL && new_part != NULL)
        rn_config_diff (paths[i], old_part, new_part, warn_of_difference, (gpointer) weights);
    }
}

/* ---- torchvision's RetinaNet ---- */

static gboolean
is_true (const RnNode *node)
{
  return node != NULL && rn_node_kind (node) == RN_NODE_BOOL && rn_node_as_bool (node);
}

/* Does `add_extra_convs` say what the weights of the first extra convolution were trained on? */
static gboolean
reads (const RnNode *node, gboolean from_output)
{
  if (node == NULL || rn_node_kind (node) != RN_NODE_STRING)
    return !from_output && is_true (node);
  return strcmp (rn_node_as_string (node), from_output ? "on_output" : "on_input") == 0;
}

/*
 * Channels that the first extra convolution takes, and those that the pyramid has. torchvision takes the last
 * output where both agree, else the backbone's last map. FALSE: there is none.
 */
static gboolean
find_extra (const RnNameMap *map, gboolean *from_output)
{
  g_autofree char *name = g_strdup_printf ("neck.fpn_convs.%d.conv.weight", map->names.n_laterals);

  for (guint i = 0; i < map->tensors->len; i++)
    {
      const RnMappedWeight *tensor = rn_name_map_get (map, i);
      if (strcmp (tensor->name, name) != 0 || rn_weights_get (map->weights, tensor->index)->rank != 4)
        continue;
      *from_output = tensor->dims[0] == tensor->dims[1];
      return TRUE;
    }
  return FALSE;
}

gboolean
rn_load_check_torchvision (const RnNameMap *map, const RnNode *root, gboolean is_strict, GError **error)
{
  gboolean from_output;

  if (map->names.style != RN_NAMES_TORCHVISION || !find_extra (map, &from_output))
    return TRUE;
  g_message (
      "%s: torchvision's names; its anchors are whole pixels and lie elsewhere on the coarsest levels, so "
      "boxes come out a little different; its own COCO weights want model.backbone.norm_cfg.eps=1e-12",
      rn_weights_path (map->weights));
  if (is_true (rn_node_path (root, "model.neck.relu_before_extra_convs"))
      && reads (rn_node_path (root, "model.neck.add_extra_convs"), from_output))
    return TRUE;
  g_autofree char *text = g_strdup_printf (
      "torchvision's pyramid is not that of the configuration; what is: --set model.neck.add_extra_convs=%s "
      "model.neck.relu_before_extra_convs=true",
      from_output ? "on_output" : "on_input");
  if (!is_strict)
    {
      g_warning ("%s: %s", rn_weights_path (map->weights), text);
      return TRUE;
    }
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH, "%s: %s",
               rn_weights_path (map->weights), text);
  return FALSE;
}

gboolean
rn_job_load_weights (RnJob *job, RnWeights *weights, GError **error)
{
  g_auto (RnLoadReport) report = { 0 };
  const RnLoadOptions options = { .what = "this model", .is_strict = TRUE };
  g_autoptr (RnNameMap) map = rn_name_map_new (weights, NULL, RN_NAMES_TO_MMDET, error);

  return map != NULL && rn_load_check_torchvision (map, job->root, TRUE, error)
         && rn_load_params (map, rn_programs_params (job->programs), rn_programs_device (job->programs),
                            &options, &report, error);
}
