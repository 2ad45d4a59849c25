/*
 * hook.h: what a hook is, and what it may ask the runner.
 *
 * A hook is a struct with RnHook as its first member, a table of keys that fills the rest from the
 * configuration, and a function for each stage of the run that it cares about:
 *
 * |[
 *   typedef struct { RnHook hook; gint64 every; } Greeter;
 *   static const RnKeySpec keys[] = {
 *     RN_KEY (Greeter, every, RN_KEY_INT, "10", "iterations between two greetings"), RN_KEY_END
 *   };
 *   static gboolean greet (RnHook *hook, RnRunner *runner, GError **error) { ... return TRUE; }
 *   RN_HOOK_DEFINE (greeter, Greeter, .name = "GreeterHook", .keys = keys, .after_train_iter = greet);
 * ]|
 *
 * Everything here keeps its meaning and its binary form within one major number of RN_HOOK_ABI: members are
 * only appended. All hooks run in the main thread.
 */
#ifndef RUNNER_HOOK_H
#define RUNNER_HOOK_H

#include <glib.h>
#include <runner/batch.h>
#include <runner/export.h>
#include <runner/keys.h>
#include <runner/node.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

#define RN_HOOK_ABI_MAJOR 1u
#define RN_HOOK_ABI_MINOR 0u
#define RN_HOOK_ABI (RN_HOOK_ABI_MAJOR << 16 | RN_HOOK_ABI_MINOR)

typedef struct _RnRunner RnRunner;
typedef struct _RnHook RnHook;
typedef struct _RnHookDesc RnHookDesc;
typedef struct _RnRecord RnRecord;

/* In the order in which a run reaches them. A run counted in iterations has epochs too: each pass of the data
 * is one. */
typedef enum
{
  RN_STAGE_BEFORE_RUN,
  RN_STAGE_BEFORE_TRAIN_EPOCH,
  RN_STAGE_BEFORE_TRAIN_ITER, /* before the forward pass: lr, momentum and loss weight are set here */
  RN_STAGE_BEFORE_STEP,      /* inside after_train_iter: all gradients of a step are there, not yet clipped */
  RN_STAGE_AFTER_TRAIN_ITER, /* after the forward pass: the optimizer hook runs backward pass and step here */
  RN_STAGE_AFTER_TRAIN_EPOCH,
  RN_STAGE_BEFORE_VAL_EPOCH, /* validation losses of the workflow; EvalHook's evaluations have no stages */
  RN_STAGE_BEFORE_VAL_ITER,
  RN_STAGE_AFTER_VAL_ITER,
  RN_STAGE_AFTER_VAL_EPOCH,
  RN_STAGE_AFTER_RUN, /* also after a failure */
  RN_STAGE_COUNT
} RnStage;

/* MMCV's names of priorities. A smaller number runs first; equal ones run in the order of registration. */
enum
{
  RN_PRIORITY_HIGHEST = 0,
  RN_PRIORITY_VERY_HIGH = 10,
  RN_PRIORITY_HIGH = 30,
  RN_PRIORITY_ABOVE_NORMAL = 40,
  RN_PRIORITY_NORMAL = 50,
  RN_PRIORITY_BELOW_NORMAL = 60,
  RN_PRIORITY_LOW = 70,
  RN_PRIORITY_VERY_LOW = 90,
  RN_PRIORITY_LOWEST = 100,
};

/* What a hook reads in after_train_iter, so that memory strategies know what must still be there. */
enum
{
  RN_NEEDS_LOSS = 1 << 0,
  RN_NEEDS_ACTIVATIONS = 1 << 1,
  RN_NEEDS_GRADIENTS = 1 << 2,
  RN_NEEDS_EMA = 1 << 3, /* a second copy of all weights, for a running mean of them */
};

/* What a run must keep for its hooks; see RnHookDesc.prepare. */
typedef struct _RnWants RnWants;
/*
 * The output of the module @name ("backbone.layer4", "neck.fpn_convs.0"), to be read in after_train_iter. It
 * is what the plan computes: batch norm, addition and ReLU behind a module are in its output where they were
 * made part of it. Where a module runs once a level, it is that of the last level. A name that the model does
 * not have ends the start of the run. Needs RN_NEEDS_ACTIVATIONS.
 */
RN_API void rn_wants_activation (RnWants *wants, const char *name);

/* The first member of every hook's struct; filled by the runner. */
struct _RnHook
{
  const RnHookDesc *desc;
  int priority;
  const RnNode *config; /* what it was made from, for rn_node_error in init; NULL: nothing but defaults */
  gpointer reserved[2];
};

