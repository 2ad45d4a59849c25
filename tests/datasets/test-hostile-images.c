/* Image files by hand: other formats, headers that promise too much, bombs, and harmless oddities. */
#include "config.h"

#include "datasets/image.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <string.h>
#include <sys/stat.h>

#define WIDTH 26 /* of the fixtures */
#define HEIGHT 19

/* The bytes of a fixture. (transfer full) */
static guint8 *
fixture (const char *name, gsize *size)
{
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests", "datasets", "fixtures", name, NULL);
  char *bytes;
  GError *error = NULL;

  g_file_get_contents (path, &bytes, size, &error);
  g_assert_no_error (error);
  return (guint8 *) bytes;
}

/* What is wrong with @bytes, NULL if they can be read as an image of @width x @height. (transfer full) */
static char *
complaint (const guint8 *bytes, gsize size, guint8 *pixels, int width, int height)
{
  FILE *file = fmemopen ((gpointer) bytes, size, "rb");
  GError *error = NULL;
  gboolean ok = rn_image_decode (file, pixels, width, height, &error);
  char *text = NULL;

  fclose (file);
  g_assert_true (ok == (error == NULL));
  if (!ok)
    {
      g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
      text = g_strdup (error->message);
      g_error_free (error);
    }
  return text;
}

static void
expect_refusal (const guint8 *bytes, gsize size, const char *message)
{
  guint8 pixels[WIDTH * HEIGHT * 3];
  g_autofree char *text = complaint (bytes, size, pixels, WIDTH, HEIGHT);

  if (text == NULL || strstr (text, message) == NULL)
    g_error ("\"%s\" does not contain \"%s\"", text, message);
}

/* ---- Other formats ---- */

