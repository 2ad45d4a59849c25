/* open-file.h: opens files that somebody named, whatever they are. */
#ifndef RUNNER_BASE_OPEN_FILE_H
#define RUNNER_BASE_OPEN_FILE_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * Opens @path for reading if it is a regular file. Anything else is refused at once: a pipe would wait for a
 * writer, a device may have no end. The check is on what was opened, so nothing can take its place.
 *
 * @size (nullable): becomes the bytes of the file. Returns a descriptor, or -1 with errno for
 * rn_open_problem: EISDIR for a folder, EINVAL for a pipe, a device or a socket.
 */
int rn_open_regular (const char *path, guint64 *size);

/* At most @bytes from @fd, with a NUL behind; fewer where the file ends before. NULL with errno. (transfer
 * full) */
char *rn_read_all (int fd, gsize bytes, gsize *size);

/* The text for an errno of these. Lent. */
const char *rn_open_problem (int code);

/* Are both there, and one file? Also where the names differ: by a link, or by case. */
gboolean rn_is_same_file (const char *a, const char *b);

G_END_DECLS

#endif
