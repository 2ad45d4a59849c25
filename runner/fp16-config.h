/*
 * fp16-config.h: `fp16:`, half precision and its loss scale, and what it makes of the optimizer hook.
 *
 * As in MMDetection the line turns the optimizer hook into its Fp16 form. Other than there, the accumulating
 * hook becomes its Fp16 form too. An Fp16 hook alone means half precision as well, as MMCV's does.
 */
#ifndef RUNNER_FP16_CONFIG_H
#define RUNNER_FP16_CONFIG_H

#include <runner/keys.h>
#include "graph/memory-options.h"

G_BEGIN_DECLS

#define RN_FP16_N_SCALER 5 /* loss_scale, min_scale, max_scale, max_skips, reset_scale */

typedef struct
{
  int opt_level;                          /* RnAmpLevel */
  int dtype_name;                         /* see rn_fp16_dtype */
  char **force_fp32;                      /* modules in single precision; NULL: none */
  char **force_half;                      /* modules all in half; NULL: none */
  const RnNode *scaler[RN_FP16_N_SCALER]; /* what the optimizer hook is told of the scale */

  /* Set by rn_fp16_compose: */
  RnAmpLevel level;    /* that the run computes in */
  RnDType dtype;       /* RN_F32 with RN_AMP_O0 */
  gboolean is_by_hook; /* the optimizer hook alone asks for it */
} RnFp16Config;

extern const RnKeySpec rn_fp16_keys[];

/* What Apex has and this release has not, before the keys are parsed. @line: (nullable): the value of `fp16:`
 */
gboolean rn_fp16_explain (const RnNode *line, GError **error);

/*
 * rn_fp16_compose:
 * @root: the configuration
 * @optimizer_config: (inout) (nullable): replaced where the line changes it
 * @custom_hooks: (inout) (nullable): likewise, where the optimizer hook is among them
 * @composed: (out): (transfer full): the tree that they are lent by then, or NULL
 *
 * After rn_keys_parse. Errors: RN_CONFIG_ERROR.
 */
gboolean rn_fp16_compose (RnFp16Config *fp16, const RnNode *root, const RnNode **optimizer_config,
                          const RnNode **custom_hooks, RnNode **composed, GError **error);

/* "fp16 O1", "fp32": for messages and checkpoints. Lent. */
const char *rn_fp16_describe (const RnFp16Config *fp16);

G_END_DECLS

#endif
