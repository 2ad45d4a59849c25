/* voc-find.h: the image file that a line of a split list means. */
#ifndef RUNNER_DATASETS_VOC_FIND_H
#define RUNNER_DATASETS_VOC_FIND_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * The path of PREFIX/JPEGImages/ID.{jpg,jpeg,png}, the ending in any case; @id is the stem that names the
 * annotation too. The whole of @name is tried first. Unless @exact, it is then tried without the second
 * column of VOC's lists, and without an ending. Errors: RN_DATA_ERROR_MISSING, with the path that was looked
 * for, and a file of a similar name if there is one. (both transfer full)
 */
char *rn_voc_find_image (const char *prefix, const char *name, gboolean exact, char **id, GError **error);

G_END_DECLS

#endif
