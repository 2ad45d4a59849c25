/* What is drawn is read back from the file: colours where boxes are, nothing where none is, nothing outside.
 */
#include "config.h"

#include "datasets/image.h"
#include "runner/draw/picture.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

typedef struct
{
  int width, height;
  guint8 *pixels;
} Image;

static void
image_clear (Image *image)
{
  g_free (image->pixels);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Image, image_clear)

#define GREY 100

static RnPicture *
grey_picture (int width, int height)
{
  g_autofree guint8 *pixels = g_malloc ((gsize) width * height * 3);
  memset (pixels, GREY, (gsize) width * height * 3);
  return rn_picture_new (pixels, width, height);
}

/* Writes @picture and reads it. */
static Image
finish (RnPicture *picture)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("runner-picture-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *path = g_build_filename (dir, "picture.png", NULL);
  Image image = { 0 };

  rn_picture_write_png (picture, path, &error);
  g_assert_no_error (error);
  rn_image_probe_path (path, &image.width, &image.height, &error);
  g_assert_no_error (error);
  image.pixels = g_malloc ((gsize) image.width * image.height * 3);
  rn_image_decode_path (path, image.pixels, image.width, image.height, &error);
  g_assert_no_error (error);
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0); /* no temporary file is left */
  return image;
}

/* The colour at (x, y) is that of class @index: 8 bits round by at most one. */
static gboolean
has_color (const Image *image, int x, int y, int index)
{
  const guint8 *pixel = image->pixels + 3 * ((gsize) y * image->width + x);
  double rgb[3];

  rn_draw_color (index, rgb);
  for (int c = 0; c < 3; c++)
    if (fabs (pixel[c] - 255 * rgb[c]) > 1)
      return FALSE;
  return TRUE;
}

static gboolean
is_grey (const Image *image, int x, int y)
{
  const guint8 *pixel = image->pixels + 3 * ((gsize) y * image->width + x);
  return pixel[0] == GREY && pixel[1] == GREY && pixel[2] == GREY;
}

static int
count_drawn (const Image *image)
{
  int n = 0;
  for (int y = 0; y < image->height; y++)
    for (int x = 0; x < image->width; x++)
      n += !is_grey (image, x, y);
  return n;
}

static void
test_colors (void)
{
  for (int i = 0; i < 20; i++) /* VOC's classes all differ */
    for (int k = 0; k < i; k++)
      {
        double a[3], b[3];
        rn_draw_color (i, a);
        rn_draw_color (k, b);
        g_assert_cmpfloat (fabs (a[0] - b[0]) + fabs (a[1] - b[1]) + fabs (a[2] - b[2]), >, 0.1);
      }
  for (int i = -50; i < 50; i++)
    {
      double rgb[3];
      rn_draw_color (i < -49 ? G_MININT : i, rgb);
      for (int c = 0; c < 3; c++)
        g_assert_true (rgb[c] >= 0 && rgb[c] <= 1);
    }
}

static void
test_pixels_are_kept (void)
{
  guint8 pixels[600 * 2 * 3];
  for (gsize i = 0; i < sizeof pixels; i++)
    pixels[i] = (guint8) (i * 7);
  g_autoptr (RnPicture) picture = rn_picture_new (pixels, 600, 2);
  g_auto (Image) image = finish (picture);
  g_assert_cmpint (image.width, ==, 600);
  g_assert_cmpmem (image.pixels, sizeof pixels, pixels, sizeof pixels);
}

static void
test_edges (void)
{
  static const float box[4] = { 100, 50, 300, 200 };
  g_autoptr (RnPicture) picture = grey_picture (500, 400);
  rn_picture_box (picture, box, 3, RN_BOX_SOLID, NULL);
  g_auto (Image) image = finish (picture);

  g_assert_true (has_color (&image, 100, 120, 3) && has_color (&image, 299, 120, 3));
  g_assert_true (has_color (&image, 200, 50, 3) && has_color (&image, 200, 199, 3));
  g_assert_true (is_grey (&image, 200, 120) && is_grey (&image, 98, 120) && is_grey (&image, 302, 120));
  g_assert_true (is_grey (&image, 200, 48) && is_grey (&image, 200, 202));
}

static int
count_colored (const Image *image, int index)
{
  int n = 0;
  for (int y = 0; y < image->height; y++)
    for (int x = 0; x < image->width; x++)
      n += has_color (image, x, y, index);
  return n;
}

