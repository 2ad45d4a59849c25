#include "config.h"

#include "datasets/codec.h"
#include "datasets/image.h"
#include "runner/base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

/*
 * A progressive file may repeat scans without end, and every one of them visits the whole image, though it
 * may be a few bytes long. libjpeg-turbo's own tools draw the line at 500 scans; a large image gets fewer,
 * down to 64: usual encoders write 10, the longest known scripts some 30.
 */
#define MAX_SCANS 500
#define MIN_SCANS 64
#define MAX_SCANNED 1000000000 /* pixels times scans, seconds of work */

/* libjpeg leaves through longjmp, so everything that must survive lives here and not in local variables. */
typedef struct
{
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
  guint8 *row;             /* one decoded scanline */
  gboolean multiple_scans; /* all of them are read before the first row comes out */
} Jpeg;

G_NORETURN static void
leave_with_message (j_common_ptr info)
{
  Jpeg *jpeg = info->client_data;

  if (info->err->msg_code == JERR_SOF_UNSUPPORTED)
    g_strlcpy (jpeg->message, "lossless and hierarchical JPEG is not read; convert it to plain JPEG or PNG",
               sizeof jpeg->message);
  else if (info->err->msg_code == JERR_BAD_PRECISION)
    g_strlcpy (jpeg->message, "only 8 bits a sample are read; convert it to plain JPEG or to PNG",
               sizeof jpeg->message);
  else
    info->err->format_message (info, jpeg->message);
  longjmp (jpeg->leave, 1);
}

/* Warnings about pixel data that is missing or damaged end the decoding; the others are harmless. */
static void
take_warning (j_common_ptr info, int level)
{
  Jpeg *jpeg = info->client_data;

  switch (level < 0 ? info->err->msg_code : 0)
    {
    case JWRN_JPEG_EOF: /* a single scan may lack its end marker: missing data is JWRN_HIT_MARKER */
      if (jpeg->multiple_scans)
        leave_with_message (info);
      break;
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_MUST_RESYNC:
      leave_with_message (info);
    default:
      break;
    }
}

static void
count_scans (j_common_ptr info)
{
  Jpeg *jpeg = info->client_data;
  gint64 n_pixels = (gint64) jpeg->info.image_width * jpeg->info.image_height;

  if (jpeg->info.input_scan_number <= CLAMP (MAX_SCANNED / MAX (n_pixels, 1), MIN_SCANS, MAX_SCANS))
    return;
  g_strlcpy (jpeg->message, "too many scans", sizeof jpeg->message);
  longjmp (jpeg->leave, 1);
}

static void
jpeg_open (Jpeg *jpeg, FILE *file)
{
  memset (&jpeg->progress, 0, sizeof jpeg->progress);
  jpeg->info.err = jpeg_std_error (&jpeg->errors);
  jpeg->errors.error_exit = leave_with_message;
  jpeg->errors.emit_message = take_warning;
  jpeg->info.client_data = jpeg;
  jpeg_create_decompress (&jpeg->info);
  jpeg->progress.progress_monitor = count_scans;
  jpeg->info.progress = &jpeg->progress;
  jpeg_stdio_src (&jpeg->info, file);
}

static gboolean
jpeg_fail (Jpeg *jpeg, GError **error)
{
  jpeg_destroy_decompress (&jpeg->info);
  g_free (jpeg->row);
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "JPEG: %s", jpeg->message);
  return FALSE;
}

