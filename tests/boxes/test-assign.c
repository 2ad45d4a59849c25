#include <config.h>

#include <math.h>
#include <string.h>

#include "boxes/assign.h"
#include "tests/boxes/fixtures.h"
#include "tests/boxes/golden.h"

static const RnBox small_anchors[5] = {
  { 0, 0, 10, 10 }, { 0, 0, 10, 20 }, { 5, 5, 15, 15 }, { 8, 0, 18, 10 }, { 30, 30, 40, 40 },
};

static void
assert_small (const RnMaxIoUAssigner *assigner, const RnBox *gts, int n_gt, const RnBox *ignores,
              int n_ignore, const int32_t expected[5])
{
  g_auto (RnAssignScratch) scratch = { 0 };
  RnAnchorGenerator gen = anchors_from_boxes (small_anchors, 5);
  const int one[1][2] = { { 1, 1 } };
  int32_t assigned[5];

  RnStatus status = rn_assign (assigner, &gen, one, one, gts, n_gt, ignores, n_ignore, &scratch, assigned);
  g_assert_cmpint (status, ==, RN_STATUS_OK);
  for (int i = 0; i < 5; i++)
    g_assert_cmpint (assigned[i], ==, expected[i]);
}

static void
test_two_boxes (void)
{
  const RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  const RnBox gts[2] = { { 0, 0, 10, 9 }, { 6, 6, 18, 18 } };
  const float ious[2][5] = {
    { 0.9f, 0.45f, 0.1176f, 0.1047f, 0 }, { 0.0702f, 0.1622f, 0.4969f, 0.1961f, 0 },
  };

  for (int g = 0; g < 2; g++)
    for (int a = 0; a < 5; a++)
      {
        float iou = rn_box_iou (gts[g], small_anchors[a], FALSE);
        g_assert_cmpfloat_with_epsilon (iou, ious[g][a], 5e-5); /* four decimals */
      }
  assert_small (&assigner, gts, 2, NULL, 0, (const int32_t[]) { 1, -1, 2, 0, 0 });
}

/* At IoU 0.5 exactly an anchor is positive, at 0.4 exactly it is no longer negative. */
static void
test_thresholds (void)
{
  const RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  const RnBox half = { 0, 0, 10, 10 }, two_fifths = { 0, 0, 10, 8 };

  assert_small (&assigner, &half, 1, NULL, 0, (const int32_t[]) { 1, 1, 0, 0, 0 });
  assert_small (&assigner, &two_fifths, 1, NULL, 0, (const int32_t[]) { 1, -1, 0, 0, 0 });
}

static void
test_later_box_wins (void)
{
  const RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  const RnBox gts[2] = { { 0, 0, 10, 9 }, { 0, 1, 10, 10 } };

  assert_small (&assigner, gts, 2, NULL, 0, (const int32_t[]) { 2, -1, 0, 0, 0 });

  /* Without step 4 the first of equals keeps it. */
  RnMaxIoUAssigner strict = assigner;
  strict.match_low_quality = FALSE;
  assert_small (&strict, gts, 2, NULL, 0, (const int32_t[]) { 1, -1, 0, 0, 0 });
}

/* A box that overlaps no anchor. */
static void
test_zero_iou (void)
{
  RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  const RnBox outside[2] = { { 0, 0, 10, 9 }, { 100, 100, 110, 110 } };
  const RnBox empty[2] = { { 0, 0, 10, 9 }, { 5, 5, 5, 5 } };
  const RnBox broken[2] = { { 0, 0, 10, 9 }, { 5, NAN, INFINITY, 5 } };
  const RnBox inside_out[2] = { { 0, 0, 10, 9 }, { 9, 9, 1, 1 } };
  const int32_t safe[5] = { 1, -1, 0, 0, 0 }, spoilt[5] = { 2, 2, 2, 2, 2 }, first[5] = { 2, -1, 0, 0, 0 };

  assert_small (&assigner, outside, 2, NULL, 0, safe);
  assert_small (&assigner, empty, 2, NULL, 0, safe);
  assert_small (&assigner, broken, 2, NULL, 0, safe);
  assert_small (&assigner, inside_out, 2, NULL, 0, safe);

  assigner.match_zero_iou = TRUE;
  assert_small (&assigner, outside, 2, NULL, 0, spoilt);
  assert_small (&assigner, empty, 2, NULL, 0, spoilt);
  assigner.gt_max_assign_all = FALSE;
  assert_small (&assigner, outside, 2, NULL, 0, first);
  assigner.min_pos_iou = 0.1f;
  assert_small (&assigner, outside, 2, NULL, 0, safe);
}

