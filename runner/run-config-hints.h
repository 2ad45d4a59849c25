/* run-config-hints.h: what an unknown key at the top of a configuration should have been. */
#ifndef RUNNER_RUN_CONFIG_HINTS_H
#define RUNNER_RUN_CONFIG_HINTS_H

#include <runner/keys.h>

G_BEGIN_DECLS

/*
 * FALSE with an error for the first key of @root that is not in @keys, if more can be said of it than that:
 * other programs call something so, or the key belongs further down. @skip: keys that are somebody else's,
 * NULL-ended. rn_keys_parse refuses the others.
 */
gboolean rn_run_config_explain_unknown (const RnNode *root, const RnKeySpec *keys, const char *const *skip,
                                        GError **error);

/* FALSE with an error when @config (may be NULL), the value of `optimizer_config`, has no type and keys that
 * only other optimizer hooks than the plain one have. */
gboolean rn_run_config_explain_optimizer (const RnNode *config, GError **error);

G_END_DECLS

#endif