/* FALSE with @error stops the run. The message gets the hook's name and the stage in front. */
typedef gboolean (*RnHookFunc) (RnHook *hook, RnRunner *runner, GError **error);
/* Sets such an error. Always returns FALSE. */
RN_API gboolean rn_hook_error (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Zero means absent. Give the members in this order, which C++ asks for. */
struct _RnHookDesc
{
  guint32 abi, struct_size; /* these three are set by RN_HOOK_DEFINE */
  gsize instance_size;
  const char *name; /* the value of `type:`, [A-Za-z][A-Za-z0-9_]* */
  const char *version, *license;
  const char *summary; /* one line */
  int priority;        /* the key `priority` of the configuration wins; 0 stands for RN_PRIORITY_NORMAL */
  guint needs;         /* RN_NEEDS_* bits */
  const RnKeySpec *keys;
  /* Once, after the keys are filled, before model and data are built: says what must be kept. */
  gboolean (*prepare) (RnHook *hook, RnWants *wants, GError **error);
  /* Once, after all of the run is built, before a checkpoint is loaded. */
  RnHookFunc init;
  /* Frees what prepare and init made, be it all of it or not; the keys' strings and lists are the runner's to
   * free. */
  void (*clear) (RnHook *hook);
  /* State that a resumed run needs. It is kept in checkpoints as one JSON object. */
  void (*save_state) (RnHook *hook, RnRecord *state);
  gboolean (*load_state) (RnHook *hook, const RnRecord *state, GError **error);
  RnHookFunc before_run;
  RnHookFunc before_train_epoch, before_train_iter, before_step, after_train_iter, after_train_epoch;
  RnHookFunc before_val_epoch, before_val_iter, after_val_iter, after_val_epoch;
  RnHookFunc after_run;
  /* These stand in for the train and val functions that are absent. */
  RnHookFunc before_epoch, before_iter, after_iter, after_epoch;
  gpointer reserved[8];
};

/* Defines the descriptor rn_hook_desc_IDENT of a hook whose struct is @Struct. */
#define RN_HOOK_DESC(ident, Struct, ...)                                                                  \
  extern const RnHookDesc rn_hook_desc_##ident;                                                           \
  const RnHookDesc rn_hook_desc_##ident = {                                                               \
    .abi = RN_HOOK_ABI, .struct_size = sizeof (RnHookDesc), .instance_size = sizeof (Struct), __VA_ARGS__ \
  }

/* Lists the hooks of a plugin, for the program that loads it: RN_PLUGIN_HOOKS (&rn_hook_desc_a,
 * &rn_hook_desc_b); once a plugin. NULL alone: it has closures only. */
#define RN_PLUGIN_HOOKS(...)                                                  \
  G_BEGIN_DECLS                                                               \
  RN_API const RnHookDesc *const *rn_plugin_query_1 (void);                   \
  const RnHookDesc *const *rn_plugin_query_1 (void)                           \
  {                                                                           \
    static const RnHookDesc *const rn_plugin_hooks[] = { __VA_ARGS__, NULL }; \
    return rn_plugin_hooks;                                                   \
  }                                                                           \
  G_END_DECLS                                                                 \
  typedef int rn_plugin_end_1

/*
 * Both: the plugin of one hook. A plugin of several has an RN_HOOK_DESC for each and one RN_PLUGIN_HOOKS.
 * With RN_HOOK_BUILTIN defined it is RN_HOOK_DESC alone: the program lists its own hooks itself.
 */
#ifdef RN_HOOK_BUILTIN
  #define RN_HOOK_DEFINE(ident, Struct, ...) RN_HOOK_DESC (ident, Struct, __VA_ARGS__)
