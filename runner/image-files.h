/* image-files.h: from names on a command line, files and folders, to a list of image files. */
#ifndef RUNNER_IMAGE_FILES_H
#define RUNNER_IMAGE_FILES_H

#include <glib.h>

G_BEGIN_DECLS

/**
 * rn_image_files_find:
 * @inputs: files and folders, NULL-ended
 * @recursive: look into subfolders, too; links to folders are not followed
 * @out_dir: where pictures of these will go: no file of it is taken, it need not be there
 * @n_unreadable: (out): subfolders that could not be listed, each named in a warning
 *
 * A file counts whatever its name is; in a folder, those that end in .jpg, .jpeg or .png (any case) and do
 * not begin with a point, sorted by bytes. Each path once, in the order of @inputs. Nothing is opened.
 *
 * Returns: (transfer full): of char *, at least one; NULL with RN_DATA_ERROR_MISSING when an input is not
 * there, is a folder that cannot be listed, or is @out_dir itself, and when there is no image at all
 */
GPtrArray *rn_image_files_find (const char *const *inputs, gboolean recursive, const char *out_dir,
                                guint *n_unreadable, GError **error);

G_END_DECLS

#endif