static void
test_no_boxes (void)
{
  const RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;

  assert_small (&assigner, NULL, 0, NULL, 0, (const int32_t[]) { 0, 0, 0, 0, 0 });
}

/* The ignore box covers a3 by 0.6; a3 covers the ignore box wholly. */
static void
test_ignore (void)
{
  RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  const RnBox gt = { 0, 0, 10, 9 }, ignore = { 12, 0, 18, 10 };

  assert_small (&assigner, &gt, 1, &ignore, 1, (const int32_t[]) { 1, -1, 0, 0, 0 }); /* off */
  assigner.ignore_iof_thr = 0.5f;
  assert_small (&assigner, &gt, 1, &ignore, 1, (const int32_t[]) { 1, -1, 0, -1, 0 });
  assigner.ignore_iof_thr = 0.7f;
  assert_small (&assigner, &gt, 1, &ignore, 1, (const int32_t[]) { 1, -1, 0, 0, 0 });
  assigner.ignore_wrt_candidates = FALSE;
  assert_small (&assigner, &gt, 1, &ignore, 1, (const int32_t[]) { 1, -1, 0, -1, 0 });

  /* Covered by the threshold exactly is not by more than it. */
  const RnBox half = { 13, 0, 18, 10 };
  assigner = (RnMaxIoUAssigner) RN_MAX_IOU_ASSIGNER_INIT;
  assigner.ignore_iof_thr = 0.5f;
  assert_small (&assigner, &gt, 1, &half, 1, (const int32_t[]) { 1, -1, 0, 0, 0 });

  /* Covered anchors are nobody's best, not even at IoU 0. */
  const RnBox all = { -100, -100, 100, 100 };
  assigner.match_zero_iou = TRUE;
  assert_small (&assigner, &gt, 1, &all, 1, (const int32_t[]) { -1, -1, -1, -1, -1 });
}

/* ---- against PyTorch ---- */

static void
assert_golden (const RnMaxIoUAssigner *assigner, const int32_t *positive, const int32_t *gt, gsize n_positive,
               const int32_t negative_ignored[2])
{
  g_auto (RnAssignScratch) scratch = { 0 };
  RnAnchorGenerator gen = retina_anchors ();
  int sizes[RN_MAX_LEVELS][2], valid[RN_MAX_LEVELS][2];
  int n_negative = 0, n_ignored = 0;
  gsize found = 0;

  feature_sizes (&gen, 192, 160, sizes);
  rn_anchors_valid (&gen, SIZES (sizes), 160, 128, valid);
  int64_t n = rn_anchors_count (&gen, SIZES (sizes));
  g_autofree int32_t *assigned = g_new (int32_t, n);
  RnStatus status = rn_assign (assigner, &gen, SIZES (sizes), SIZES (valid), golden_gts,
                               G_N_ELEMENTS (golden_gts), golden_ignores, G_N_ELEMENTS (golden_ignores),
                               &scratch, assigned);
  g_assert_cmpint (status, ==, RN_STATUS_OK);

  for (int64_t i = 0; i < n; i++)
    {
      n_negative += assigned[i] == RN_ASSIGN_NEGATIVE;
      n_ignored += assigned[i] == RN_ASSIGN_IGNORED;
      if (assigned[i] <= 0)
        continue;
      g_assert_cmpuint (found, <, n_positive);
      g_assert_cmpint (i, ==, positive[found]);
      g_assert_cmpint (assigned[i] - 1, ==, gt[found]);
      found++;
    }
  g_assert_cmpuint (found, ==, n_positive);
  g_assert_cmpint (n_negative, ==, negative_ignored[0]);
  g_assert_cmpint (n_ignored, ==, negative_ignored[1]);
}