#else
  #define RN_HOOK_DEFINE(ident, Struct, ...)   \
    RN_HOOK_DESC (ident, Struct, __VA_ARGS__); \
    RN_PLUGIN_HOOKS (&rn_hook_desc_##ident)
#endif

/*
 * A function for ClosureHook, `{type: ClosureHook, stage: after_train_epoch, fn: say_hello}`:
 *
 * |[
 *   RN_CLOSURE_DEFINE (say_hello) (RnRunner *runner, GError **error) { ... return TRUE; }
 * ]|
 */
typedef gboolean (*RnClosureFunc) (RnRunner *runner, GError **error);
#define RN_CLOSURE_DEFINE(ident)                            \
  static gboolean ident (RnRunner *runner, GError **error); \
  G_BEGIN_DECLS                                             \
  RN_API extern const RnClosureFunc rn_closure_##ident;     \
  const RnClosureFunc rn_closure_##ident = ident;           \
  G_END_DECLS                                               \
  static gboolean ident

/* ---- Where the run stands ---- */

/* Finished training iterations; in before_train_iter and after_train_iter: the running one, from 0. */
RN_API gint64 rn_runner_iter (const RnRunner *runner);
/* Finished passes of the data; inside one: its number, from 0. Validation changes neither this nor iter. */
RN_API gint64 rn_runner_epoch (const RnRunner *runner);
/* As iter, but counted from the start of the epoch, of training or of validation. */
RN_API gint64 rn_runner_inner_iter (const RnRunner *runner);
/* Performed optimizer steps. A device with queues is waited for where the last one may have been skipped, for
 * a loss scale. */
RN_API gint64 rn_runner_opt_step (const RnRunner *runner);
RN_API gint64 rn_runner_max_iters (const RnRunner *runner);
/* In a run counted in iterations: passes that are begun by its end. */
RN_API gint64 rn_runner_max_epochs (const RnRunner *runner);
/* Iterations of one pass of the data that the running stage is about: of training, or of validation. In a run
 * counted in iterations a pass of validation is one val item of the workflow. */
RN_API gint64 rn_runner_epoch_length (const RnRunner *runner);
/* EpochBasedRunner? */
RN_API gboolean rn_runner_is_by_epoch (const RnRunner *runner);
/* In a val item of the workflow? */
RN_API gboolean rn_runner_is_validating (const RnRunner *runner);

/* MMCV's helpers, for use inside after_train_iter and after_train_epoch: n > 0 and (counter + 1) % n == 0. */
RN_API gboolean rn_runner_every_n_epochs (const RnRunner *runner, gint64 n);
RN_API gboolean rn_runner_every_n_iters (const RnRunner *runner, gint64 n);
RN_API gboolean rn_runner_every_n_inner_iters (const RnRunner *runner, gint64 n);
RN_API gboolean rn_runner_is_end_of_epoch (const RnRunner *runner);
RN_API gboolean rn_runner_is_last_iter (const RnRunner *runner);
RN_API gboolean rn_runner_is_last_epoch (const RnRunner *runner);

RN_API const char *rn_runner_work_dir (const RnRunner *runner); /* lent */
/* Of the training set, NULL-ended; lent. */
RN_API const char *const *rn_runner_class_names (const RnRunner *runner);

/* ---- What a hook may read ---- */

/* The current one; NULL outside an iteration. */
RN_API const RnBatch *rn_runner_batch (const RnRunner *runner);
/*
 * A loss of the forward pass just done: "loss", "loss_cls", ...; NAN if there is none of that name. A device
 * with queues may still be computing it, and is waited for: behind the optimizer hook (priority above 40)
 * that holds nothing up.
 */
RN_API double rn_runner_loss (const RnRunner *runner, const char *name);
/* Mean of a logged value over the last @n_iters iterations, the running one included; NAN if there is none.
 * While validating: over all images since before_val_epoch, of what was logged while validating. */
RN_API double rn_runner_log_mean (const RnRunner *runner, const char *name, gint64 n_iters);
/* In init: at least @n_iters iterations of every logged value are kept, up to 100000. Without it
 * log_config.interval are, and means are over no more. */
RN_API void rn_runner_reserve_log (RnRunner *runner, gint64 n_iters);
/* The evaluation of this stage, if there was one: "mAP", "AP50", ...; else NAN. */
RN_API double rn_runner_score (const RnRunner *runner, const char *name);
RN_API double rn_runner_lr (const RnRunner *runner);       /* of the first parameter group */
RN_API double rn_runner_momentum (const RnRunner *runner); /* of SGD; beta1 of Adam */

/* Parameters and buffers, by number. Names are those of the checkpoints. */
RN_API guint rn_runner_n_params (const RnRunner *runner);
RN_API int rn_runner_find_param (const RnRunner *runner, const char *name);            /* -1: there is none */
RN_API const char *rn_runner_param_name (const RnRunner *runner, guint param);         /* lent */
RN_API const RnTensorDesc *rn_runner_param_desc (const RnRunner *runner, guint param); /* RN_F32; lent */
RN_API gboolean rn_runner_param_is_trained (const RnRunner *runner, guint param);
/* @values: as many floats as the shape has elements, row-major. */
RN_API gboolean rn_runner_read_param (RnRunner *runner, guint param, float *values, GError **error);
/*
 * The gradient of a step, in before_step and after it in the same after_train_iter: of the mean over the
 * accumulated iterations, without loss scale, before clipping. Trained parameters only. Needs
 * RN_NEEDS_GRADIENTS.
 */
RN_API gboolean rn_runner_read_grad (RnRunner *runner, guint param, float *values, GError **error);
/*
 * The output of a module that was asked for in prepare, in after_train_iter before the optimizer hook
 * (priority below 40). *@desc: as the plan has it, channels in blocks; *@values: (transfer full) F32,
 * row-major NCHW, without the blocks; free it with g_free.
 */
RN_API gboolean rn_runner_read_activation (RnRunner *runner, const char *name, RnTensorDesc *desc,
                                           float **values, GError **error);

/* ---- What a hook may change ---- */

/* Adds a value to the log; lines show the mean over their iterations. Names are kept: loss, loss_* and *_time
 * are the runner's, and so are those that JSON lines begin with: mode, epoch, iter, lr, momentum and so on.
 */
RN_API void rn_runner_log (RnRunner *runner, const char *name, double value);
/* Adds to the evaluation of this stage, or replaces; the hooks behind see it and the loggers print it. FALSE:
 * there was no evaluation in this stage. */
RN_API gboolean rn_runner_set_score (RnRunner *runner, const char *name, double value);
/* In init: evaluations will have a score of this name from this hook, so that others may ask for it by name
 * before there is one (EarlyStoppingHook.monitor). */
RN_API void rn_runner_declare_score (RnRunner *runner, const char *name);
/* Before the iteration or in it before the step, every time: lr hooks set it anew in each before_train_iter.
 * @lr is for parameters whose lr_mult is 1; each group gets it times its own. */
RN_API void rn_runner_set_lr (RnRunner *runner, double lr);
RN_API void rn_runner_set_momentum (RnRunner *runner, double momentum);
/* Factor of the loss in its gradients, for this iteration; before_train_iter only. The log shows losses
 * without it. */
RN_API void rn_runner_set_loss_weight (RnRunner *runner, double weight);
/* Replaces a gradient; before_step only, values as rn_runner_read_grad gives them. Needs RN_NEEDS_GRADIENTS.
 */
RN_API gboolean rn_runner_write_grad (RnRunner *runner, guint param, const float *values, GError **error);
/* Ends the run after this iteration; a checkpoint is saved. */
RN_API void rn_runner_stop (RnRunner *runner);
/* Asks for a checkpoint work_dir/@name.safetensors, with the optimizer, written when all hooks of the stage
 * have run; in validation, when its pass is over; not after a failure. It is kept for good; epoch_N, iter_N
 * and latest are no names for it. */
RN_API void rn_runner_save (RnRunner *runner, RnHook *hook, const char *name);
/* Draws what the model, as it is now, finds in image @index of the validation set (0-based), with the ground
 * truth, into the PNG file @path. After an iteration's step, or in the stages of an epoch. Errors also when
 * there is no such image. */
RN_API gboolean rn_runner_draw_detections (RnRunner *runner, gint64 index, double min_score, const char *path,
                                           GError **error);

/* ---- Records: ordered names with numbers, texts and lists of numbers; hook states and log lines ---- */

RN_API RnRecord *rn_record_new (void);
RN_API void rn_record_free (RnRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnRecord, rn_record_free)

/* Setting a name again replaces its value and keeps its place. */
RN_API void rn_record_set_int (RnRecord *record, const char *name, gint64 value);
RN_API void rn_record_set_float (RnRecord *record, const char *name, double value);
RN_API void rn_record_set_string (RnRecord *record, const char *name, const char *value);
RN_API void rn_record_set_floats (RnRecord *record, const char *name, const double *values, gsize n);

RN_API guint rn_record_size (const RnRecord *record);
RN_API const char *rn_record_name (const RnRecord *record, guint i); /* in order; lent */
RN_API gboolean rn_record_is_float (const RnRecord *record, const char *name);
/* An absent name, or one of another kind, gives @deflt or NULL. An int may be read as a float. */
RN_API gint64 rn_record_int (const RnRecord *record, const char *name, gint64 deflt);
RN_API double rn_record_float (const RnRecord *record, const char *name, double deflt);
/* Lent. */
RN_API const char *rn_record_string (const RnRecord *record, const char *name);
/* Lent; *@n is 0 if there is none. */
RN_API const double *rn_record_floats (const RnRecord *record, const char *name, gsize *n);

/**
 * rn_record_to_json:
 * @digits: significant digits of floats; 17 keep every bit
 *
 * Strict JSON on one line. JSON has no NaN and no infinity: these become null, and "non_finite" lists their
 * names.
 *
 * Returns: (transfer full)
 */
RN_API char *rn_record_to_json (const RnRecord *record, int digits);

G_END_DECLS

#endif
