#include "config.h"
#include "runner/base/rng.h"

#include <math.h>

/* The known answers of philox4x32 with ten rounds in Random123 1.14 (tests/kat_vectors). */
static void
test_known_answers (void)
{
  static const struct
  {
    guint32 counter[4], key[2], out[4];
  } cases[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      guint32 out[4];
      rn_philox4x32 (cases[i].counter, cases[i].key, out);
      g_assert_cmpmem (out, sizeof out, cases[i].out, sizeof out);
    }
}

/*
 * What a generator draws is the bare function of counter {block, stream, a, b} and key {low, high half of
 * seed}.
 */
static void
test_layout (void)
{
  static const guint32 key[2] = { 0x89abcdef, 0x01234567 };
  RnRng rng;

  rn_rng_init (&rng, 0x0123456789abcdef, RN_STREAM_AUGMENT, 7, 9);
  for (guint32 block = 0; block < 3; block++)
    {
      guint32 counter[4] = { block, RN_STREAM_AUGMENT, 7, 9 }, out[4];
      rn_philox4x32 (counter, key, out);
      for (int i = 0; i < 4; i++)
        g_assert_cmpuint (rn_rng_u32 (&rng), ==, out[i]);
    }

  RnRng words, pairs;
  rn_rng_init (&words, 5, RN_STREAM_INIT, 0, 0);
  rn_rng_init (&pairs, 5, RN_STREAM_INIT, 0, 0);
  guint64 low = rn_rng_u32 (&words);
  g_assert_cmpuint (rn_rng_u64 (&pairs), ==, low | (guint64) rn_rng_u32 (&words) << 32);
}

static void
test_keys_differ (void)
{
  RnRng rngs[5];
  guint64 first[5];

  rn_rng_init (&rngs[0], 1, RN_STREAM_INIT, 0, 0);
  rn_rng_init (&rngs[1], 2, RN_STREAM_INIT, 0, 0);
  rn_rng_init (&rngs[2], 1, RN_STREAM_SHUFFLE, 0, 0);
  rn_rng_init (&rngs[3], 1, RN_STREAM_INIT, 1, 0);
  rn_rng_init (&rngs[4], 1, RN_STREAM_INIT, 0, 1);
  for (int i = 0; i < 5; i++)
    {
      first[i] = rn_rng_u64 (&rngs[i]);
      for (int j = 0; j < i; j++)
        g_assert_cmpuint (first[i], !=, first[j]);
    }
}

/* Mean and variance within five standard errors of 100,000 draws; the key is fixed, so the outcome is too. */
static void
test_moments (void)
{
  const int n = 100000;
  double uniform = 0, normal = 0, squares = 0;
  RnRng rng;

  rn_rng_init (&rng, 11, RN_STREAM_INIT, 0, 0);
  for (int i = 0; i < n; i++)
    {
      double u = rn_rng_uniform (&rng), x = rn_rng_normal (&rng);
      g_assert_true (u >= 0 && u < 1 && isfinite (x));
      uniform += u;
      normal += x;
      squares += x * x;
    }
  g_assert_cmpfloat_with_epsilon (uniform / n, 0.5, 5 * sqrt (1.0 / 12 / n));
  g_assert_cmpfloat_with_epsilon (normal / n, 0.0, 5 * sqrt (1.0 / n));
  g_assert_cmpfloat_with_epsilon (squares / n, 1.0, 5 * sqrt (2.0 / n));
}

/* Each call of rn_rng_normal takes the same amount of the sequence. */
static void
test_normal_is_stateless (void)
{
  RnRng a, b;

  rn_rng_init (&a, 3, RN_STREAM_SYNTH, 1, 2);
  rn_rng_init (&b, 3, RN_STREAM_SYNTH, 1, 2);
  rn_rng_normal (&a);
  rn_rng_uniform (&b);
  rn_rng_uniform (&b);
  g_assert_cmpfloat (rn_rng_normal (&a), ==, rn_rng_normal (&b));
}

static void
test_below (void)
{
  const int n = 70000;
  int counts[7] = { 0 };
  RnRng rng;

  rn_rng_init (&rng, 1, RN_STREAM_SHUFFLE, 0, 0);
  for (int i = 0; i < n; i++)
    {
      guint64 x = rn_rng_below (&rng, 7);
      g_assert_cmpuint (x, <, 7);
      counts[x]++;
    }
  for (int i = 0; i < 7; i++) /* binomial: deviation sqrt (n p (1 - p)) = 92.6 */
    g_assert_cmpint (ABS (counts[i] - n / 7), <, 5 * 93);
  g_assert_cmpuint (rn_rng_below (&rng, 1), ==, 0);
  for (int i = 0; i < 100; i++)
    g_assert_cmpuint (rn_rng_below (&rng, G_MAXUINT64), <, G_MAXUINT64);
}

static void
test_shuffle (void)
{
  int64_t items[100], again[100];
  gboolean seen[100] = { FALSE };
  int moved = 0;
  RnRng rng;

  for (int i = 0; i < 100; i++)
    items[i] = again[i] = i;
  rn_rng_init (&rng, 42, RN_STREAM_SHUFFLE, 3, 0);
  rn_rng_shuffle (&rng, items, 100);
  rn_rng_init (&rng, 42, RN_STREAM_SHUFFLE, 3, 0);
  rn_rng_shuffle (&rng, again, 100);
  g_assert_cmpmem (items, sizeof items, again, sizeof again);
  for (int i = 0; i < 100; i++)
    {
      g_assert_false (seen[items[i]]);
      seen[items[i]] = TRUE;
      moved += items[i] != i;
    }
  g_assert_cmpint (moved, >, 90); /* one fixed point is expected */
  rn_rng_shuffle (&rng, NULL, 0);
}

/* A part begins where 2^22 numbers of the one before it end; part 0 is the beginning. */
static void
test_parts (void)
{
  RnRng straight, part;
  guint32 first;

  rn_rng_init (&straight, 1, RN_STREAM_AUGMENT, 2, 3);
  first = rn_rng_u32 (&straight);
  for (guint32 i = 1; i < 1u << 22; i++)
    rn_rng_u32 (&straight);
  rn_rng_init (&part, 1, RN_STREAM_AUGMENT, 2, 3);
  rn_rng_u32 (&part);
  rn_rng_skip_to (&part, 1);
  for (int i = 0; i < 9; i++)
    g_assert_cmphex (rn_rng_u32 (&straight), ==, rn_rng_u32 (&part));
  rn_rng_skip_to (&part, 0);
  g_assert_cmphex (rn_rng_u32 (&part), ==, first);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rng/known-answers", test_known_answers);
  g_test_add_func ("/rng/layout", test_layout);
  g_test_add_func ("/rng/keys-differ", test_keys_differ);
  g_test_add_func ("/rng/moments", test_moments);
  g_test_add_func ("/rng/normal-is-stateless", test_normal_is_stateless);
  g_test_add_func ("/rng/below", test_below);
  g_test_add_func ("/rng/shuffle", test_shuffle);
  g_test_add_func ("/rng/parts", test_parts);
  return g_test_run ();
}
