#include "config.h"

#include "datasets/codec.h"
#include "runner/base/error.h"

#include <setjmp.h>
#include <png.h>

/* Outlives libpng's longjmp. */
typedef struct
{
  png_structp png;
  png_infop info;
  guint8 **rows; /* one pointer a row */
  char message[160];
} Png;

G_NORETURN static void
leave_with_message (png_structp structure, png_const_charp message)
{
  Png *png = png_get_error_ptr (structure);

  g_strlcpy (png->message, message, sizeof png->message);
  png_longjmp (structure, 1);
}

/* libpng warns of chunks that do not matter here (profiles, text). */
static void
ignore_warning (png_structp structure, png_const_charp message)
{
}

static void
png_close (Png *png)
{
  png_destroy_read_struct (&png->png, &png->info, NULL);
  g_free (png->rows);
}

static gboolean
png_fail (Png *png, GError **error)
{
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "PNG: %s", png->message);
  png_close (png);
  return FALSE;
}

/* Without memory png->png or png->info is NULL and the message says so. */
static gboolean
png_open (Png *png)
{
  g_strlcpy (png->message, "out of memory", sizeof png->message);
  png->png = png_create_read_struct (PNG_LIBPNG_VER_STRING, png, leave_with_message, ignore_warning);
  png->info = png->png != NULL ? png_create_info_struct (png->png) : NULL;
  return png->info != NULL;
}

static void
read_header (Png *png, FILE *file)
{
  png_init_io (png->png, file);
  /* A text or profile chunk may unpack to gigabytes; none is needed. */
  png_set_keep_unknown_chunks (png->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
  png_set_chunk_malloc_max (png->png, 8 << 20);
  png_set_chunk_cache_max (png->png, 16);
  png_read_info (png->png, png->info);
}

static gboolean
png_probe (FILE *file, int *width, int *height, int *orientation, GError **error)
{
  Png png = { .png = NULL };

  if (!png_open (&png))
    return png_fail (&png, error);
  if (setjmp (png_jmpbuf (png.png)) != 0)
    return png_fail (&png, error);
  read_header (&png, file);
  *width = (int) MIN (png_get_image_width (png.png, png.info), G_MAXINT);
  *height = (int) MIN (png_get_image_height (png.png, png.info), G_MAXINT);
  *orientation = 1; /* OpenCV up to 4.10 ignores the eXIf chunk, so do we */
  png_close (&png);
  return TRUE;
}

/* The same steps as OpenCV's reader for IMREAD_COLOR. */
static void
ask_for_rgb8 (Png *png)
{
  int color = png_get_color_type (png->png, png->info);

  if (png_get_bit_depth (png->png, png->info) == 16)
    png_set_strip_16 (png->png);
  if (color == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb (png->png);
  if ((color & PNG_COLOR_MASK_COLOR) == 0)
    {
      png_set_expand_gray_1_2_4_to_8 (png->png);
      png_set_gray_to_rgb (png->png);
    }
  png_set_strip_alpha (png->png);
  png_set_interlace_handling (png->png);
  png_read_update_info (png->png, png->info);
}

static gboolean
png_decode (FILE *file, guint8 *pixels, int width, int height, const RnPixelWalk *walk, GError **error)
{
  Png png = { .png = NULL };

  if (!png_open (&png))
    return png_fail (&png, error);
  if (setjmp (png_jmpbuf (png.png)) != 0)
    return png_fail (&png, error);
  read_header (&png, file);
  ask_for_rgb8 (&png);
  if (png_get_image_width (png.png, png.info) != (png_uint_32) width
      || png_get_image_height (png.png, png.info) != (png_uint_32) height
      || png_get_rowbytes (png.png, png.info) != (gsize) width * 3)
    png_error (png.png, "the header changed while it was read");

  /*
   * Orientation is always 1 here, so rows stand in their place from the start (and interlaced passes need
   * them all).
   */
  png.rows = g_new (guint8 *, height);
  for (int y = 0; y < height; y++)
    png.rows[y] = pixels + walk->start + y * walk->step_y;
  png_read_image (png.png, png.rows);
  png_read_end (png.png, NULL);
  png_close (&png);
  return TRUE;
}

static const guint8 png_end[] = { 0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82 };
static const guint8 png_magic[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };

const RnCodec rn_codec_png = {
  .magic = png_magic,
  .magic_size = sizeof png_magic,
  .end = png_end,
  .end_size = sizeof png_end,
  .probe = png_probe,
  .decode = png_decode,
};
