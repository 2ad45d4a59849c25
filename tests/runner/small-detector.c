#include "config.h"

#include "tests/runner/small-detector.h"

#include "datasets/synth.h"
#include "models/component.h"
#include "runner/config/config.h"

#define CHANNELS 4
#define STRIDE 16

typedef struct
{
  int unused;
} Empty;

static const RnKeySpec no_keys[] = { RN_KEY_END };

/* ---- The backbone: one convolution ---- */

static gboolean
backbone_setup (gpointer self, const RnNode *config, RnFeatures *out, RnCpOptions *cp, GError **error)
{
  *out = (RnFeatures){ .n = 1, .level = { { CHANNELS, STRIDE } } };
  return TRUE;
}

static void
backbone_write (gconstpointer self, RnGraph *graph, RnValueId image, RnValueId *out)
{
  const RnConv2d conv = { .name = "conv",
                          .out_channels = CHANNELS,
                          .kernel = 3,
                          .stride = STRIDE,
                          .pad = 1,
                          .weight_init = { .kind = RN_INIT_NORMAL, .a = 0, .b = 0.05 } };
  const RnBatchNorm norm = { .name = "bn", .eps = 1e-5, .momentum = 0.1, .training = TRUE, .weight_init = 1 };
  *out = rn_relu (graph, rn_batch_norm (graph, rn_conv2d (graph, image, &conv), &norm));
}

static gboolean
has_no_frozen_stages (gconstpointer self)
{
  return FALSE;
}

static const char *
not_pretrained (gconstpointer self)
{
  return NULL;
}

static const RnBackboneDesc one_conv = {
  .part = { { "OneConv", "for tests", sizeof (Empty), no_keys }, NULL },
  .setup = backbone_setup,
  .write = backbone_write,
  .has_frozen_stages = has_no_frozen_stages,
  .pretrained = not_pretrained,
};

/* ---- The neck: nothing ---- */

static gboolean
neck_setup (gpointer self, const RnNode *config, const RnFeatures *in, RnFeatures *out, GError **error)
{
  *out = *in;
  return TRUE;
}

static void
neck_write (gconstpointer self, RnGraph *graph, const RnValueId *in, RnValueId *out)
{
  out[0] = in[0];
}

static const RnNeckDesc pass_on = {
  .part = { { "PassOn", "for tests", sizeof (Empty), no_keys }, NULL },
  .setup = neck_setup,
  .write = neck_write,
};

