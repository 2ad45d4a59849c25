/* fixtures.h: RetinaNet's anchors, and numbers that look random and are the same everywhere. */
#ifndef TESTS_BOXES_FIXTURES_H
#define TESTS_BOXES_FIXTURES_H

#include <glib.h>
#include "boxes/anchors.h"

#define SIZES(s) ((const int (*)[2]) (s))

static inline RnAnchorSpec
retina_spec (void)
{
  return (RnAnchorSpec) {
    .n_levels = 5,
    .strides = { 8, 16, 32, 64, 128 },
    .octave_base_scale = 4,
    .scales_per_octave = 3,
    .n_ratios = 3,
    .ratios = { 0.5, 1, 2 },
    .scale_major = TRUE,
  };
}

static inline RnAnchorGenerator
retina_anchors (void)
{
  RnAnchorGenerator gen;
  RnAnchorSpec spec = retina_spec ();
  GError *error = NULL;

  g_assert_true (rn_anchors_init (&gen, &spec, &error));
  g_assert_no_error (error);
  return gen;
}

/* One level with one cell, whose anchors are @boxes. */
static inline RnAnchorGenerator
anchors_from_boxes (const RnBox *boxes, int n)
{
  RnAnchorGenerator gen = { .n_levels = 1, .n_per_cell = n, .strides = { 8 } };

  g_assert_cmpint (n, <=, RN_MAX_ANCHORS_PER_CELL);
  for (int a = 0; a < n; a++)
    gen.base[0][a] = boxes[a];
  return gen;
}

/* Feature sizes of strided layers that round up. */
static inline void
feature_sizes (const RnAnchorGenerator *gen, int height, int width, int (*sizes)[2])
{
  for (int level = 0; level < gen->n_levels; level++)
    {
      sizes[level][0] = (height + gen->strides[level] - 1) / gen->strides[level];
      sizes[level][1] = (width + gen->strides[level] - 1) / gen->strides[level];
    }
}

/* xorshift32 (Marsaglia, 2003); @state is not 0. */
static inline guint32
next_random (guint32 *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

/* 0 to @n - 1 */
static inline int
random_below (guint32 *state, int n)
{
  return (int) (next_random (state) % (guint32) n);
}

#endif
