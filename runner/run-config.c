#include "config.h"

#include "runner/run-config.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/config/schema.h"
#include "runner/run-config-hints.h"
#include "runner/workflow.h"

#include <string.h>

#define USER_PREFIX "x_"

#define PART(field, help) RN_KEY (RnRunConfig, field, RN_KEY_NODE, NULL, help, .flags = RN_KEY_NULLABLE)
#define UNUSED(name_)                                               \
  {                                                                 \
    .name = name_, .type = RN_KEY_UNUSED, .help = "no meaning here" \
  }

static const RnKeySpec backend_keys[] = {
  RN_KEY (RnBackendConfig, prefer, RN_KEY_STRING_LIST, "null", "kernels to take first, by pattern",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnBackendConfig, forbid, RN_KEY_STRING_LIST, "null", "kernels never to take, by pattern",
          .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static const RnKeySpec resume_keys[] = {
  RN_KEY (
      RnResumeConfig, allow_batch_change, RN_KEY_BOOL, "false",
      "go on with other images in a batch, or another training set: where the run stands is counted anew, "
      "from the images that are done"),
  RN_KEY_END,
};

static const RnKeySpec run_keys[] = {
  PART (model, "the detector: type, backbone, neck, head, train_cfg, test_cfg"),
  PART (data, "data sets and loaders: samples_per_gpu, workers_per_gpu, train, val, test"),
  RN_KEY (RnRunConfig, data_root, RN_KEY_STRING, "null",
          "folder that relative data paths start from; null: the current one", .flags = RN_KEY_NULLABLE),
  PART (classes, "class names: a list, a file with one a line, or auto; default the 20 of VOC"),
  PART (img_norm_cfg, "for references: mean, std, to_rgb"),
  PART (train_pipeline, "for references: the transforms of training"),
  PART (test_pipeline, "for references: the transforms of evaluation"),
  PART (evaluation, "when and how to evaluate: interval, metric, save_best"),
  PART (optimizer, "type, lr, momentum, weight_decay"),
  PART (optimizer_config, "the optimizer hook: type, grad_clip, cumulative_iters, loss_scale"),
  PART (lr_config, "the learning rate: policy, step, warmup"),
  PART (momentum_config, "the momentum: policy"),
  PART (runner, "the loop: type, max_epochs or max_iters"),
  PART (checkpoint_config, "when to save: interval, max_keep_ckpts"),
  PART (log_config, "interval and list of loggers"),
  PART (custom_hooks, "list of further hooks"),
  PART (
      workflow,
      "what is done in turn: [[train, 1]] epochs or iterations; [[train, 1], [val, 1]]: validation loss too"),
  RN_KEY (RnRunConfig, work_dir, RN_KEY_STRING, "null",
          "where the run writes; default work_dirs/ and the file's name", .flags = RN_KEY_NULLABLE),
  RN_KEY (RnRunConfig, resume_from, RN_KEY_STRING, "null", "checkpoint to go on from",
          .flags = RN_KEY_NULLABLE),
  PART (load_from, "weights to start from: a file, or {checkpoint, revise_keys, strict, "
                   "allow_shape_mismatch}; a resume does "
                   "not read them"),
  RN_KEY (RnRunConfig, seed, RN_KEY_INT, "0", "of every random choice", .min = 0, .max = 4294967295.0),
  RN_KEY (RnRunConfig, deterministic, RN_KEY_BOOL, "false",
          "same bits on every run; on the CPU they always are"),
  { .name = "device",
    .type = RN_KEY_NODE,
    .offset = G_STRUCT_OFFSET (RnRunConfig, device_node),
    .deflt = "null",
    .help = "cpu, cuda or cuda:N; or a map of it, as type, and of device_options; null: cpu",
    .flags = RN_KEY_NULLABLE },
  { .name = "device_options",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRunConfig, device_options),
    .keys = rn_device_option_keys,
    .help = "of a CUDA device" },
  RN_KEY (RnRunConfig, threads, RN_KEY_INT, "0", "threads of the kernels; 0: one per processor", .min = 0,
          .max = 4096),
  { .name = "memory",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRunConfig, memory),
    .keys = rn_memory_keys,
    .help = "memory strategies" },
  { .name = "backend",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRunConfig, backend),
    .keys = backend_keys,
    .help = "choice of kernels" },
  { .name = "resume",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRunConfig, resume),
    .keys = resume_keys,
    .help = "what a resumed run may change" },
  { .name = "fp16",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRunConfig, fp16),
    .keys = rn_fp16_keys,
    .flags = RN_KEY_NULLABLE,
    .help = "half precision; null: single" },
  PART (plugins, "list of shared objects with hooks of your own: names or paths"),
  PART (auto_scale_lr, "enable, base_batch_size: optimizer.lr for another batch size"),
  UNUSED ("auto_resume"),
  UNUSED ("cudnn_benchmark"),
  UNUSED ("dataset_type"),
  UNUSED ("dist_params"),
  UNUSED ("device_ids"),
  UNUSED ("find_unused_parameters"),
  UNUSED ("gpu_ids"),
  UNUSED ("launcher"),
  UNUSED ("log_level"),
  UNUSED ("mp_start_method"),
  UNUSED ("opencv_num_threads"),
  UNUSED ("total_epochs"),
  RN_KEY_END,
};

