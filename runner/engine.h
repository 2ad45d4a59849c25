/*
 * engine.h: the handles that the built-in hooks turn: optimizer, evaluation, checkpoints, log. Unlike hook.h,
 * it may change with any release.
 */
#ifndef RUNNER_ENGINE_H
#define RUNNER_ENGINE_H

#include <runner/hook.h>

G_BEGIN_DECLS

/* ---- Optimizer ---- */

RN_API double rn_runner_base_lr (const RnRunner *runner); /* `optimizer.lr`, after auto_scale_lr */
RN_API double rn_runner_base_momentum (const RnRunner *runner);
/* Parameters of one lr_mult are a group; there is at least one. Order: of the parameters. */
RN_API guint rn_runner_n_groups (const RnRunner *runner);
RN_API double rn_runner_group_base_lr (const RnRunner *runner, guint group);
RN_API double rn_runner_group_lr (const RnRunner *runner, guint group);
RN_API void rn_runner_set_group_lr (RnRunner *runner, guint group, double lr);

/* Factor that the forward pass gives to all gradients, beside the loss weight; before_train_iter only. */
RN_API void rn_runner_set_grad_scale (RnRunner *runner, float scale);
RN_API gboolean rn_runner_zero_grads (RnRunner *runner, GError **error);
/* Of the batch that was just forwarded; adds to the gradients. after_train_iter only, once. */
RN_API gboolean rn_runner_backward (RnRunner *runner, GError **error);
/* In its place: this batch has none, and what the forward pass kept for it may go. */
RN_API void rn_runner_skip_backward (RnRunner *runner);
/* The gradients hold an unfinished window: a checkpoint of now has them as "pending/NAME". */
RN_API void rn_runner_set_window_open (RnRunner *runner, gboolean is_open);
/* So it is, also after a resume that found them. */
RN_API gboolean rn_runner_is_window_open (const RnRunner *runner);
/* Calls before_step of all hooks. They see gradients times @multiplier, and so will the step. */
RN_API gboolean rn_runner_call_before_step (RnRunner *runner, double multiplier, GError **error);

typedef struct
{
  double norm;    /* of the given type, over all gradients as they lie */
  double max_abs; /* NaN or infinite when any element is */
} RnGradStats;

/* @norm_type: p of the norm, at least 1; INFINITY: the largest element. */
RN_API gboolean rn_runner_grad_stats (RnRunner *runner, double norm_type, RnGradStats *stats, GError **error);
/* One optimizer step with gradients times @grad_multiplier, then cut to [-@clip_value, @clip_value] (0: not
 * cut). Moves opt_step. */
RN_API gboolean rn_runner_step (RnRunner *runner, double grad_multiplier, double clip_value, GError **error);

/* What became of a guarded step. */
typedef struct
{
  gint64 iter;      /* the iteration that it ends: rn_runner_iter there */
  gboolean is_done; /* FALSE: it was skipped */
  RnGradStats stats;
} RnStepOutcome;

/*
 * A step whose conditions the device looks at: the host queues it, and goes on with the iteration without
 * knowing whether it is done.
 */
typedef struct
{
  double grad_multiplier, clip_value; /* as those of rn_runner_step */
  double max_norm;  /* then gradients times @grad_multiplier are scaled down to this norm; 0: they are not */
  double norm_type; /* p of that norm and of RnStepOutcome.stats, as in rn_runner_grad_stats */
  gboolean checks_finite; /* skip the step when a gradient is NaN or infinite */
  /*
   * Called once, when the outcome is known: before something reads the log, opt_step if that depends on it,
   * gradients, or what a checkpoint has; before an evaluation, and at the latest when the next iteration
   * begins, ahead of its hooks. rn_runner_log and _log_latest in it mean the iteration of the step. A failure
   * is one of @hook in that iteration.
   */
  gboolean (*settled) (RnHook *hook, RnRunner *runner, const RnStepOutcome *outcome, GError **error);
  RnHook *hook;
} RnGuardedStep;

