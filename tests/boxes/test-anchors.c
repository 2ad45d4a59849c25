#include <config.h>

#include <math.h>
#include <string.h>

#include "boxes/anchors.h"
#include "runner/base/error.h"
#include "tests/boxes/fixtures.h"
#include "tests/boxes/golden.h"

static void
assert_same_boxes (const RnBox *boxes, const RnBox *expected, int n)
{
  for (int i = 0; i < n; i++)
    {
      g_assert_cmpfloat (boxes[i].x1, ==, expected[i].x1);
      g_assert_cmpfloat (boxes[i].y1, ==, expected[i].y1);
      g_assert_cmpfloat (boxes[i].x2, ==, expected[i].x2);
      g_assert_cmpfloat (boxes[i].y2, ==, expected[i].y2);
    }
}

/* The stride-8 table of RetinaNet to four decimals, and all levels to the last bit. */
static void
test_base (void)
{
  const float table[9][2] = {
    { -22.6274f, -11.3137f }, { -28.5088f, -14.2544f }, { -35.9188f, -17.9594f },
    { -16.0000f, -16.0000f }, { -20.1587f, -20.1587f }, { -25.3984f, -25.3984f },
    { -11.3137f, -22.6274f }, { -14.2544f, -28.5088f }, { -17.9594f, -35.9188f },
  };
  RnAnchorGenerator gen = retina_anchors ();

  g_assert_cmpint (gen.n_per_cell, ==, 9);
  for (int a = 0; a < 9; a++)
    {
      g_assert_cmpfloat_with_epsilon (gen.base[0][a].x1, table[a][0], 5e-5);
      g_assert_cmpfloat_with_epsilon (gen.base[0][a].y1, table[a][1], 5e-5);
    }
  for (int level = 0; level < 5; level++)
    assert_same_boxes (gen.base[level], &golden_base_retina[level * 9], 9);
}

static void
test_scale_minor (void)
{
  const RnAnchorSpec spec = {
    .n_levels = 1,
    .strides = { 16 },
    .base_sizes = { 12 },
    .n_scales = 2,
    .scales = { 2.5, 7 },
    .n_ratios = 3,
    .ratios = { 0.4, 1, 3 },
    .center_offset = 0.5,
    .scale_major = FALSE,
  };
  RnAnchorGenerator gen;

  g_assert_true (rn_anchors_init (&gen, &spec, NULL));
  g_assert_cmpint (gen.n_per_cell, ==, 6);
  assert_same_boxes (gen.base[0], golden_base_scale_minor, 6);
}

static void
test_counts (void)
{
  const struct { int height, width; int64_t anchors; } cases[] = {
    { 608, 800, 91260 },   { 608, 928, 105849 }, { 608, 1024, 116712 },
    { 800, 1344, 201600 }, { 320, 320, 19206 },
  };
  RnAnchorGenerator gen = retina_anchors ();
  int sizes[RN_MAX_LEVELS][2];

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      feature_sizes (&gen, cases[i].height, cases[i].width, sizes);
      g_assert_cmpint (rn_anchors_count (&gen, SIZES (sizes)), ==, cases[i].anchors);
    }
}

static void
test_order (void)
{
  RnAnchorGenerator gen = retina_anchors ();
  int sizes[RN_MAX_LEVELS][2];
  int64_t i = 0;

  feature_sizes (&gen, 96, 160, sizes);
  int64_t n = rn_anchors_count (&gen, SIZES (sizes));
  g_autofree RnBox *all = g_new (RnBox, n);
  rn_anchors_generate (&gen, SIZES (sizes), all);
  for (int level = 0; level < 5; level++)
    for (int y = 0; y < sizes[level][0]; y++)
      for (int x = 0; x < sizes[level][1]; x++)
        for (int a = 0; a < 9; a++, i++)
          {
            RnBox expected = gen.base[level][a];
            float dx = (float) (x * gen.strides[level]), dy = (float) (y * gen.strides[level]);

            expected.x1 += dx, expected.x2 += dx, expected.y1 += dy, expected.y2 += dy;
            assert_same_boxes (&all[i], &expected, 1);
            RnBox nth = rn_anchors_nth (&gen, SIZES (sizes), i);
            assert_same_boxes (&nth, &expected, 1);
          }
  g_assert_cmpint (i, ==, n);
}

