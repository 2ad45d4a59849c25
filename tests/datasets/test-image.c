/* Decoders against what OpenCV makes of the same files, and resizing against cv2.resize. */
#include "config.h"

#include "datasets/image.h"
#include "datasets/resize.h"
#include "tests/datasets/resize-golden.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <string.h>
#include <sys/stat.h>

static const char *const fixtures[] = {
  "baseline.jpg",      "progressive.jpg",   "grey.jpg",          "cmyk.jpg",          "orientation-1.jpg",
  "orientation-2.jpg", "orientation-3.jpg", "orientation-4.jpg", "orientation-5.jpg", "orientation-6.jpg",
  "orientation-7.jpg", "orientation-8.jpg", "rgb.png",           "palette.png",       "grey-1.png",
  "alpha.png",         "rgb-16.png",        "interlaced.png",    "grey-2.png",        "grey-4.png",
  "grey-16.png",       "key.png",           "palette-2.png",     "palette-short.png", "gamma.png",
  "text-bomb.png",
};

/* Bit for bit: the accurate integer transform of libjpeg-turbo has one result on every machine. */
static void
test_decode (gconstpointer data)
{
  const char *name = data;
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests", "datasets", "fixtures", name, NULL);
  g_autofree char *golden_path = g_strdup (path);
  g_autofree char *golden = NULL;
  g_autofree guint8 *pixels = NULL;
  GError *error = NULL;
  gsize size;
  int width, height;

  strcpy (strrchr (golden_path, '.'), ".rgb");
  g_file_get_contents (golden_path, &golden, &size, &error);
  g_assert_no_error (error);
  rn_image_probe_path (path, &width, &height, &error);
  g_assert_no_error (error);
  g_assert_cmpint (
      width, ==,
      strstr (name, "-5.") || strstr (name, "-6.") || strstr (name, "-7.") || strstr (name, "-8.") ? 19 : 26);
  g_assert_cmpint (width * height * 3, ==, size);
  pixels = g_malloc (size);
  rn_image_decode_path (path, pixels, width, height, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (pixels, (int) size, golden, (int) size);
}

static void
test_other_size (void)
{
  g_autofree char *path =
      g_test_build_filename (G_TEST_DIST, "tests", "datasets", "fixtures", "rgb.png", NULL);
  guint8 pixels[3];
  GError *error = NULL;

  g_assert_false (rn_image_decode_path (path, pixels, 1, 1, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_assert_nonnull (strstr (error->message, "rgb.png"));
  g_error_free (error);
}

static void
test_missing_and_foreign (void)
{
  char *dir = test_dir_new ();
  g_autofree char *text = g_build_filename (dir, "text.jpg", NULL);
  g_autofree char *none = g_build_filename (dir, "none.jpg", NULL);
  GError *error = NULL;
  int width, height;

  test_write (dir, "text.jpg", "not an image", -1);
  g_assert_false (rn_image_probe_path (text, &width, &height, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_clear_error (&error);
  g_assert_false (rn_image_probe_path (none, &width, &height, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING);
  g_clear_error (&error);
  g_assert_cmpint (mkfifo (none, 0600), ==, 0); /* nobody writes to it */
  g_assert_false (rn_image_probe_path (none, &width, &height, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING);
  g_clear_error (&error);
  test_dir_remove (dir);
}

/* A file whose pixels end early is an error, at every length. */
static void
test_truncated (gconstpointer data)
{
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests", "datasets", "fixtures", data, NULL);
  g_autofree char *contents = NULL;
  guint8 pixels[26 * 19 * 3];
  gsize size;

  g_assert_true (g_file_get_contents (path, &contents, &size, NULL));
  for (gsize n = 1; n < size - 16; n++)
    {
      FILE *file = fmemopen (contents, n, "rb");

      g_assert_false (rn_image_decode (file, pixels, 26, 19, NULL));
      fclose (file);
    }
}

/* ---- Resizing: the worked numbers below are reproduced by OpenCV 4.14 and 5.0 ---- */

static void
resize_grey (const guint8 *src, int src_width, int src_height, guint8 *dst, int dst_width, int dst_height)
{
  g_autofree guint8 *from = g_malloc ((gsize) src_width * src_height * 3);
  g_autofree guint8 *to = g_malloc ((gsize) dst_width * dst_height * 3);

  for (int i = 0; i < src_width * src_height * 3; i++)
    from[i] = src[i / 3];
  rn_resize_bilinear (from, src_width, src_height, to, dst_width, dst_height);
  for (int i = 0; i < dst_width * dst_height; i++)
    {
      g_assert_cmpint (to[3 * i], ==, to[3 * i + 1]);
      g_assert_cmpint (to[3 * i], ==, to[3 * i + 2]);
      dst[i] = to[3 * i];
    }
}

static void
test_resize_vectors (void)
{
  static const guint8 a[] = { 0, 255, 255, 0 };
  static const guint8 a_golden[] = { 0, 64, 191, 255, 64, 96, 159, 191, 191, 159, 96, 64, 255, 191, 64, 0 };
  static const guint8 b[] = { 13, 250, 7, 90, 91, 200, 255, 0, 128 };
  static const guint8 b_golden[] = { 13,  161, 159, 7,  44, 133, 148, 84, 90, 91,
                                     132, 200, 189, 93, 81, 157, 255, 95, 48, 128 };
  guint8 out[20];

  resize_grey (a, 2, 2, out, 4, 4);
  g_assert_cmpmem (out, 16, a_golden, 16);
  resize_grey (b, 3, 3, out, 4, 5);
  g_assert_cmpmem (out, 20, b_golden, 20);
}

static void
test_resize_opencv (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (resize_golden); i++)
    {
      int sw = resize_golden[i].from_width, sh = resize_golden[i].from_height;
      int dw = resize_golden[i].to_width, dh = resize_golden[i].to_height;
      g_autofree guint8 *from = g_malloc ((gsize) sw * sh * 3);
      gsize size = (gsize) dw * dh * 3;
      g_autofree guint8 *to = g_malloc (size);

      for (guint32 k = 0; k < (guint32) (sw * sh * 3); k++) /* hash_image of make-fixtures.py */
        {
          guint32 h = (k + 1) * 2654435761u;

          h = (h ^ h >> 15) * 2246822519u;
          from[k] = (guint8) (h >> 24);
        }
      rn_resize_bilinear (from, sw, sh, to, dw, dh);
      g_assert_cmphex (test_hash (TEST_HASH_START, to, size), ==, resize_golden[i].hash);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (fixtures); i++)
    {
      g_autofree char *path = g_strconcat ("/datasets/image/decode/", fixtures[i], NULL);

      g_test_add_data_func (path, fixtures[i], test_decode);
    }
  g_test_add_func ("/datasets/image/other-size", test_other_size);
  g_test_add_func ("/datasets/image/missing-and-foreign", test_missing_and_foreign);
  g_test_add_data_func ("/datasets/image/truncated/jpeg", "baseline.jpg", test_truncated);
  g_test_add_data_func ("/datasets/image/truncated/progressive", "progressive.jpg", test_truncated);
  g_test_add_data_func ("/datasets/image/truncated/png", "rgb.png", test_truncated);
  g_test_add_func ("/datasets/resize/vectors", test_resize_vectors);
  g_test_add_func ("/datasets/resize/opencv", test_resize_opencv);
  return g_test_run ();
}
