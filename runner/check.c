/* check.c: what is wrong in a configuration, as far as the file alone can say. */
#include "config.h"

#include "runner/check.h"

#include "datasets/dataset-private.h"
#include "datasets/pipeline.h"
#include "runner/config/schema.h"
#include "runner/optimizer.h"
#include "runner/runner.h"
#include "runner/strategies.h"

#include <string.h>

/* Keys and transforms of a data set and of those in it. */
static gboolean
check_dataset (const RnNode *node, gboolean test_mode, int depth, GError **error)
{
  static const char *const inner[] = { "dataset", "datasets" };

  if (depth > RN_DATASET_MAX_DEPTH)
    return rn_node_error (node, error, "data sets are nested more than %d deep", RN_DATASET_MAX_DEPTH);
  if (rn_node_kind (node) == RN_NODE_LIST)
    {
      for (guint i = 0; i < rn_node_size (node); i++)
        if (!check_dataset (rn_node_item (node, i), test_mode, depth + 1, error))
          return FALSE;
      return TRUE;
    }

  const RnComponent *component;
  gpointer settings = rn_component_new (rn_registry_family ("dataset"), node, NULL, NULL, &component, error);
  if (settings == NULL)
    return FALSE;
  rn_component_free (component, settings);
  for (gsize i = 0; i < G_N_ELEMENTS (inner); i++)
    {
      const RnNode *part = rn_node_get (node, inner[i]);
      if (part != NULL && !check_dataset (part, test_mode, depth + 1, error))
        return FALSE;
    }
  const RnNode *steps = rn_node_get (node, "pipeline");
  if (steps == NULL)
    return TRUE;
  g_autoptr (RnPipeline) pipeline = rn_pipeline_new (steps, test_mode, error);
  return pipeline != NULL;
}

static gboolean
check_data (const RnJob *job, GError **error)
{
  return (job->data.train == NULL || check_dataset (job->data.train, FALSE, 0, error))
         && (job->data.val == NULL || check_dataset (job->data.val, TRUE, 0, error))
         && (job->data.test == NULL || check_dataset (job->data.test, TRUE, 0, error));
}

/* Does a data set in @node name classes of its own? */
static gboolean
has_own_classes (const RnNode *node)
{
  const RnNode *classes = rn_node_get (node, "classes");

  if (!rn_node_is_null (classes))
    return TRUE;
  for (guint i = 0; i < rn_node_size (node); i++)
    if (has_own_classes (rn_node_item (node, i)))
      return TRUE;
  return FALSE;
}

/* How many classes there will be, or 0 where only the data can tell; -1 with an error. */
static int
count_classes (const RnJob *job, GError **error)
{
  const RnNode *classes = job->config.classes;

  if (job->config.data == NULL || has_own_classes (job->config.data))
    return 0;
  if (!rn_node_is_null (classes) && rn_node_kind (classes) == RN_NODE_STRING)
    {
      const char *name = rn_node_as_string (classes);
      g_autofree char *path = rn_dataset_resolve_path (job->config.data_root, name);
      gboolean is_there = g_file_test (path, G_FILE_TEST_EXISTS);

      /* A file that is not there may belong to data that is elsewhere; a name without a dot is a class. */
      if (strcmp (name, "auto") == 0 || (!is_there && strpbrk (name, "./") != NULL))
        return 0;
      if (!is_there)
        {
          rn_node_error (
              classes, error,
              "there is no file %s; a list of classes is written [%s], and auto takes the names that the "
              "annotations have",
              path, name);
          return -1;
        }
    }
  g_auto (GStrv) names = rn_class_names_read (classes, job->config.data_root, error);
  return names != NULL ? (int) g_strv_length (names) : -1;
}

static gboolean
check_model (const RnJob *job, GError **error)
{
  const RnNode *n = rn_node_path (job->root, "model.bbox_head.num_classes");
  gboolean is_left_out = rn_node_is_null (n);
  int n_classes = count_classes (job, error);

  if (n_classes < 0)
    return FALSE;
  if (n_classes == 0 && is_left_out) /* it follows the data set; any number will do */
    n_classes = 1;
  g_autoptr (RnModel) model = rn_model_new (job->config.model, n_classes, error);
  return model != NULL;
}

static gboolean
check_optimizer (const RnJob *job, GError **error)
{
  if (job->config.optimizer == NULL)
    return TRUE;
  g_autoptr (RnOptimizer) optimizer = rn_optimizer_new (job->config.optimizer, error);
  return optimizer != NULL;
}

static gboolean
check_hooks (const RnJob *job, GError **error)
{
  gint64 log_interval;
  g_autoptr (RnHookList) hooks = rn_training_hooks_new (&job->config, &log_interval, error);
  g_autoptr (RnWants) wants = rn_wants_new ();

  return hooks != NULL && rn_hook_list_prepare (hooks, wants, error)
         && rn_strategies_check (job->root, &job->config, wants, error);
}

gboolean
rn_job_check (const RnJob *job, GError **error)
{
  RnRunnerOptions options = { 0 };

  return check_optimizer (job, error)
         && (job->config.runner == NULL || rn_runner_options_parse (job->config.runner, &options, error))
         && check_hooks (job, error) && check_data (job, error)
         && (job->config.model == NULL || check_model (job, error));
}
