/*
 * programs.h: the programs of a run: forward + loss, backward, update, loss only, inference; for every padded
 * batch shape.
 *
 * RnPrograms owns the parameters, the plans (least recently used go first) and the one arena that all
 * programs share, sized for the worst shape. Plans depend on the shape alone, so nothing is allocated on the
 * device after rn_programs_reserve.
 */
#ifndef RUNNER_PROGRAMS_H
#define RUNNER_PROGRAMS_H

#include <glib.h>
#include <runner/batch.h>
#include "boxes/detect.h"
#include "graph/executor.h"
#include "graph/update-graph.h"
#include "models/model.h"

G_BEGIN_DECLS

typedef struct
{
  RnMode mode;
  int n, height, width; /* of the padded batch */
} RnShape;

typedef struct
{
  gboolean training;       /* gradients, backward and update */
  RnUpdateRule rule;       /* of the optimizer */
  RnMomentumForm momentum; /* how its states are stored */
  gboolean ema;            /* keep a running mean of parameters and buffers */
  /* Steps of the optimizer in the backward programs: rn_programs_backward_update takes the place of
   * rn_programs_backward and rn_programs_update, and there are no gradients to see. */
  gboolean update_in_backward;
  RnPassOptions passes;
  /* No offsets: memory is what no placement can need less than. For comparisons; nothing can run. */
  gboolean bounds_only;
  int plan_cache; /* plans kept, at least 1 */
  gboolean check; /* executors compare what is written with the plan: slow */
} RnProgramsOptions;

typedef struct _RnPrograms RnPrograms;

/* @model and @device are lent. The graph of @shapes[0], the largest of those that train, is written at once,
 * so that the parameters are known. Errors: also RN_PASS_ERROR. */
RnPrograms *rn_programs_new (RnModel *model, RnDevice *device, const RnProgramsOptions *options,
                             const RnShape *shapes, int n_shapes, GError **error);
void rn_programs_free (RnPrograms *programs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPrograms, rn_programs_free)

RnModel *rn_programs_model (RnPrograms *programs);
RnDevice *rn_programs_device (RnPrograms *programs);
RnParamSet *rn_programs_params (RnPrograms *programs);
const RnUpdateRule *rn_programs_rule (RnPrograms *programs);

/* Of one parameter, by paramwise_cfg. */
typedef struct
{
  double lr_mult, decay_mult;
} RnParamMultipliers;

/* Before rn_programs_plan, which the steps of the optimizer are planned by; 1 and 1 where nothing is set. */
void rn_programs_set_multipliers (RnPrograms *programs, int param, RnParamMultipliers multipliers);
/*
 * The trained parameters of one lr_mult are a group; @lr_mults: (out) one a group, in the order of the
 * parameters, lent. At least one. From rn_programs_plan on.
 */
guint rn_programs_groups (RnPrograms *programs, const double **lr_mults);

/*
 * Plans every shape of the run without touching the device: afterwards rn_programs_memory is exact, or where
 * kernels choose by measuring the most. @progress (may be NULL) is called after each.
 */
typedef void (*RnProgress) (int done, int total, gpointer user_data);
gboolean rn_programs_plan (RnPrograms *programs, RnProgress progress, gpointer user_data, GError **error);

typedef struct
{
  gsize param_bytes, grad_bytes; /* static; param_bytes includes buffers */
  gsize state_bytes, ema_bytes;  /* static; of the optimizer, of the running mean */
  gsize arena_bytes;
  gsize live_bound_bytes; /* of the shape that needs the largest arena */
  gsize workspace_bytes;  /* the largest of one op */
  RnShape worst;          /* the shape that needs the largest arena */
  gsize total_bytes;      /* of the device: static + arena */
  /* Of the host, beside what loaders and the process itself take: tensors that wait there, and the
   * optimizer's state if it lies there. host_bytes is the sum. */
  gsize host_arena_bytes, host_state_bytes, host_bytes;
} RnMemory;

RnMemory rn_programs_memory (RnPrograms *programs);

/*
 * Allocates parameters, gradients, the optimizer's state, the running mean and the arena, and touches every
 * page. Plans first if that was not done. Kernels that choose by measuring do it here, for every shape; then
 * all is planned again and the arena allocated once more, so that rn_programs_memory is exact.
 * RN_DEVICE_ERROR_MEMORY, RN_DEVICE_ERROR_KERNEL.
 */
gboolean rn_programs_reserve (RnPrograms *programs, GError **error);
/*
 * Gives back to the system what the program that ran last leaves unused of the arenas; a larger one takes it
 * again by itself. Returns the bytes that came free.
 */
gsize rn_programs_trim (RnPrograms *programs);

typedef struct
{
  char **unreached_params;      /* trainable ones of which no op writes a gradient; NULL-ended */
  gboolean has_live_batch_norm; /* some batch norm takes its statistics from the batch */
} RnStepFacts;

/* Of a run with training shapes. @facts: (out), the list (transfer full). */
gboolean rn_programs_describe_step (RnPrograms *programs, RnStepFacts *facts, GError **error);

/* The optimizer's, after rn_programs_plan; NULL where the backward program has it. Lent. */
const RnPlan *rn_programs_update_plan (RnPrograms *programs);
/* The plan of a shape, made if it is not there. Lent until the next call. */
const RnPlan *rn_programs_get_plan (RnPrograms *programs, RnShape shape, GError **error);

