/* run-config.h: the top level of a configuration file: which keys there are, and which of them this release
 * can honour. */
#ifndef RUNNER_RUN_CONFIG_H
#define RUNNER_RUN_CONFIG_H

#include <glib.h>
#include <runner/keys.h>
#include "runner/device-config.h"
#include "runner/fp16-config.h"
#include "runner/memory-config.h"

G_BEGIN_DECLS

/* `resume:`, what a run that is taken up may change. */
typedef struct
{
  gboolean allow_batch_change; /* of images in a batch, processes, or the training set */
} RnResumeConfig;

/* `backend:`, for tests and for finding a faulty kernel. Patterns are those of shells: "cpu:conv2d_*". */
typedef struct
{
  char **prefer, **forbid; /* kernel names as `runner ops` prints them; NULL: none */
} RnBackendConfig;

/* Parts are lent by the tree and checked by who builds them; NULL where the file has none. */
typedef struct
{
  const RnNode *model, *data, *evaluation;
  const RnNode *optimizer, *optimizer_config, *lr_config, *momentum_config, *runner;
  const RnNode *checkpoint_config, *log_config, *custom_hooks, *workflow;
  const RnNode *classes;                                       /* list of names, file, "auto", or NULL */
  const RnNode *img_norm_cfg, *train_pipeline, *test_pipeline; /* for references only */
  const RnNode *load_from;                                     /* see weights/load-start.h */
  const RnNode *plugins;                                       /* see plugin.h */
  const RnNode *auto_scale_lr;                                 /* see auto-scale-lr.h */
  char *data_root;   /* goes in front of relative data paths; or NULL */
  char *work_dir;    /* or NULL */
  char *resume_from; /* or NULL */
  const char *device; /* "cpu", "cuda", "cuda:N"; lent by the tree */
  const RnNode *device_node;
  RnDeviceOptions device_options;
  gint64 threads;    /* of the kernels, at least 1 */
  gint64 seed;
  gboolean deterministic;
  RnFp16Config fp16;
  RnMemoryConfig memory;
  RnBackendConfig backend;
  RnResumeConfig resume;
  RnNode *composed; /* (nullable) owned: hooks that are not as in the file, see fp16-config.h */
} RnRunConfig;

/**
 * rn_run_config_parse:
 * @root: a loaded configuration, which must outlive @config
 * @config: (out caller-allocates): to be cleared with rn_run_config_clear
 *
 * Checks the keys of the top level and reads the plain ones. Keys of MMDetection that mean nothing here are
 * accepted and said to be unused. Keys that begin with "x_" are the user's own, for references and anchors.
 * No key is required: parts of configurations are valid too.
 *
 * Errors: RN_CONFIG_ERROR. @config is empty then.
 */
gboolean rn_run_config_parse (const RnNode *root, RnRunConfig *config, GError **error);
void rn_run_config_clear (RnRunConfig *config);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnRunConfig, rn_run_config_clear)

/* The init_cfg of @part ("model.backbone") if it is of type Pretrained, or NULL. */
const RnNode *rn_run_config_pretrained (const RnNode *root, const char *part);
/* The value of @key, or NULL with an error that names the file. */
const RnNode *rn_run_config_need (const RnNode *root, const char *key, GError **error);

/*
 * What planning and timing may have, but training may not: weights for a part that cannot be loaded alone,
 * and frozen stages without any weights. Errors name the lines that train. @is_resumed: weights come from a
 * checkpoint.
 */
gboolean rn_run_config_check_training (const RnNode *root, gboolean is_resumed, GError **error);

G_END_DECLS

#endif
