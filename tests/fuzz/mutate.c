/* mutate.c: damage that is the same on every machine. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "runner/base/rng.h"

#include <string.h>

#define MAX_DAMAGE 3     /* places in one mutation */
#define MAX_PIECE 64     /* bytes that are moved */
#define SEED_OF_SERIES 5 /* of the random numbers */

/* Where sizes, counts and offsets begin to go wrong. */
static const guint64 integers[] = {
  0,
  1,
  2,
  7,
  8,
  0x7F,
  0x80,
  0xFF,
  0x100,
  0x7FFF,
  0x8000,
  0xFFFF,
  0x10000,
  0x7FFFFFFF,
  0x80000000,
  0xFFFFFFF0,
  0xFFFFFFFF,
  0x100000000,
  G_MAXINT64,
  G_MAXINT64 - 7,
  G_MAXUINT64,
  G_MAXUINT64 - 7,
  G_MAXUINT64 / 2 + 1,
};

static guint
count_tokens (const RnFuzzReader *reader)
{
  guint n = 0;

  while (reader->tokens != NULL && reader->tokens[n].bytes != NULL)
    n++;
  return n;
}

/* Overwrites what is there, or moves it up if @insert or if there is too little. */
static void
put (GByteArray *data, gsize at, const guint8 *bytes, gsize size, gboolean insert)
{
  if (insert || at + size > data->len)
    {
      gsize tail = data->len - at;

      g_byte_array_set_size (data, (guint) (data->len + size));
      memmove (data->data + at + size, data->data + at, tail);
    }
  memcpy (data->data + at, bytes, size);
}

static void
put_integer (RnRng *rng, GByteArray *data, gsize at)
{
  guint64 value = integers[rn_rng_below (rng, G_N_ELEMENTS (integers))];
  gsize size = (gsize) 1 << rn_rng_below (rng, 4);
  guint8 bytes[24];

  if (rn_rng_below (rng, 3) == 0) /* as text */
    {
      g_snprintf ((char *) bytes, sizeof bytes, "%" G_GUINT64_FORMAT, value);
      put (data, at, bytes, strlen ((char *) bytes), rn_rng_below (rng, 2) == 0);
      return;
    }
  value = rn_rng_below (rng, 2) == 0 ? GUINT64_TO_LE (value) : GUINT64_TO_BE (value << (64 - 8 * size));
  memcpy (bytes, &value, sizeof value);
  put (data, at, bytes, size, FALSE);
}

static void
put_token (const RnFuzzReader *reader, RnRng *rng, GByteArray *data, gsize at)
{
  guint n = count_tokens (reader);

  if (n == 0)
    {
      put_integer (rng, data, at);
      return;
    }
  const RnFuzzToken *token = &reader->tokens[rn_rng_below (rng, n)];
  put (data, at, (const guint8 *) token->bytes, token->size, rn_rng_below (rng, 4) != 0);
}

/* 1 to @most bytes, and not too many. */
static gsize
piece_size (RnRng *rng, gsize most)
{
  gsize size = 1 + rn_rng_below (rng, MAX_PIECE);

  return MIN (size, most);
}

/* A piece of @from, which may be @data, goes to @at. */
static void
put_piece (RnRng *rng, GByteArray *data, gsize at, const guint8 *from, gsize from_size)
{
  gsize start, size;
  guint8 piece[MAX_PIECE];

  if (from_size == 0)
    return;
  start = rn_rng_below (rng, from_size);
  size = piece_size (rng, from_size - start);
  memcpy (piece, from + start, size);
  put (data, at, piece, size, rn_rng_below (rng, 2) == 0);
}

static void
damage (const RnFuzzReader *reader, GPtrArray *seeds, RnRng *rng, GByteArray *data)
{
  gsize at = rn_rng_below (rng, data->len);

  switch (rn_rng_below (rng, 9))
    {
    case 0:
      data->data[at] = (guint8) (data->data[at] ^ 1 << rn_rng_below (rng, 8));
      break;
    case 1:
      data->data[at] = (guint8) rn_rng_u32 (rng);
      break;
    case 2:
      put_integer (rng, data, at);
      break;
    case 3:
    case 4:
      put_token (reader, rng, data, at);
      break;
    case 5:
      g_byte_array_remove_range (data, (guint) at, (guint) piece_size (rng, data->len - at));
      break;
    case 6:
      put_piece (rng, data, at, data->data, data->len);
      break;
    case 7:
      {
        gsize size;
        const guint8 *other = g_bytes_get_data (seeds->pdata[rn_rng_below (rng, seeds->len)], &size);
        put_piece (rng, data, at, other, size);
        break;
      }
    default:
      if (rn_rng_below (rng, 3) == 0) /* more often, little else would be tried */
        g_byte_array_set_size (data, (guint) at);
    }
}

GBytes *
rn_fuzz_mutate (const RnFuzzReader *reader, GPtrArray *seeds, guint32 number)
{
  GByteArray *data = g_byte_array_new ();
  RnRng rng;
  gsize size;
  const guint8 *seed;

  rn_rng_init (&rng, SEED_OF_SERIES, RN_STREAM_SYNTH, number, 0);
  seed = g_bytes_get_data (seeds->pdata[rn_rng_below (&rng, seeds->len)], &size);
  g_byte_array_append (data, seed, (guint) size);
  for (guint64 n = 1 + rn_rng_below (&rng, MAX_DAMAGE); n > 0 && data->len > 0; n--)
    damage (reader, seeds, &rng, data);
  return g_byte_array_free_to_bytes (data);
}

void
rn_fuzz_insert (const RnFuzzReader *reader, guint8 *data, gsize *size, gsize room, guint32 seed)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  RnRng rng;

  rn_rng_init (&rng, SEED_OF_SERIES, RN_STREAM_SYNTH, seed, 1);
  if (*size > 0)
    g_byte_array_append (bytes, data, (guint) *size);
  put_token (reader, &rng, bytes, rn_rng_below (&rng, bytes->len + 1));
  *size = MIN (bytes->len, room);
  memcpy (data, bytes->data, *size);
}
