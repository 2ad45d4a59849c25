/* hook-class.h: the hooks that `type:` can name, built in or from plugins, and what is checked before one is
 * taken. */
#ifndef RUNNER_HOOK_CLASS_H
#define RUNNER_HOOK_CLASS_H

#include <runner/hook.h>
#include "runner/base/registry.h"

G_BEGIN_DECLS

/* A descriptor as the family "hook" keeps it. */
typedef struct
{
  RnComponent component; /* first */
  RnHookDesc desc;       /* a copy: the author's may be shorter than ours */
  char *plugin;          /* the file that it is from; NULL: built in */
} RnHookClass;

/* Registers the built-in hooks. May be called again. */
void rn_hooks_register (void);

/*
 * Is it of an ABI that this program knows, with a name of its own, a struct of a possible size, and keys that
 * lie in it? RN_RUN_ERROR.
 */
gboolean rn_hook_desc_check (const RnHookDesc *desc, GError **error);

/* Adds a hook to the family, after the checks. @desc is copied as far as it goes, its strings and keys are
 * lent for ever. */
gboolean rn_hook_register (const RnHookDesc *desc, GError **error);
/* The same for a hook of the file @plugin. */
gboolean rn_hook_register_from (const RnHookDesc *desc, const char *plugin, GError **error);

/* The function of each stage, or NULL. */
void rn_hook_desc_calls (const RnHookDesc *desc, RnHookFunc calls[RN_STAGE_COUNT]);

/* For `runner hooks NAME`, beside the keys: origin, priority, stages, needs, state; lines. (transfer full) */
char *rn_hook_class_describe (const RnHookClass *class);

G_END_DECLS

#endif