/* At least one of max_norm and checks_finite is set. Moves opt_step: with checks_finite when it is settled,
 * if it was done; else at once. */
RN_API gboolean rn_runner_guarded_step (RnRunner *runner, const RnGuardedStep *step, GError **error);
/* Is there a hook with before_step? It must not be called for gradients that are not finite, so then the host
 * has to look at them ahead of the step. */
RN_API gboolean rn_runner_has_before_step (const RnRunner *runner);

/*
 * `memory.update: in_backward`: each parameter is stepped in the backward pass, as soon as its gradient is
 * there, and no gradient is kept. Then rn_runner_backward_and_step takes the place of rn_runner_backward,
 * _grad_stats, _call_before_step, _step and _guarded_step, which fail.
 */
RN_API gboolean rn_runner_updates_in_backward (const RnRunner *runner);

/* A step, or the part of one that a batch of an accumulation window is. */
typedef struct
{
  double grad_multiplier, clip_value; /* as those of rn_runner_step */
  gboolean begins, ends; /* the window: the momentum is decayed at its begin, the weights move at its end */
} RnBackwardStep;

/* after_train_iter only, once. Moves opt_step at the end of a window. */
RN_API gboolean rn_runner_backward_and_step (RnRunner *runner, const RnBackwardStep *step, GError **error);
/* After a resume: the momentum has the gradients of a window in it that is not finished. A run that cannot go
 * on with that window must not begin: RN_PART_OF_STEP_TEXT, for printf with the reason. */
RN_API gboolean rn_runner_has_part_of_step (const RnRunner *runner);
#define RN_PART_OF_STEP_TEXT                                                                         \
  "it was saved inside an accumulation window of memory.update: in_backward, whose gradients are a " \
  "part of the momentum and cannot be taken out again: %s; what works: a checkpoint from the end "   \
  "of a window, or the lines that it was made with"

/* Trained parameters that no gradient reaches, NULL-ended. (transfer full) */
RN_API char **rn_runner_unreached_params (const RnRunner *runner);
/* Does a batch norm take its statistics from the batch? */
RN_API gboolean rn_runner_has_live_batch_norm (const RnRunner *runner);

/* Where schedules of the learning rate stand and end, in iterations; in optimizer steps after
 * rn_runner_set_schedule, which `schedule_by: step` of an optimizer hook calls in its init. */
RN_API gint64 rn_runner_schedule_now (const RnRunner *runner);
RN_API gint64 rn_runner_schedule_total (const RnRunner *runner);
/* @total_steps: that the whole run has, at least 1. */
RN_API void rn_runner_set_schedule (RnRunner *runner, gint64 total_steps);

/* ---- Running mean of the weights; hooks with RN_NEEDS_EMA ---- */

/* mean += @momentum * (weights - mean), buffers included if @with_buffers, else copied. 1 starts it. */
RN_API gboolean rn_runner_update_ema (RnRunner *runner, double momentum, gboolean with_buffers,
                                      GError **error);
/* Was it in the checkpoint that the run was resumed from? */
RN_API gboolean rn_runner_has_loaded_ema (const RnRunner *runner);
/* Evaluations use it from now on, and checkpoints have it as "ema/NAME". */
RN_API void rn_runner_use_ema (RnRunner *runner, gboolean use);

/* ---- Configuration ---- */

/*
 * Fills @instance from @map by @keys: for a key of the type RN_KEY_NODE that may be a number, a text or a
 * map.
 * @keys: without texts and lists, which would be @instance's to free. Errors as those of the hook's own keys.
 */
RN_API gboolean rn_node_read (const RnNode *map, const RnKeySpec *keys, gpointer instance, GError **error);

/* ---- Looking inside ---- */

/*
 * Runs the forward pass of the current batch again, op by op, up to the first whose output has a NaN or an
 * infinite value. *@where: (transfer full) its name and module, or NULL if there is none. after_train_iter,
 * before the optimizer hook.
 */