static void
test_formats (void)
{
  static const struct
  {
    const char *bytes;
    gsize size;
    const char *message;
  } cases[] = {
    { "GIF89a\1\0\1\0", 10, "this is a GIF image; convert it to JPEG or PNG" },
    { "RIFF\x24\0\0\0WEBPVP8 ", 16, "a WebP image; convert" },
    { "BM\x9A\0\0\0", 6, "a BMP image; convert" },
    { "II*\0\x08\0\0\0", 8, "a TIFF image" },
    { "MM\0*\0\0\0\x08", 8, "a TIFF image" },
    { "\0\0\0\x18"
      "ftypheic\0\0\0\0",
      16, "a HEIC image; convert" },
    { "\0\0\0\x20"
      "ftypavif\0\0\0\0",
      16, "an AVIF image; convert" },
    { "\0\0\0\x18"
      "ftypmp42\0\0\0\0",
      16, "this is a film" },
    { "\0\0\0\x0CjP  \r\n\x87\n", 12, "a JPEG 2000 image" },
    { "\xFF\x0A\x00", 3, "a JPEG XL image" },
    { "8BPS\0\1", 6, "a Photoshop image" },
    { "%PDF-1.7\n", 9, "a PDF document" },
    { "version https://git-lfs.github.com/spec/v1\n", 43, "a Git LFS pointer" },
    { "\n <!DOCTYPE html>", 17, "a web page" },
    { "neither", 7, "neither JPEG nor PNG" },
    { "\xFF\xD8", 2, "neither JPEG nor PNG" },
    { "\x89PNG\n", 5, "neither JPEG nor PNG" }, /* line ends converted on the way */
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    expect_refusal ((const guint8 *) cases[i].bytes, cases[i].size, cases[i].message);
}

/* Folders, empty files, and a PNG that is called JPEG. */
static void
test_files (void)
{
  char *dir = test_dir_new ();
  g_autofree char *path = g_build_filename (dir, "x.jpg", NULL);
  g_autofree guint8 *png = NULL;
  GError *error = NULL;
  int width, height;
  gsize size;

  g_assert_false (rn_image_probe_path (dir, &width, &height, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING);
  g_assert_true (g_str_has_suffix (error->message, ": not a regular file"));
  g_clear_error (&error);

  test_write (dir, "x.jpg", "", 0);
  g_assert_false (rn_image_probe_path (path, &width, &height, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_assert_true (g_str_has_suffix (error->message, "x.jpg: empty file"));
  g_clear_error (&error);

  png = fixture ("rgb.png", &size);
  test_write (dir, "x.jpg", png, (gssize) size);
  g_assert_true (rn_image_probe_path (path, &width, &height, &error));
  g_assert_no_error (error);
  g_assert_cmpint (width, ==, WIDTH);
  test_dir_remove (dir);
}

/* ---- Sizes ---- */

/* PNG specification, annex D. */
static guint32
crc_of (const guint8 *bytes, gsize size)
{
  guint32 crc = 0xFFFFFFFF;

  for (gsize i = 0; i < size; i++)
    {
      crc ^= bytes[i];
      for (int k = 0; k < 8; k++)
        crc = (crc & 1) != 0 ? 0xEDB88320 ^ crc >> 1 : crc >> 1;
    }
  return ~crc;
}

static void
put32 (guint8 *to, guint32 value)
{
  for (int i = 0; i < 4; i++)
    to[i] = (guint8) (value >> (24 - 8 * i));
}

/* Where the frame header of a JPEG begins: the C0 to C2 of its marker. */
static guint8 *
frame_header (guint8 *jpeg, gsize size)
{
  for (gsize i = 0; i + 9 < size; i++)
    if (jpeg[i] == 0xFF && jpeg[i + 1] >= 0xC0 && jpeg[i + 1] <= 0xC2)
      return jpeg + i + 1;
  g_assert_not_reached ();
}

/* Whoever trusts a header allocates gigabytes for a file of a kilobyte. */
static void
test_sizes (void)
{
  static const struct
  {
    guint32 width, height;
  } cases[] = { { 65500, 65500 }, { 20000, 20000 }, { 40000, 1 }, { 1, 40000 }, { 32767, 3053 } };
  gsize png_size, jpeg_size;
  g_autofree guint8 *png = fixture ("grey-4.png", &png_size);
  g_autofree guint8 *jpeg = fixture ("grey.jpg", &jpeg_size);
  guint8 *frame = frame_header (jpeg, jpeg_size);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *message = g_strdup_printf ("%u x %u pixels; an image has 1 to 32767 on a side and at "
                                                  "most 100 million in all",
                                                  cases[i].width, cases[i].height);

      put32 (png + 16, cases[i].width);
      put32 (png + 20, cases[i].height);
      put32 (png + 29, crc_of (png + 12, 17));
      expect_refusal (png, png_size, message);

      frame[4] = (guint8) (cases[i].height >> 8), frame[5] = (guint8) cases[i].height;
      frame[6] = (guint8) (cases[i].width >> 8), frame[7] = (guint8) cases[i].width;
      expect_refusal (jpeg, jpeg_size, message);
    }
  put32 (png + 16, 0);
  put32 (png + 29, crc_of (png + 12, 17));
  expect_refusal (png, png_size, "PNG: ");
  put32 (png + 16, 0x7FFFFFFF);
  put32 (png + 29, crc_of (png + 12, 17));
  expect_refusal (png, png_size, "PNG: ");
}

/* ---- Kinds of JPEG that are not read ---- */

static void
test_jpeg_kinds (void)
{
  gsize size;
  g_autofree guint8 *jpeg = fixture ("baseline.jpg", &size);
  guint8 *frame = frame_header (jpeg, size);

  frame[3] = 12;
  expect_refusal (jpeg, size, "only 8 bits a sample");
  frame[3] = 8;
  frame[0] = 0xC3;
  expect_refusal (jpeg, size, "lossless and hierarchical JPEG is not read");
  frame[0] = 0xC5;
  expect_refusal (jpeg, size, "lossless and hierarchical JPEG is not read");
}

/* Where the next marker @code begins, from @at on. */
static gsize
marker_at (const guint8 *jpeg, gsize size, gsize at, guint8 code)
{
  for (; at + 1 < size; at++)
    if (jpeg[at] == 0xFF && jpeg[at + 1] == code)
      return at;
  g_assert_not_reached ();
}

/*
 * A scan of a progressive file over and over: each costs a pass over the image. The first, of the mean
 * colours, may be repeated once it says that it is exact.
 */
static void
test_scans (void)
{
  gsize size, scan, end;
  g_autofree guint8 *jpeg = fixture ("progressive.jpg", &size);
  g_autoptr (GByteArray) file = g_byte_array_new ();

  scan = marker_at (jpeg, size, 0, 0xDA);
  end = marker_at (jpeg, size, scan, 0xC4);
  g_assert_cmpuint (jpeg[size - 1], ==, 0xD9);
  g_byte_array_append (file, jpeg, (guint) size - 2);
  for (int i = 0; i < 600; i++)
    {
      guint start = file->len;

      g_byte_array_append (file, jpeg + scan, (guint) (end - scan));
      file->data[start + 2 + 11] =
          0; /* three components: Ah and Al are the twelfth byte of the scan header */
      if (i == 99 || i == 599)
        {
          guint8 pixels[WIDTH * HEIGHT * 3];
          g_autofree char *text = NULL;

          g_byte_array_append (file, jpeg + size - 2, 2);
          text = complaint (file->data, file->len, pixels, WIDTH, HEIGHT);
          g_assert_cmpstr (text, ==, i == 99 ? NULL : "JPEG: too many scans");
          g_byte_array_set_size (file, file->len - 2);
        }
    }
}

/* ---- Harmless ---- */

/* Cameras and web sites leave all sorts of things behind the image. */
static void
test_trailing (gconstpointer data)
{
  gsize size;
  g_autofree guint8 *bytes = fixture (data, &size);
  g_autofree guint8 *longer = g_malloc (size + 70000);
  guint8 pixels[2][WIDTH * HEIGHT * 3];

  memcpy (longer, bytes, size);
  for (gsize i = 0; i < 70000; i++)
    longer[size + i] = (guint8) (i * 37 >> 3);
  g_assert_null (complaint (bytes, size, pixels[0], WIDTH, HEIGHT));
  g_assert_null (complaint (longer, size + 70000, pixels[1], WIDTH, HEIGHT));
  g_assert_cmpmem (pixels[0], sizeof pixels[0], pixels[1], sizeof pixels[1]);
}

/* Puts a chunk or a marker behind the first @at bytes; its file reads as before. */
static void
check_inserted (const char *name, gsize at, const GByteArray *extra)
{
  gsize size;
  g_autofree guint8 *bytes = fixture (name, &size);
  g_autoptr (GByteArray) file = g_byte_array_new ();
  guint8 pixels[2][WIDTH * HEIGHT * 3];
  g_autofree char *text = NULL;

  g_assert_null (complaint (bytes, size, pixels[0], WIDTH, HEIGHT));
  g_byte_array_append (file, bytes, (guint) at);
  g_byte_array_append (file, extra->data, extra->len);
  g_byte_array_append (file, bytes + at, (guint) (size - at));
  text = complaint (file->data, file->len, pixels[1], WIDTH, HEIGHT);
  g_assert_cmpstr (text, ==, NULL);
  g_assert_cmpmem (pixels[0], sizeof pixels[0], pixels[1], sizeof pixels[1]);
}

/* A text of 4 MB, a chunk with a wrong sum that is of no use to us, and EXIF data that ends in its header. */
static void
test_metadata (void)
{
  static const guint8 exif[] = "\xFF\xE1\x00\x12"
                               "Exif\0\0II*\0\xFF\xFF\xFF\xFF\0\0";
  g_autoptr (GByteArray) extra = g_byte_array_new ();
  const guint n = 4 << 20;

  g_byte_array_set_size (extra, n + 12);
  memset (extra->data, 'x', extra->len);
  put32 (extra->data, n);
  memcpy (extra->data + 4, "tEXtk\0", 6);
  put32 (extra->data + 8 + n, crc_of (extra->data + 4, n + 4));
  check_inserted ("rgb.png", 33, extra);

  g_byte_array_set_size (extra, 8 + 12);
  put32 (extra->data, 8);
  memcpy (extra->data + 4, "tIMEk\0xxxxxx????", 16);
  check_inserted ("rgb.png", 33, extra);

  g_byte_array_set_size (extra, 0);
  g_byte_array_append (extra, exif, 20);
  check_inserted ("baseline.jpg", 2, extra);
}

/* What is cut off comes to light at the first look, not in the middle of a training; what is too long is no
 * fault. */
static void
test_first_look (gconstpointer data)
{
  char *dir = test_dir_new ();
  g_autofree char *path = g_build_filename (dir, data, NULL);
  gsize size;
  g_autofree guint8 *bytes = fixture (data, &size);
  g_autofree guint8 *longer = g_malloc0 (size + 4096);
  GError *error = NULL;
  int width, height;

  memcpy (longer, bytes, size);
  test_write (dir, data, longer, (gssize) size + 4096);
  g_assert_true (rn_image_check_path (path, &width, &height, &error));
  g_assert_no_error (error);
  test_write (dir, data, bytes, (gssize) size);
  g_assert_true (rn_image_check_path (path, &width, &height, &error));
  g_assert_no_error (error);
  test_write (dir, data, bytes, (gssize) size - 40);
  g_assert_true (rn_image_probe_path (path, &width, &height, &error));
  g_assert_false (rn_image_check_path (path, &width, &height, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_assert_true (g_str_has_prefix (error->message, path));
  g_error_free (error);
  test_dir_remove (dir);
}

/* An APP1 marker with the orientation as a number of @type, in the byte order of Intel. */
static void
add_exif (GByteArray *file, guint8 type, guint8 orientation)
{
  guint8 exif[] = "\xFF\xE1\x00\x22"
                  "Exif\0\0II*\0\x08\0\0\0\x01\0"
                  "\x12\x01t\0\x01\0\0\0o\0\0\0\0\0\0\0";

  exif[4 + 6 + 10 + 2] = type;
  exif[4 + 6 + 10 + 8] = orientation;
  g_byte_array_append (file, exif, sizeof exif - 1);
}

/* OpenCV takes the first EXIF data of a file, and its orientation whatever its type. */
static void
test_exif (void)
{
  static const struct
  {
    guint8 type[2], orientation[2];
    int width;
  } cases[] = {
    { { 3 }, { 6 }, HEIGHT }, { { 4 }, { 6 }, HEIGHT },      { { 3 }, { 0 }, WIDTH },
    { { 3 }, { 9 }, WIDTH },  { { 3, 3 }, { 1, 6 }, WIDTH }, { { 3, 3 }, { 6, 1 }, HEIGHT },
  };
  gsize size;
  g_autofree guint8 *jpeg = fixture ("baseline.jpg", &size);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GByteArray) file = g_byte_array_new ();
      GError *error = NULL;
      int width = 0, height = 0;
      FILE *stream;

      g_byte_array_append (file, jpeg, 2);
      for (int k = 0; k < 2 && cases[i].type[k] != 0; k++)
        add_exif (file, cases[i].type[k], cases[i].orientation[k]);
      g_byte_array_append (file, jpeg + 2, (guint) size - 2);
      stream = fmemopen (file->data, file->len, "rb");
      rn_image_probe (stream, &width, &height, &error);
      fclose (stream);
      g_assert_no_error (error);
      g_assert_cmpint (width, ==, cases[i].width);
      g_assert_cmpint (width + height, ==, WIDTH + HEIGHT);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/hostile-images/formats", test_formats);
  g_test_add_func ("/datasets/hostile-images/files", test_files);
  g_test_add_func ("/datasets/hostile-images/sizes", test_sizes);
  g_test_add_func ("/datasets/hostile-images/jpeg-kinds", test_jpeg_kinds);
  g_test_add_func ("/datasets/hostile-images/scans", test_scans);
  g_test_add_data_func ("/datasets/hostile-images/trailing/jpeg", "baseline.jpg", test_trailing);
  g_test_add_data_func ("/datasets/hostile-images/trailing/progressive", "progressive.jpg", test_trailing);
  g_test_add_data_func ("/datasets/hostile-images/trailing/png", "rgb.png", test_trailing);
  g_test_add_func ("/datasets/hostile-images/metadata", test_metadata);
  g_test_add_data_func ("/datasets/hostile-images/first-look/jpeg", "baseline.jpg", test_first_look);
  g_test_add_data_func ("/datasets/hostile-images/first-look/progressive", "progressive.jpg",
                        test_first_look);
  g_test_add_data_func ("/datasets/hostile-images/first-look/png", "rgb.png", test_first_look);
  g_test_add_func ("/datasets/hostile-images/exif", test_exif);
  return g_test_run ();
}
