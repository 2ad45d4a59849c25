/* zip-writer.h: zip archives of stored entries, written in one go, each entry's data on a 64-byte border. */
#ifndef RUNNER_WEIGHTS_ZIP_WRITER_H
#define RUNNER_WEIGHTS_ZIP_WRITER_H

#include "runner/base/atomic-file.h"

G_BEGIN_DECLS

#define RN_ZIP_ALIGNMENT 64

typedef struct _RnZipWriter RnZipWriter;

/* Writes to @file, lent, from its start. */
RnZipWriter *rn_zip_writer_new (RnAtomicFile *file);
void rn_zip_writer_free (RnZipWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnZipWriter, rn_zip_writer_free)

/* @name: below 64 KiB. Errors are those of the file. */
gboolean rn_zip_writer_add (RnZipWriter *writer, const char *name, const void *data, gsize bytes,
                            GError **error);
/* The directory; nothing may follow. */
gboolean rn_zip_writer_finish (RnZipWriter *writer, GError **error);

G_END_DECLS

#endif
