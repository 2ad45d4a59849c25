#include "config.h"

#include "datasets/codec.h"

#include <string.h>

#define TAG_ORIENTATION 0x0112

typedef struct
{
  const guint8 *data;
  gsize size;
  gboolean big_endian;
} Tiff;

static guint32
tiff_read (const Tiff *tiff, gsize at, gsize n)
{
  guint32 value = 0;

  for (gsize i = 0; i < n; i++)
    value = value << 8 | tiff->data[tiff->big_endian ? at + i : at + n - 1 - i];
  return value;
}

/* EXIF 2.3, 4.5 and 4.6: "Exif\0\0", then a TIFF header and its first directory of 12-byte entries. */
int
rn_exif_orientation (const guint8 *data, gsize size)
{
  Tiff tiff;
  gsize directory, n_entries;

  if (size < 6 + 8 || memcmp (data, "Exif\0", 6) != 0)
    return 1;
  tiff.data = data + 6;
  tiff.size = size - 6;
  if (memcmp (tiff.data, "MM\0*", 4) != 0 && memcmp (tiff.data, "II*", 4) != 0)
    return 1;
  tiff.big_endian = tiff.data[0] == 'M';

  directory = tiff_read (&tiff, 4, 4);
  if (directory > tiff.size - 2)
    return 1;
  n_entries = tiff_read (&tiff, directory, 2);
  n_entries = MIN (n_entries, (tiff.size - directory - 2) / 12);
  for (gsize i = 0; i < n_entries; i++)
    {
      gsize entry = directory + 2 + i * 12;

      /* The type should be SHORT, but some writers say LONG, and OpenCV does not look at it. */
      if (tiff_read (&tiff, entry, 2) == TAG_ORIENTATION)
        {
          guint32 orientation = tiff_read (&tiff, entry + 8, 2);

          return orientation >= 1 && orientation <= 8 ? (int) orientation : 1;
        }
    }
  return 1;
}
