/*
 * event-file.h: TensorBoard's event files: a TFRecord file of Event messages
 * (tensorflow/core/util/event.proto).
 *
 * A record is its length, eight bytes, and the message, each followed by a masked CRC-32C. All numbers are
 * little endian.
 */
#ifndef HOOKS_EVENT_FILE_H
#define HOOKS_EVENT_FILE_H

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct _RnEventFile RnEventFile;

/* A new file in folder @dir, which is made if need be; its name has time, host and process. */
RnEventFile *rn_event_file_new (const char *dir, GError **error);
void rn_event_file_free (RnEventFile *file);

/* Points to be written: scalars and texts of one moment. */
void rn_event_file_add_scalar (RnEventFile *file, const char *tag, double value);
void rn_event_file_add_text (RnEventFile *file, const char *tag, const char *text);
/* Writes and flushes them as one event at @step. Nothing without points. */
gboolean rn_event_file_write (RnEventFile *file, gint64 step, GError **error);
/* Tells readers that the run begins anew at @step: they drop what older files have from there on. */
gboolean rn_event_file_restart (RnEventFile *file, gint64 step, GError **error);

G_END_DECLS

#endif
