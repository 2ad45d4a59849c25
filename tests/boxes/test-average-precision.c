#include <config.h>

#include <float.h>
#include <math.h>

#include "boxes/average-precision.h"
#include "runner/base/error.h"
#include "tests/boxes/golden.h"

/* A worked example gives six digits. */
static void
assert_six_digits (double value, double expected)
{
  g_assert_cmpfloat_with_epsilon (value, expected, 1e-6);
}

static const int32_t zeros[16] = { 0 };

/* One class; both modes are asked with the same images. */
static double
evaluate (const RnApImage *images, int n_images, RnApMode mode, RnApClass *table)
{
  g_autoptr (RnApEval) eval = rn_ap_eval_new (1, 0.5f, mode);
  GError *error = NULL;

  for (int i = 0; i < n_images; i++)
    {
      g_assert_true (rn_ap_eval_add (eval, &images[i], &error));
      g_assert_no_error (error);
    }
  return rn_ap_eval_finish (eval, table);
}

static const RnDetection worked_dets1[3] = {
  { { 12, 12, 50, 50 }, 0.90f, 0 }, { { 61, 61, 100, 100 }, 0.80f, 0 }, { { 11, 9, 52, 49 }, 0.70f, 0 },
};
static const RnDetection worked_dets2[3] = {
  { { 20, 20, 80, 70 }, 0.85f, 0 }, { { 200, 200, 220, 220 }, 0.60f, 0 }, { { 100, 20, 140, 45 }, 0.50f, 0 },
};
static const RnBox worked_gts1[1] = { { 10, 10, 50, 50 } }, worked_difficult1[1] = { { 60, 60, 100, 100 } };
static const RnBox worked_gts2[2] = { { 20, 20, 80, 80 }, { 100, 20, 140, 60 } };

static void
test_worked_verdicts (void)
{
  const RnApVerdict expected1[3] = { RN_AP_TRUE, RN_AP_IGNORED, RN_AP_FALSE };
  const RnApVerdict expected2[3] = { RN_AP_TRUE, RN_AP_FALSE, RN_AP_TRUE };
  const RnBox *overlaps1[3] = { &worked_gts1[0], &worked_difficult1[0], &worked_gts1[0] };
  const float ious1[3] = { 0.904819f, 0.951814f, 0.887410f };
  RnApVerdict verdicts[3];

  rn_ap_match (worked_dets1, 3, worked_gts1, 1, worked_difficult1, 1, 0.5f, verdicts);
  for (int i = 0; i < 3; i++)
    {
      g_assert_cmpint (verdicts[i], ==, expected1[i]);
      assert_six_digits (rn_box_iou (worked_dets1[i].box, *overlaps1[i], TRUE), ious1[i]);
    }
  rn_ap_match (worked_dets2, 3, worked_gts2, 2, NULL, 0, 0.5f, verdicts);
  for (int i = 0; i < 3; i++)
    g_assert_cmpint (verdicts[i], ==, expected2[i]);
  assert_six_digits (rn_box_iou (worked_dets2[0].box, worked_gts2[0], TRUE), 0.836066);
  assert_six_digits (rn_box_iou (worked_dets2[2].box, worked_gts2[1], TRUE), 0.634146);
}

static void
test_worked (void)
{
  const RnApImage images[2] = {
    { worked_dets1, 3, worked_gts1, zeros, 1, worked_difficult1, zeros, 1 },
    { worked_dets2, 3, worked_gts2, zeros, 2, NULL, NULL, 0 },
  };
  RnApClass table;

  assert_six_digits (evaluate (images, 2, RN_AP_11POINTS, &table), 0.854545);
  g_assert_cmpint (table.n_gts, ==, 3);
  g_assert_cmpint (table.n_dets, ==, 6);
  g_assert_cmpfloat (table.recall, ==, 1);
  assert_six_digits ((double) table.ap, 0.854545);
  assert_six_digits (evaluate (images, 2, RN_AP_AREA, NULL), 0.866667);
}

/* A recall of exactly 3/10, 6/10 or 7/10 does not reach 3, 6 or 7 times 0.1; the others are reached. */
static void
test_tenths (void)
{
  const int points[11] = { 0, 2, 3, 3, 5, 6, 6, 7, 9, 10, 11 }; /* reached by 0 to 10 of 10 */
  RnBox gts[10];
  RnDetection detections[10];

  for (int i = 0; i < 10; i++)
    {
      gts[i] = (RnBox) { (float) i * 20, 0, (float) i * 20 + 9, 9 };
      detections[i] = (RnDetection) { gts[i], 0.9f, 0 };
    }
  for (int n = 0; n <= 10; n++)
    {
      const RnApImage image = { detections, n, gts, zeros, 10, NULL, NULL, 0 };
      double of_points = evaluate (&image, 1, RN_AP_11POINTS, NULL);
      double area = evaluate (&image, 1, RN_AP_AREA, NULL);

      g_assert_cmpfloat_with_epsilon (of_points, points[n] / 11.0, FLT_EPSILON);
      g_assert_cmpfloat_with_epsilon (area, n / 10.0, FLT_EPSILON);
    }
}

