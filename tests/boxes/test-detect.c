#include <config.h>

#include <float.h>
#include <math.h>

#include "boxes/detect.h"
#include "tests/boxes/fixtures.h"

#define K 2

/* The network's input is 160 x 128 (height x width); the image fills 150 x 120 of it and was 75 x 80. */
typedef struct
{
  RnAnchorGenerator anchors;
  RnBoxCoder coder;
  RnDetectRule rule;
  RnDetectImage image;
  int sizes[RN_MAX_LEVELS][2];
  RnLevelRows rows[RN_MAX_LEVELS];
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->anchors = retina_anchors ();
  f->coder = (RnBoxCoder) RN_BOX_CODER_INIT;
  f->rule = (RnDetectRule) { &f->anchors, &f->coder, K, { 0.05f, 0.5f, 10 } };
  f->image = (RnDetectImage) { .img_height = 150, .img_width = 120, .scale_w = 1.5f, .scale_h = 2 };
  feature_sizes (&f->anchors, 160, 128, f->sizes);
}

static RnStatus
detect (Fixture *f, RnDetection *found, int *n)
{
  return rn_detect (&f->rule, &f->image, SIZES (f->sizes), f->rows, found, n);
}

/* What the head should answer for a box comes back as this box, in pixels of the original image. */
static void
test_round_trip (Fixture *f, gconstpointer data)
{
  const RnBox boxes[2] = { { 16, 40, 61, 90 }, { 30, 20, 110, 140 } }; /* as the network sees them */
  const int levels[2] = { 0, 2 }, cells[2][2] = { { 8, 5 }, { 2, 2 } }; /* row, column */
  const int32_t indices[2] = { (8 * 16 + 5) * 9 + 4, (2 * 4 + 2) * 9 + 8 };
  const float logits[2][K] = { { -8, 2 }, { 3, -8 } };
  float deltas[2][4];
  RnDetection found[10];
  int n;

  for (int i = 0; i < 2; i++)
    {
      RnBox anchor = rn_anchors_at (&f->anchors, levels[i], cells[i][0], cells[i][1], indices[i] % 9);
      g_assert_true (rn_coder_encode (&f->coder, anchor, boxes[i], deltas[i]));
      f->rows[levels[i]] = (RnLevelRows) { 1, &indices[i], logits[i], deltas[i] };
    }
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 2);
  for (int i = 0; i < 2; i++)
    {
      const RnBox *box = &boxes[1 - i]; /* the second has the higher score */
      const double eps = 4 * 140 * FLT_EPSILON; /* few roundings of coordinates up to 140 */

      g_assert_cmpint (found[i].label, ==, i == 0 ? 0 : 1);
      g_assert_cmpfloat_with_epsilon (found[i].box.x1, box->x1 / 1.5f, eps);
      g_assert_cmpfloat_with_epsilon (found[i].box.y1, box->y1 / 2, eps);
      g_assert_cmpfloat_with_epsilon (found[i].box.x2, box->x2 / 1.5f, eps);
      g_assert_cmpfloat_with_epsilon (found[i].box.y2, box->y2 / 2, eps);
    }
  /* sigmoid (3) and sigmoid (2) */
  g_assert_cmpfloat_with_epsilon (found[0].score, 0.95257413, 2 * FLT_EPSILON);
  g_assert_cmpfloat_with_epsilon (found[1].score, 0.88079708, 2 * FLT_EPSILON);
}

/* Boxes end at the resized image, not at its padding. */
static void
test_clip (Fixture *f, gconstpointer data)
{
  const int32_t last = (2 * 2 + 1) * 9 + 4, beyond = 3 * 2 * 9; /* level 3 has 3 rows of 2 cells */
  const float logits[K] = { 1, -9 }, deltas[4] = { 0, 0, 0, 0 };
  RnDetection found[10];
  int n;

  f->rows[3] = (RnLevelRows) { 1, &last, logits, deltas };
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].box.x2, ==, 120 / 1.5f);
  g_assert_cmpfloat (found[0].box.y2, ==, 75);

  f->rows[3].anchors = &beyond;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_SHAPE);
  g_assert_cmpint (n, ==, 0);
}

/* The same box from two levels is found once: by the better score, and at equal scores by the finer level. */
static void
test_across_levels (Fixture *f, gconstpointer data)
{
  const RnBox box = { 20, 20, 70, 70 };
  const int levels[2] = { 1, 2 };
  const int32_t indices[2] = { (2 * 8 + 2) * 9 + 4, (1 * 4 + 1) * 9 + 4 };
  float logits[2][K] = { { 1, -9 }, { 2, -9 } }, deltas[2][4];
  RnBox decoded[2];
  RnDetection found[10];
  int n;

  for (int i = 0; i < 2; i++)
    {
      RnBox anchor = rn_anchors_in_level (&f->anchors, levels[i], f->sizes[levels[i]][1], indices[i]);

      rn_coder_encode (&f->coder, anchor, box, deltas[i]);
      deltas[i][0] += (float) i * 0.01f; /* to tell them apart */
      decoded[i] = rn_coder_decode (&f->coder, anchor, deltas[i], 120, 150);
      f->rows[levels[i]] = (RnLevelRows) { 1, &indices[i], logits[i], deltas[i] };
    }
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].box.x1, ==, decoded[1].x1 / 1.5f);

  logits[0][0] = 2;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].box.x1, ==, decoded[0].x1 / 1.5f);

  /* With room for one detection only the best is left. */
  f->rule.nms.max_per_img = 1;
  f->rule.nms.iou_thr = 1;
  logits[0][0] = 3;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].box.x1, ==, decoded[0].x1 / 1.5f);
}

static void
test_hostile (Fixture *f, gconstpointer data)
{
  const int32_t indices[3] = { 0, 1, 2 }, negative = -1;
  const float logits[3][K] = { { NAN, NAN }, { INFINITY, -INFINITY }, { 5, 5 } };
  const float deltas[3][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { NAN, 0, INFINITY, 0 } };
  RnDetection found[10];
  int n;

  /* Nothing at all is no error. */
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 0);

  f->rows[0] = (RnLevelRows) { 3, indices, logits[0], deltas[0] };
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_OK);
  g_assert_cmpint (n, ==, 1);
  g_assert_cmpfloat (found[0].score, ==, 1);

  f->rows[0].anchors = &negative;
  f->rows[0].n = 1;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_SHAPE);
  f->rows[0].n = -1;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_SHAPE);
  f->rows[0].n = 0;
  f->image.scale_w = 0;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_SHAPE);
  f->image.scale_w = NAN;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_SHAPE);
  f->image.scale_w = 1;
  f->sizes[4][1] = -3;
  g_assert_cmpint (detect (f, found, &n), ==, RN_STATUS_SHAPE);
}

#define ADD(name, func) g_test_add ("/boxes/detect/" name, Fixture, NULL, set_up, func, NULL)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("round-trip", test_round_trip);
  ADD ("clip", test_clip);
  ADD ("across-levels", test_across_levels);
  ADD ("hostile", test_hostile);
  return g_test_run ();
}
