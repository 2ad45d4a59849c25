/*
 * load-start.h: what training starts from: `init_cfg` of the backbone or the whole model, of type Pretrained,
 * and then `load_from`.
 *
 * Both load what matches and warn of the rest, as in MMCV. A resumed run reads neither.
 */
#ifndef RUNNER_WEIGHTS_LOAD_START_H
#define RUNNER_WEIGHTS_LOAD_START_H

#include "runner/job.h"

G_BEGIN_DECLS

typedef struct _RnStartWeights RnStartWeights;

/*
 * Whether the files are there that @root, a configuration, names; opens none and says nothing. Errors: those
 * of rn_start_weights_new.
 */
gboolean rn_start_weights_check (const RnNode *root, GError **error);

/*
 * Finds and opens the files that @root, a configuration, names, before anything slow is done. Where
 * `load_from` may make `init_cfg` superfluous, a missing file of the latter is no error yet. Errors:
 * RN_CONFIG_ERROR with the line, RN_CHECKPOINT_ERROR. (transfer full)
 */
RnStartWeights *rn_start_weights_new (const RnNode *root, GError **error);
void rn_start_weights_free (RnStartWeights *start);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnStartWeights, rn_start_weights_free)

/*
 * Loads into @job's programs, which hold their first values. RN_CHECKPOINT_ERROR_MISMATCH when nothing
 * matches, or when a frozen convolution would stay random.
 */
gboolean rn_start_weights_load (RnStartWeights *start, RnJob *job, GError **error);

G_END_DECLS

#endif
