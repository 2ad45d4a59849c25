/* hash.h: the numbers that make_fixtures.py and test-parity.c both draw. All are exact in float32. */
#ifndef TESTS_MODELS_PARITY_HASH_H
#define TESTS_MODELS_PARITY_HASH_H

#include <glib.h>

/* State of a SplitMix64 generator (Steele et al. 2014): the FNV-1a hash of "SEED/NAME" and what was added to
 * it since. */
guint64 hash_stream (guint64 seed, const char *name);
guint64 hash_next (guint64 *state);

/* In [-1, 1), multiples of 2^-23. */
static inline float
hash_uniform (guint64 *state)
{
  return (float) (hash_next (state) >> 40) * 0x1p-23f - 1.0f;
}

#endif
