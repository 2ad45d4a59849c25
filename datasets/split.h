/* split.h: which images belong to a split: the lines of a list, or the annotations in a folder. */
#ifndef RUNNER_DATASETS_SPLIT_H
#define RUNNER_DATASETS_SPLIT_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  char *path;
  GPtrArray *names; /* char *: relative to JPEGImages, with slashes */
  GArray *lines;    /* guint: line of each name in the list; empty if @path is a folder */
} RnSplit;

/*
 * Reads the list @path: a name per line. A byte order mark, blanks around a name, empty lines, "./" or
 * "JPEGImages/" in front and backslashes are put right; what may be an ending or a second column stays, see
 * rn_voc_find_image. A name that leads out of JPEGImages is refused with path:line. If @path is a folder, the
 * names are the stems of the XML files in it, sorted. Errors: RN_DATA_ERROR_MISSING, RN_DATA_ERROR_FORMAT,
 * RN_DATA_ERROR_EMPTY.
 */
RnSplit *rn_split_read (const char *path, GError **error);
void rn_split_free (RnSplit *split);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSplit, rn_split_free)

static inline const char *
rn_split_name (const RnSplit *split, int64_t i)
{
  return split->names->pdata[i];
}

/* "list.txt:12", or the path if there are no lines. (transfer full) */
char *rn_split_where (const RnSplit *split, int64_t i);

/* Cuts the last word off @name if it is the -1, 0 or 1 of VOC's lists for one class; FALSE if it is not. */
gboolean rn_split_cut_flag (char *name);
/* Cuts .jpg, .jpeg, .png or .xml off @name, in any case; FALSE if there is none. */
gboolean rn_split_cut_ending (char *name);

G_END_DECLS

#endif
