#include <config.h>

#include "boxes/targets.h"
#include "tests/boxes/fixtures.h"

typedef struct
{
  RnAnchorGenerator anchors;
  RnMaxIoUAssigner assigner;
  RnBoxCoder coder;
  RnTargetRule rule;
  RnTargetScratch scratch;
  int sizes[RN_MAX_LEVELS][2];
  int64_t n_anchors;
  int16_t *labels;
  RnPositive *positives;
  int64_t n_positives;
} Fixture;

/* A batch of 192 x 160 (height x width). */
static void
set_up (Fixture *f, gconstpointer data)
{
  f->anchors = retina_anchors ();
  f->assigner = (RnMaxIoUAssigner) RN_MAX_IOU_ASSIGNER_INIT;
  f->coder = (RnBoxCoder) RN_BOX_CODER_INIT;
  f->rule = (RnTargetRule) { &f->anchors, &f->assigner, &f->coder, 20 };
  feature_sizes (&f->anchors, 192, 160, f->sizes);
  f->n_anchors = rn_anchors_count (&f->anchors, SIZES (f->sizes));
  f->labels = g_new (int16_t, f->n_anchors);
  f->positives = g_new (RnPositive, f->n_anchors);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  rn_target_scratch_clear (&f->scratch);
  g_free (f->labels);
  g_free (f->positives);
}

static RnStatus
build (Fixture *f, const RnTargetImage *image, int64_t capacity)
{
  return rn_targets_build (&f->rule, image, SIZES (f->sizes), &f->scratch, f->labels, f->positives, capacity,
                           &f->n_positives);
}

/* Labels, positives and assignment say the same thing. */
static void
test_consistent (Fixture *f, gconstpointer data)
{
  const RnBox gts[3] = { { 8, 8, 60, 50 }, { 70, 20, 110, 120 }, { 2, 90, 40, 150 } };
  const int32_t gt_labels[3] = { 7, 0, 19 };
  const RnTargetImage image = {
    .index = 1, .pad_height = 160, .pad_width = 128, .gts = gts, .labels = gt_labels, .n_gt = 3,
  };
  g_autofree RnBox *anchors = g_new (RnBox, f->n_anchors);
  int valid[RN_MAX_LEVELS][2];
  int64_t found = 0, i = 0;

  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_OK);
  g_assert_cmpint (f->n_positives, >, 3);
  rn_anchors_generate (&f->anchors, SIZES (f->sizes), anchors);
  rn_anchors_valid (&f->anchors, SIZES (f->sizes), 160, 128, valid);

  for (int level = 0; level < 5; level++)
    for (int y = 0; y < f->sizes[level][0]; y++)
      for (int x = 0; x < f->sizes[level][1]; x++)
        for (int a = 0; a < 9; a++, i++)
          {
            int32_t assigned = f->scratch.assigned[i];
            float target[4];

            if (y >= valid[level][0] || x >= valid[level][1])
              g_assert_cmpint (f->labels[i], ==, -1);
            if (assigned <= 0)
              {
                g_assert_cmpint (f->labels[i], ==, assigned == 0 ? 20 : -1);
                continue;
              }
            g_assert_cmpint (f->labels[i], ==, gt_labels[assigned - 1]);
            g_assert_cmpint (found, <, f->n_positives);
            g_assert_cmpint (f->positives[found].anchor, ==, i);
            g_assert_cmpint (f->positives[found].image, ==, 1);
            g_assert_true (rn_coder_encode (&f->coder, anchors[i], gts[assigned - 1], target));
            g_assert_cmpmem (target, sizeof target, f->positives[found].target, sizeof target);
            found++;
          }
  g_assert_cmpint (i, ==, f->n_anchors);
  g_assert_cmpint (found, ==, f->n_positives);
}

static void
test_no_boxes (Fixture *f, gconstpointer data)
{
  const RnTargetImage image = { .pad_height = 192, .pad_width = 160 };

  g_assert_cmpint (build (f, &image, 0), ==, RN_STATUS_OK);
  g_assert_cmpint (f->n_positives, ==, 0);
  for (int64_t i = 0; i < f->n_anchors; i++)
    g_assert_cmpint (f->labels[i], ==, 20);
}

/* With match_zero_iou a box without area takes everything, but ln (0) never becomes a target. */
static void
test_box_without_area (Fixture *f, gconstpointer data)
{
  const RnBox gt = { 50, 50, 50, 50 };
  const int32_t label = 3;
  const RnTargetImage image = {
    .pad_height = 192, .pad_width = 160, .gts = &gt, .labels = &label, .n_gt = 1,
  };

  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_OK);
  g_assert_cmpint (f->n_positives, ==, 0);
  g_assert_cmpint (f->labels[0], ==, 20);

  f->assigner.match_zero_iou = TRUE;
  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_OK);
  g_assert_cmpint (f->n_positives, ==, 0);
  for (int64_t i = 0; i < f->n_anchors; i++)
    g_assert_cmpint (f->labels[i], ==, -1);
}

static void
test_refused (Fixture *f, gconstpointer data)
{
  const RnBox gt = { 8, 8, 60, 50 };
  int32_t label = 20;
  RnTargetImage image = { .pad_height = 192, .pad_width = 160, .gts = &gt, .labels = &label, .n_gt = 1 };

  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_SHAPE);
  label = -1;
  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_SHAPE);
  label = 19;
  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_OK);

  int64_t n = f->n_positives;
  g_assert_cmpint (n, >, 0);
  g_assert_cmpint (build (f, &image, n), ==, RN_STATUS_OK);
  g_assert_cmpint (build (f, &image, n - 1), ==, RN_STATUS_MEMORY);
  g_assert_cmpint (f->n_positives, ==, 0);

  f->rule.num_classes = G_MAXINT16 + 1;
  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_SHAPE);
  f->rule.num_classes = 20;
  image.n_gt = -1;
  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_SHAPE);
  image.n_gt = 1;
  f->sizes[0][0] = -1;
  g_assert_cmpint (build (f, &image, f->n_anchors), ==, RN_STATUS_SHAPE);
}

#define ADD(name, func) g_test_add ("/boxes/targets/" name, Fixture, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("consistent", test_consistent);
  ADD ("no-boxes", test_no_boxes);
  ADD ("box-without-area", test_box_without_area);
  ADD ("refused", test_refused);
  return g_test_run ();
}
