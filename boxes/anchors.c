#include <config.h>

#include "boxes/anchors.h"

#include <math.h>

#include "runner/base/error.h"

/* FALSE, with the bounds in the message, if @value (or its being a number) is out of them. */
static gboolean
check_bounds (const char *what, double value, double min, double max, GError **error)
{
  if (value >= min && value <= max)
    return TRUE;
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "anchors: %s is %g, not within %g to %g", what,
               value, min, max);
  return FALSE;
}

static gboolean
check_list (const char *what, const double *values, int n, double min, GError **error)
{
  for (int i = 0; i < n; i++)
    if (!check_bounds (what, values[i], min, RN_ANCHORS_MAX_SIDE, error))
      return FALSE;
  return TRUE;
}

static gboolean
check_spec (const RnAnchorSpec *spec, int n_scales, GError **error)
{
  const double tiny = 1.0 / RN_ANCHORS_MAX_SIDE;
  double n_per_cell = (double) n_scales * spec->n_ratios;

  if (!check_bounds ("number of levels", spec->n_levels, 1, RN_MAX_LEVELS, error)
      || !check_bounds ("number of scales", n_scales, 1, RN_MAX_ANCHORS_PER_CELL, error)
      || !check_bounds ("number of ratios", spec->n_ratios, 1, RN_MAX_ANCHORS_PER_CELL, error)
      || !check_bounds ("number of scales times ratios", n_per_cell, 1, RN_MAX_ANCHORS_PER_CELL, error)
      || !check_bounds ("center_offset", spec->center_offset, 0, 1, error)
      || !check_list ("a ratio", spec->ratios, spec->n_ratios, tiny, error)
      || !check_list ("a base size", spec->base_sizes, spec->n_levels, 0, error)
      || !check_list ("a scale", spec->scales, spec->n_scales, tiny, error))
    return FALSE;
  if (spec->n_scales == 0
      && !check_bounds ("octave_base_scale", spec->octave_base_scale, tiny, RN_ANCHORS_MAX_SIDE, error))
    return FALSE;
  for (int i = 0; i < spec->n_levels; i++)
    if (!check_bounds ("a stride", spec->strides[i], 1, RN_ANCHORS_MAX_SIDE, error))
      return FALSE;
  return TRUE;
}

/* In float32 and in the order of MMDetection's gen_single_level_base_anchors, to get the same bits. */
static RnBox
base_anchor (float base_size, float scale, float ratio, float center, gboolean scale_major)
{
  float h_ratio = sqrtf (ratio), w_ratio = 1 / h_ratio;
  float w = scale_major ? base_size * w_ratio * scale : base_size * scale * w_ratio;
  float h = scale_major ? base_size * h_ratio * scale : base_size * scale * h_ratio;

  return (RnBox) { center - 0.5f * w, center - 0.5f * h, center + 0.5f * w, center + 0.5f * h };
}

gboolean
rn_anchors_init (RnAnchorGenerator *gen, const RnAnchorSpec *spec, GError **error)
{
  int n_scales = spec->n_scales > 0 ? spec->n_scales : spec->scales_per_octave;
  int n_ratios = spec->n_ratios;

  if (!check_spec (spec, n_scales, error))
    return FALSE;

  *gen = (RnAnchorGenerator) { .n_levels = spec->n_levels, .n_per_cell = n_scales * n_ratios };
  for (int level = 0; level < spec->n_levels; level++)
    {
      double base_size = spec->base_sizes[level] > 0 ? spec->base_sizes[level] : spec->strides[level];
      float center = (float) (spec->center_offset * base_size);

      gen->strides[level] = spec->strides[level];
      for (int a = 0; a < gen->n_per_cell; a++)
        {
          int s = spec->scale_major ? a % n_scales : a / n_ratios;
          int r = spec->scale_major ? a / n_scales : a % n_ratios;
          double octave = spec->octave_base_scale * exp2 ((double) s / n_scales);
          float scale = (float) (spec->n_scales > 0 ? spec->scales[s] : octave);
          float ratio = (float) spec->ratios[r];
          RnBox box = base_anchor ((float) base_size, scale, ratio, center, spec->scale_major);

          if (!check_bounds ("an anchor's width", box.x2 - box.x1, 0, RN_ANCHORS_MAX_SIDE, error)
              || !check_bounds ("an anchor's height", box.y2 - box.y1, 0, RN_ANCHORS_MAX_SIDE, error))
            return FALSE;
          gen->base[level][a] = box;
        }
    }
  return TRUE;
}

int64_t
rn_anchors_count (const RnAnchorGenerator *gen, const int (*sizes)[2])
{
  int64_t n = 0;

  for (int level = 0; level < gen->n_levels; level++)
    {
      int64_t h = sizes[level][0], w = sizes[level][1], stride = gen->strides[level];
      if (h < 0 || w < 0 || h * stride > RN_ANCHORS_MAX_SIDE || w * stride > RN_ANCHORS_MAX_SIDE)
        return -1;
      n += h * w * gen->n_per_cell; /* below 2^45: the sum cannot overflow */
    }
  return n <= G_MAXINT32 ? n : -1;
}

void
rn_anchors_generate (const RnAnchorGenerator *gen, const int (*sizes)[2], RnBox *anchors)
{
  for (int level = 0; level < gen->n_levels; level++)
    for (int y = 0; y < sizes[level][0]; y++)
      for (int x = 0; x < sizes[level][1]; x++)
        for (int a = 0; a < gen->n_per_cell; a++)
          *anchors++ = rn_anchors_at (gen, level, y, x, a);
}

RnBox
rn_anchors_nth (const RnAnchorGenerator *gen, const int (*sizes)[2], int64_t number)
{
  int level = 0;

  for (; level < gen->n_levels - 1; level++)
    {
      int64_t n_level = (int64_t) sizes[level][0] * sizes[level][1] * gen->n_per_cell;
      if (number < n_level)
        break;
      number -= n_level;
    }
  return rn_anchors_in_level (gen, level, sizes[level][1], number);
}

/* Cells of @stride pixels that @pixels touch, at most @cells. */
static int
covered_cells (int pixels, int stride, int cells)
{
  int64_t n = ((int64_t) pixels + stride - 1) / stride;
  return (int) CLAMP (n, 0, cells);
}

void
rn_anchors_valid (const RnAnchorGenerator *gen, const int (*sizes)[2], int pad_height, int pad_width,
                  int (*valid)[2])
{
  for (int level = 0; level < gen->n_levels; level++)
    {
      valid[level][0] = covered_cells (pad_height, gen->strides[level], sizes[level][0]);
      valid[level][1] = covered_cells (pad_width, gen->strides[level], sizes[level][1]);
    }
}
