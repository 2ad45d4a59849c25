/* run-config-hints.c: what an unknown key at the top of a configuration should have been. */
#include "config.h"

#include "runner/run-config-hints.h"

#include "runner/base/registry.h"

#include <string.h>

/* Names of other programs, and what they are here. */
static const struct
{
  const char *name, *here;
} synonyms[] = {
  { "batch_size", "data.samples_per_gpu" },
  { "num_workers", "data.workers_per_gpu" },
  { "epochs", "runner.max_epochs" },
  { "num_epochs", "runner.max_epochs" },
  { "max_epochs", "runner.max_epochs" },
  { "samples_per_gpu", "data.samples_per_gpu" },
  { "workers_per_gpu", "data.workers_per_gpu" },
  { "lr", "optimizer.lr" },
  { "learning_rate", "optimizer.lr" },
  { "momentum", "optimizer.momentum" },
  { "weight_decay", "optimizer.weight_decay" },
  { "grad_clip", "optimizer_config.grad_clip" },
  { "clip_grad", "optimizer_config.grad_clip" },
  { "cumulative_iters", "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: N}" },
  { "accumulative_counts", "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: N}" },
  { "loss_scale", "optimizer_config: {type: Fp16OptimizerHook, loss_scale: N}" },
  { "num_classes", "model.bbox_head.num_classes" },
  { "lr_scheduler", "lr_config" },
  { "img_scale", "img_scale of Resize in train_pipeline and of MultiScaleFlipAug in test_pipeline" },
  { "image_size", "img_scale of Resize in train_pipeline and of MultiScaleFlipAug in test_pipeline" },
  { "img_size", "img_scale of Resize in train_pipeline and of MultiScaleFlipAug in test_pipeline" },
  { "data_dir", "data_root" },
  { "dataset_root", "data_root" },
  { "class_names", "classes" },
  { "CLASSES", "classes" },
  { "names", "classes" },
  { "metainfo", "classes" },
  { "pretrained", "model.backbone.init_cfg: {type: Pretrained, checkpoint: FILE}" },
  { "optim_wrapper", "optimizer and optimizer_config (the key is MMDetection 3's)" },
  { "param_scheduler", "lr_config (the key is MMDetection 3's)" },
  { "train_dataloader", "data.train, with data.samples_per_gpu (the key is MMDetection 3's)" },
  { "val_dataloader", "data.val (the key is MMDetection 3's)" },
  { "test_dataloader", "data.test (the key is MMDetection 3's)" },
  { "train_cfg", "runner at the top, or model.train_cfg" },
  { "val_cfg", "evaluation (the key is MMDetection 3's)" },
  { "test_cfg", "model.test_cfg" },
  { "val_evaluator", "evaluation (the key is MMDetection 3's)" },
  { "test_evaluator", "evaluation (the key is MMDetection 3's)" },
  { "custom_imports", "plugins: [my_hook], with a hook in C: `runner new-hook my_hook`" },
  { "default_hooks", "checkpoint_config, log_config and custom_hooks (the key is MMDetection 3's)" },
};

/* MMDetection 3 writes them into every file; nothing here needs them. */
static const char *const needless[] = {
  "default_scope", "env_cfg", "vis_backends", "visualizer", "log_processor", "backend_args", NULL
};

static gboolean
is_known (const RnKeySpec *keys, const char *name)
{
  for (; keys->name != NULL; keys++)
    if (strcmp (keys->name, name) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
has_nearest (const RnKeySpec *keys, const char *name)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (; keys->name != NULL; keys++)
    g_ptr_array_add (names, (gpointer) keys->name);
  g_ptr_array_add (names, NULL);
  return rn_suggest (name, (const char *const *) names->pdata) != NULL;
}

/* The first node below @node that has the key @name. Depth is bounded by the YAML reader. */
static const RnNode *
find_below (const RnNode *node, const char *name, gboolean is_top)
{
  const RnNode *found = is_top ? NULL : rn_node_get (node, name);

  for (guint i = 0; found == NULL && i < rn_node_size (node); i++)
    found = find_below (rn_node_item (node, i), name, FALSE);
  return found;
}

static gboolean
explain (const RnNode *root, const RnNode *node, const RnKeySpec *keys, const char *name, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (synonyms); i++)
    if (strcmp (synonyms[i].name, name) == 0)
      return rn_node_error (node, error, "unknown key; what it is here: %s", synonyms[i].here);
  if (g_strv_contains (needless, name))
    return rn_node_error (node, error,
                          "unknown key; MMDetection 3 has it, and nothing here needs it: leave it "
                          "out");
  if (has_nearest (keys, name))
    return TRUE;
  const RnNode *below = find_below (root, name, TRUE);
  return below == NULL
         || rn_node_error (node, error, "unknown key at the top; did you mean %s (indented below its map)?",
                           rn_node_dotted (below));
}

gboolean
rn_run_config_explain_unknown (const RnNode *root, const RnKeySpec *keys, const char *const *skip,
                               GError **error)
{
  for (guint i = 0; i < rn_node_size (root); i++)
    {
      const char *name = rn_node_key (root, i);
      if (!is_known (keys, name) && !g_strv_contains (skip, name)
          && !explain (root, rn_node_item (root, i), keys, name, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_run_config_explain_optimizer (const RnNode *config, GError **error)
{
  static const struct
  {
    const char *name, *needs;
  } keys[] = {
    { "cumulative_iters", "type: GradientCumulativeOptimizerHook beside it" },
    { "accumulative_counts", "type: GradientCumulativeOptimizerHook, and is cumulative_iters here" },
    { "loss_scale", "type: Fp16OptimizerHook beside it, or GradientCumulativeFp16OptimizerHook" },
  };

  if (rn_node_is_null (config) || rn_node_get (config, "type") != NULL)
    return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const RnNode *node = rn_node_get (config, keys[i].name);
      if (node != NULL)
        return rn_node_error (node, error, "needs %s", keys[i].needs);
    }
  return TRUE;
}
