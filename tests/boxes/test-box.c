#include <config.h>

#include <math.h>

#include "boxes/box.h"

static void
test_iou (void)
{
  const RnBox a = { 0, 0, 10, 10 };

  g_assert_cmpfloat (rn_box_iou (a, a, FALSE), ==, 1);
  g_assert_cmpfloat (rn_box_iou (a, (RnBox) { 0, 0, 10, 9 }, FALSE), ==, 0.9f);
  g_assert_cmpfloat (rn_box_iou (a, (RnBox) { 0, 0, 10, 20 }, FALSE), ==, 0.5f);
  g_assert_cmpfloat (rn_box_iou (a, (RnBox) { 10, 0, 20, 10 }, FALSE), ==, 0); /* they touch */
  g_assert_cmpfloat (rn_box_iou (a, (RnBox) { 30, 30, 40, 40 }, FALSE), ==, 0);
}

/* Corners are pixels: 10 x 5 of 10 x 10. */
static void
test_legacy (void)
{
  const RnBox gt = { 0, 0, 9, 9 }, det = { 0, 0, 9, 4 };

  g_assert_cmpfloat (rn_box_iou (gt, det, TRUE), ==, 0.5f);
  g_assert_cmpfloat_with_epsilon (rn_box_iou (gt, det, FALSE), 4.0f / 9, 1e-7); /* one rounding */
}

static void
test_iof (void)
{
  const RnBox a = { 0, 0, 10, 10 }, b = { 5, 0, 45, 10 };

  g_assert_cmpfloat (rn_box_iof (a, b), ==, 0.5f);
  g_assert_cmpfloat (rn_box_iof (b, a), ==, 0.125f);
}

/* Whatever the boxes, an overlap is a number from 0 to 1. */
static void
test_hostile (void)
{
  const float values[] = { 0, 5, -5, NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-30f };
  const RnBox box = { 0, 0, 10, 10 };
  const int n = G_N_ELEMENTS (values);

  for (int i = 0; i < n * n * n * n; i++)
    {
      RnBox odd = { values[i % n], values[i / n % n], values[i / n / n % n], values[i / n / n / n] };
      gboolean has_area = odd.x2 > odd.x1 && odd.y2 > odd.y1;
      float iou = rn_box_iou (box, odd, FALSE), swapped = rn_box_iou (odd, box, FALSE);

      g_assert_true (iou >= 0 && iou <= 1);
      g_assert_cmpfloat (iou, ==, swapped);
      g_assert_true (has_area || iou == 0);
      g_assert_true (rn_box_iou (odd, odd, FALSE) >= 0 && rn_box_iou (odd, odd, TRUE) >= 0);
      g_assert_true (rn_box_iof (odd, box) >= 0 && rn_box_iof (box, odd) >= 0);
    }
}

static void
test_clip (void)
{
  RnBox b = rn_box_clip ((RnBox) { -146, 100, 354, 2000 }, 1000, 500);

  g_assert_cmpfloat (b.x1, ==, 0);
  g_assert_cmpfloat (b.y1, ==, 100);
  g_assert_cmpfloat (b.x2, ==, 354);
  g_assert_cmpfloat (b.y2, ==, 500);
  g_assert_false (rn_box_is_finite (rn_box_clip ((RnBox) { NAN, 0, 1, 1 }, 10, 10)));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/boxes/box/iou", test_iou);
  g_test_add_func ("/boxes/box/legacy", test_legacy);
  g_test_add_func ("/boxes/box/iof", test_iof);
  g_test_add_func ("/boxes/box/hostile", test_hostile);
  g_test_add_func ("/boxes/box/clip", test_clip);
  return g_test_run ();
}
