/*
 * checkpoint-list.h: work_dir/last_checkpoint, a text file with the regular checkpoints of a run, newest
 * first, one a line.
 *
 * It is the truth of what a resume takes and what may be deleted: a file that is not in it is never touched.
 * Files in the work dir stand there by name, others by absolute path.
 */
#ifndef RUNNER_CHECKPOINT_LIST_H
#define RUNNER_CHECKPOINT_LIST_H

#include <glib.h>

G_BEGIN_DECLS

/* Is this the name of a file that may be listed, and so be deleted some day, or of the link? */
gboolean rn_checkpoint_list_owns (const char *name);
/* Entries of the list, empty if there is none. Lines that no run writes are left out. (transfer full) of char
 * * */
GPtrArray *rn_checkpoint_list_read (const char *work_dir, GError **error);
/* Path of an entry. (transfer full) */
char *rn_checkpoint_list_path (const char *work_dir, const char *entry);

/*
 * Puts @entry in front of @list, writes the list, points latest.safetensors to the new file, and deletes the
 * oldest files until @max_keep are left (0: none is deleted). A link or a deletion that fails is a warning.
 * RN_CHECKPOINT_ERROR_WRITE.
 */
gboolean rn_checkpoint_list_add (GPtrArray *list, const char *work_dir, const char *entry, gint64 max_keep,
                                 GError **error);
/* Link and deletions alone, which a run that died in rn_checkpoint_list_add owes. */
gboolean rn_checkpoint_list_settle (GPtrArray *list, const char *work_dir, gint64 max_keep, GError **error);

G_END_DECLS

#endif