/* Dashes: four parts of colour to three of black, but for blurred ends. Thin lines are thinner. */
static void
test_styles (void)
{
  static const float box[4] = { 20, 20, 480, 380 };
  int drawn[3], colored[3];

  for (int style = 0; style < 3; style++)
    {
      g_autoptr (RnPicture) picture = grey_picture (500, 400);
      rn_picture_box (picture, box, 1, (RnBoxStyle) style, NULL);
      g_auto (Image) image = finish (picture);
      drawn[style] = count_drawn (&image);
      colored[style] = count_colored (&image, 1);
    }
  g_assert_cmpint (drawn[RN_BOX_DASHED], ==, drawn[RN_BOX_SOLID]);
  g_assert_cmpint (colored[RN_BOX_DASHED], >, colored[RN_BOX_SOLID] / 3);
  g_assert_cmpint (colored[RN_BOX_DASHED], <, colored[RN_BOX_SOLID] * 4 / 7);
  g_assert_cmpint (drawn[RN_BOX_THIN], <, drawn[RN_BOX_SOLID]);
  g_assert_cmpint (drawn[RN_BOX_THIN], >, 0);
}

/* A box at each corner, and a label at each: all of its background must be there. */
static void
test_labels_stay_inside (void)
{
  static const float boxes[][4] = {
    { 0, 0, 40, 40 },       { 460, 0, 500, 40 },    { 0, 360, 40, 400 },
    { 460, 360, 500, 400 }, { 495, 398, 500, 400 }, { 0, 0, 500, 400 },
  };
  int expected = 0;

  for (gsize i = 0; i < G_N_ELEMENTS (boxes); i++)
    {
      /* A box in the middle has room for its label: what a label takes. */
      static const float middle[4] = { 200, 200, 240, 240 };
      g_autoptr (RnPicture) free_one = grey_picture (500, 400), picture = grey_picture (500, 400);
      g_autoptr (RnPicture) plain = grey_picture (500, 400);
      rn_picture_box (free_one, middle, 1, RN_BOX_SOLID, "platelets 0.95");
      rn_picture_box (plain, middle, 1, RN_BOX_SOLID, NULL);
      g_auto (Image) free_image = finish (free_one);
      g_auto (Image) plain_image = finish (plain);
      expected = count_drawn (&free_image) - count_drawn (&plain_image);
      g_assert_cmpint (expected, >, 400);

      rn_picture_box (picture, boxes[i], 1, RN_BOX_THIN, "platelets 0.95");
      g_auto (Image) image = finish (picture);
      g_assert_cmpint (count_drawn (&image), >=, expected);
    }
}

/* Text that no picture can hold is cut; text that is no text does no harm. */
static void
test_hostile_text (void)
{
  static const float box[4] = { 10, 10, 90, 90 };
  g_autofree char *endless = g_strnfill (100000, 'W');
  const char *const texts[] = { endless,   "", "\xff\xfe\x80", "a\nb\tc\x01", "\xe4\xba\xba\xf0\x9f\x98\x80",
                                "\xe2\x80" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr (RnPicture) picture = grey_picture (100, 100);
      rn_picture_box (picture, box, 0, RN_BOX_SOLID, texts[i]);
      rn_picture_caption (picture, texts[i]);
      g_auto (Image) image = finish (picture);
      g_assert_cmpint (image.width, ==, 400); /* four times as large, so that text can be read */
      g_assert_true (has_color (&image, 40, 200, 0));
    }
}

/* The last caption lies in a strip above the image, which moves down by it with its boxes and labels. */
static void
test_caption (void)
{
  static const float box[4] = { 0, 0, 60, 60 };
  g_autoptr (RnPicture) plain_picture = grey_picture (500, 400), picture = grey_picture (500, 400);
  g_autoptr (RnPicture) other_picture = grey_picture (500, 400);
  rn_picture_box (plain_picture, box, 2, RN_BOX_SOLID, "x");
  rn_picture_caption (picture, "first");
  rn_picture_box (picture, box, 2, RN_BOX_SOLID, "x");
  rn_picture_caption (picture, "second");
  rn_picture_caption (other_picture, "first");
  rn_picture_box (other_picture, box, 2, RN_BOX_SOLID, "x");
  g_auto (Image) plain = finish (plain_picture);
  g_auto (Image) image = finish (picture);
  g_auto (Image) again = finish (picture);
  g_auto (Image) other = finish (other_picture);
  int strip = image.height - plain.height;
  gsize row = (gsize) plain.width * 3;

  g_assert_cmpint (image.width, ==, plain.width);
  g_assert_cmpint (strip, >=, 12); /* as high as the font at least */
  g_assert_cmpint (memcmp (image.pixels + (gsize) strip * row, plain.pixels, (gsize) plain.height * row), ==,
                   0);
  int n_white = 0;
  for (int y = 0; y < strip; y++)
    {
      g_assert_cmpint (image.pixels[(gsize) y * row + row - 1], ==, 0); /* it spans the picture */
      for (gsize x = 0; x < row; x++)
        n_white += image.pixels[(gsize) y * row + x] > 128;
    }
  g_assert_cmpint (n_white, >, 0);
  g_assert_cmpint (other.height, ==, image.height);
  g_assert_cmpint (memcmp (other.pixels, image.pixels, (gsize) strip * row), !=, 0);
  g_assert_cmpint (again.height, ==, image.height);
  g_assert_cmpint (memcmp (again.pixels, image.pixels, (gsize) image.height * row), ==, 0);
}

