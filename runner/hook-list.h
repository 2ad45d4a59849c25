/* hook-list.h: the hooks of a run in their order, and which of their functions a stage calls. */
#ifndef RUNNER_HOOK_LIST_H
#define RUNNER_HOOK_LIST_H

#include <runner/hook.h>
#include "runner/hook-class.h"
#include "runner/hook-wants.h"
#include "runner/safetensors.h"

G_BEGIN_DECLS

typedef struct _RnHookList RnHookList;

RnHookList *rn_hook_list_new (void);
/* Clears the hooks, last one first. */
void rn_hook_list_free (RnHookList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnHookList, rn_hook_list_free)

/*
 * Makes the hook that @config describes (NULL: all defaults) and puts it behind those of the same or a
 * smaller priority. @deflt_type stands in for a missing `type`. @skip (may be NULL): keys that somebody else
 * reads. The key `priority` (0 to 100, or MMCV's name of one) wins over the hook's own. @config must outlive
 * the list.
 */
gboolean rn_hook_list_add (RnHookList *list, const RnNode *config, const char *deflt_type,
                           const char *const *skip, GError **error);

/* What all hooks need together, RN_NEEDS_* bits. */
guint rn_hook_list_needs (const RnHookList *list);
/* prepare of every hook, in order: adds what they want to @wants, and what they need. */
gboolean rn_hook_list_prepare (RnHookList *list, RnWants *wants, GError **error);

/* init of every hook, in order; each once. */
gboolean rn_hook_list_init (RnHookList *list, RnRunner *runner, GError **error);
/* The stage's functions in order, up to the first that fails: "HOOK: STAGE: message". */
gboolean rn_hook_list_call (RnHookList *list, RnStage stage, RnRunner *runner, GError **error);
/* Does any hook have functions of @stage? */
gboolean rn_hook_list_has_stage (const RnHookList *list, RnStage stage);
/* The hook that the last call failed in, or NULL. */
const RnHook *rn_hook_list_failed (const RnHookList *list);
/* after_run of every hook that was initialised, failures or not. @error gets the first. */
gboolean rn_hook_list_finish (RnHookList *list, RnRunner *runner, GError **error);

const char *rn_stage_name (RnStage stage); /* "before_train_iter" */
/* "OptimizerHook (40), ...", NULL when no hook has the stage. (transfer full) */
char *rn_hook_list_describe (const RnHookList *list, RnStage stage);

/* States under "hook/NAME", or "hook/NAME#2" for the second of a name. */
void rn_hook_list_save (RnHookList *list, RnSafetensorsWriter *writer);
/* Hooks without a saved state keep the one that they have. */
gboolean rn_hook_list_load (RnHookList *list, const RnSafetensors *file, GError **error);

G_END_DECLS

#endif
