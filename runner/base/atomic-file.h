/*
 * atomic-file.h: a file that appears whole or not at all.
 *
 * Bytes go to a temporary file in the same folder. Commit flushes, fsyncs, renames over the old file and
 * fsyncs the folder, so that a crash at any moment leaves either the old file or the new one. Freeing without
 * a commit removes the temporary file. Errors are G_FILE_ERRORs.
 */
#ifndef RUNNER_BASE_ATOMIC_FILE_H
#define RUNNER_BASE_ATOMIC_FILE_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct _RnAtomicFile RnAtomicFile;

/*
 * Opens the temporary file @path.tmp; an error when another process is writing it, or when something that is
 * not a regular file has this name. The folder must exist.
 * (transfer full)
 */
RnAtomicFile *rn_atomic_file_new (const char *path, GError **error);
/* Buffered. After a failure every further write and the commit fail too. */
gboolean rn_atomic_file_write (RnAtomicFile *file, const void *data, gsize size, GError **error);
/* Puts the file in place. At most once; afterwards only rn_atomic_file_free may follow. */
gboolean rn_atomic_file_commit (RnAtomicFile *file, GError **error);
void rn_atomic_file_free (RnAtomicFile *file);

/* All of it for contents in memory. */
gboolean rn_atomic_file_save (const char *path, const void *data, gsize size, GError **error);

/* The steps that can fail, in their order. */
typedef enum
{
  RN_ATOMIC_FILE_OPEN,
  RN_ATOMIC_FILE_WRITE,
  RN_ATOMIC_FILE_FSYNC,
  RN_ATOMIC_FILE_RENAME,
  RN_ATOMIC_FILE_FSYNC_FOLDER,
} RnAtomicFileStep;

/*
 * For tests: called before each step of every file; a result other than 0 is an errno that the step then
 * fails with. NULL: none. Main thread only.
 */
typedef int (*RnAtomicFileFault) (RnAtomicFileStep step, gpointer data);
void rn_atomic_file_set_fault (RnAtomicFileFault fault, gpointer data);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnAtomicFile, rn_atomic_file_free)

G_END_DECLS

#endif