static gboolean
check_workflow (const RnNode *node, GError **error)
{
  g_autoptr (GArray) workflow = rn_workflow_parse (node, error);
  return workflow != NULL;
}

gboolean
rn_run_config_parse (const RnNode *root, RnRunConfig *config, GError **error)
{
  memset (config, 0, sizeof *config);
  if (rn_node_kind (root) != RN_NODE_MAP)
    return rn_node_error (root, error, "a configuration is a map of keys");

  g_autoptr (GPtrArray) skip = g_ptr_array_new ();
  for (guint i = 0; i < rn_node_size (root); i++)
    if (g_str_has_prefix (rn_node_key (root, i), USER_PREFIX))
      g_ptr_array_add (skip, (gpointer) rn_node_key (root, i));
  g_ptr_array_add (skip, NULL);

  if (!rn_run_config_explain_unknown (root, run_keys, (const char *const *) skip->pdata, error)
      || !rn_run_config_explain_optimizer (rn_node_get (root, "optimizer_config"), error)
      || !rn_fp16_explain (rn_node_get (root, "fp16"), error)
      || !rn_keys_parse (run_keys, root, config, (const char *const *) skip->pdata, error))
    return FALSE;
  config->device = rn_device_config_read (root, &config->device_options, error);
  if (config->device == NULL || !check_workflow (config->workflow, error)
      || !rn_memory_config_read (&config->memory, error)
      || !rn_fp16_compose (&config->fp16, root, &config->optimizer_config, &config->custom_hooks,
                           &config->composed, error))
    {
      rn_run_config_clear (config);
      return FALSE;
    }
  if (config->threads == 0)
    config->threads = g_get_num_processors ();
  return TRUE;
}

void
rn_run_config_clear (RnRunConfig *config)
{
  rn_keys_clear (run_keys, config);
  g_clear_pointer (&config->composed, rn_node_free);
}

const RnNode *
rn_run_config_need (const RnNode *root, const char *key, GError **error)
{
  const RnNode *node = rn_node_get (root, key);
  if (rn_node_is_null (node))
    {
      rn_node_error (root, error, "the file has no `%s:`", key);
      return NULL;
    }
  return node;
}

const RnNode *
rn_run_config_pretrained (const RnNode *root, const char *part)
{
  g_autofree char *path = g_strconcat (part, ".init_cfg", NULL);
  const RnNode *node = rn_node_path (root, path);
  const RnNode *type = node != NULL ? rn_node_get (node, "type") : NULL;
  gboolean is_pretrained = type != NULL && rn_node_kind (type) == RN_NODE_STRING
                           && g_str_equal (rn_node_as_string (type), "Pretrained");

  return is_pretrained ? node : NULL;
}

gboolean
rn_run_config_check_training (const RnNode *root, gboolean is_resumed, GError **error)
{
  static const char *const parts[] = { "model.neck", "model.bbox_head" };

  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    if (rn_run_config_pretrained (root, parts[i]) != NULL)
      return rn_node_error (rn_node_path (root, parts[i]), error,
                            "only the backbone and the whole model can be Pretrained; what works: "
                            "`%s.init_cfg: null`, and `load_from: FILE` for a file that has this part",
                            parts[i]);
  const RnNode *frozen = rn_node_path (root, "model.backbone.frozen_stages");
  const RnNode *load_from = rn_node_get (root, "load_from");
  gboolean is_loaded = is_resumed || rn_run_config_pretrained (root, "model") != NULL
                       || rn_run_config_pretrained (root, "model.backbone") != NULL
                       || !rn_node_is_null (load_from);
  if (!is_loaded && frozen != NULL && rn_node_kind (frozen) == RN_NODE_INT && rn_node_as_int (frozen) >= 0)
    return rn_node_error (frozen, error,
                          "these stages would stay random, because no weights are loaded; what trains: "
                          "`load_from: FILE`, or --set model.backbone.frozen_stages=-1 "
                          "model.backbone.norm_eval=false");
  return TRUE;
}