/* At legacy IoU 0.5 exactly it is a hit; without +1 the IoU would be 0.4444. */
static void
test_legacy_half (void)
{
  const RnBox gt = { 0, 0, 9, 9 };
  const RnDetection detection = { { 0, 0, 9, 4 }, 0.9f, 0 };
  RnApVerdict verdict;

  rn_ap_match (&detection, 1, &gt, 1, NULL, 0, 0.5f, &verdict);
  g_assert_cmpint (verdict, ==, RN_AP_TRUE);
}

/* IoU 7/10 in float32 is below the double 0.7, and 6/10 above 0.6: MMDetection compares them in double. */
static void
test_threshold_type (void)
{
  const RnBox gt = { 0, 0, 9, 9 };
  const RnDetection seven = { { 0, 0, 9, 6 }, 0.9f, 0 }, six = { { 0, 0, 9, 5 }, 0.9f, 0 };
  RnApVerdict verdict;

  g_assert_cmpfloat (rn_box_iou (seven.box, gt, TRUE), ==, 0.7f);
  rn_ap_match (&seven, 1, &gt, 1, NULL, 0, 0.7, &verdict);
  g_assert_cmpint (verdict, ==, RN_AP_FALSE);
  rn_ap_match (&seven, 1, &gt, 1, NULL, 0, 0.65, &verdict);
  g_assert_cmpint (verdict, ==, RN_AP_TRUE);
  rn_ap_match (&six, 1, &gt, 1, NULL, 0, 0.6, &verdict);
  g_assert_cmpint (verdict, ==, RN_AP_TRUE);
}

/* Of two boxes at the same place a detection finds the normal one, or the first; the next finds it again. */
static void
test_ties (void)
{
  const RnBox box = { 0, 0, 9, 9 }, twice[2] = { box, box };
  const RnDetection detections[2] = { { box, 0.9f, 0 }, { box, 0.9f, 0 } };
  RnApVerdict verdicts[2];

  rn_ap_match (detections, 2, &box, 1, &box, 1, 0.5f, verdicts);
  g_assert_cmpint (verdicts[0], ==, RN_AP_TRUE);
  g_assert_cmpint (verdicts[1], ==, RN_AP_FALSE);
  rn_ap_match (detections, 2, twice, 2, NULL, 0, 0.5f, verdicts);
  g_assert_cmpint (verdicts[0], ==, RN_AP_TRUE);
  g_assert_cmpint (verdicts[1], ==, RN_AP_FALSE);
}

/* MMDetection's own test of tpfp_default. */
static void
test_upstream (void)
{
  const RnDetection detections[3] = {
    { { 0, 0, 10, 10 }, 10, 0 }, { { 10, 10, 20, 20 }, 20, 0 }, { { 32, 32, 38, 42 }, 42, 0 },
  };
  const RnBox gts[3] = { { 0, 0, 10, 20 }, { 0, 10, 10, 19 }, { 10, 10, 20, 20 } };
  const RnBox difficults[2] = { { 5, 5, 10, 20 }, { 6, 10, 10, 19 } };
  const RnApVerdict expected[3] = { RN_AP_TRUE, RN_AP_TRUE, RN_AP_FALSE };
  RnApVerdict verdicts[3];

  rn_ap_match (detections, 3, gts, 3, difficults, 2, 0.5f, verdicts);
  for (int i = 0; i < 3; i++)
    g_assert_cmpint (verdicts[i], ==, expected[i]);
}