RN_API gboolean rn_runner_find_non_finite (RnRunner *runner, char **where, GError **error);
/* What a plugin defines with RN_CLOSURE_DEFINE (@name), or NULL. */
RN_API RnClosureFunc rn_find_closure (const char *name);
/* The stages of @hook that its descriptor has functions for are cut down to those of @stages, which has the
 * bit 1 << stage for each; in prepare or init. */
RN_API void rn_hook_keep_stages (RnHook *hook, guint stages);
/* The number of a stage by its name, "after_train_iter"; RN_STAGE_COUNT if there is none. Names, for hints:
 * NULL-ended, lent. */
RN_API RnStage rn_stage_find (const char *name);
RN_API const char *const *rn_stage_names (void);
/* Gives memory that is allocated and not used back to the system. */
RN_API guint64 rn_runner_empty_cache (RnRunner *runner);

/* ---- Evaluation ---- */

/* What is computed: `evaluation.metric`. */
typedef enum
{
  RN_METRIC_MAP = 1 << 0,  /* VOC's mean average precision: mAP, AP50 */
  RN_METRIC_BBOX = 1 << 1, /* COCO's average precision of boxes: bbox_mAP, bbox_mAP_50 and so on */
} RnMetrics;

typedef struct
{
  double recall, precision;
} RnCurvePoint;

typedef struct
{
  int label;
  gint64 n_gts, n_dets; /* ground-truth boxes that count, detections */
  double recall, ap;    /* recall after the last detection */
  GArray *curve;        /* (nullable) of RnCurvePoint, one a detection, from the best score down; owned */
} RnClassScore;

typedef struct
{
  double iou_thr;
  GArray *classes; /* of RnClassScore, one a class, owned */
  double map;      /* mean over the classes that have boxes */
} RnIouScore;

/* Numbers of COCOeval.stats: AP, AP50, AP75, AP of small, medium and large objects, AR of 1, 10 and 100
 * detections, AR of small, medium and large objects. */
#define RN_BBOX_N_STATS 12

typedef struct
{
  GArray *scores;     /* of RnIouScore, one an IoU threshold, owned; empty without RN_METRIC_MAP */
  double map;         /* mean over the thresholds */
  double *bbox;       /* [RN_BBOX_N_STATS], -1 where there are no such objects; NULL without RN_METRIC_BBOX */
  double *class_bbox; /* [classes] the first of them for each class; NULL as @bbox is, or not to be shown */
  gint64 n_images;
} RnEvaluation;

typedef enum
{
  RN_EVAL_AUTO, /* 11 points for VOC2007, else area */
  RN_EVAL_11POINTS,
  RN_EVAL_AREA,
} RnEvalMode;

typedef struct
{
  guint metrics; /* of RnMetrics */
  RnEvalMode mode;
  const double *iou_thrs;
  gsize n_iou_thrs;
  gboolean keep_curves; /* fill RnClassScore.curve */
  gint64 n_draw;        /* pictures of the first images, with detections and ground truth; 0: none */
  const char *draw_dir; /* where they go, as ID.png */
} RnEvalOptions;

/* The value of `metric:`, a list of names. @map: the map that holds the key, for errors. */
RN_API gboolean rn_metrics_parse (const char *const *names, const RnNode *map, guint *metrics,
                                  GError **error);
/* Names of the scores of an evaluation, the one that `save_best: auto` means first. (transfer full) */
RN_API char **rn_metrics_score_names (guint metrics, const double *iou_thrs, gsize n_iou_thrs);
/* The scores under these names. AP50 has three digits, as in MMDetection. */
RN_API void rn_evaluation_put_scores (const RnEvaluation *evaluation, RnRecord *scores);

RN_API void rn_evaluation_clear (RnEvaluation *evaluation);
/*
 * MMDetection's table: class, gts, dets, recall, ap, and mAP, for each threshold; then bbox_mAP of each class
 * and COCO's summary, in the words of pycocotools. (transfer full)
 */
