/* JPEG and PNG files. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "datasets/image.h"

#include <stdio.h>
#include <string.h>

/* Pixels; larger images are only probed, to save time. */
#define MAX_DECODED (1 << 19)

static gboolean
read_image (const guint8 *data, gsize size, GError **error)
{
  FILE *file = fmemopen ((gpointer) data, size, "rb");
  g_autofree guint8 *pixels = NULL;
  int width = 0, height = 0;
  gboolean ok;

  g_assert_nonnull (file);
  ok = rn_image_probe (file, &width, &height, error);
  if (ok)
    {
      g_assert_cmpint (width, >, 0);
      g_assert_cmpint (height, >, 0);
      g_assert_cmpint ((gint64) width * height, <=, RN_IMAGE_MAX_PIXELS);
    }
  if (ok && width * height <= MAX_DECODED)
    {
      pixels = g_malloc ((gsize) width * height * 3);
      rewind (file);
      ok = rn_image_decode (file, pixels, width, height, error);
    }
  fclose (file);
  return ok;
}

static int
fuzz_jpeg (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  gboolean ok;

  if (size == 0)
    return 0; /* no stream in memory is that short */
  ok = read_image (data, size, &error);
  return rn_fuzz_check (ok, error);
}

/* PNG, annex D. */
static guint32
png_crc (const guint8 *data, gsize size)
{
  guint32 crc = G_MAXUINT32;

  for (gsize i = 0; i < size; i++)
    {
      crc ^= data[i];
      for (int bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
  return ~crc;
}

/* PNG, 5.3: length, type, data, CRC of type and data. Puts the CRCs right, or damage would end at them. */
static void
repair_checksums (guint8 *data, gsize size)
{
  gsize at = 8;

  while (at <= size && size - at >= 12)
    {
      gsize length =
          (gsize) data[at] << 24 | (gsize) data[at + 1] << 16 | (gsize) data[at + 2] << 8 | data[at + 3];
      guint32 crc;

      if (length > size - at - 12)
        return;
      crc = GUINT32_TO_BE (png_crc (data + at + 4, length + 4));
      memcpy (data + at + 8 + length, &crc, sizeof crc);
      at += 12 + length;
    }
}

static int
fuzz_png (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autofree guint8 *copy = g_memdup2 (data, size);
  gboolean ok;

  if (size == 0)
    return 0;
  if (read_image (data, size, &error))
    return rn_fuzz_check (TRUE, error);
  rn_fuzz_check (FALSE, error);
  g_clear_error (&error);
  if (size > 8)
    repair_checksums (copy, size);
  ok = read_image (copy, size, &error);
  return rn_fuzz_check (ok, error);
}

static void
add_jpeg_seeds (GPtrArray *seeds)
{
  static const char *const names[] = { "baseline", "progressive", "cmyk", "grey", "orientation-6" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_strdup_printf ("tests/datasets/fixtures/%s.jpg", names[i]);

      rn_fuzz_add_file (seeds, path);
    }
}

static void
add_png_seeds (GPtrArray *seeds)
{
  static const char *const names[] = { "alpha", "grey-1", "interlaced", "palette", "rgb-16", "rgb" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_strdup_printf ("tests/datasets/fixtures/%s.png", names[i]);

      rn_fuzz_add_file (seeds, path);
    }
}

static const RnFuzzToken jpeg_tokens[] = {
  RN_FUZZ_TOKEN ("\xff\xd8"),
  RN_FUZZ_TOKEN ("\xff\xd9"),
  RN_FUZZ_TOKEN ("\xff\xda"),
  RN_FUZZ_TOKEN ("\xff\xda\0\x08\x01\x01\0\x01\x05\0"),
  RN_FUZZ_TOKEN ("\xff\xc0"),
  RN_FUZZ_TOKEN ("\xff\xc1"),
  RN_FUZZ_TOKEN ("\xff\xc2"),
  RN_FUZZ_TOKEN ("\xff\xc3"),
  RN_FUZZ_TOKEN ("\xff\xc4"),
  RN_FUZZ_TOKEN ("\xff\xc9"),
  RN_FUZZ_TOKEN ("\xff\xca"),
  RN_FUZZ_TOKEN ("\xff\xcc"),
  RN_FUZZ_TOKEN ("\xff\xd0"),
  RN_FUZZ_TOKEN ("\xff\xdb"),
  RN_FUZZ_TOKEN ("\xff\xdc"),
  RN_FUZZ_TOKEN ("\xff\xdd\0\x04\0\x01"),
  RN_FUZZ_TOKEN ("\xff\xe0"),
  RN_FUZZ_TOKEN ("\xff\xe1"),
  RN_FUZZ_TOKEN ("\xff\xee\0\x0e"
                 "Adobe\0d\0\0\0\0\x02"),
  RN_FUZZ_TOKEN ("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"),
  { NULL, 0 },
};

static const RnFuzzToken png_tokens[] = {
  RN_FUZZ_TOKEN ("IHDR"),
  RN_FUZZ_TOKEN ("PLTE"),
  RN_FUZZ_TOKEN ("\0\0\0\0IDAT"),
  RN_FUZZ_TOKEN ("\0\0\0\0IEND"),
  RN_FUZZ_TOKEN ("\0\0\0\x02tRNS\0\x01"),
  RN_FUZZ_TOKEN ("\0\0\0\x04gAMA\0\0\x80\0"),
  RN_FUZZ_TOKEN ("\0\0\0\x01sRGB\0"),
  RN_FUZZ_TOKEN ("iCCP"),
  RN_FUZZ_TOKEN ("cHRM"),
  RN_FUZZ_TOKEN ("sBIT"),
  RN_FUZZ_TOKEN ("bKGD"),
  RN_FUZZ_TOKEN ("hIST"),
  RN_FUZZ_TOKEN ("zTXt"),
  RN_FUZZ_TOKEN ("iTXt"),
  RN_FUZZ_TOKEN ("tEXt"),
  RN_FUZZ_TOKEN ("eXIf"),
  RN_FUZZ_TOKEN ("sPLT"),
  RN_FUZZ_TOKEN ("acTL"),
  { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_jpeg = { "jpeg", fuzz_jpeg, add_jpeg_seeds, jpeg_tokens };
const RnFuzzReader rn_fuzz_reader_png = { "png", fuzz_png, add_png_seeds, png_tokens };
