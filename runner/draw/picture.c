/*
 * picture.c: photographs with boxes on them, on a cairo image surface.
 *
 * Boxes are drawn at once; labels and the caption wait for the end, so that no box runs through them. The
 * text interface is cairo's simplest: where no font is installed, cairo has strokes of its own for ASCII.
 */
#include "config.h"

#include "runner/draw/picture.h"

#include "runner/draw/surface.h"

#include <cairo.h>
#include <math.h>
#include <string.h>

#define MIN_LONGER_SIDE 400 /* pixels of the picture, below which an image is enlarged */
#define MAX_FACTOR 8
#define MAX_SIDE 32767 /* cairo's */
#define MIN_FONT 12.0  /* pixels */
#define FONT_PER_SIDE (1 / 45.0)
#define LINE_PER_FONT (1 / 7.0)

typedef struct
{
  double x, top; /* of the box */
  double rgb[3];
  char *text;
} Label;

struct _RnPicture
{
  cairo_surface_t *surface;
  cairo_t *cr;
  int factor; /* pixels of the picture per pixel of the image */
  double width, height, font, line;
  GArray *labels; /* of Label */
  char *caption;
};

static void
label_clear (gpointer data)
{
  g_free (((Label *) data)->text);
}

/* The enlargement of an image, by repeating pixels: a box must lie where the pixels are. */
static int
choose_factor (int width, int height)
{
  int side = MAX (width, height);
  return CLAMP ((MIN_LONGER_SIDE + side - 1) / side, 1, MAX_FACTOR);
}

static void
copy_pixels (RnPicture *picture, const guint8 *pixels, int width, int height)
{
  guint8 *data = cairo_image_surface_get_data (picture->surface); /* NULL when there was no memory */
  gsize stride = (gsize) cairo_image_surface_get_stride (picture->surface);
  int factor = picture->factor;

  if (data == NULL)
    return;
  cairo_surface_flush (picture->surface);
  for (int y = 0; y < height; y++)
    {
      const guint8 *in = pixels + (gsize) y * (gsize) width * 3;
      guint8 *first = data + (gsize) y * (gsize) factor * stride;
      guint32 *out = (guint32 *) (gpointer) first;
      for (int x = 0; x < width; x++, in += 3)
        for (int i = 0; i < factor; i++)
          *out++ = (guint32) in[0] << 16 | (guint32) in[1] << 8 | in[2];
      for (int i = 1; i < factor; i++)
        memcpy (first + (gsize) i * stride, first, (gsize) width * (gsize) factor * sizeof *out);
    }
  cairo_surface_mark_dirty (picture->surface);
}

static void
use_font (cairo_t *cr, double size)
{
  cairo_select_font_face (cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size (cr, size);
}

RnPicture *
rn_picture_new (const guint8 *pixels, int width, int height)
{
  RnPicture *picture = g_new0 (RnPicture, 1);

  g_assert (width > 0 && height > 0 && width <= MAX_SIDE && height <= MAX_SIDE);
  picture->factor = choose_factor (width, height);
  picture->surface =
      cairo_image_surface_create (CAIRO_FORMAT_RGB24, width * picture->factor, height * picture->factor);
  copy_pixels (picture, pixels, width, height);
  picture->cr = cairo_create (picture->surface);
  picture->width = width * picture->factor;
  picture->height = height * picture->factor;
  picture->font = MAX (MIN_FONT, MAX (picture->width, picture->height) * FONT_PER_SIDE);
  picture->line = picture->font * LINE_PER_FONT;
  picture->labels = g_array_new (FALSE, FALSE, sizeof (Label));
  g_array_set_clear_func (picture->labels, label_clear);
  use_font (picture->cr, picture->font);
  return picture;
}

void
rn_picture_free (RnPicture *picture)
{
  if (picture == NULL)
    return;
  cairo_destroy (picture->cr);
  cairo_surface_destroy (picture->surface);
  g_array_unref (picture->labels);
  g_free (picture->caption);
  g_free (picture);
}

/* ---- Boxes ---- */

/*
 * @box in pixels of the picture, corners sorted, edges drawn inside it: its visible part is all that is left.
 * FALSE when nothing is.
 */
static gboolean
place_box (const RnPicture *picture, const float box[4], double placed[4])
{
  for (int i = 0; i < 4; i++)
    if (isnan (box[i]))
      return FALSE;
  double x1 = (double) MIN (box[0], box[2]) * picture->factor,
         x2 = (double) MAX (box[0], box[2]) * picture->factor;
  double y1 = (double) MIN (box[1], box[3]) * picture->factor,
         y2 = (double) MAX (box[1], box[3]) * picture->factor;
  if (x2 < 0 || y2 < 0 || x1 > picture->width || y1 > picture->height)
    return FALSE;
  placed[0] = MAX (x1, 0);
  placed[1] = MAX (y1, 0);
  placed[2] = MIN (x2, picture->width);
  placed[3] = MIN (y2, picture->height);
  return TRUE;
}

/* A box that is no larger than its line is a dot: cairo would draw nothing of it. */
static void
stroke_box (const RnPicture *picture, const double placed[4], double line)
{
  double width = placed[2] - placed[0] - line, height = placed[3] - placed[1] - line;

  if (width <= 0 && height <= 0)
    {
      cairo_rectangle (picture->cr, placed[0], placed[1], line, line);
      cairo_fill (picture->cr);
      return;
    }
  cairo_set_line_width (picture->cr, line);
  cairo_rectangle (picture->cr, placed[0] + line / 2, placed[1] + line / 2, MAX (width, 0), MAX (height, 0));
  cairo_stroke (picture->cr);
}

void
rn_picture_box (RnPicture *picture, const float box[4], int color_index, RnBoxStyle style, const char *label)
{
  double placed[4], rgb[3];
  double line = style == RN_BOX_THIN ? MAX (1, picture->line / 3) : picture->line;
  const double dashes[] = { 4 * line, 3 * line };

  if (!place_box (picture, box, placed))
    return;
  rn_draw_color (color_index, rgb);
  cairo_set_dash (picture->cr, NULL, 0, 0);
  if (style == RN_BOX_DASHED) /* black gaps: visible on a solid box of the same colour, too */
    {
      cairo_set_source_rgb (picture->cr, 0, 0, 0);
      stroke_box (picture, placed, line);
      cairo_set_dash (picture->cr, dashes, G_N_ELEMENTS (dashes), 0);
    }
  cairo_set_source_rgb (picture->cr, rgb[0], rgb[1], rgb[2]);
  stroke_box (picture, placed, line);
  if (label == NULL)
    return;
  Label waiting = { placed[0], placed[1], { rgb[0], rgb[1], rgb[2] }, rn_text_clean (label) };
  g_array_append_val (picture->labels, waiting);
}

void
rn_picture_caption (RnPicture *picture, const char *text)
{
  g_free (picture->caption);
  picture->caption = rn_text_clean (text);
}

/* ---- Text ---- */

/* A filled strip with text in black or white, whichever is easier to read on it. */
static void
draw_strip (const RnPicture *picture, double x, double y, double width, const double rgb[3], const char *text)
{
  cairo_font_extents_t font;
  double brightness = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]; /* ITU-R BT.601 */
  double ink = brightness > 0.5 ? 0 : 1;

  cairo_font_extents (picture->cr, &font);
  cairo_set_source_rgb (picture->cr, rgb[0], rgb[1], rgb[2]);
  cairo_rectangle (picture->cr, x, y, width, font.ascent + font.descent);
  cairo_fill (picture->cr);
  cairo_set_source_rgb (picture->cr, ink, ink, ink);
  cairo_move_to (picture->cr, x + picture->line, y + font.ascent);
  cairo_show_text (picture->cr, text);
}

