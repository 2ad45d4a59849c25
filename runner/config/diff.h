/* diff.h: where two configurations differ. */
#ifndef RUNNER_CONFIG_DIFF_H
#define RUNNER_CONFIG_DIFF_H

#include <runner/node.h>

G_BEGIN_DECLS

/* One value: at @path ("optimizer.lr", "data.test.pipeline.1.img_scale") it was @was and is @is; NULL: not
 * there. */
typedef void (*RnConfigDiffFunc) (const char *path, const RnNode *was, const RnNode *is, gpointer user_data);

/*
 * Calls @func for every value that differs below @path, which stands in front of the paths ("" for whole
 * files). Lists of maps are compared map by map, and maps of one `type` key by key; other lists are one
 * value. @was and @is may be NULL.
 */
void rn_config_diff (const char *path, const RnNode *was, const RnNode *is, RnConfigDiffFunc func,
                     gpointer user_data);

/* "A in the checkpoint, B now", or "another one than in the checkpoint" where that is long.
 * (transfer full) */
char *rn_config_diff_text (const RnNode *was, const RnNode *is);

G_END_DECLS

#endif
