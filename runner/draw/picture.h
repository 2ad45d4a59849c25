/*
 * picture.h: draws on photographs: boxes with labels, captions; and writes them as PNG files. Everything that
 * shows an image goes through it, so that colours and fonts agree.
 */
#ifndef RUNNER_DRAW_PICTURE_H
#define RUNNER_DRAW_PICTURE_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct _RnPicture RnPicture;

typedef enum
{
  RN_BOX_SOLID,
  RN_BOX_DASHED, /* difficult objects, ground truth beside detections */
  RN_BOX_THIN,   /* anchors */
} RnBoxStyle;

/* Copies @pixels [height, width, 3] RGB. The picture is enlarged by a whole factor when the image is too
 * small for text. */
RnPicture *rn_picture_new (const guint8 *pixels, int width, int height);
void rn_picture_free (RnPicture *picture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPicture, rn_picture_free)

/*
 * A box in pixels of the image (x1 y1 x2 y2, not integers, may reach outside) in the colour of class
 * @color_index (any integer); @label (nullable) is drawn beside it, inside the picture. Text that is not
 * UTF-8 is made valid.
 */
void rn_picture_box (RnPicture *picture, const float box[4], int color_index, RnBoxStyle style,
                     const char *label);
/* A line of text in a strip above the image: it makes the picture taller. */
void rn_picture_caption (RnPicture *picture, const char *text);
/* Through a temporary file, so never half a picture. G_FILE_ERROR with the path. */
gboolean rn_picture_write_png (RnPicture *picture, const char *path, GError **error);

/* Colour of class @index, each component 0 to 1: distinct for neighbours. Also for curves. */
void rn_draw_color (int index, double rgb[3]);

G_END_DECLS

#endif