static void
test_valid (void)
{
  const int cells[5] = { 80, 40, 20, 10, 5 }, anchors[5] = { 57600, 14400, 3600, 900, 225 };
  RnAnchorGenerator gen = retina_anchors ();
  int sizes[RN_MAX_LEVELS][2], valid[RN_MAX_LEVELS][2];

  feature_sizes (&gen, 704, 1024, sizes);
  rn_anchors_valid (&gen, SIZES (sizes), 640, 640, valid);
  for (int level = 0; level < 5; level++)
    {
      g_assert_cmpint (valid[level][0], ==, cells[level]);
      g_assert_cmpint (valid[level][1], ==, cells[level]);
      g_assert_cmpint (valid[level][0] * valid[level][1] * 9, ==, anchors[level]);
    }

  /* A part of a cell counts; more than there is does not; less than nothing is nothing. */
  rn_anchors_valid (&gen, SIZES (sizes), 65, G_MAXINT, valid);
  g_assert_cmpint (valid[3][0], ==, 2);
  g_assert_cmpint (valid[3][1], ==, sizes[3][1]);
  rn_anchors_valid (&gen, SIZES (sizes), -640, 0, valid);
  g_assert_cmpint (valid[0][0], ==, 0);
  g_assert_cmpint (valid[0][1], ==, 0);
}

static void
test_hostile_sizes (void)
{
  RnAnchorGenerator gen = retina_anchors ();
  int sizes[RN_MAX_LEVELS][2] = { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };

  g_assert_cmpint (rn_anchors_count (&gen, SIZES (sizes)), ==, 45);
  sizes[2][0] = -1;
  g_assert_cmpint (rn_anchors_count (&gen, SIZES (sizes)), ==, -1);
  sizes[2][0] = G_MAXINT;
  g_assert_cmpint (rn_anchors_count (&gen, SIZES (sizes)), ==, -1);
  sizes[2][0] = 1;
  sizes[0][0] = sizes[0][1] = RN_ANCHORS_MAX_SIDE / 8; /* each side is allowed, 2^34 * 9 anchors are not */
  g_assert_cmpint (rn_anchors_count (&gen, SIZES (sizes)), ==, -1);
}

static void
assert_refused (const RnAnchorSpec *spec, const char *what)
{
  g_autoptr (GError) error = NULL;
  RnAnchorGenerator gen;

  g_assert_false (rn_anchors_init (&gen, spec, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  g_assert_nonnull (strstr (error->message, what));
}

static void
test_hostile_spec (void)
{
  RnAnchorSpec spec;

  spec = retina_spec (), spec.n_levels = RN_MAX_LEVELS + 1;
  assert_refused (&spec, "levels");
  spec = retina_spec (), spec.n_levels = 0;
  assert_refused (&spec, "levels");
  spec = retina_spec (), spec.strides[4] = 0;
  assert_refused (&spec, "stride");
  spec = retina_spec (), spec.scales_per_octave = 0;
  assert_refused (&spec, "scales");
  spec = retina_spec (), spec.scales_per_octave = 11;
  assert_refused (&spec, "scales times ratios");
  spec = retina_spec (), spec.scales_per_octave = G_MAXINT;
  assert_refused (&spec, "scales");
  spec = retina_spec (), spec.n_scales = -1, spec.scales_per_octave = -1;
  assert_refused (&spec, "scales");
  spec = retina_spec (), spec.octave_base_scale = 0;
  assert_refused (&spec, "octave_base_scale");
  spec = retina_spec (), spec.octave_base_scale = 1e5; /* 128 * 1e5 pixels */
  assert_refused (&spec, "width");
  spec = retina_spec (), spec.ratios[1] = (double) NAN;
  assert_refused (&spec, "ratio");
  spec = retina_spec (), spec.base_sizes[1] = (double) INFINITY;
  assert_refused (&spec, "base size");
  spec = retina_spec (), spec.center_offset = 1.5;
  assert_refused (&spec, "center_offset");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/boxes/anchors/base", test_base);
  g_test_add_func ("/boxes/anchors/scale-minor", test_scale_minor);
  g_test_add_func ("/boxes/anchors/counts", test_counts);
  g_test_add_func ("/boxes/anchors/order", test_order);
  g_test_add_func ("/boxes/anchors/valid", test_valid);
  g_test_add_func ("/boxes/anchors/hostile-sizes", test_hostile_sizes);
  g_test_add_func ("/boxes/anchors/hostile-spec", test_hostile_spec);
  return g_test_run ();
}
