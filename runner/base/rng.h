/*
 * rng.h: random numbers that depend on nothing but their key.
 *
 * Philox4x32-10 of Random123 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). A generator
 * is keyed by (seed, stream, a, b), for instance (seed, RN_STREAM_AUGMENT, epoch, position in the index), so
 * that a loader thread or a resumed run draws the same numbers without any state in between. Keys that differ
 * in one part give independent sequences; one key gives 2^34 numbers of 32 bits.
 */
#ifndef RUNNER_BASE_RNG_H
#define RUNNER_BASE_RNG_H

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef enum
{
  RN_STREAM_INIT,    /* a: op or parameter number */
  RN_STREAM_SHUFFLE, /* a: epoch */
  RN_STREAM_AUGMENT, /* a: epoch, b: position in the repeated index */
  RN_STREAM_SYNTH,   /* a: image number */
} RnStream;

/* Plain data: may be copied, and needs no freeing. */
typedef struct
{
  guint32 key[2];
  guint32 counter[4];
  guint32 block[4]; /* the current four numbers */
  guint used;       /* of block, 0 to 4 */
} RnRng;

void rn_rng_init (RnRng *rng, guint64 seed, RnStream stream, guint32 a, guint32 b);

/*
 * Goes to part @part of 4096 (0 is the beginning). Parts have 2^22 numbers of 32 bits each, so that several
 * users of one key do not disturb each other.
 */
void rn_rng_skip_to (RnRng *rng, guint part);

guint32 rn_rng_u32 (RnRng *rng);
guint64 rn_rng_u64 (RnRng *rng);
/* In [0, 1), a multiple of 2^-53. */
double rn_rng_uniform (RnRng *rng);
/* In [0, @n), every value equally likely; @n must be positive. */
guint64 rn_rng_below (RnRng *rng, guint64 n);
/*
 * Mean 0, deviation 1 (Box-Muller; the second number of each pair is dropped, so that every call draws the
 * same amount).
 */
double rn_rng_normal (RnRng *rng);
/* Fisher-Yates over the @n items of @items, in place. */
void rn_rng_shuffle (RnRng *rng, int64_t *items, gsize n);

/* One block of the bare generator, for tests: ten rounds on @counter under @key. */
void rn_philox4x32 (const guint32 counter[4], const guint32 key[2], guint32 out[4]);

G_END_DECLS

#endif