RN_API char *rn_evaluation_table (const RnEvaluation *evaluation, const char *const *class_names);

RN_API gboolean rn_runner_can_evaluate (const RnRunner *runner); /* there is a validation set */
/* Runs the validation set through the model. FALSE without error when a signal broke it off. @result is
 * filled on success only. */
RN_API gboolean rn_runner_evaluate (RnRunner *runner, const RnEvalOptions *options, RnEvaluation *result,
                                    GError **error);
RN_API int rn_runner_num_classes (const RnRunner *runner); /* of the model's head */

/* ---- Checkpoints ---- */

typedef struct
{
  const char *dir;  /* NULL: work_dir */
  const char *name; /* file name without folder */
  gboolean save_optimizer;
  gint64 max_keep;      /* files of this kind to keep, the new one included; 0: all */
  gboolean is_best;     /* kept apart: does not count for max_keep, is not what a resume takes */
  const char *replaces; /* (nullable) file name in the same folder, deleted once the new one is safe */
} RnCheckpointRequest;

/*
 * Asks for a checkpoint. It is written when all hooks of the stage have run and the counters have moved, so
 * that it holds the result of an evaluation in the same stage, and iter = finished iterations. @request is
 * copied. A failure stops the run in @hook's name.
 */
RN_API void rn_runner_request_checkpoint (RnRunner *runner, RnHook *hook, const RnCheckpointRequest *request);
/* Where a run that is stopped early saves itself; NULL: work_dir. Set in init. */
RN_API void rn_runner_set_checkpoint_dir (RnRunner *runner, const char *dir);
/* FALSE while the loss is not finite: requests are dropped then, with a warning. */
RN_API gboolean rn_runner_can_save (const RnRunner *runner);
/* `checkpoint_config.keep_best_k`: best files to keep for hooks that do not say it themselves; else 1. Set in
 * init. */
RN_API void rn_runner_set_keep_best (RnRunner *runner, guint n);
RN_API guint rn_runner_keep_best (const RnRunner *runner);
/* In before_run: deletes the regular checkpoints beyond the newest @max_keep (0: none), as a run that died in
 * its last save still had to. RN_CHECKPOINT_ERROR_WRITE. */
RN_API gboolean rn_runner_settle_checkpoints (RnRunner *runner, gint64 max_keep, GError **error);
/* @out_dir/NAME-OF-WORK-DIR, created if need be: MMCV's meaning of the key `out_dir`. @config: the map with
 * the key, for errors. NULL with @error. (transfer full) */
RN_API char *rn_runner_make_out_dir (const RnRunner *runner, const char *out_dir, const RnNode *config,
                                     GError **error);

/* ---- Log ---- */

/* As rn_runner_log, for a count or a scale: lines show its last value, not the mean. */
RN_API void rn_runner_log_latest (RnRunner *runner, const char *name, double value);
RN_API gboolean rn_runner_is_log_latest (const RnRunner *runner, const char *name);
/* Of log_config: for loggers without one of their own. */
RN_API gint64 rn_runner_log_interval (const RnRunner *runner);
/* Called once for each value of the last @n_iters iterations, with their mean, in the order of first use.
 * While validating: for each value logged since before_val_epoch, with its mean over images, whatever
 * @n_iters. */
typedef void (*RnLogFunc) (const char *name, double mean, gpointer user_data);
RN_API void rn_runner_foreach_log (const RnRunner *runner, gint64 n_iters, RnLogFunc func,
                                   gpointer user_data);
/*
 * Seconds since the run began: waiting for data, in the passes, in optimizer steps, and in hooks without the
 * backward passes and steps in them; evaluations and checkpoints count as hooks. Up to this moment.
 */
typedef struct
{
  double data, forward, backward, step, hooks;
} RnRunTimes;

