/* folder.h: folders for what is written. */
#ifndef RUNNER_BASE_FOLDER_H
#define RUNNER_BASE_FOLDER_H

#include <glib.h>

G_BEGIN_DECLS

/* Makes @path and what is missing above it; it may be there. G_FILE_ERROR with the path. */
gboolean rn_folder_make (const char *path, GError **error);

G_END_DECLS

#endif