static gboolean
jpeg_probe (FILE *file, int *width, int *height, int *orientation, GError **error)
{
  Jpeg jpeg = { .row = NULL };

  if (setjmp (jpeg.leave) != 0)
    return jpeg_fail (&jpeg, error);
  jpeg_open (&jpeg, file);
  jpeg_save_markers (&jpeg.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header (&jpeg.info, TRUE);
  if (jpeg.info.num_components != 1 && jpeg.info.num_components != 3 && jpeg.info.num_components != 4)
    {
      g_snprintf (jpeg.message, sizeof jpeg.message, "%d channels; grey, colour and CMYK are read",
                  jpeg.info.num_components);
      return jpeg_fail (&jpeg, error);
    }

  *width = (int) MIN (jpeg.info.image_width, G_MAXINT);
  *height = (int) MIN (jpeg.info.image_height, G_MAXINT);
  *orientation = 1;
  for (jpeg_saved_marker_ptr m = jpeg.info.marker_list; m != NULL; m = m->next)
    if (m->data_length >= 6 && memcmp (m->data, "Exif\0", 6) == 0) /* others hold XMP; the first one counts */
      {
        *orientation = rn_exif_orientation (m->data, m->data_length);
        break;
      }
  jpeg_destroy_decompress (&jpeg.info);
  return TRUE;
}

static void
store_rgb (const guint8 *row, guint8 *to, gssize step, int width)
{
  for (int x = 0; x < width; x++, row += 3, to += step)
    memcpy (to, row, 3);
}

/* OpenCV's conversion: the four channels are taken as inverted, as Adobe writes them. */
static void
store_cmyk (const guint8 *row, guint8 *to, gssize step, int width)
{
  for (int x = 0; x < width; x++, row += 4, to += step)
    for (int c = 0; c < 3; c++)
      to[c] = (guint8) (row[3] - ((255 - row[c]) * row[3] >> 8));
}

static gboolean
jpeg_decode (FILE *file, guint8 *pixels, int width, int height, const RnPixelWalk *walk, GError **error)
{
  Jpeg jpeg = { .row = NULL };
  gboolean cmyk;

  if (setjmp (jpeg.leave) != 0)
    return jpeg_fail (&jpeg, error);
  jpeg_open (&jpeg, file);
  jpeg_read_header (&jpeg.info, TRUE);
  jpeg.multiple_scans = jpeg_has_multiple_scans (&jpeg.info);
  cmyk = jpeg.info.num_components == 4;
  jpeg.info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress (&jpeg.info);
  if (jpeg.info.output_width != (JDIMENSION) width || jpeg.info.output_height != (JDIMENSION) height
      || jpeg.info.output_components != (cmyk ? 4 : 3))
    {
      g_strlcpy (jpeg.message, "the header changed while it was read", sizeof jpeg.message);
      return jpeg_fail (&jpeg, error);
    }

  jpeg.row = g_malloc ((gsize) width * 4);
  while (jpeg.info.output_scanline < jpeg.info.output_height)
    {
      guint8 *to = pixels + walk->start + (gssize) jpeg.info.output_scanline * walk->step_y;

      jpeg_read_scanlines (&jpeg.info, &jpeg.row, 1);
      (cmyk ? store_cmyk : store_rgb) (jpeg.row, to, walk->step_x, width);
    }
  jpeg_finish_decompress (&jpeg.info);
  jpeg_destroy_decompress (&jpeg.info);
  g_free (jpeg.row);
  return TRUE;
}

static const guint8 jpeg_magic[] = { 0xFF, 0xD8, 0xFF };
static const guint8 jpeg_end[] = { 0xFF, 0xD9 };

const RnCodec rn_codec_jpeg = {
  .magic = jpeg_magic,
  .magic_size = sizeof jpeg_magic,
  .end = jpeg_end,
  .end_size = sizeof jpeg_end,
  .probe = jpeg_probe,
  .decode = jpeg_decode,
};

/* ---- Writing ---- */

typedef struct
{
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
} JpegWriter;

G_NORETURN static void
leave_writer (j_common_ptr info)
{
  JpegWriter *writer = info->client_data;

  info->err->format_message (info, writer->message);
  longjmp (writer->leave, 1);
}

static gboolean
write_pixels (FILE *file, const guint8 *pixels, int width, int height, int quality, GError **error)
{
  JpegWriter writer;

  writer.info.err = jpeg_std_error (&writer.errors);
  writer.errors.error_exit = leave_writer;
  writer.info.client_data = &writer;
  if (setjmp (writer.leave) != 0)
    {
      jpeg_destroy_compress (&writer.info);
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_IO, "JPEG: %s", writer.message);
      return FALSE;
    }
  jpeg_create_compress (&writer.info);
  jpeg_stdio_dest (&writer.info, file);
  writer.info.image_width = (JDIMENSION) width;
  writer.info.image_height = (JDIMENSION) height;
  writer.info.input_components = 3;
  writer.info.in_color_space = JCS_RGB;
  jpeg_set_defaults (&writer.info);
  jpeg_set_quality (&writer.info, quality, TRUE);
  jpeg_start_compress (&writer.info, TRUE);
  while (writer.info.next_scanline < writer.info.image_height)
    {
      JSAMPROW row = (JSAMPROW) pixels + (gsize) writer.info.next_scanline * width * 3;

      jpeg_write_scanlines (&writer.info, &row, 1);
    }
  jpeg_finish_compress (&writer.info);
  jpeg_destroy_compress (&writer.info);
  return TRUE;
}

gboolean
rn_image_write_jpeg (const char *path, const guint8 *pixels, int width, int height, int quality,
                     GError **error)
{
  FILE *file = fopen (path, "wbe");
  gboolean ok;

  if (file == NULL)
    {
      g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (errno), "%s: %s", path, g_strerror (errno));
      return FALSE;
    }
  ok = write_pixels (file, pixels, width, height, quality, error);
  if (fclose (file) != 0 && ok)
    {
      g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (errno), "%s: %s", path, g_strerror (errno));
      return FALSE;
    }
  if (!ok)
    g_prefix_error (error, "%s: ", path);
  return ok;
}
