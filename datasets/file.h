/* file.h: whole small files in memory, and their lines. */
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
 * The text of @path as UTF-8 if it begins with a mark of UTF-8 or UTF-16, which is dropped; else its bytes.
 * At most 64 MiB; a NUL in it is RN_DATA_ERROR_FORMAT. (transfer full)
 */
char *rn_file_read_text (const char *path, GError **error);
/*
 * The next line at @cursor, without its LF, CR LF or CR and the blanks around it: a piece of the text, which
 * is cut up. NULL after the last.
 */
char *rn_file_next_line (char **cursor);
/* The lines of rn_file_read_text that are not empty, NULL-ended. (transfer full) */
char **rn_file_read_lines (const char *path, GError **error);

G_END_DECLS

#endif