RN_API void rn_runner_times (const RnRunner *runner, RnRunTimes *times);
/* The line that a JSON log of this run starts with: what was run, with what, from where. (transfer full) */
RN_API RnRecord *rn_runner_describe (const RnRunner *runner);
/* "20240501_123000": when the run was started; names its log files. Lent. */
RN_API const char *rn_runner_timestamp (const RnRunner *runner);
/* Resident memory of the process in bytes, now and at its peak; 0 where the system does not say. */
RN_API void rn_runner_memory (const RnRunner *runner, guint64 *current, guint64 *peak);
/* "1 day, 2:03:04", as Python prints a timedelta; nothing below 0. (transfer full) */
RN_API char *rn_format_duration (double seconds);
/* Shows @text on the last line of a terminal, below the messages; NULL takes it away. */
RN_API void rn_runner_show_status (RnRunner *runner, const char *text);
/* The first before_train_iter of the run has an evaluation in it, which loggers then look for there. In init;
 * loggers come later. */
RN_API void rn_runner_set_starts_with_evaluation (RnRunner *runner);
RN_API gboolean rn_runner_starts_with_evaluation (const RnRunner *runner);
/* An evaluation's result, for the loggers, which come later in the same stage. @scores: (transfer full) */
RN_API void rn_runner_put_scores (RnRunner *runner, RnRecord *scores);
RN_API const RnRecord *rn_runner_scores (const RnRunner *runner); /* (nullable) of this stage; lent */
/* Names of the scores that evaluations will have, as hooks declared them, NULL-ended. Complete from
 * before_run on. Lent. */
RN_API const char *const *rn_runner_score_names (const RnRunner *runner);

/* ---- Where the run came from, and the machine ---- */

/* Path of the checkpoint that the run was resumed from; NULL: it began at the beginning. Lent. */
RN_API const char *rn_runner_resumed_from (const RnRunner *runner);
/* Factor of all gradients of this iteration: that of rn_runner_set_grad_scale times the loss weight. */
RN_API double rn_runner_grad_factor (const RnRunner *runner);

/* Bytes; all 0 where the system does not say. */
typedef struct
{
  guint64 total, available; /* what programs may still take without swapping; of the machine */
  guint64 swap_total, swap_free;
} RnSystemMemory;
RN_API void rn_system_memory (RnSystemMemory *memory);

/* CRC-32C (RFC 3720, appendix B.4) of @size bytes. */
RN_API guint32 rn_checksum (gconstpointer data, gsize size);

/* ---- Trace: where the time goes. One at a time in a process. ---- */

#define RN_TRACE_MAX_EVENTS 10000000

typedef struct
{
  gint64 max_events; /* 1 to RN_TRACE_MAX_EVENTS; further ones are counted and dropped */
  gboolean shapes;   /* of ops */
  gboolean memory;   /* a counter of the arena's bytes in use, at every op */
} RnTraceOptions;

/* Begins to record. FALSE: there is a trace already. */
RN_API gboolean rn_trace_start (const RnTraceOptions *options);
/* A moment, and a number over time; nothing happens while no trace is recorded. */
RN_API void rn_trace_mark (const char *name);
RN_API void rn_trace_count (const char *name, double value);
/* Ends the recording; what was recorded stays until rn_trace_clear. Gives the number of dropped events. */
RN_API gint64 rn_trace_stop (void);
/* After a stop. Strict JSON in the form of Chrome's trace viewer. Replaces the file in one step. */
RN_API gboolean rn_trace_write (const char *path, GError **error);

typedef enum
{
  RN_TRACE_BY_TOTAL,
  RN_TRACE_BY_MEAN,
  RN_TRACE_BY_COUNT,
} RnTraceOrder;

/* After a stop: the ops that took longest, a line each. (transfer full) */
RN_API char *rn_trace_table (RnTraceOrder order, guint max_rows);
RN_API void rn_trace_clear (void);

G_END_DECLS

#endif