static void
test_golden (void)
{
  RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;

  assert_golden (&assigner, golden_plain_positive, golden_plain_gt, G_N_ELEMENTS (golden_plain_gt),
                 golden_plain_negative_ignored);
  assigner.gt_max_assign_all = FALSE;
  assert_golden (&assigner, golden_first_positive, golden_first_gt, G_N_ELEMENTS (golden_first_gt),
                 golden_first_negative_ignored);
  assigner.gt_max_assign_all = TRUE;
  assigner.ignore_iof_thr = 0.5f;
  assigner.min_pos_iou = 0.3f;
  assert_golden (&assigner, golden_ignore_positive, golden_ignore_gt, G_N_ELEMENTS (golden_ignore_gt),
                 golden_ignore_negative_ignored);
}

/* ---- against the definition: all anchors times all boxes ---- */

static void
assign_by_matrix (const RnMaxIoUAssigner *assigner, const RnBox *anchors, const gboolean *takes_part, int n,
                  const RnBox *gts, int n_gt, int32_t *assigned)
{
  g_autofree float *iou = g_new (float, (gsize) n * n_gt);
  g_autofree float *gt_max = g_new (float, n_gt);

  for (int g = 0; g < n_gt; g++)
    gt_max[g] = -1;
  for (int i = 0; i < n; i++)
    {
      float best = -1;

      assigned[i] = RN_ASSIGN_IGNORED;
      for (int g = 0; g < n_gt && takes_part[i]; g++)
        {
          float v = iou[i * n_gt + g] = rn_box_iou (anchors[i], gts[g], FALSE);
          gt_max[g] = MAX (gt_max[g], v);
          if (v > best)
            {
              best = v;
              assigned[i] = g + 1;
            }
        }
      if (takes_part[i] && best < assigner->pos_iou_thr)
        assigned[i] = best < assigner->neg_iou_thr ? RN_ASSIGN_NEGATIVE : RN_ASSIGN_IGNORED;
    }
  for (int g = 0; g < n_gt; g++)
    for (int i = 0; i < n && gt_max[g] >= assigner->min_pos_iou; i++)
      if (takes_part[i] && iou[i * n_gt + g] == gt_max[g] && (gt_max[g] > 0 || assigner->match_zero_iou))
        assigned[i] = g + 1;
}

static void
assert_as_matrix (const RnMaxIoUAssigner *assigner, const RnAnchorGenerator *gen, const int (*sizes)[2],
                  const int (*valid)[2], const RnBox *gts, int n_gt, RnAssignScratch *scratch)
{
  int n = (int) rn_anchors_count (gen, sizes), i = 0;
  g_autofree RnBox *anchors = g_new (RnBox, n);
  g_autofree gboolean *takes_part = g_new (gboolean, n);
  g_autofree int32_t *assigned = g_new (int32_t, n), *expected = g_new (int32_t, n);

  rn_anchors_generate (gen, sizes, anchors);
  for (int level = 0; level < gen->n_levels; level++)
    for (int y = 0; y < sizes[level][0]; y++)
      for (int xa = 0; xa < sizes[level][1] * gen->n_per_cell; xa++)
        takes_part[i++] = y < valid[level][0] && xa < valid[level][1] * gen->n_per_cell;

  assign_by_matrix (assigner, anchors, takes_part, n, gts, n_gt, expected);
  RnStatus status = rn_assign (assigner, gen, sizes, valid, gts, n_gt, NULL, 0, scratch, assigned);
  g_assert_cmpint (status, ==, RN_STATUS_OK);
  g_assert_cmpmem (assigned, n * sizeof *assigned, expected, n * sizeof *expected);
}

