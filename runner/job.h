/*
 * job.h: from a configuration to the parts that every command needs: device, model, data sets, samplers,
 * shapes, programs.
 *
 * plan and bench stop at the programs; train and eval go on with loaders and the runner. Parts are made when
 * they are asked for, so that `plan --shape` touches no data set.
 */
#ifndef RUNNER_JOB_H
#define RUNNER_JOB_H

#include <glib.h>
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/sampler.h"
#include "kernels/call-cache.h"
#include "runner/hook-wants.h"
#include "runner/programs.h"
#include "runner/run-config.h"

G_BEGIN_DECLS

/* `data:` */
typedef struct
{
  gint64 samples_per_gpu; /* images per training batch */
  gint64 workers_per_gpu; /* loader threads */
  gint64 prefetch;        /* batches that wait; 0: chosen by the loader */
  int on_error;           /* RnOnError */
  const RnNode *train, *val, *test;
} RnDataConfig;

typedef enum
{
  RN_SPLIT_TRAIN,
  RN_SPLIT_VAL,
  RN_SPLIT_TEST,
  RN_SPLIT_VAL_LOSS, /* the validation set through the pipeline of training, for its loss */
  RN_SPLIT_COUNT
} RnSplit;

typedef struct _RnBudget RnBudget; /* budget.h */
typedef struct _RnCandidate RnCandidate;

typedef struct
{
  RnNode *root;       /* owned */
  RnRunConfig config; /* lent by root */
  RnDataConfig data;
  RnDevice *device;
  char *profile;                       /* (nullable) owned: JSON of a CUDA device, see open-device.h */
  gboolean is_for_plan;                /* nothing can run */
  guint64 plan_memory;                 /* of a job for plans: bytes that the device has free; 0: nobody knows */
  RnModel *model;                      /* NULL until rn_job_open_model */
  RnDataset *datasets[RN_SPLIT_COUNT]; /* NULL until rn_job_open_data */
  RnSampler *samplers[RN_SPLIT_COUNT];
  RnPrograms *programs;        /* NULL until rn_job_open_programs */
  const char **single_modules; /* (nullable) owned list of lent names, see job-precision.h; with the model */
  const char **keep;           /* (nullable) owned list of lent names: what the programs keep of @wants */
  gboolean check_memory; /* of a training: executors compare what is written with the plan; set before it is
                            opened */
  RnWants *wants;        /* (nullable) owned: what hooks want of the programs; set before they are opened */
  GArray *shapes;        /* (nullable) owned, of RnShape: of the programs */
  RnBudget *budget;      /* (nullable) owned: what was tried for `memory.budget` */
  const RnCandidate *chosen; /* (nullable) lent by @budget */
  guint64 budget_bytes;      /* that it had to fit into */
  gboolean bounds_only;      /* of a variant: see RnProgramsOptions */
  gboolean is_variant;       /* data sets, samplers and @wants are another job's */
} RnJob;

/* @root: (transfer full). Checks the top level and opens the device. */
RnJob *rn_job_new (RnNode *root, GError **error);
/* The same, and what is chosen for the device is kept in the work dir. */
RnJob *rn_job_new_for_training (RnNode *root, GError **error);
/* Also for a device that is not there: its programs can be planned, not reserved. */
RnJob *rn_job_new_for_plan (RnNode *root, GError **error);
/*
 * The same for one whose `device:` is cuda and that @profile describes (device-profile.h). Errors:
 * RN_DEVICE_ERROR_MISSING, there is no module of the CUDA device, or its library does not take the profile.
 */
RnJob *rn_job_new_for_profile (RnNode *root, const char *profile, GError **error);
gboolean rn_job_is_for_plan (const RnJob *job);
void rn_job_free (RnJob *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnJob, rn_job_free)

/*
 * rn_job_new_variant:
 * @job: lent, for as long as the variant is there
 * @root: (transfer full): the configuration of @job with some lines changed that are not about its data
 * @calls: lent, likewise
 *
 * A job that can only be planned, to see what other lines would give: it shares the data sets of @job, and
 * takes a budget as met.
 */
RnJob *rn_job_new_variant (const RnJob *job, RnNode *root, RnCallCache *calls, GError **error);

/*
 * Sets @lines (NULL-ended, each as after --set) in the configuration: those of `memory:` and of parts of the
 * model. Before the programs are opened; the model is made anew.
 */
gboolean rn_job_change (RnJob *job, const char *const *lines, GError **error);

/*
 * The data set and sampler of a split, indexed (progress on a terminal). RN_SPLIT_VAL_LOSS takes the classes
 * and the pipeline of the training split. Errors: RN_DATA_ERROR, RN_CONFIG_ERROR when the file has no such
 * split.
 */
gboolean rn_job_open_data (RnJob *job, RnSplit split, GError **error);
/* The model; its number of classes agrees with the data sets that are open, or with `classes:` when it is a
 * list. */
gboolean rn_job_open_model (RnJob *job, GError **error);

/* Adds the shapes that the open splits can form, for @mode, to @shapes (of RnShape); says where batches are
 * rounded up to them. */
void rn_job_add_shapes (RnJob *job, RnSplit split, RnMode mode, GArray *shapes);

/* What the file and the device ask of the passes. */
RnPassOptions rn_job_pass_options (const RnJob *job);

/*
 * Programs for @shapes (of RnShape, not empty), neither planned nor reserved. @training: with the optimizer
 * of the configuration; with a budget its strategies are chosen first (budget.h).
 */
gboolean rn_job_open_programs (RnJob *job, const GArray *shapes, gboolean training, gboolean check,
                               GError **error);

/* Does the workflow of the configuration have validation losses? */
gboolean rn_job_has_val_loss (const RnJob *job);

/* Loader of an open split; training: shuffled and with targets; validation losses: in order, with targets.
 * (transfer full) */
RnLoader *rn_job_loader (RnJob *job, RnSplit split, GError **error);

/* Prints "planning shapes 12/40" and the like on a terminal. An RnProgress. */
void rn_job_show_progress (int done, int total, gpointer what);

G_END_DECLS

#endif