/* Above its box, or else just inside; moved until it is inside the image, below @top. */
static void
draw_label (const RnPicture *picture, const Label *label, double top)
{
  cairo_font_extents_t font;

  cairo_font_extents (picture->cr, &font);
  double height = font.ascent + font.descent, margin = 2 * picture->line;
  g_autofree char *text = rn_text_fit (picture->cr, label->text, picture->width - margin);
  double width = rn_text_width (picture->cr, text) + margin;
  if (text[0] == '\0')
    return;
  double x = CLAMP (label->x, 0, picture->width - width);
  double y = label->top - height >= top ? label->top - height : MAX (label->top, top);
  y = MAX (MIN (y, picture->height - height), 0);
  draw_strip (picture, x, y, width, label->rgb, text);
}

/* Moves the image down by @height pixels, into a surface with so much room above; (0, 0) moves with it. */
static void
add_room (RnPicture *picture, int height)
{
  cairo_surface_t *taller =
      cairo_image_surface_create (CAIRO_FORMAT_RGB24, (int) picture->width, (int) picture->height + height);
  cairo_t *cr = cairo_create (taller);

  cairo_translate (cr, 0, height);
  cairo_set_source_surface (cr, picture->surface, 0, 0);
  cairo_paint (cr);
  use_font (cr, picture->font);
  cairo_destroy (picture->cr);
  cairo_surface_destroy (picture->surface);
  picture->cr = cr;
  picture->surface = taller;
}

/* The caption's strip lies above the image, or on it where the picture would be taller than any can be. Gives
 * the height that is lost for labels. */
static double
draw_caption (RnPicture *picture)
{
  static const double black[3] = { 0, 0, 0 };
  cairo_font_extents_t font;

  cairo_font_extents (picture->cr, &font);
  int height = (int) ceil (font.ascent + font.descent);
  gboolean has_room = picture->height + height <= MAX_SIDE;
  if (has_room)
    add_room (picture, height);
  g_autofree char *text = rn_text_fit (picture->cr, picture->caption, picture->width - 2 * picture->line);
  draw_strip (picture, 0, has_room ? -height : 0, picture->width, black, text);
  return has_room ? 0 : height;
}

/* All that waits, once: it is part of the picture then. */
static void
draw_texts (RnPicture *picture)
{
  double top = picture->caption != NULL ? draw_caption (picture) : 0;

  for (guint i = 0; i < picture->labels->len; i++)
    draw_label (picture, &g_array_index (picture->labels, Label, i), top);
  g_clear_pointer (&picture->caption, g_free);
  g_array_set_size (picture->labels, 0);
}

gboolean
rn_picture_write_png (RnPicture *picture, const char *path, GError **error)
{
  draw_texts (picture);
  return rn_surface_write_png (picture->cr, path, error);
}