/* Integer corners give many ties, also of boxes across and beyond the border of the image. */
static void
test_random (void)
{
  g_auto (RnAssignScratch) scratch = { 0 };
  RnAnchorGenerator gen = retina_anchors ();
  guint32 state = 1;

  for (int trial = 0; trial < 60; trial++)
    {
      RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
      int height = 32 * (1 + random_below (&state, 6)), width = 32 * (1 + random_below (&state, 6));
      int sizes[RN_MAX_LEVELS][2], valid[RN_MAX_LEVELS][2];
      int n_gt = 1 + random_below (&state, 12);
      RnBox gts[12];

      assigner.match_zero_iou = trial % 4 == 0;
      assigner.min_pos_iou = trial % 3 == 0 ? 0.2f : 0;
      for (int g = 0; g < n_gt; g++)
        {
          gts[g].x1 = (float) (random_below (&state, width + 60) - 30);
          gts[g].y1 = (float) (random_below (&state, height + 60) - 30);
          gts[g].x2 = gts[g].x1 + (float) random_below (&state, 100);
          gts[g].y2 = gts[g].y1 + (float) random_below (&state, 100);
        }
      feature_sizes (&gen, height, width, sizes);
      rn_anchors_valid (&gen, SIZES (sizes), height - 32 * random_below (&state, 2), width, valid);
      assert_as_matrix (&assigner, &gen, SIZES (sizes), SIZES (valid), gts, n_gt, &scratch);
    }
}

/* Rows around and above the length of a run, and up to the far end, where corners are rounded to eighths. */
static void
test_wide (void)
{
  const RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  const RnBox shapes[2] = { { -7.3f, -7.3f, 7.3f, 7.3f }, { -0.3f, -0.3f, 0.3f, 0.3f } };
  const int widths[] = { 1, 63, 64, 65, 127, 128, 129, 4000, RN_ANCHORS_MAX_SIDE };
  RnAnchorGenerator gen = anchors_from_boxes (shapes, 2);
  g_auto (RnAssignScratch) scratch = { 0 };

  gen.strides[0] = 1;
  for (gsize i = 0; i < G_N_ELEMENTS (widths); i++)
    {
      const int size[1][2] = { { 1, widths[i] } };
      float right = (float) widths[i];
      const RnBox gts[4] = {
        { -8, -8, right + 8, 8 },
        { right - 10, -7, right + 4, 7 },
        { right - 1.25f, 0, right - 0.75f, 0.25f },
        { right / 2, -3, right / 2 + 11, 8 },
      };

      assert_as_matrix (&assigner, &gen, size, size, gts, 4, &scratch);
    }
}

static void
test_hostile_sizes (void)
{
  const RnMaxIoUAssigner assigner = RN_MAX_IOU_ASSIGNER_INIT;
  g_auto (RnAssignScratch) scratch = { 0 };
  RnAnchorGenerator gen = anchors_from_boxes (small_anchors, 5);
  const int one[1][2] = { { 1, 1 } }, two[1][2] = { { 1, 2 } }, huge[1][2] = { { G_MAXINT, 1 } };
  int32_t assigned[5];

  RnStatus status = rn_assign (&assigner, &gen, huge, one, NULL, 0, NULL, 0, &scratch, assigned);
  g_assert_cmpint (status, ==, RN_STATUS_SHAPE);
  status = rn_assign (&assigner, &gen, one, two, NULL, 0, NULL, 0, &scratch, assigned);
  g_assert_cmpint (status, ==, RN_STATUS_SHAPE);
  status = rn_assign (&assigner, &gen, one, one, NULL, -1, NULL, 0, &scratch, assigned);
  g_assert_cmpint (status, ==, RN_STATUS_SHAPE);
  g_assert_cmpint (rn_assign_scratch_reserve (&scratch, G_MAXSIZE, 1), ==, RN_STATUS_MEMORY);
  g_assert_cmpint (rn_assign_scratch_reserve (&scratch, 1, G_MAXSIZE), ==, RN_STATUS_MEMORY);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/boxes/assign/two-boxes", test_two_boxes);
  g_test_add_func ("/boxes/assign/thresholds", test_thresholds);
  g_test_add_func ("/boxes/assign/later-box-wins", test_later_box_wins);
  g_test_add_func ("/boxes/assign/zero-iou", test_zero_iou);
  g_test_add_func ("/boxes/assign/no-boxes", test_no_boxes);
  g_test_add_func ("/boxes/assign/ignore", test_ignore);
  g_test_add_func ("/boxes/assign/golden", test_golden);
  g_test_add_func ("/boxes/assign/random", test_random);
  g_test_add_func ("/boxes/assign/wide", test_wide);
  g_test_add_func ("/boxes/assign/hostile-sizes", test_hostile_sizes);
  return g_test_run ();
}
