/*
 * checkpoint.h: what a checkpoint holds, beside the tensors: texts in the safetensors metadata, JSON records
 * unless said otherwise.
 *
 * Readers must take no text on trust.
 */
#ifndef RUNNER_CHECKPOINT_H
#define RUNNER_CHECKPOINT_H

#include "runner/safetensors.h"

G_BEGIN_DECLS

#define RN_CHECKPOINT_FORMAT "format" /* plain text: */
#define RN_CHECKPOINT_FORMAT_NAME "runner-checkpoint-1"
#define RN_CHECKPOINT_COUNTERS "counters"   /* iter, epoch, inner_iter, opt_step: what is finished */
#define RN_CHECKPOINT_SAMPLER "sampler"     /* seed, epoch, next_batch, and what batches.h adds */
#define RN_CHECKPOINT_RATES "rates"         /* lrs, momentum, and their base values: of the configuration */
#define RN_CHECKPOINT_LOG "log/"            /* and NNNN/NAME: a window of the log buffer, numbered in order */
#define RN_CHECKPOINT_CONFIG "config"       /* plain text: YAML, resolved */
#define RN_CHECKPOINT_DEVICE "device"       /* plain text */
#define RN_CHECKPOINT_PRECISION "precision" /* plain text: "fp32", "fp16 O1": what the step computes in */
#define RN_CHECKPOINT_HISTORY "history"     /* plain text: see run-history.h */
#define RN_CHECKPOINT_PLUGINS "plugins"     /* plain text: see rn_plugins_describe; absent without plugins */
#define RN_CHECKPOINT_CLASSES "classes" /* plain text: a name a line, in the order of the head's outputs */

/* A tensor, U8: text, see the choices of RnDeviceVtbl; absent where the device keeps none. */
#define RN_CHECKPOINT_CHOICES "device/choices"

/* As rn_safetensors_open. Of a file of PyTorch, which has weights but no run to go on with, says what takes
 * it. */
RnSafetensors *rn_checkpoint_open (const char *path, GError **error);
/*
 * The file that a run in @work_dir goes on from: @path, or with NULL the newest whole one of @list
 * (checkpoint-list.h); those before it are taken out of the list, with a warning for each unless @is_quiet.
 * NULL without error where the list is empty.
 */
RnSafetensors *rn_checkpoint_open_resumed (const char *work_dir, const char *path, GPtrArray *list,
                                           gboolean is_quiet, GError **error);

/*
 * Whether weights that were trained on @was know the classes @names, in this order: with others every
 * detection would get a wrong name. Both NULL-ended. RN_CHECKPOINT_ERROR_MISMATCH.
 */
gboolean rn_checkpoint_compare_classes (const char *const *was, const char *const *names, GError **error);
/* The same for a file; one that does not say passes. */
gboolean rn_checkpoint_check_classes (const RnSafetensors *file, const char *const *names, GError **error);

G_END_DECLS

#endif
