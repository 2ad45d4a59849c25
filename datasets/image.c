#include "config.h"

#include "datasets/image.h"

#include "datasets/codec.h"
#include "runner/base/error.h"
#include "runner/base/file-kind.h"
#include "runner/base/open-file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Orientations 5 to 8 stand the stored image on its side. */
static gboolean
is_transposed (int orientation)
{
  return orientation >= 5;
}

/* EXIF 2.3, tag 0x0112. @width and @height are those of the stored image. */
static RnPixelWalk
walk_for_orientation (int orientation, int width, int height)
{
  gssize w = width, h = height;

  switch (orientation)
    {
    case 2: /* mirrored */
      return (RnPixelWalk){ 3 * (w - 1), -3, 3 * w };
    case 3: /* upside down */
      return (RnPixelWalk){ 3 * (w * h - 1), -3, -3 * w };
    case 4: /* flipped top to bottom */
      return (RnPixelWalk){ 3 * w * (h - 1), 3, -3 * w };
    case 5: /* transposed */
      return (RnPixelWalk){ 0, 3 * h, 3 };
    case 6: /* turned a quarter clockwise for display */
      return (RnPixelWalk){ 3 * (h - 1), 3 * h, -3 };
    case 7: /* transposed along the other diagonal */
      return (RnPixelWalk){ 3 * (w * h - 1), -3 * h, -3 };
    case 8: /* turned a quarter counter-clockwise */
      return (RnPixelWalk){ 3 * h * (w - 1), -3 * h, 3 };
    default:
      return (RnPixelWalk){ 0, 3, 3 * w };
    }
}

static void
refuse_format (const guint8 *head, gsize n, GError **error)
{
  const char *what;

  switch (rn_file_kind (head, n, &what))
    {
    case RN_FILE_EMPTY:
      g_set_error_literal (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "empty file");
      break;
    case RN_FILE_IMAGE:
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "this is %s; convert it to JPEG or PNG", what);
      break;
    case RN_FILE_OTHER:
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "this is %s", what);
      break;
    case RN_FILE_TEXT:
    case RN_FILE_UNKNOWN:
    default:
      g_set_error_literal (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "neither JPEG nor PNG");
    }
}

static const RnCodec *
codec_for_file (FILE *file, GError **error)
{
  static const RnCodec *const codecs[] = { &rn_codec_jpeg, &rn_codec_png };
  guint8 head[RN_FILE_KIND_BYTES];
  gsize n = fread (head, 1, sizeof head, file);

  for (gsize i = 0; i < G_N_ELEMENTS (codecs); i++)
    if (n >= codecs[i]->magic_size && memcmp (head, codecs[i]->magic, codecs[i]->magic_size) == 0
        && fseek (file, 0, SEEK_SET) == 0)
      return codecs[i];
  refuse_format (head, n, error);
  return NULL;
}

/* Size as stored; it is within the limits. */
static const RnCodec *
open_codec (FILE *file, int *width, int *height, int *orientation, GError **error)
{
  const RnCodec *codec = codec_for_file (file, error);

  if (codec == NULL || !codec->probe (file, width, height, orientation, error))
    return NULL;
  if (*width < 1 || *height < 1 || *width > RN_IMAGE_MAX_SIDE || *height > RN_IMAGE_MAX_SIDE
      || (gint64) *width * *height > RN_IMAGE_MAX_PIXELS)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                   "%d x %d pixels; an image has 1 to %d on a side and at most %d million in all", *width,
                   *height, RN_IMAGE_MAX_SIDE, RN_IMAGE_MAX_PIXELS / 1000000);
      return NULL;
    }
  return codec;
}

gboolean
rn_image_probe (FILE *file, int *width, int *height, GError **error)
{
  int orientation, stored_width, stored_height;

  if (open_codec (file, &stored_width, &stored_height, &orientation, error) == NULL)
    return FALSE;
  *width = is_transposed (orientation) ? stored_height : stored_width;
  *height = is_transposed (orientation) ? stored_width : stored_height;
  return TRUE;
}

gboolean
rn_image_decode (FILE *file, guint8 *pixels, int width, int height, GError **error)
{
  int orientation, w, h;
  const RnCodec *codec = open_codec (file, &w, &h, &orientation, error);
  RnPixelWalk walk;

  if (codec == NULL)
    return FALSE;
  if (is_transposed (orientation) ? w != height || h != width : w != width || h != height)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                   "changed its size since it was indexed as %d x %d", width, height);
      return FALSE;
    }
  walk = walk_for_orientation (orientation, w, h);
  rewind (file);
  return codec->decode (file, pixels, w, h, &walk, error);
}

static FILE *
open_path (const char *path, GError **error)
{
  int fd = rn_open_regular (path, NULL);
  FILE *file = fd >= 0 ? fdopen (fd, "rb") : NULL;

  if (file == NULL)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "%s: %s", path, rn_open_problem (errno));
      if (fd >= 0)
        close (fd);
    }
  return file;
}

gboolean
rn_image_probe_path (const char *path, int *width, int *height, GError **error)
{
  FILE *file = open_path (path, error);
  gboolean ok;

  if (file == NULL)
    return FALSE;
  ok = rn_image_probe (file, width, height, error);
  fclose (file);
  if (!ok)
    g_prefix_error (error, "%s: ", path);
  return ok;
}

gboolean
rn_image_decode_path (const char *path, guint8 *pixels, int width, int height, GError **error)
{
  FILE *file = open_path (path, error);
  gboolean ok;

  if (file == NULL)
    return FALSE;
  ok = rn_image_decode (file, pixels, width, height, error);
  fclose (file);
  if (!ok)
    g_prefix_error (error, "%s: ", path);
  return ok;
}

static gboolean
ends_as_usual (FILE *file)
{
  guint8 tail[16];
  const RnCodec *codec;

  rewind (file);
  codec = codec_for_file (file, NULL);
  return codec != NULL && fseek (file, -(long) codec->end_size, SEEK_END) == 0
         && fread (tail, codec->end_size, 1, file) == 1 && memcmp (tail, codec->end, codec->end_size) == 0;
}

/* Decodes and throws away. */
static gboolean
check_pixels (FILE *file, int width, int height, GError **error)
{
  static GMutex one_at_a_time; /* each may take the memory of the largest image */
  guint8 *pixels;
  gboolean ok;

  g_mutex_lock (&one_at_a_time);
  pixels = g_try_malloc ((gsize) width * height * 3);
  rewind (file);
  if (pixels == NULL)
    g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "no memory for %d x %d pixels", width, height);
  ok = pixels != NULL && rn_image_decode (file, pixels, width, height, error);
  g_free (pixels);
  g_mutex_unlock (&one_at_a_time);
  return ok;
}

gboolean
rn_image_check_path (const char *path, int *width, int *height, GError **error)
{
  FILE *file = open_path (path, error);
  gboolean ok;

  if (file == NULL)
    return FALSE;
  ok = rn_image_probe (file, width, height, error)
       && (ends_as_usual (file) || check_pixels (file, *width, *height, error));
  fclose (file);
  if (!ok)
    g_prefix_error (error, "%s: ", path);
  return ok;
}
