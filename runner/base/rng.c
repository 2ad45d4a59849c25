#include "config.h"
#include "runner/base/rng.h"

#include <math.h>

/* Multipliers and key increments of Random123's philox4x32. */
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u /* golden ratio */
#define WEYL_1 0xBB67AE85u /* sqrt (3) - 1 */
#define ROUNDS 10

void
rn_philox4x32 (const guint32 counter[4], const guint32 key[2], guint32 out[4])
{
  guint32 c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  guint32 k0 = key[0], k1 = key[1];

  for (int i = 0; i < ROUNDS; i++)
    {
      guint64 p0 = (guint64) MULTIPLIER_0 * c0;
      guint64 p1 = (guint64) MULTIPLIER_1 * c2;

      c0 = (guint32) (p1 >> 32) ^ c1 ^ k0;
      c1 = (guint32) p1;
      c2 = (guint32) (p0 >> 32) ^ c3 ^ k1;
      c3 = (guint32) p0;
      k0 += WEYL_0;
      k1 += WEYL_1;
    }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

void
rn_rng_init (RnRng *rng, guint64 seed, RnStream stream, guint32 a, guint32 b)
{
  *rng = (RnRng){
    .key = { (guint32) seed, (guint32) (seed >> 32) },
    .counter = { 0, (guint32) stream, a, b }, /* the first one counts blocks */
    .used = 4,
  };
}

void
rn_rng_skip_to (RnRng *rng, guint part)
{
  g_return_if_fail (part < 1u << 12);
  rng->counter[0] = part << 20; /* blocks of four */
  rng->used = 4;
}

guint32
rn_rng_u32 (RnRng *rng)
{
  if (rng->used == 4)
    {
      rn_philox4x32 (rng->counter, rng->key, rng->block);
      rng->counter[0]++;
      rng->used = 0;
    }
  return rng->block[rng->used++];
}

guint64
rn_rng_u64 (RnRng *rng)
{
  guint64 low = rn_rng_u32 (rng);
  return low | (guint64) rn_rng_u32 (rng) << 32;
}

double
rn_rng_uniform (RnRng *rng)
{
  return (double) (rn_rng_u64 (rng) >> 11) * 0x1p-53;
}

guint64
rn_rng_below (RnRng *rng, guint64 n)
{
  g_return_val_if_fail (n > 0, 0);

  /* 2^64 mod n: numbers below it would make small results more likely, so they are drawn again. */
  guint64 reject = -n % n;
  guint64 x;
  do
    x = rn_rng_u64 (rng);
  while (x < reject);
  return x % n;
}

double
rn_rng_normal (RnRng *rng)
{
  /* 1 - u is in (0, 1], so the logarithm is finite. */
  double radius = sqrt (-2.0 * log (1.0 - rn_rng_uniform (rng)));
  return radius * cos (2.0 * G_PI * rn_rng_uniform (rng));
}

void
rn_rng_shuffle (RnRng *rng, int64_t *items, gsize n)
{
  for (gsize i = n; i > 1; i--)
    {
      gsize j = rn_rng_below (rng, i);
      int64_t item = items[i - 1];
      items[i - 1] = items[j];
      items[j] = item;
    }
}
