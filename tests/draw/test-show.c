/* Pictures of detections, read back: what is drawn, what is not, and under which name. */
#include "config.h"

#include "datasets/image.h"
#include "runner/base/error.h"
#include "runner/draw/picture.h"
#include "runner/draw/show.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define WIDTH 500
#define HEIGHT 400

static void
test_file_names (void)
{
  g_autoptr (GHashTable) taken = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *endless = g_strnfill (10000, 'x');
  const char *const ids[] = { "a", "a", "a/b", "a_b", "../../etc", "a-2" };
  const char *const names[] = { "a.png", "a-2.png", "a_b.png", "a_b-2.png", ".._.._etc.png", "a-2-2.png" };

  for (gsize i = 0; i < G_N_ELEMENTS (ids); i++)
    {
      g_autofree char *name = rn_show_file_name (taken, ids[i]);
      g_assert_cmpstr (name, ==, names[i]);
    }
  for (int i = 0; i < 3; i++) /* with .tmp behind it, at most 255 bytes */
    {
      g_autofree char *name = rn_show_file_name (taken, endless);
      g_assert_cmpuint (strlen (name), <, 240);
    }
}

typedef struct
{
  char *dir, *photo, *picture;
} Fixture;

static void
set_up (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GError) error = NULL;
  g_autofree guint8 *pixels = g_malloc (WIDTH * HEIGHT * 3);

  f->dir = g_dir_make_tmp ("runner-show-XXXXXX", &error);
  g_assert_no_error (error);
  f->photo = g_build_filename (f->dir, "photo.jpg", NULL);
  f->picture = g_build_filename (f->dir, "picture.png", NULL);
  memset (pixels, 100, WIDTH * HEIGHT * 3);
  rn_image_write_jpeg (f->photo, pixels, WIDTH, HEIGHT, 95, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f, gconstpointer user_data)
{
  g_remove (f->photo);
  g_remove (f->picture);
  g_assert_cmpint (g_rmdir (f->dir), ==, 0);
  g_free (f->dir);
  g_free (f->photo);
  g_free (f->picture);
}

/* How many of @n pixels in a row from (@x, @y) have the colour of class @index; 8 bits round by at most one.
 */
static int
count (const guint8 *pixels, int x, int y, int n, int index)
{
  int found = 0;
  double rgb[3];

  rn_draw_color (index, rgb);
  for (const guint8 *p = pixels + 3 * (y * WIDTH + x); n > 0; n--, p += 3)
    found +=
        fabs (p[0] - 255 * rgb[0]) <= 1 && fabs (p[1] - 255 * rgb[1]) <= 1 && fabs (p[2] - 255 * rgb[2]) <= 1;
  return found;
}

/*
 * The photograph's part of the picture [HEIGHT, WIDTH, 3], below the strip of the caption, if there is one.
 * (transfer full)
 */
static guint8 *
read_picture (const char *path, gboolean has_caption)
{
  g_autoptr (GError) error = NULL;
  int width = 0, height = 0;

  rn_image_probe_path (path, &width, &height, &error);
  g_assert_no_error (error);
  g_assert_cmpint (width, ==, WIDTH);
  g_assert_cmpint (height > HEIGHT, ==, has_caption);
  gsize n = (gsize) width * height * 3, n_strip = (gsize) width * (height - HEIGHT) * 3;
  g_autofree guint8 *pixels = g_malloc (n);
  rn_image_decode_path (path, pixels, width, height, &error);
  g_assert_no_error (error);
  return g_memdup2 (pixels + n_strip, n - n_strip);
}

/* Rows of boxes' upper edges: 100 and 200 are detections, 300 is an object. */
static void
test_what_is_drawn (Fixture *f, gconstpointer user_data)
{
  static const char *const names[] = { "cat", "dog", NULL };
  static const RnDetection found[] = {
    { { 100, 100, 400, 180 }, 0.9f, 0 },
    { { 100, 200, 400, 280 }, 0.5f, 1 }, /* exactly at the threshold: not drawn */
    { { 0, 0, 10, 10 }, 0.4f, 77 },      /* no such class: not drawn, and no harm */
  };
  static const float boxes[][4] = { { 100, 300, 400, 380 } };
  static const int16_t labels[] = { 1 };
  static const guint8 difficult[] = { 0 };
  const RnGroundTruth truth = { 1, boxes, labels, difficult };
  g_autoptr (GArray) detections = g_array_new (FALSE, FALSE, sizeof (RnDetection));
  g_autoptr (GError) error = NULL;
  RnShowImage image = { .path = f->photo,
                        .width = WIDTH,
                        .height = HEIGHT,
                        .detections = detections,
                        .score_thr = 0.5,
                        .truth = &truth,
                        .names = names };

  g_array_append_vals (detections, found, G_N_ELEMENTS (found));
  rn_show_write (&image, f->picture, &error);
  g_assert_no_error (error);
  g_autofree guint8 *pixels = read_picture (f->picture, TRUE);
  g_assert_cmpint (count (pixels, 102, 100, 296, 0), ==, 296);
  g_assert_cmpint (count (pixels, 102, 200, 296, 1), ==, 0);
  int dashes = count (pixels, 102, 300, 296, 1);
  g_assert_cmpint (dashes, >, 296 / 3);
  g_assert_cmpint (dashes, <, 296 * 4 / 7);

  image.truth = NULL;
  image.score_thr = 0.3;
  rn_show_write (&image, f->picture, &error);
  g_assert_no_error (error);
  g_autofree guint8 *alone = read_picture (f->picture, FALSE);
  g_assert_cmpint (count (alone, 102, 200, 296, 1), ==, 296);
  g_assert_cmpint (count (alone, 102, 300, 296, 1), ==, 0);
}

static void
test_errors (Fixture *f, gconstpointer user_data)
{
  static const char *const names[] = { NULL };
  g_autoptr (GArray) detections = g_array_new (FALSE, FALSE, sizeof (RnDetection));
  g_autoptr (GError) error = NULL;
  RnShowImage image = {
    .path = f->photo, .width = WIDTH + 1, .height = HEIGHT, .detections = detections, .names = names
  };

  g_assert_false (
      rn_show_write (&image, f->picture, &error)); /* it is not the photograph that was looked at */
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_clear_error (&error);
  image.width = WIDTH;
  g_assert_false (rn_show_write (&image, f->dir, &error));
  g_assert_true (error->domain == G_FILE_ERROR);
  g_assert_nonnull (strstr (error->message, f->dir));
  g_assert_false (g_file_test (f->picture, G_FILE_TEST_EXISTS));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/show/file-names", test_file_names);
  g_test_add ("/show/what-is-drawn", Fixture, NULL, set_up, test_what_is_drawn, tear_down);
  g_test_add ("/show/errors", Fixture, NULL, set_up, test_errors, tear_down);
  return g_test_run ();
}
