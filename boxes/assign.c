#include <config.h>

#include "boxes/assign.h"

#include <math.h>

/* max_iou of anchors that take no part: outside the image, or covered by an ignore box. */
#define NO_PART (-1)

typedef struct
{
  const RnAnchorGenerator *gen;
  const int (*sizes)[2];
  const int (*valid)[2];
} Grid;

/* Half-open range of rows or columns. */
typedef struct
{
  int first, end;
} Span;

#define RUN_MAX 64

/*
 * Walks over all anchors that may overlap a box, in runs: up to RUN_MAX neighbours of one shape in one row.
 * Every IoU comes from here, through a float in memory, so that a pair's IoU has the same bits each time.
 */
typedef struct
{
  const Grid *grid;
  RnBox box;
  int level, a, y, x;   /* of the run's first anchor */
  Span rows, cols;      /* of this level and shape */
  int64_t level_offset; /* number of the level's first anchor */

  int64_t index;        /* number of the run's first anchor; the next ones are n_per_cell apart */
  int n;                /* anchors in the run */
  float iou[RUN_MAX];
} Walk;

/*
 * Of @n cells, @stride apart, those where an anchor that reaches from @lo to @hi in cell 0 may overlap the
 * range @box_lo to @box_hi. One cell more on each side, for the rounding of the anchors' corners (below a
 * pixel, see RN_ANCHORS_MAX_SIDE).
 */
static Span
touching_cells (float lo, float hi, float box_lo, float box_hi, int stride, int n)
{
  double first = floor (((double) box_lo - hi) / stride);
  double end = ceil (((double) box_hi - lo) / stride) + 1;
  return (Span) { (int) CLAMP (first, 0, n), (int) CLAMP (end, 0, n) };
}

static void
walk_enter_shape (Walk *walk)
{
  const RnAnchorGenerator *gen = walk->grid->gen;
  const int *valid = walk->grid->valid[walk->level];
  RnBox base = gen->base[walk->level][walk->a];
  int stride = gen->strides[walk->level];

  walk->rows = touching_cells (base.y1, base.y2, walk->box.y1, walk->box.y2, stride, valid[0]);
  walk->cols = touching_cells (base.x1, base.x2, walk->box.x1, walk->box.x2, stride, valid[1]);
  if (walk->cols.first >= walk->cols.end)
    walk->rows.end = walk->rows.first;
  walk->y = walk->rows.first;
  walk->x = walk->cols.first;
  walk->n = 0;
}

static Walk
walk_start (const Grid *grid, RnBox box)
{
  Walk walk = { .grid = grid, .box = box };

  if (rn_box_is_finite (box))
    walk_enter_shape (&walk);
  else
    walk.level = grid->gen->n_levels;
  return walk;
}

/* Shifts corners as rn_anchors_at does. */
static void
walk_compute (Walk *walk)
{
  const RnAnchorGenerator *gen = walk->grid->gen;
  const RnBox box = walk->box, first = rn_anchors_at (gen, walk->level, walk->y, 0, walk->a);
  const int n = walk->n, x = walk->x, stride = gen->strides[walk->level];
  float *iou = walk->iou;

#pragma omp simd
  for (int i = 0; i < n; i++)
    {
      float dx = (float) ((x + i) * stride);
      RnBox anchor = { first.x1 + dx, first.y1, first.x2 + dx, first.y2 };
      iou[i] = rn_box_iou (anchor, box, FALSE);
    }
}

/* Goes to the next run. FALSE after the last one. */
static gboolean
walk_next (Walk *walk)
{
  const RnAnchorGenerator *gen = walk->grid->gen;

  if (walk->level >= gen->n_levels)
    return FALSE;
  walk->x += walk->n;
  if (walk->x >= walk->cols.end)
    {
      walk->x = walk->cols.first;
      walk->y++;
    }
  while (walk->y >= walk->rows.end)
    {
      const int *size = walk->grid->sizes[walk->level];
      if (++walk->a == gen->n_per_cell)
        {
          walk->a = 0;
          walk->level_offset += (int64_t) size[0] * size[1] * gen->n_per_cell;
          if (++walk->level == gen->n_levels)
            return FALSE;
        }
      walk_enter_shape (walk);
    }
  int64_t cell = (int64_t) walk->y * walk->grid->sizes[walk->level][1] + walk->x;
  walk->index = walk->level_offset + cell * gen->n_per_cell + walk->a;
  walk->n = MIN (walk->cols.end - walk->x, RUN_MAX);
  walk_compute (walk);
  return TRUE;
}

RnStatus
rn_assign_scratch_reserve (RnAssignScratch *scratch, gsize n_anchors, gsize n_gt)
{
  if (n_anchors > scratch->n_anchors)
    {
      float *max_iou = g_try_realloc_n (scratch->max_iou, n_anchors, sizeof *max_iou);
      if (max_iou == NULL)
        return RN_STATUS_MEMORY;
      scratch->max_iou = max_iou;
      scratch->n_anchors = n_anchors;
    }
  if (n_gt > scratch->n_gt)
    {
      float *gt_max = g_try_realloc_n (scratch->gt_max, n_gt, sizeof *gt_max);
      if (gt_max == NULL)
        return RN_STATUS_MEMORY;
      scratch->gt_max = gt_max;
      scratch->n_gt = n_gt;
    }
  return RN_STATUS_OK;
}

void
rn_assign_scratch_clear (RnAssignScratch *scratch)
{
  g_free (scratch->max_iou);
  g_free (scratch->gt_max);
  *scratch = (RnAssignScratch) { 0 };
}

