#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/weights/load-start.h"

#include "runner/base/error.h"
#include "runner/config/schema.h"
#include "runner/weights/load.h"
#include "runner/weights/lookup.h"

#include <string.h>

#define BACKBONE "backbone."
#define WITHOUT_PRETRAINED                                                                   \
  "what trains from random weights: --set %s.init_cfg=null model.backbone.frozen_stages=-1 " \
  "model.backbone.norm_eval=false"
#define WITHOUT_LOAD_FROM "what trains without it: --set load_from=null"

/* One file and how it is read. */
typedef struct
{
  RnWeights *weights; /* NULL: there is none */
  RnNameRules rules;
  gboolean is_strict;
  GPtrArray *may_misfit; /* (nullable) of GRegex, see RnLoadOptions */
} Source;

struct _RnStartWeights
{
  Source pretrained, load_from;
  gboolean is_whole;        /* pretrained is for the model and not only for the backbone */
  GError *pretrained_error; /* why it could not be opened */
};

/* `load_from:` as a map */
typedef struct
{
  const RnNode *checkpoint, *revise_keys;
  gboolean strict;
  const RnNode *allow_shape_mismatch;
} LoadFromKeys;

static const RnKeySpec load_from_keys[] = {
  RN_KEY (LoadFromKeys, checkpoint, RN_KEY_NODE, NULL, "file", .flags = RN_KEY_REQUIRED),
  RN_KEY (LoadFromKeys, revise_keys, RN_KEY_NODE, "null",
          "list of [regular expression, replacement] for the names of the file", .flags = RN_KEY_NULLABLE),
  RN_KEY (LoadFromKeys, strict, RN_KEY_BOOL, "false",
          "all tensors of the model must be in the file, in their shapes"),
  RN_KEY (LoadFromKeys, allow_shape_mismatch, RN_KEY_NODE, "null",
          "list of regular expressions: tensors of these names may have another shape and keep their first "
          "values, no others; null: all, with strict none",
          .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

/* ---- finding ---- */

static gboolean
has_text (const RnNode *node, const char *text)
{
  return node != NULL && rn_node_kind (node) == RN_NODE_STRING
         && strcmp (rn_node_as_string (node), text) == 0;
}

/* Where the configuration names the file of `init_cfg`, and what to do without it. */
typedef struct
{
  const RnNode *node, *checkpoint; /* NULL: there is none */
  gboolean is_whole;
  char *instead;
} Wanted;

static void
wanted_clear (Wanted *wanted)
{
  g_free (wanted->instead);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Wanted, wanted_clear)

static gboolean
want_pretrained (const RnNode *root, Wanted *wanted, GError **error)
{
  wanted->node = rn_run_config_pretrained (root, "model");
  wanted->is_whole = wanted->node != NULL;
  if (wanted->node == NULL)
    wanted->node = rn_run_config_pretrained (root, "model.backbone");
  if (wanted->node == NULL)
    return TRUE;
  wanted->instead = g_strdup_printf (WITHOUT_PRETRAINED, wanted->is_whole ? "model" : "model.backbone");
  wanted->checkpoint = rn_node_get (wanted->node, "checkpoint");
  return wanted->checkpoint != NULL || rn_node_error (wanted->node, error, "needs a checkpoint");
}

static RnWeights *
open_weights (const char *path, GError **error)
{
  RnWeights *weights = rn_weights_open (path, error);

  if (weights != NULL)
    rn_weights_use_ema (weights, "`runner convert --no-ema` gives the weights themselves");
  return weights;
}

static gboolean
open_pretrained (RnStartWeights *start, const RnNode *root, GError **error)
{
  g_auto (Wanted) wanted = { 0 };

  if (!want_pretrained (root, &wanted, error))
    return FALSE;
  start->is_whole = wanted.is_whole;
  if (wanted.node == NULL)
    return TRUE;
  const RnNode *checkpoint = wanted.checkpoint, *prefix = rn_node_get (wanted.node, "prefix");
  g_autofree char *path = rn_weights_find (checkpoint, wanted.instead, error);
  if (path == NULL)
    return FALSE;
  if (prefix != NULL && rn_node_kind (prefix) == RN_NODE_STRING)
    start->pretrained.rules.prefix = rn_node_as_string (prefix);
  if (g_str_has_prefix (rn_node_as_string (checkpoint), "torchvision://")
      && has_text (rn_node_path (root, "model.backbone.style"), "caffe"))
    g_warning (
        "%s: model.backbone.style is caffe, but torchvision's bottlenecks have their stride in the 3x3 "
        "convolution, as style: pytorch",
        rn_node_origin (checkpoint));
  return (start->pretrained.weights = open_weights (path, error)) != NULL;
}

/* Of GRegex. */
static GPtrArray *
read_patterns (const RnNode *list, GError **error)
{
  g_autoptr (GPtrArray) patterns = g_ptr_array_new_with_free_func ((GDestroyNotify) g_regex_unref);

  for (guint i = 0; i < rn_node_size (list); i++)
    {
      const RnNode *item = rn_node_item (list, i);
      g_autoptr (GError) cause = NULL;
      GRegex *regex =
          rn_node_kind (item) == RN_NODE_STRING ? g_regex_new (rn_node_as_string (item), 0, 0, &cause) : NULL;
      if (regex == NULL)
        {
          rn_node_error (item, error, "%s", cause != NULL ? cause->message : "needs a regular expression");
          return NULL;
        }
      g_ptr_array_add (patterns, regex);
    }
  if (rn_node_kind (list) == RN_NODE_LIST)
    return g_steal_pointer (&patterns);
  rn_node_error (list, error, "needs a list of regular expressions, such as ['^bbox_head.retina_cls']");
  return NULL;
}

static gboolean
check_patterns (const LoadFromKeys *keys, GError **error)
{
  g_autoptr (GPtrArray) patterns = NULL;

  if (keys->allow_shape_mismatch == NULL)
    return TRUE;
  patterns = read_patterns (keys->allow_shape_mismatch, error);
  return patterns != NULL;
}

static gboolean
parse_load_from (const RnNode *node, LoadFromKeys *keys, GError **error)
{
  *keys = (LoadFromKeys){ .checkpoint = node };
  if (rn_node_kind (node) == RN_NODE_MAP && !rn_keys_parse (load_from_keys, node, keys, NULL, error))
    return FALSE;
  return rn_name_rules_check (keys->revise_keys, error) && check_patterns (keys, error);
}

static gboolean
open_load_from (RnStartWeights *start, const RnNode *node, GError **error)
{
  LoadFromKeys keys;

  if (!parse_load_from (node, &keys, error))
    return FALSE;
  g_autofree char *path = rn_weights_find (keys.checkpoint, WITHOUT_LOAD_FROM, error);
  if (path == NULL)
    return FALSE;
  start->load_from.rules.revise_keys = keys.revise_keys;
  start->load_from.is_strict = keys.strict;
  if (keys.allow_shape_mismatch != NULL)
    start->load_from.may_misfit = read_patterns (keys.allow_shape_mismatch, error);
  return (start->load_from.weights = open_weights (path, error)) != NULL;
}

gboolean
rn_start_weights_check (const RnNode *root, GError **error)
{
  const RnNode *node = rn_node_get (root, "load_from");
  g_auto (Wanted) wanted = { 0 };
  LoadFromKeys keys;

  if (!rn_node_is_null (node))
    return parse_load_from (node, &keys, error)
           && rn_weights_exist (keys.checkpoint, WITHOUT_LOAD_FROM, error);
  return want_pretrained (root, &wanted, error)
         && (wanted.node == NULL || rn_weights_exist (wanted.checkpoint, wanted.instead, error));
}

RnStartWeights *
rn_start_weights_new (const RnNode *root, GError **error)
{
  g_autoptr (RnStartWeights) start = g_new0 (RnStartWeights, 1);
  const RnNode *node = rn_node_get (root, "load_from");
  gboolean has_load_from = !rn_node_is_null (node);

  if (has_load_from && !open_load_from (start, node, error))
    return NULL;
  if (!open_pretrained (start, root, &start->pretrained_error) && !has_load_from)
    {
      g_propagate_error (error, g_steal_pointer (&start->pretrained_error));
      return NULL;
    }
  return g_steal_pointer (&start);
}

void
rn_start_weights_free (RnStartWeights *start)
{
  if (start == NULL)
    return;
  g_clear_pointer (&start->pretrained.weights, rn_weights_free);
  g_clear_pointer (&start->load_from.weights, rn_weights_free);
  g_clear_pointer (&start->load_from.may_misfit, g_ptr_array_unref);
  g_clear_error (&start->pretrained_error);
  g_free (start);
}

/* ---- loading ---- */

/* Marks in @is_loaded what was. Does nothing where there is no file. */
static gboolean
load (const Source *source, RnJob *job, const RnLoadOptions *options, gboolean *is_loaded, GError **error)
{
  g_auto (RnLoadReport) report = { 0 };
  RnParamSet *params = rn_programs_params (job->programs);

  if (source->weights == NULL)
    return TRUE;
  g_autoptr (RnNameMap) map = rn_name_map_new (source->weights, &source->rules, RN_NAMES_TO_MMDET, error);
  if (map == NULL || (options->prefix == NULL && !rn_load_check_torchvision (map, job->root, FALSE, error))
      || !rn_load_params (map, params, rn_programs_device (job->programs), options, &report, error))
    return FALSE;
  for (int p = 0; p < rn_param_set_size (params); p++)
    is_loaded[p] |= report.is_loaded[p];
  return TRUE;
}

/* Outputs that keep their number keep their place too, whatever they stood for. */
static void
warn_of_classes (const Source *source, const RnJob *job)
{
  const char *const *was = source->weights != NULL ? rn_weights_classes (source->weights) : NULL;
  const RnDataset *dataset = job->datasets[RN_SPLIT_TRAIN];

  if (was == NULL || dataset == NULL)
    return;
  const char *const *names = rn_dataset_class_names (dataset);
  for (guint i = 0; g_strv_length ((char **) was) == g_strv_length ((char **) names) && was[i] != NULL; i++)
    if (strcmp (was[i], names[i]) != 0)
      {
        g_warning ("%s: trained on other classes: number %u is %s there and %s here; the head's weights are "
                   "taken over in the order of their numbers",
                   rn_weights_path (source->weights), i, was[i], names[i]);
        return;
      }
}

/* The error that was kept back, unless nothing of the backbone is left to load. */
static gboolean
check_backbone (RnStartWeights *start, RnParamSet *params, const gboolean *is_loaded, GError **error)
{
  if (start->pretrained_error == NULL)
    return TRUE;
  for (int p = 0; p < rn_param_set_size (params); p++)
    if (!is_loaded[p] && g_str_has_prefix (rn_param_set_get (params, p)->name, BACKBONE))
      {
        g_propagate_prefixed_error (error, g_steal_pointer (&start->pretrained_error),
                                    "load_from does not have all of the backbone (%s is missing), and its "
                                    "init_cfg cannot be loaded: ",
                                    rn_param_set_get (params, p)->name);
        return FALSE;
      }
  g_message ("init_cfg is not needed: load_from has all of the backbone");
  return TRUE;
}

/* Batch norms start as the identity, which is no harm; a convolution starts as noise. */
static gboolean
check_frozen (const RnJob *job, RnParamSet *params, const gboolean *is_loaded, GError **error)
{
  const char *first = NULL;
  guint n = 0;

  for (int p = 0; rn_model_has_frozen_stages (job->model) && p < rn_param_set_size (params); p++)
    {
      const RnParam *param = rn_param_set_get (params, p);
      if (param->trainable || param->kind != RN_PARAM_WEIGHT || param->desc.rank != 4 || is_loaded[p])
        continue;
      first = first != NULL ? first : param->name;
      n++;
    }
  if (n == 0)
    return TRUE;
  g_set_error (
      error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
      "%u convolutions are frozen by model.backbone.frozen_stages and were in no file, so they would "
      "stay random (the first is %s); what trains: --set model.backbone.frozen_stages=-1 "
      "model.backbone.norm_eval=false",
      n, first);
  return FALSE;
}

gboolean
rn_start_weights_load (RnStartWeights *start, RnJob *job, GError **error)
{
  RnParamSet *params = rn_programs_params (job->programs);
  g_autofree gboolean *is_loaded = g_new0 (gboolean, rn_param_set_size (params));
  const RnLoadOptions model = { .what = "the model" },
                      backbone = { .what = "the backbone", .prefix = BACKBONE },
                      all = { .what = "the model",
                              .is_strict = start->load_from.is_strict,
                              .may_misfit = start->load_from.may_misfit };

  if (!load (&start->pretrained, job, start->is_whole ? &model : &backbone, is_loaded, error)
      || !load (&start->load_from, job, &all, is_loaded, error))
    return FALSE;
  warn_of_classes (&start->load_from, job);
  return check_backbone (start, params, is_loaded, error) && check_frozen (job, params, is_loaded, error);
}
