/* built-file.h: what lies beside a program that was built and is not installed. */
#ifndef RUNNER_BASE_BUILT_FILE_H
#define RUNNER_BASE_BUILT_FILE_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * The path of @name in the build folder, if this program is one that was built and not installed and there is
 * such a file or folder; else NULL. Libtool keeps such a program in .libs of its own folder, which is one
 * below the top. (transfer full) (nullable)
 */
char *rn_built_file (const char *name);

G_END_DECLS

#endif