/* Where a strip would make the picture taller than cairo allows, it lies on the image, and labels below it.
 */
static void
test_caption_without_room (void)
{
  static const float box[4] = { 0, 0, 2, 3000 };
  g_autoptr (RnPicture) picture = grey_picture (4, 32767);
  rn_picture_box (picture, box, 2, RN_BOX_SOLID, NULL);
  rn_picture_caption (picture, "");
  g_auto (Image) image = finish (picture);

  g_assert_cmpint (image.height, ==, 32767);
  g_assert_cmpint (image.pixels[0], ==, 0);
  g_assert_true (has_color (&image, 0, 2000, 2));
  g_assert_true (is_grey (&image, 0, 32766));
}

static void
test_hostile_boxes (void)
{
  static const float nothing[][4] = {
    { NAN, 0, 10, 10 },
    { 0, NAN, 10, 10 },
    { 0, 0, NAN, 10 },
    { 0, 0, 10, NAN },
    { -50, -50, -10, -10 },
    { 600, 10, 700, 20 },
    { 10, 600, 20, 700 },
    { INFINITY, INFINITY, INFINITY, INFINITY },
    { -INFINITY, -INFINITY, -INFINITY, -INFINITY },
  };
  static const float whole[][4] = {
    { -INFINITY, -INFINITY, INFINITY, INFINITY },
    { -1e30f, -1e30f, 1e30f, 1e30f },
    { -3, -3, 503, 403 },
    { 503, 403, -3, -3 }, /* corners in the other order */
  };

  g_autoptr (RnPicture) picture = grey_picture (500, 400);
  for (gsize i = 0; i < G_N_ELEMENTS (nothing); i++)
    rn_picture_box (picture, nothing[i], 0, RN_BOX_SOLID, "nothing");
  g_auto (Image) image = finish (picture);
  g_assert_cmpint (count_drawn (&image), ==, 0);

  for (gsize i = 0; i < G_N_ELEMENTS (whole); i++)
    {
      g_autoptr (RnPicture) framed = grey_picture (500, 400);
      rn_picture_box (framed, whole[i], 5, RN_BOX_SOLID, NULL);
      g_auto (Image) frame = finish (framed);
      g_assert_true (has_color (&frame, 0, 200, 5) && has_color (&frame, 499, 200, 5));
      g_assert_true (has_color (&frame, 250, 0, 5) && has_color (&frame, 250, 399, 5));
      g_assert_true (is_grey (&frame, 250, 200));
    }
}

static void
test_sizes (void)
{
  static const int sizes[][3] = {
    { 1, 1, 8 }, { 1, 700, 1 }, { 128, 96, 4 }, { 399, 10, 2 }, { 400, 10, 1 }
  };
  static const float box[4] = { 0, 0, 1, 1 };

  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (RnPicture) picture = grey_picture (sizes[i][0], sizes[i][1]);
      rn_picture_box (picture, box, 0, RN_BOX_SOLID, "class 0.5");
      rn_picture_box (picture, box, 0, RN_BOX_DASHED, NULL);
      g_auto (Image) image = finish (picture);
      g_assert_cmpint (image.width, ==, sizes[i][0] * sizes[i][2]);
      g_assert_cmpint (image.height, ==, sizes[i][1] * sizes[i][2]);
      g_assert_cmpint (count_drawn (&image), >, 0);
      rn_picture_caption (picture, "caption");
      g_auto (Image) captioned = finish (picture);
      g_assert_cmpint (captioned.width, ==, image.width);
      g_assert_cmpint (captioned.height, >, image.height);
    }
}

static void
test_write_errors (void)
{
  g_autoptr (RnPicture) picture = grey_picture (10, 10);
  g_autoptr (GError) error = NULL;

  g_assert_false (rn_picture_write_png (picture, "/nonexistent-folder/a.png", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_assert_nonnull (strstr (error->message, "/nonexistent-folder/a.png"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/picture/colors", test_colors);
  g_test_add_func ("/picture/pixels", test_pixels_are_kept);
  g_test_add_func ("/picture/edges", test_edges);
  g_test_add_func ("/picture/styles", test_styles);
  g_test_add_func ("/picture/labels", test_labels_stay_inside);
  g_test_add_func ("/picture/hostile-text", test_hostile_text);
  g_test_add_func ("/picture/caption", test_caption);
  g_test_add_func ("/picture/caption-without-room", test_caption_without_room);
  g_test_add_func ("/picture/hostile-boxes", test_hostile_boxes);
  g_test_add_func ("/picture/sizes", test_sizes);
  g_test_add_func ("/picture/write-errors", test_write_errors);
  return g_test_run ();
}
