/* optimizer.c: MMCV's four optimizer hooks, which differ in their keys only. */
#include "config.h"

#include "hooks/optimizer-hook.h"
#include "hooks/unused-key.h"

static const char *const tail_names[] = { "average", "scale", "drop", NULL };
static const char *const normalize_names[] = { "micro", "samples", "positives", NULL };
static const char *const schedule_names[] = { "iter", "step", NULL };
static const char *const compat_names[] = { "none", "mmcv-1.7", NULL };

/* clang-format off */
#define KEY(path, name_, type_, deflt_, help_, ...) \
  { .name = name_, .type = (type_), .offset = G_STRUCT_OFFSET (RnOptimizerHook, path), .deflt = (deflt_), \
    .help = (help_), ##__VA_ARGS__ }
#define STEP_KEYS \
  { .name = "grad_clip", .type = RN_KEY_MAP, .offset = G_STRUCT_OFFSET (RnOptimizerHook, clip), \
    .keys = rn_grad_clip_keys, .present = G_STRUCT_OFFSET (RnOptimizerHook, has_clip), \
    .flags = RN_KEY_NULLABLE, \
    .help = "bounds gradients before the step: {max_norm: 35}; the log shows grad_norm, the norm before; " \
            "null: no bound" }, \
  KEY (detect_anomalous_params, "detect_anomalous_params", RN_KEY_BOOL, "false", \
       "say at the start which parameters no gradient reaches")

#define ACCUMULATION_KEYS \
  KEY (accumulation.cumulative_iters, "cumulative_iters", RN_KEY_INT, "1", \
       "iterations whose gradients make one step; windows begin at its multiples", .min = 1, .max = 1e6), \
  KEY (accumulation.tail, "tail", RN_KEY_ENUM, "average", \
       "a last window with fewer iterations: average: a step with their mean; scale: divided as if it were " \
       "whole; drop: no step", .names = tail_names), \
  KEY (accumulation.flush_at_epoch_end, "flush_at_epoch_end", RN_KEY_BOOL, "false", \
       "no window goes on into the next epoch"), \
  KEY (accumulation.normalize, "normalize", RN_KEY_ENUM, "micro", \
       "what makes the mean of a window: micro: its iterations count the same; samples: its images do; " \
       "positives: its matched anchors do, which equals one large batch", .names = normalize_names), \
  KEY (accumulation.schedule_by, "schedule_by", RN_KEY_ENUM, "iter", \
       "what lr_config counts where it does not count epochs: iterations, or optimizer steps", \
       .names = schedule_names), \
  KEY (accumulation.save_pending, "save_pending", RN_KEY_BOOL, "true", \
       "checkpoints inside a window hold its gradients, so that a resume ends in the same bits"), \
  KEY (accumulation.compat, "compat", RN_KEY_ENUM, "none", \
       "mmcv-1.7: after a resume inside a window its step is too small, as MMCV's is; for comparisons only", \
       .names = compat_names, .flags = RN_KEY_NULLABLE)

#define SCALER_KEYS \
  KEY (scaling.loss_scale, "loss_scale", RN_KEY_NODE, "512.0", \
       "factor of the loss in its gradients: a number stays; dynamic: as GradScaler; or GradScaler's " \
       "{init_scale, growth_factor, backoff_factor, growth_interval}; or MMCV's LossScaler's {init_scale, " \
       "mode, scale_factor, scale_window}"), \
  KEY (scaling.min_scale, "min_scale", RN_KEY_FLOAT, "null", \
       "a scale that changes does not go below; null: 2^-16, with LossScaler's keys 1", .min = 1e-9, \
       .max = 1e18, .flags = RN_KEY_NULLABLE), \
  KEY (scaling.max_scale, "max_scale", RN_KEY_FLOAT, "null", \
       "a scale that changes does not go above; null: 2^59", .min = 1e-9, .max = 1e18, \
       .flags = RN_KEY_NULLABLE), \
  KEY (scaling.max_skips, "max_skips", RN_KEY_INT, "20", \
       "the run ends after so many steps in a row that overflow while the scale cannot go down", .min = 1, \
       .max = 1e9), \
  KEY (scaling.reset_scale, "reset_scale", RN_KEY_BOOL, "false", \
       "a resume starts with the scale of the configuration, not with that of the checkpoint"), \
  RN_UNUSED_KEY ("coalesce", "of distributed runs"), \
  RN_UNUSED_KEY ("bucket_size_mb", "of distributed runs"), \
  RN_UNUSED_KEY ("distributed", "of distributed runs")
/* clang-format on */

static const RnKeySpec plain_keys[] = { STEP_KEYS, RN_KEY_END };
static const RnKeySpec cumulative_keys[] = { ACCUMULATION_KEYS, STEP_KEYS, RN_KEY_END };
static const RnKeySpec fp16_keys[] = { SCALER_KEYS, STEP_KEYS, RN_KEY_END };
static const RnKeySpec cumulative_fp16_keys[] = { ACCUMULATION_KEYS, SCALER_KEYS, STEP_KEYS, RN_KEY_END };

#define COMMON(keys_)                                                               \
  .priority = RN_PRIORITY_ABOVE_NORMAL, .needs = RN_NEEDS_GRADIENTS, .keys = keys_, \
  .prepare = rn_optimizer_hook_prepare, .init = rn_optimizer_hook_init
#define STATE .save_state = rn_optimizer_hook_save_state, .load_state = rn_optimizer_hook_load_state
#define STAGES                                                                                          \
  .before_run = rn_optimizer_hook_before_run, .before_train_iter = rn_optimizer_hook_before_train_iter, \
  .after_train_iter = rn_optimizer_hook_after_train_iter

RN_HOOK_DEFINE (optimizer, RnOptimizerHook, .name = "OptimizerHook",
                .summary = "backward pass, gradient clipping and optimizer step of each iteration",
                COMMON (plain_keys), STAGES);

RN_HOOK_DEFINE (gradient_cumulative_optimizer, RnOptimizerHook, .name = "GradientCumulativeOptimizerHook",
                .summary = "OptimizerHook with one step for the gradients of several iterations",
                COMMON (cumulative_keys), STATE, STAGES);

RN_HOOK_DEFINE (fp16_optimizer, RnOptimizerHook, .name = "Fp16OptimizerHook",
                .summary = "OptimizerHook with a loss scale; steps whose gradients overflow are skipped",
                COMMON (fp16_keys), STATE, STAGES);

RN_HOOK_DEFINE (gradient_cumulative_fp16_optimizer, RnOptimizerHook,
                .name = "GradientCumulativeFp16OptimizerHook",
                .summary = "Fp16OptimizerHook with one step for the gradients of several iterations",
                COMMON (cumulative_fp16_keys), STATE, STAGES);
