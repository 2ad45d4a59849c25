/* json-log.h: a file of JSON objects, one a line. */
#ifndef HOOKS_JSON_LOG_H
#define HOOKS_JSON_LOG_H

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct _RnJsonLog RnJsonLog;

/* Makes the file, or goes on behind what is in it; a line that was cut off is ended first. */
RnJsonLog *rn_json_log_open (const char *path, GError **error);
void rn_json_log_close (RnJsonLog *log);
/* Flushed, so that a run that is killed leaves its last line. */
gboolean rn_json_log_write (RnJsonLog *log, const RnRecord *record, GError **error);

G_END_DECLS

#endif
