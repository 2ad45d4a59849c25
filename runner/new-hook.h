/* new-hook.h: the beginnings of a hook of the user's own, which compile and run as they are. */
#ifndef RUNNER_NEW_HOOK_H
#define RUNNER_NEW_HOOK_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  char *name; /* "my_hook": of files and of the plugin */
  char *type; /* "MyHook" */
} RnNewHookNames;

/*
 * What "my_hook", "my-hook", "MyHook" and "my" are to be called. Errors: RN_CONFIG_ERROR_USAGE for what
 * cannot become a name in C, and for a hook that is there already.
 */
gboolean rn_new_hook_names (const char *word, RnNewHookNames *names, GError **error);
void rn_new_hook_names_clear (RnNewHookNames *names);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnNewHookNames, rn_new_hook_names_clear)

/* Writes source, Makefile, test and README into @dir, which is made and must be empty. G_FILE_ERROR,
 * RN_CONFIG_ERROR_USAGE. */
gboolean rn_new_hook_write (const RnNewHookNames *names, const char *dir, GError **error);

G_END_DECLS

#endif
