#include "config.h"

#include "runner/crc32c.h"

#include <string.h>

/* Eight tables let one step take eight bytes ("slicing by 8"): about 1 GB/s where a byte at a time gives a
 * third of it. */
static guint32 tables[8][256];

static void
make_tables (void)
{
  for (guint32 i = 0; i < 256; i++)
    {
      guint32 crc = i;
      for (int bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      tables[0][i] = crc;
    }
  for (int t = 1; t < 8; t++)
    for (int i = 0; i < 256; i++)
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
}

guint32
rn_crc32c (guint32 crc, gconstpointer data, gsize size)
{
  static gsize once = 0;
  const guint8 *p = data;

  if (g_once_init_enter (&once))
    {
      make_tables ();
      g_once_init_leave (&once, 1);
    }
  crc = ~crc;
  for (; size >= 8; size -= 8, p += 8)
    {
      guint32 low, high;
      memcpy (&low, p, 4);
      memcpy (&high, p + 4, 4);
      low = GUINT32_FROM_LE (low) ^ crc;
      high = GUINT32_FROM_LE (high);
      crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff]
            ^ tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff]
            ^ tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
  for (; size > 0; size--, p++)
    crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
  return ~crc;
}