void
small_detector_register (void)
{
  g_autoptr (GError) error = NULL;
  gboolean is_ok = rn_models_register (&error)
                   && rn_registry_add (rn_registry_family ("backbone"), &one_conv.part.component, &error)
                   && rn_registry_add (rn_registry_family ("neck"), &pass_on.part.component, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

/* ---- Data and configuration ---- */

char *
small_detector_data (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = g_dir_make_tmp ("rn-small-XXXXXX", &error);

  g_assert_no_error (error);
  g_assert_true (rn_synth_write (dir,
                                 &(RnSynthOptions){ .n_train = 2 * SMALL_EPOCH,
                                                    .n_val = 2,
                                                    .n_test = 1,
                                                    .width = 64,
                                                    .height = 64,
                                                    .seed = 3,
                                                    .force = TRUE },
                                 &error));
  return g_steal_pointer (&dir);
}

static const char template[] =
    "data_root: %s/\n"
    "work_dir: %s\n"
    "classes: classes.txt\n"
    "threads: 1\n"
    "seed: 5\n"
    "model:\n"
    "  type: RetinaNet\n"
    "  backbone: {type: OneConv}\n"
    "  neck: {type: PassOn}\n"
    "  bbox_head:\n"
    "    type: RetinaHead\n"
    "    num_classes: 3\n"
    "    in_channels: 4\n"
    "    feat_channels: 4\n"
    "    stacked_convs: 0\n"
    "    anchor_generator: {type: AnchorGenerator, octave_base_scale: 2, scales_per_octave: 1, ratios: [1], "
    "strides: [16]}\n"
    "  train_cfg: {assigner: {type: MaxIoUAssigner, pos_iou_thr: 0.5, neg_iou_thr: 0.4, min_pos_iou: 0}}\n"
    "  test_cfg: {nms_pre: 50, score_thr: 0.001, nms: {type: nms, iou_threshold: 0.5}, max_per_img: 20}\n";

static const char rest[] =
    "data:\n"
    "  samples_per_gpu: 2\n"
    "  workers_per_gpu: 0\n"
    "  train:\n"
    "    type: VOCDataset\n"
    "    ann_file: ImageSets/Main/train.txt\n"
    "    img_prefix: .\n"
    "    pipeline: [{type: LoadImageFromFile}, {type: LoadAnnotations, with_bbox: true}, {type: Resize, "
    "img_scale: [64, 64], keep_ratio: true}, {type: RandomFlip, flip_ratio: 0.5}, {type: Normalize, mean: "
    "[120, 120, 120], std: [60, 60, 60], to_rgb: true}, {type: Pad, size_divisor: 32}, {type: "
    "DefaultFormatBundle}, {type: Collect, keys: [img, gt_bboxes, gt_labels]}]\n"
    "  val:\n"
    "    type: VOCDataset\n"
    "    ann_file: ImageSets/Main/val.txt\n"
    "    img_prefix: .\n"
    "    pipeline: [{type: LoadImageFromFile}, {type: MultiScaleFlipAug, img_scale: [64, 64], flip: false, "
    "transforms: [{type: Resize, keep_ratio: true}, {type: RandomFlip}, {type: Normalize, mean: [120, 120, "
    "120], std: [60, 60, 60], to_rgb: true}, {type: Pad, size_divisor: 32}, {type: ImageToTensor, keys: "
    "[img]}, {type: Collect, keys: [img]}]}]\n"
    "optimizer: {type: SGD, lr: 0.01, momentum: 0.9, weight_decay: 0.0001}\n"
    "optimizer_config: {grad_clip: {max_norm: 5, norm_type: 2}}\n"
    "lr_config: {policy: step, step: [2], warmup: linear, warmup_iters: 7, warmup_ratio: 0.1}\n"
    "log_config: {interval: 1, hooks: [{type: TextLoggerHook}]}\n"
    "runner: {type: EpochBasedRunner, max_epochs: 3}\n"
    "checkpoint_config: {interval: 30, by_epoch: false}\n";

void
small_detector_add_strategy (GPtrArray *changes, RnStrategyId id, const char *workspace_limit)
{
  const RnStrategy *strategy = rn_strategy_get (id);

  if (id == RN_STRATEGY_WITH_CP_LARGER_THAN)
    g_ptr_array_add (changes, (gpointer) "model.backbone.with_cp={larger_than: 1KiB}");
  else if (id == RN_STRATEGY_WORKSPACE_LIMIT)
    g_ptr_array_add (changes, (gpointer) workspace_limit);
  else
    for (int i = 0; strategy->lines[i] != NULL; i++)
      g_ptr_array_add (changes, (gpointer) strategy->lines[i]);
}

RnJob *
small_detector_job (const char *data, const char *work_dir, const char *const *changes, GError **error)
{
  g_autofree char *head = g_strdup_printf (template, data, work_dir), *text = g_strconcat (head, rest, NULL);
  RnNode *root = rn_config_load_text (text, "small.yaml", changes, error);
  return root != NULL ? rn_job_new_for_training (root, error) : NULL;
}

RnTraining *
small_detector_training (const char *data, const char *work_dir, const char *const *changes,
                         gboolean is_resumed, GError **error)
{
  g_autoptr (GError) cause = NULL;
  RnJob *job = small_detector_job (data, work_dir, changes, &cause);
  RnTraining *training = job != NULL ? rn_training_new (job, NULL, is_resumed, &cause) : NULL;

  if (cause != NULL && error == NULL)
    g_error ("%s", cause->message);
  if (cause != NULL)
    g_propagate_error (error, g_steal_pointer (&cause));
  return training;
}
