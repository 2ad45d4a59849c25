/*
 * plugin.h: shared objects with hooks: `plugins: [my_hook]`.
 *
 * A plugin is code that runs with all rights of the program, so only what a configuration or an option names
 * is loaded, and each file is named in a message. It stays until the program ends.
 */
#ifndef RUNNER_PLUGIN_H
#define RUNNER_PLUGIN_H

#include <runner/node.h>

G_BEGIN_DECLS

/* Folders in which plugins are looked for before those of RN_PLUGIN_PATH: --plugin-path. NULL-ended, copied;
 * each may hold several, separated by colons. */
void rn_plugins_set_path (const char *const *folders);

/**
 * rn_plugins_load:
 * @root: a configuration; its `plugins:` is a list of names and paths, or one, or absent
 *
 * Loads them, and puts the absolute path of the file where a name or a path was. A name "my_hook" is the file
 * my_hook.so, or my_hook/my_hook.so, in the first of these folders that has it: that of the file which it is
 * written in, --plugin-path, RN_PLUGIN_PATH, the installed one. The name of a built-in hook is accepted and
 * means nothing. A path has a slash or ends in .so; it starts from the folder of the file, then from the
 * current one. A plugin that is loaded already is not loaded again.
 *
 * Errors: RN_CONFIG_ERROR with the place, the file and the reason; its hooks are not registered then.
 */
gboolean rn_plugins_load (RnNode *root, GError **error);
/* The same for one name or path from the command line, paths from the current folder. */
gboolean rn_plugins_load_name (const char *name, GError **error);

/*
 * What is loaded, for checkpoints: lines of hook, version, checksum and path of the file, separated by tabs.
 * NULL if there is none. (transfer full)
 */
char *rn_plugins_describe (void);
/* Warns of what is different from @stored (nullable), what a checkpoint has of rn_plugins_describe. */
void rn_plugins_compare (const char *stored);

G_END_DECLS

#endif