/*
 * Copies @batch in and runs forward + loss. @mode: RN_MODE_TRAIN or RN_MODE_LOSS. @grad_scale is the factor
 * of all gradients (loss scale over accumulation factor); the losses are reported without it.
 */
gboolean rn_programs_forward (RnPrograms *programs, const RnBatch *batch, RnMode mode, float grad_scale,
                              GError **error);
/*
 * Waits until the losses of the last forward are there: a device with queues may still have to compute them.
 * Otherwise they are waited for when they are first asked for, and are NAN if that fails.
 */
gboolean rn_programs_settle (RnPrograms *programs, GError **error);
/* The loss of the last forward: one of rn_model_loss_names, or "loss", their sum. NAN for other names. */
float rn_programs_loss (RnPrograms *programs, const char *name);
/* Does the model have this module, with an output of its own? Says which name is near. */
gboolean rn_programs_check_module (RnPrograms *programs, const char *module, GError **error);
/*
 * The output of a module that is in options.passes.keep, after rn_programs_forward (RN_MODE_TRAIN) and before
 * anything else. *@desc: as planned; *@values: (transfer full) row-major, without blocks of channels.
 */
gboolean rn_programs_read_activation (RnPrograms *programs, const char *module, RnTensorDesc *desc,
                                      float **values, GError **error);
/* Backward of the batch of the last forward (RN_MODE_TRAIN). Adds to the gradients; not with
 * options.update_in_backward. */
gboolean rn_programs_backward (RnPrograms *programs, GError **error);

/*
 * Runs the training forward of @batch again, op by op, and stops behind the first op that gives a NaN or an
 * infinite value. *@where: (transfer full) what and where it is, or NULL if there is none. The losses stay
 * those of the last forward; a backward of it can no longer follow. Batch norms that learn take the batch
 * into their running statistics once more.
 */
gboolean rn_programs_find_non_finite (RnPrograms *programs, const RnBatch *batch, char **where,
                                      GError **error);

gboolean rn_programs_zero_grads (RnPrograms *programs, GError **error);
/*
 * The norm of type @norm_type (at least 1, INFINITY: the largest element) of all gradients, as they lie
 * (still multiplied by grad_scale), and the largest absolute value. Both NaN or infinite when an element is.
 */
gboolean rn_programs_grad_stats (RnPrograms *programs, double norm_type, double *norm, double *max_abs,
                                 GError **error);

typedef struct
{
  const double *lrs;      /* [groups] */
  double momentum;        /* of SGD; beta1 of Adam */
  double grad_multiplier; /* clip coefficient over loss scale */
  double clip_value;      /* limit of each gradient after that; 0: none */
  gint64 n_steps;         /* that made the optimizer's state; 0: it has none yet */
  /* Of options.update_in_backward, see the op SGD: the momentum holds gradients of this step already; there
   * are more to come. */
  gboolean continues, waits;
  /* Not with options.update_in_backward: decisions that the device takes, by the gradients as they lie. A
   * step with one of them is guarded. */
  double max_norm;  /* of all gradients times grad_multiplier: they are scaled down to it; 0: they are not */
  double norm_type; /* of a guarded step: of that norm, as in rn_programs_grad_stats */
  gboolean checks_finite; /* nothing is done where one of them is NaN or infinite */
} RnUpdate;

static inline gboolean
rn_update_is_guarded (const RnUpdate *update)
{
  return update->max_norm > 0 || update->checks_finite;
}

/* One step of the optimizer. RN_RUN_ERROR_FAILED for a beta1 that Adam cannot have. */
gboolean rn_programs_update (RnPrograms *programs, const RnUpdate *update, GError **error);
/*
 * Waits for the statistics of the last guarded step, which are those of rn_programs_grad_stats; nothing that
 * was queued behind it is waited for.
 */
gboolean rn_programs_settle_update (RnPrograms *programs, double *norm, double *max_abs, GError **error);
/* Options.update_in_backward: backward of the batch of the last forward with one step, or a part of one. */
gboolean rn_programs_backward_update (RnPrograms *programs, const RnUpdate *update, GError **error);
gboolean rn_programs_updates_in_backward (RnPrograms *programs);

/* Options.ema: mean += @momentum * (weights - mean); buffers likewise if @with_buffers, else copied. A
 * momentum of 1 copies all. */
gboolean rn_programs_update_ema (RnPrograms *programs, double momentum, gboolean with_buffers,
                                 GError **error);
/* Options.ema: weights and buffers change places with their mean. */
gboolean rn_programs_swap_ema (RnPrograms *programs, GError **error);

/*
 * Inference: detections of every image of @batch, in pixels of the original image. @detections: [batch->n]
 * new arrays of RnDetection (transfer full), set only on success.
 */
gboolean rn_programs_infer (RnPrograms *programs, const RnBatch *batch, GArray **detections, GError **error);

/* Highest byte of the arena that was really written; only with options.check. */
gsize rn_programs_highest_byte (RnPrograms *programs);
gsize rn_programs_highest_host_byte (RnPrograms *programs); /* likewise, of the host's arena */

/*
 * The same without options.check, at no cost per op: marks fill the reserved arenas before the first program,
 * and are looked for from the end afterwards. @highest: (out): by RnSpace. A program that writes a mark's
 * value last makes it a few bytes less.
 */
gboolean rn_programs_set_marks (RnPrograms *programs, GError **error);
gboolean rn_programs_find_marks (RnPrograms *programs, gsize highest[RN_N_SPACES], GError **error);

G_END_DECLS

#endif
