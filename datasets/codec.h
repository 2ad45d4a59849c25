/* codec.h: one image format behind image.h. */
#ifndef RUNNER_DATASETS_CODEC_H
#define RUNNER_DATASETS_CODEC_H

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* How a decoded pixel finds its place: (x, y) as stored goes to byte start + x * step_x + y * step_y. */
typedef struct
{
  gssize start, step_x, step_y;
} RnPixelWalk;

typedef struct
{
  const guint8 *magic; /* the file's first bytes */
  gsize magic_size;
  const guint8 *end; /* its last bytes, unless something stands behind the image */
  gsize end_size;
  /* Size as stored, and the EXIF orientation 1 to 8. */
  gboolean (*probe) (FILE *file, int *width, int *height, int *orientation, GError **error);
  /* @width x @height as stored; @walk says where pixels go. */
  gboolean (*decode) (FILE *file, guint8 *pixels, int width, int height, const RnPixelWalk *walk,
                      GError **error);
} RnCodec;

extern const RnCodec rn_codec_jpeg;
extern const RnCodec rn_codec_png;

/* Orientation 1 to 8 in the payload of an APP1 marker; 1 if there is none, or if the payload is damaged. */
int rn_exif_orientation (const guint8 *data, gsize size);

G_END_DECLS

#endif
