/* builtin.h: the hooks that are always there. */
#ifndef HOOKS_BUILTIN_H
#define HOOKS_BUILTIN_H

#include <runner/hook.h>

G_BEGIN_DECLS

extern const RnHookDesc *const rn_builtin_hooks[]; /* NULL-ended */

G_END_DECLS

#endif