/* Three classes, eight images, difficult boxes and many equal scores, against NumPy. */
static void
test_golden (void)
{
  const int n_dets = G_N_ELEMENTS (golden_ap_dets), n_gts = G_N_ELEMENTS (golden_ap_gts), n_images = 8;

  for (int mode = RN_AP_11POINTS; mode <= RN_AP_AREA; mode++)
    {
      const float *aps = mode == RN_AP_11POINTS ? golden_ap_11points : golden_ap_area;
      g_autoptr (RnApEval) eval = rn_ap_eval_new (3, 0.5f, (RnApMode) mode);
      RnApClass table[3];

      for (int i = 0; i < n_images; i++)
        {
          RnDetection detections[16];
          RnBox boxes[2][16]; /* normal, difficult */
          int32_t labels[2][16];
          int n = 0, counts[2] = { 0, 0 };

          for (int d = 0; d < n_dets; d++)
            if (golden_ap_det_images[d] == i)
              {
                RnDetection detection = { golden_ap_dets[d], golden_ap_scores[d], golden_ap_det_labels[d] };
                detections[n++] = detection;
              }
          for (int g = 0; g < n_gts; g++)
            if (golden_ap_gt_images[g] == i)
              {
                int kind = golden_ap_gt_difficult[g];
                boxes[kind][counts[kind]] = golden_ap_gts[g];
                labels[kind][counts[kind]++] = golden_ap_gt_labels[g];
              }
          g_assert_cmpint (MAX (n, MAX (counts[0], counts[1])), <=, 16);
          const RnApImage image = {
            detections, n, boxes[0], labels[0], counts[0], boxes[1], labels[1], counts[1],
          };
          g_assert_true (rn_ap_eval_add (eval, &image, NULL));
        }

      double mean = rn_ap_eval_finish (eval, table), sum = 0;
      for (int c = 0; c < 3; c++)
        {
          g_assert_cmpint (table[c].n_gts, ==, golden_ap_n_gts[c]);
          g_assert_cmpint (table[c].n_dets, ==, golden_ap_n_dets[c]);
          g_assert_cmpfloat ((float) table[c].recall, ==, golden_ap_recall[c]);
          g_assert_cmpfloat_with_epsilon (table[c].ap, aps[c], FLT_EPSILON); /* sums in another order */
          sum += (double) table[c].ap;
        }
      g_assert_cmpfloat (mean, ==, sum / 3);
    }
}

/* Classes without ground truth do not count in the mean. */
static void
test_nothing (void)
{
  const RnBox gt = { 0, 0, 9, 9 };
  const RnDetection detections[2] = { { { 0, 0, 9, 9 }, 0.9f, 0 }, { { 0, 0, 9, 9 }, 0.9f, 1 } };
  RnApImage image = { detections, 2, &gt, zeros, 1, NULL, NULL, 0 };
  RnApClass table[3];

  g_autoptr (RnApEval) empty = rn_ap_eval_new (3, 0.5f, RN_AP_11POINTS);
  g_assert_cmpfloat (rn_ap_eval_finish (empty, table), ==, 0);
  g_assert_cmpint (table[2].n_gts + table[2].n_dets, ==, 0);

  g_autoptr (RnApEval) one = rn_ap_eval_new (3, 0.5f, RN_AP_AREA);
  g_assert_true (rn_ap_eval_add (one, &image, NULL));
  g_assert_cmpfloat (rn_ap_eval_finish (one, table), ==, 1);
  g_assert_cmpint (table[1].n_dets, ==, 1);
  g_assert_cmpfloat (table[1].ap, ==, 0);
  g_assert_cmpfloat (table[1].recall, ==, 0);

  g_autoptr (RnApEval) missed = rn_ap_eval_new (1, 0.5f, RN_AP_11POINTS);
  image.n_detections = 0;
  g_assert_true (rn_ap_eval_add (missed, &image, NULL));
  g_assert_cmpfloat (rn_ap_eval_finish (missed, table), ==, 0);
  g_assert_cmpint (table[0].n_gts, ==, 1);
}

static void
test_refused (void)
{
  g_autoptr (RnApEval) eval = rn_ap_eval_new (2, 0.5f, RN_AP_AREA);
  const RnBox box = { 0, 0, 9, 9 };
  const int32_t label = 2;
  const RnDetection wrong = { { 0, 0, 9, 9 }, 0.9f, -1 }, nan_score = { { 0, 0, 9, 9 }, NAN, 0 };
  const RnApImage images[4] = {
    { .detections = &wrong, .n_detections = 1 },
    { .detections = &nan_score, .n_detections = 1 },
    { .gts = &box, .gt_labels = &label, .n_gts = 1 },
    { .difficults = &box, .difficult_labels = &label, .n_difficults = 1 },
  };

  for (int i = 0; i < 4; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (rn_ap_eval_add (eval, &images[i], &error));
      g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
    }
  g_assert_cmpfloat (rn_ap_eval_finish (eval, NULL), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/boxes/average-precision/worked-verdicts", test_worked_verdicts);
  g_test_add_func ("/boxes/average-precision/worked", test_worked);
  g_test_add_func ("/boxes/average-precision/tenths", test_tenths);
  g_test_add_func ("/boxes/average-precision/legacy-half", test_legacy_half);
  g_test_add_func ("/boxes/average-precision/threshold-type", test_threshold_type);
  g_test_add_func ("/boxes/average-precision/ties", test_ties);
  g_test_add_func ("/boxes/average-precision/upstream", test_upstream);
  g_test_add_func ("/boxes/average-precision/golden", test_golden);
  g_test_add_func ("/boxes/average-precision/nothing", test_nothing);
  g_test_add_func ("/boxes/average-precision/refused", test_refused);
  return g_test_run ();
}
