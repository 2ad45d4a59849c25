/* hook-hints.h: hooks of MMCV, MMDetection and MMEngine that there are none of here. */
#ifndef RUNNER_HOOK_HINTS_H
#define RUNNER_HOOK_HINTS_H

#include <runner/node.h>

G_BEGIN_DECLS

/* FALSE with @error, which says what does its work, if the `type:` of @config (nullable) is such a hook and
 * no plugin has brought one of that name. */
gboolean rn_hook_explain_type (const RnNode *config, GError **error);

G_END_DECLS

#endif
