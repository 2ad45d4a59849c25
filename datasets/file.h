/* file.h: whole small files in memory. */
#ifndef RUNNER_DATASETS_FILE_H
#define RUNNER_DATASETS_FILE_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * Reads @path, at most @limit bytes, into @text (a NUL follows; transfer full). Errors start with the path:
 * RN_DATA_ERROR_MISSING if it cannot be opened or read, RN_DATA_ERROR_FORMAT if it is larger or no regular
 * file.
 */
gboolean rn_file_read (const char *path, gsize limit, char **text, gsize *size, GError **error);

/*
 * The lines that are not empty; a byte order mark, CR and blanks around a line are dropped, and with
 * @drop_flag the -1, 0 or 1 behind each name of VOC's lists for one class (cat_train.txt). NULL-ended.
 * (transfer full)
 */
char **rn_file_read_lines (const char *path, gboolean drop_flag, GError **error);

G_END_DECLS

#endif
