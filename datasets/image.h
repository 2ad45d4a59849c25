/*
 * image.h: reads JPEG and PNG files, told apart by content, as 8-bit RGB: row-major, three bytes a pixel,
 * EXIF orientation applied.
 */
#ifndef RUNNER_DATASETS_IMAGE_H
#define RUNNER_DATASETS_IMAGE_H

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* Larger images are refused: a damaged header must not ask for the memory of the machine. */
#define RN_IMAGE_MAX_SIDE 32767
#define RN_IMAGE_MAX_PIXELS 100000000

/* Width and height of the decoded image, from the header alone. Errors: RN_DATA_ERROR_FORMAT. */
gboolean rn_image_probe (FILE *file, int *width, int *height, GError **error);

/*
 * Decodes into @pixels [height, width, 3]. The size must be the one that rn_image_probe gave. Grey becomes
 * three equal channels, CMYK is converted as OpenCV does, 16-bit samples lose their low byte, alpha is
 * dropped, palettes are expanded. A file with missing or damaged pixel data is an error, never a half-grey
 * image.
 */
gboolean rn_image_decode (FILE *file, guint8 *pixels, int width, int height, GError **error);

/* The same for a named file; messages start with its path. RN_DATA_ERROR_MISSING if it cannot be opened. */
gboolean rn_image_probe_path (const char *path, int *width, int *height, GError **error);
gboolean rn_image_decode_path (const char *path, guint8 *pixels, int width, int height, GError **error);

/*
 * rn_image_probe_path for a first look at a data set: a file that does not end as its format does, be it cut
 * off or with something behind the image, is decoded as well (one at a time), so that missing pixels come to
 * light before a training does.
 */
gboolean rn_image_check_path (const char *path, int *width, int *height, GError **error);

/* Writes @pixels [height, width, 3] as a baseline JPEG; @quality is libjpeg's, 1 to 100. G_FILE_ERROR. */
gboolean rn_image_write_jpeg (const char *path, const guint8 *pixels, int width, int height, int quality,
                              GError **error);

G_END_DECLS

#endif