/* Anchors outside the image take no part; the others begin with IoU 0 and the value @start. */
static void
begin (const Grid *grid, float *max_iou, int32_t start, int32_t *assigned)
{
  int n_per_cell = grid->gen->n_per_cell;

  for (int level = 0; level < grid->gen->n_levels; level++)
    for (int y = 0; y < grid->sizes[level][0]; y++)
      {
        int64_t row = (int64_t) grid->sizes[level][1] * n_per_cell;
        int64_t n_inside = y < grid->valid[level][0] ? (int64_t) grid->valid[level][1] * n_per_cell : 0;

        for (int64_t i = 0; i < row; i++)
          {
            max_iou[i] = i < n_inside ? 0 : NO_PART;
            assigned[i] = i < n_inside ? start : RN_ASSIGN_IGNORED;
          }
        max_iou += row;
        assigned += row;
      }
}

static void
exclude_covered (const Grid *grid, RnBox ignore, const RnMaxIoUAssigner *assigner, float *max_iou)
{
  Walk walk = walk_start (grid, ignore);

  while (walk_next (&walk))
    for (int i = 0; i < walk.n; i++)
      {
        RnBox anchor = rn_anchors_at (grid->gen, walk.level, walk.y, walk.x + i, walk.a);
        gboolean of_anchor = assigner->ignore_wrt_candidates;
        float cover = of_anchor ? rn_box_iof (anchor, ignore) : rn_box_iof (ignore, anchor);

        if (cover > assigner->ignore_iof_thr)
          max_iou[walk.index + (int64_t) i * grid->gen->n_per_cell] = NO_PART;
      }
}

/* Moves the anchors that @gt overlaps more than any box before to it. Returns its best IoU. */
static float
claim (const Grid *grid, RnBox gt, int32_t value, float *max_iou, int32_t *assigned)
{
  Walk walk = walk_start (grid, gt);
  float best = 0;

  while (walk_next (&walk))
    for (int i = 0; i < walk.n; i++)
      {
        int64_t index = walk.index + (int64_t) i * grid->gen->n_per_cell;
        float iou = walk.iou[i];

        if (max_iou[index] == NO_PART)
          continue;
        best = MAX (best, iou);
        if (iou > max_iou[index])
          {
            max_iou[index] = iou;
            assigned[index] = value;
          }
      }
  return best;
}

/* Gives @value to the anchors at IoU @best (> 0) with @gt, or only to the first of them. */
static void
take_best (const Grid *grid, RnBox gt, float best, gboolean all, int32_t value, const float *max_iou,
           int32_t *assigned)
{
  Walk walk = walk_start (grid, gt);
  int64_t first = G_MAXINT64;

  while (walk_next (&walk))
    for (int i = 0; i < walk.n; i++)
      {
        int64_t index = walk.index + (int64_t) i * grid->gen->n_per_cell;

        if (max_iou[index] == NO_PART || walk.iou[i] != best)
          continue;
        first = MIN (first, index);
        if (all)
          assigned[index] = value;
      }
  if (first < G_MAXINT64)
    assigned[first] = value;
}

/* The same for a box whose best IoU is 0: all anchors are at it. */
static void
take_any (int64_t n_anchors, gboolean all, int32_t value, const float *max_iou, int32_t *assigned)
{
  for (int64_t i = 0; i < n_anchors; i++)
    if (max_iou[i] != NO_PART)
      {
        assigned[i] = value;
        if (!all)
          return;
      }
}

static gboolean
valid_fits (const Grid *grid)
{
  for (int level = 0; level < grid->gen->n_levels; level++)
    for (int d = 0; d < 2; d++)
      if (grid->valid[level][d] < 0 || grid->valid[level][d] > grid->sizes[level][d])
        return FALSE;
  return TRUE;
}

RnStatus
rn_assign (const RnMaxIoUAssigner *assigner, const RnAnchorGenerator *gen, const int (*sizes)[2],
           const int (*valid)[2], const RnBox *gts, int n_gt, const RnBox *ignores, int n_ignore,
           RnAssignScratch *scratch, int32_t *assigned)
{
  const Grid grid = { gen, sizes, valid };
  int64_t n_anchors = rn_anchors_count (gen, sizes);

  if (n_anchors < 0 || n_gt < 0 || n_ignore < 0 || !valid_fits (&grid))
    return RN_STATUS_SHAPE;
  RnStatus status = rn_assign_scratch_reserve (scratch, (gsize) n_anchors, (gsize) n_gt);
  if (status != RN_STATUS_OK)
    return status;

  float *max_iou = scratch->max_iou;
  begin (&grid, max_iou, n_gt > 0 ? 1 : RN_ASSIGN_NEGATIVE, assigned);
  if (n_gt == 0)
    return RN_STATUS_OK;

  for (int i = 0; i < n_ignore && assigner->ignore_iof_thr > 0; i++)
    exclude_covered (&grid, ignores[i], assigner, max_iou);
  for (int g = 0; g < n_gt; g++)
    scratch->gt_max[g] = claim (&grid, gts[g], g + 1, max_iou, assigned);

  for (int64_t i = 0; i < n_anchors; i++)
    if (max_iou[i] == NO_PART)
      assigned[i] = RN_ASSIGN_IGNORED;
    else if (max_iou[i] < assigner->pos_iou_thr)
      assigned[i] = max_iou[i] < assigner->neg_iou_thr ? RN_ASSIGN_NEGATIVE : RN_ASSIGN_IGNORED;

  for (int g = 0; g < n_gt && assigner->match_low_quality; g++)
    {
      float best = scratch->gt_max[g];

      if (best < assigner->min_pos_iou)
        continue;
      if (best > 0)
        take_best (&grid, gts[g], best, assigner->gt_max_assign_all, g + 1, max_iou, assigned);
      else if (assigner->match_zero_iou)
        take_any (n_anchors, assigner->gt_max_assign_all, g + 1, max_iou, assigned);
    }
  return RN_STATUS_OK;
}
