/*
 * runner.h: the Runner: counters, hooks and the one loop that both EpochBasedRunner and IterBasedRunner are.
 */
#ifndef RUNNER_RUNNER_H
#define RUNNER_RUNNER_H

#include <runner/engine.h>
#include "runner/hook-list.h"
#include "runner/optimizer.h"
#include "runner/run-config.h"
#include "runner/task.h"
#include "runner/workflow.h"

G_BEGIN_DECLS

typedef struct
{
  gboolean is_by_epoch;         /* EpochBasedRunner, else IterBasedRunner */
  gint64 max_epochs, max_iters; /* what comes first ends the run; G_MAXINT64: no such limit */
  const char *work_dir;         /* must exist */
  const char *timestamp;        /* names the logs; NULL: now */
  const char *config_text;      /* the resolved configuration, for checkpoints */
  const RnOptimizer *optimizer; /* lent for the life of the runner */
  RnHookList *hooks;            /* (transfer full) */
  gint64 log_interval;          /* iterations, for loggers without an interval of their own */
  gboolean allow_batch_change;  /* see rn_runner_resume */
  const GArray *workflow;       /* of RnWorkflowItem, copied; NULL: [[train, 1]] */
} RnRunnerOptions;

/* Reads the map `runner:` (type, max_epochs, max_iters) into the first three options. */
gboolean rn_runner_options_parse (const RnNode *config, RnRunnerOptions *options, GError **error);

/*
 * The hooks that @config asks for, in MMDetection's order of registration: training-hooks.c. They need no
 * runner yet, so that wrong keys are found before the data set is read. @config must outlive them.
 * @log_interval: (out): of log_config. (transfer full)
 */
RnHookList *rn_training_hooks_new (const RnRunConfig *config, gint64 *log_interval, GError **error);

/* Does @config name one of the program's own optimizer hooks? */
gboolean rn_is_optimizer_hook (const RnNode *config);
/* What the optimizer hook is made from, in optimizer_config or among custom_hooks; NULL: all defaults. Lent.
 */
const RnNode *rn_optimizer_hook_config (const RnRunConfig *config);
/* Those alone that decide the learning rate and momentum of a step. (transfer full) */
RnHookList *rn_schedule_hooks_new (const RnRunConfig *config, GError **error);

/* @task is lent for the life of the runner. */
RnRunner *rn_runner_new (RnTask *task, const RnRunnerOptions *options);
void rn_runner_free (RnRunner *runner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnRunner, rn_runner_free)

/* init of the hooks. Once, before a resume and the run. */
gboolean rn_runner_init (RnRunner *runner, GError **error);

/**
 * rn_runner_resume:
 * @path: a checkpoint; NULL: the newest whole one that work_dir/last_checkpoint lists
 *
 * Takes up a run where a checkpoint left it. The configuration wins over the one in the file, and what
 * differs is logged. With @path NULL a damaged file is passed over with a warning, and no checkpoint at all
 * is no error: the run then starts from the beginning.
 *
 * Another batch size, number of processes or length of an epoch is refused, or, with allow_batch_change, the
 * place in the epoch is counted anew from the images that are done.
 *
 * Errors: RN_CHECKPOINT_ERROR.
 */
gboolean rn_runner_resume (RnRunner *runner, const char *path, GError **error);

/* Runs to the end, to rn_runner_stop, or to a signal, after which a checkpoint was saved. after_run is called
 * in any case. */
gboolean rn_runner_run (RnRunner *runner, GError **error);
/* The signal that ended the run early, or 0. */
int rn_runner_signal (const RnRunner *runner);

/* "[[train, 2], [val, 1]] epochs" (transfer full) */
char *rn_runner_describe_workflow (const RnRunner *runner);
/* The stages and their hooks, one line each. (transfer full) */
char *rn_runner_describe_hooks (const RnRunner *runner);

G_END_DECLS

#endif
