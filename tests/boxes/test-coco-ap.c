/* COCO's average precision against pycocotools, and what it cannot be asked: boxes that are not finite. */
#include <config.h>

#include <math.h>

#include "boxes/coco-ap.h"
#include "runner/base/error.h"
#include "tests/boxes/golden-coco.h"

/*
 * Both compute the same precisions; their sum over at most 6 classes, 10 overlaps and 101 recalls is rounded
 * in another order. A term is at most 1, so the mean is off by less than n * DBL_EPSILON = 6060 * 2.2e-16.
 */
#define SUM_TOLERANCE 1.4e-12

static void
add_rows (RnCocoEval *eval, const CocoCase *c, int image)
{
  RnDetection detections[128];
  RnBox boxes[2][64]; /* normal, difficult */
  int32_t labels[2][64];
  int n = 0, counts[2] = { 0, 0 };
  GError *error = NULL;

  for (int i = 0; i < c->n_dets; i++)
    if (c->dets[i].image == image)
      {
        g_assert_cmpint (n, <, 128);
        detections[n++] = (RnDetection){ c->dets[i].box, c->dets[i].last, c->dets[i].label };
      }
  for (int i = 0; i < c->n_gts; i++)
    if (c->gts[i].image == image)
      {
        int kind = c->gts[i].last > 0;
        g_assert_cmpint (counts[kind], <, 64);
        boxes[kind][counts[kind]] = c->gts[i].box;
        labels[kind][counts[kind]++] = c->gts[i].label;
      }
  const RnApImage row = { detections, n, boxes[0], labels[0], counts[0], boxes[1], labels[1], counts[1] };
  g_assert_true (rn_coco_eval_add (eval, &row, &error));
  g_assert_no_error (error);
}

static void
test_golden (gconstpointer data)
{
  const CocoCase *c = data;
  g_autoptr (RnCocoEval) eval = rn_coco_eval_new (c->n_classes);
  g_autofree double *class_ap = g_new (double, c->n_classes);
  double stats[RN_COCO_N_STATS];

  for (int i = 0; i < c->n_images; i++)
    add_rows (eval, c, i);
  rn_coco_eval_finish (eval, stats, class_ap);
  for (int i = 0; i < RN_COCO_N_STATS; i++)
    g_assert_cmpfloat_with_epsilon (stats[i], c->stats[i], SUM_TOLERANCE);
  for (int i = 0; i < c->n_classes; i++)
    g_assert_cmpfloat_with_epsilon (class_ap[i], c->class_ap[i], SUM_TOLERANCE);
}

static void
test_nothing (void)
{
  g_autoptr (RnCocoEval) eval = rn_coco_eval_new (2);
  double stats[RN_COCO_N_STATS], class_ap[2];

  rn_coco_eval_finish (eval, stats, class_ap);
  for (int i = 0; i < RN_COCO_N_STATS; i++)
    g_assert_cmpfloat (stats[i], ==, -1);
  g_assert_cmpfloat (class_ap[1], ==, -1);
}

/* They are false alarms; the object is found all the same. */
static void
test_not_finite (void)
{
  const RnBox gt = { 0, 0, 40, 40 };
  const int32_t label = 0;
  const RnDetection detections[4] = {
    { { NAN, 0, 40, 40 }, 0.9f, 0 },
    { { -INFINITY, -INFINITY, INFINITY, INFINITY }, 0.8f, 0 },
    { { 40, 40, 0, 0 }, 0.7f, 0 },
    { { 0, 0, 40, 40 }, 0.6f, 0 },
  };
  const RnApImage image = {
    .detections = detections, .n_detections = 4, .gts = &gt, .gt_labels = &label, .n_gts = 1
  };
  g_autoptr (RnCocoEval) eval = rn_coco_eval_new (1);
  double stats[RN_COCO_N_STATS];

  g_assert_true (rn_coco_eval_add (eval, &image, NULL));
  rn_coco_eval_finish (eval, stats, NULL);
  g_assert_cmpfloat_with_epsilon (stats[RN_COCO_AP], 0.25, 1e-12);
  g_assert_cmpfloat (stats[RN_COCO_AR_100], ==, 1);
  g_assert_cmpfloat (stats[RN_COCO_AR_1], ==, 0);
}

static void
test_refused (void)
{
  const RnDetection wrong = { { 0, 0, 9, 9 }, 0.9f, 2 };
  const RnApImage image = { .detections = &wrong, .n_detections = 1 };
  g_autoptr (RnCocoEval) eval = rn_coco_eval_new (2);
  g_autoptr (GError) error = NULL;

  g_assert_false (rn_coco_eval_add (eval, &image, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (coco_cases); i++)
    {
      g_autofree char *path = g_strconcat ("/boxes/coco-ap/golden/", coco_cases[i].name, NULL);
      g_test_add_data_func (path, &coco_cases[i], test_golden);
    }
  g_test_add_func ("/boxes/coco-ap/nothing", test_nothing);
  g_test_add_func ("/boxes/coco-ap/not-finite", test_not_finite);
  g_test_add_func ("/boxes/coco-ap/refused", test_refused);
  return g_test_run ();
}
