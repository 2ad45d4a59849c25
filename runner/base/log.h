/*
 * log.h: where messages go.
 *
 * Code logs with g_message, g_warning and so on. On stderr a message stands bare and the other levels carry
 * their name ("warning: ..."); debug and info need G_MESSAGES_DEBUG, as everywhere in GLib. With a file set,
 * the same lines go there as "2024-05-01 12:30:00,123 - runner - INFO - ..." (the line of MMCV's text log).
 * Any thread may log.
 */
#ifndef RUNNER_BASE_LOG_H
#define RUNNER_BASE_LOG_H

#include <glib.h>

G_BEGIN_DECLS

/* Takes over the process's log output. Call it first in main; further calls do nothing. */
void rn_log_init (void);
/*
 * Appends to @path from now on, in addition to stderr; NULL: to no file. On failure the file before it stays.
 * G_FILE_ERROR.
 */
gboolean rn_log_set_file (const char *path, GError **error);

/*
 * Shows @text on the last line of a terminal, below the messages, until the next call; NULL takes it away.
 * Does nothing where stderr is no terminal.
 */
void rn_log_set_status (const char *text);

G_END_DECLS

#endif
