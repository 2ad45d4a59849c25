#include <config.h>

#include <math.h>

#include "boxes/nms.h"
#include "tests/boxes/golden.h"

static const RnNmsRule rule = { .score_thr = 0.05f, .iou_thr = 0.5f, .max_per_img = 100 };

static void
test_threshold (void)
{
  const RnBox suppressed[2] = { { 0, 0, 10, 10 }, { 0, 0, 10, 9 } }; /* IoU 0.9 */
  const RnBox kept[2] = { { 0, 0, 10, 10 }, { 0, 0, 10, 20 } };      /* IoU 0.5 exactly */
  const float scores[2] = { 0.9f, 0.8f };
  RnDetection found[100];
  int n;

  g_assert_cmpint (rn_nms_multiclass (&rule, suppressed, scores, 2, 1, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].score, ==, 0.9f);
  g_assert_cmpfloat (found[0].box.y2, ==, 10);
  g_assert_cmpint (rn_nms_multiclass (&rule, kept, scores, 2, 1, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 2);
}

/* One class does not suppress another, and a score at the threshold is no candidate. */
static void
test_classes (void)
{
  const RnBox boxes[2] = { { 0, 0, 10, 10 }, { 0, 0, 10, 9 } };
  const float scores[2][3] = { { 0.2f, 0.05f, 0.9f }, { 0.3f, 0.04f, 0.8f } };
  RnDetection found[100];
  int n;

  g_assert_cmpint (rn_nms_multiclass (&rule, boxes, scores[0], 2, 3, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 2);
  g_assert_cmpint (found[0].label, ==, 2);
  g_assert_cmpfloat (found[0].score, ==, 0.9f);
  g_assert_cmpint (found[1].label, ==, 0);
  g_assert_cmpfloat (found[1].score, ==, 0.3f);
}

static void
test_ties (void)
{
  const RnBox boxes[3] = { { 20, 0, 30, 10 }, { 0, 0, 10, 10 }, { 0, 0, 10, 9 } };
  const float scores[3][2] = { { 0.5f, 0.5f }, { 0.5f, 0.1f }, { 0.5f, 0.5f } };
  const int expected[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 2, 1 } }; /* box, class */
  RnDetection found[100];
  int n;

  g_assert_cmpint (rn_nms_multiclass (&rule, boxes, scores[0], 3, 2, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 4);
  for (int i = 0; i < 4; i++)
    {
      g_assert_cmpmem (&found[i].box, sizeof (RnBox), &boxes[expected[i][0]], sizeof (RnBox));
      g_assert_cmpint (found[i].label, ==, expected[i][1]);
    }
}

static void
test_golden (void)
{
  const RnNmsRule golden = { .score_thr = 0.25f, .iou_thr = 0.5f, .max_per_img = 120 };
  const int n_kept = G_N_ELEMENTS (golden_nms_kept);
  RnDetection found[120];
  int n;

  for (int max = 1; max <= 120; max++)
    {
      RnNmsRule limited = golden;

      limited.max_per_img = max;
      RnStatus status = rn_nms_multiclass (&limited, golden_nms_boxes, golden_nms_scores,
                                           G_N_ELEMENTS (golden_nms_boxes), 3, found, &n);
      g_assert_cmpint (status, ==, RN_STATUS_OK);
      g_assert_cmpint (n, ==, MIN (max, n_kept));
      for (int i = 0; i < n; i++)
        {
          int index = golden_nms_kept[i];

          g_assert_cmpint (found[i].label, ==, index % 3);
          g_assert_cmpfloat (found[i].score, ==, golden_nms_scores[index]);
          g_assert_cmpmem (&found[i].box, sizeof (RnBox), &golden_nms_boxes[index / 3], sizeof (RnBox));
        }
    }
}

static void
test_hostile (void)
{
  const RnBox boxes[4] = { { 0, 0, NAN, 10 }, { 0, 0, 10, 10 }, { 0, 0, INFINITY, 10 }, { 5, 5, 5, 5 } };
  const float scores[4] = { 0.9f, NAN, 0.9f, 0.7f };
  RnDetection found[100];
  int n;

  g_assert_cmpint (rn_nms_multiclass (&rule, boxes, scores, 4, 1, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].score, ==, 0.7f);

  g_assert_cmpint (rn_nms_multiclass (&rule, NULL, NULL, 0, 20, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 0);
  g_assert_cmpint (rn_nms_multiclass (&rule, boxes, scores, -1, 1, found, &n), ==, RN_STATUS_SHAPE);
  g_assert_cmpint (rn_nms_multiclass (&rule, boxes, scores, G_MAXINT, 2, found, &n), ==, RN_STATUS_SHAPE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/boxes/nms/threshold", test_threshold);
  g_test_add_func ("/boxes/nms/classes", test_classes);
  g_test_add_func ("/boxes/nms/ties", test_ties);
  g_test_add_func ("/boxes/nms/golden", test_golden);
  g_test_add_func ("/boxes/nms/hostile", test_hostile);
  return g_test_run ();
}
