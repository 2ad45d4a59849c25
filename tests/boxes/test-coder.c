#include <config.h>

#include <float.h>

#include "boxes/coder.h"
#include "tests/boxes/golden.h"

static void
test_worked (void)
{
  const RnBoxCoder coder = RN_BOX_CODER_INIT;
  const RnBox anchor = { 0, 0, 10, 10 }, gt = { 2, 3, 14, 8 };
  const float expected[4] = { 0.3f, 0.05f, 0.18232156f, -0.69314718f };
  float deltas[4];

  g_assert_true (rn_coder_encode (&coder, anchor, gt, deltas));
  for (int i = 0; i < 4; i++)
    g_assert_cmpfloat_with_epsilon (deltas[i], expected[i], FLT_EPSILON); /* results below 1, two roundings */

  RnBox back = rn_coder_decode (&coder, anchor, deltas, 100, 100);
  const float got[4] = { back.x1, back.y1, back.x2, back.y2 }, want[4] = { 2, 3, 14, 8 };
  for (int i = 0; i < 4; i++)
    g_assert_cmpfloat_with_epsilon (got[i], want[i], 4 * 14 * FLT_EPSILON); /* four roundings, up to 14 */
}

/* A side grows by 62.5 at most; then the box is clipped to the image. */
static void
test_clip (void)
{
  RnBoxCoder coder = RN_BOX_CODER_INIT;
  const RnBox anchor = { 100, 100, 108, 108 };
  const float deltas[4] = { 0, 0, 10, 0 }, shrink[4] = { 0, 0, -10, -10 };
  const double eps = 500 * 4 * FLT_EPSILON; /* a width of 500 */

  RnBox box = rn_coder_decode (&coder, anchor, deltas, 1000, 1000);
  g_assert_cmpfloat (box.x1, ==, 0);
  g_assert_cmpfloat (box.y1, ==, 100);
  g_assert_cmpfloat_with_epsilon (box.x2, 354, eps);
  g_assert_cmpfloat (box.y2, ==, 108);

  coder.clip_border = FALSE;
  box = rn_coder_decode (&coder, anchor, deltas, 1000, 1000);
  g_assert_cmpfloat_with_epsilon (box.x1, -146, eps);
  g_assert_cmpfloat_with_epsilon (box.x2, 354, eps);

  box = rn_coder_decode (&coder, anchor, shrink, 1000, 1000);
  /* Corners near 104, rounded. */
  g_assert_cmpfloat_with_epsilon (box.x2 - box.x1, 8 * 0.016, 104 * 2 * FLT_EPSILON);
}

/*
 * The first two deltas are divisions and have PyTorch's bits. Its logarithm and ours may be wrong by an ulp
 * each, that is 2.4e-7 for values up to 4; division by 0.2 makes it 2.4e-6 together, and rounds numbers up to
 * 16 by 1e-6.
 */
static void
test_golden (void)
{
  const RnBoxCoder coder = {
    .means = { 0, 0.1f, -0.2f, 0 }, .stds = { 0.1f, 0.1f, 0.2f, 0.25f }, .wh_ratio_clip = 16.0 / 1000,
  };

  for (gsize i = 0; i < G_N_ELEMENTS (golden_coder_anchors); i++)
    {
      float deltas[4];

      g_assert_true (rn_coder_encode (&coder, golden_coder_anchors[i], golden_coder_gts[i], deltas));
      for (int d = 0; d < 2; d++)
        g_assert_cmpfloat (deltas[d], ==, golden_coder_deltas[i * 4 + d]);
      for (int d = 2; d < 4; d++)
        g_assert_cmpfloat_with_epsilon (deltas[d], golden_coder_deltas[i * 4 + d], 4e-6);

      /* And back: a few roundings of coordinates up to 300, and of logarithms (2.4e-7 on a side of 120). */
      RnBox back = rn_coder_decode (&coder, golden_coder_anchors[i], deltas, 300, 200);
      g_assert_cmpfloat_with_epsilon (back.x1, golden_coder_gts[i].x1, 4 * 300 * FLT_EPSILON);
      g_assert_cmpfloat_with_epsilon (back.y1, golden_coder_gts[i].y1, 4 * 300 * FLT_EPSILON);
      g_assert_cmpfloat_with_epsilon (back.x2, golden_coder_gts[i].x2, 4 * 300 * FLT_EPSILON);
      g_assert_cmpfloat_with_epsilon (back.y2, golden_coder_gts[i].y2, 4 * 300 * FLT_EPSILON);
    }
}

static void
test_hostile (void)
{
  const RnBoxCoder coder = RN_BOX_CODER_INIT;
  const RnBox anchor = { 0, 0, 10, 10 };
  const float nan_delta[4] = { NAN, 0, 0, 0 }, huge[4] = { 1e30f, -1e30f, 1e30f, -1e30f };
  float deltas[4];

  g_assert_false (rn_coder_encode (&coder, anchor, (RnBox) { 5, 5, 5, 9 }, deltas));       /* ln (0) */
  g_assert_false (rn_coder_encode (&coder, anchor, (RnBox) { 9, 5, 5, 9 }, deltas));       /* ln (-1) */
  g_assert_false (rn_coder_encode (&coder, (RnBox) { 0, 0, 0, 10 }, anchor, deltas));      /* 1 / 0 */
  g_assert_false (rn_coder_encode (&coder, anchor, (RnBox) { 0, 0, NAN, 10 }, deltas));
  g_assert_false (rn_box_is_finite (rn_coder_decode (&coder, anchor, nan_delta, 100, 100)));

  RnBox box = rn_coder_decode (&coder, anchor, huge, 100, 50);
  g_assert_true (box.x1 >= 0 && box.x2 <= 100 && box.y1 >= 0 && box.y2 <= 50);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/boxes/coder/worked", test_worked);
  g_test_add_func ("/boxes/coder/clip", test_clip);
  g_test_add_func ("/boxes/coder/golden", test_golden);
  g_test_add_func ("/boxes/coder/hostile", test_hostile);
  return g_test_run ();
}
