/* Ticks lie on round numbers inside the axis, and their labels tell them apart. */
#include "config.h"

#include "runner/draw/axis.h"

#include <float.h>
#include <glib.h>
#include <math.h>
#include <string.h>

/* "0 0.5 1": the labels of all ticks. (transfer full) */
static char *
labels (const RnAxis *axis)
{
  GString *text = g_string_new (NULL);

  for (int i = 0; i < axis->n_ticks; i++)
    {
      g_autofree char *label = rn_axis_label (axis, axis->ticks[i]);
      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", label);
    }
  return g_string_free (text, FALSE);
}

static void
test_labels (void)
{
  static const struct
  {
    RnScale scale;
    double min, max;
    gboolean is_fixed, percent;
    const char *labels;
  } cases[] = {
    { RN_SCALE_LINEAR, 0, 1, TRUE, FALSE, "0 0.2 0.4 0.6 0.8 1.0" },
    { RN_SCALE_LINEAR, 0, 1, TRUE, TRUE, "0% 20% 40% 60% 80% 100%" },
    { RN_SCALE_LINEAR, 0.013, 0.97, FALSE, FALSE, "0 0.2 0.4 0.6 0.8 1.0" },
    { RN_SCALE_LINEAR, 1, 2100, TRUE, FALSE, "500 1000 1500 2000" },
    { RN_SCALE_LINEAR, 0, 99308, TRUE, FALSE, "0 20k 40k 60k 80k" },
    { RN_SCALE_LINEAR, 0, 2.3e6, TRUE, FALSE, "0 0.5M 1.0M 1.5M 2.0M" },
    { RN_SCALE_LINEAR, -0.3, 0.3, FALSE, FALSE, "-0.4 -0.2 0 0.2 0.4" },
    { RN_SCALE_LINEAR, 0, 2e-5, FALSE, FALSE, "0 5e-06 1e-05 1.5e-05 2e-05" },
    { RN_SCALE_LINEAR, 760, 760, TRUE, FALSE, "720 740 760 780 800" },
    { RN_SCALE_LINEAR, 0, 0, TRUE, FALSE, "0 0.2 0.4 0.6 0.8 1.0" },
    { RN_SCALE_LOG, 0.0013, 40, FALSE, FALSE, "0.001 0.01 0.1 1 10 100" },
    { RN_SCALE_LOG, 1, 100, FALSE, FALSE, "1 2 5 10 20 50 100" },
    { RN_SCALE_LOG, 1e-12, 1e12, FALSE, FALSE, "1e-12 1e-07 0.01 1000 100M" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnAxis axis;
      rn_axis_init (&axis, cases[i].scale, cases[i].min, cases[i].max, cases[i].is_fixed, 5);
      axis.percent = cases[i].percent;
      g_autofree char *text = labels (&axis);
      g_assert_cmpstr (text, ==, cases[i].labels);
    }
}

static void
test_place (void)
{
  RnAxis axis;

  rn_axis_init (&axis, RN_SCALE_LINEAR, 10, 20, TRUE, 5);
  g_assert_cmpfloat (rn_axis_place (&axis, 10), ==, 0);
  g_assert_cmpfloat (rn_axis_place (&axis, 12.5), ==, 0.25);
  g_assert_true (isnan (rn_axis_place (&axis, NAN)));
  rn_axis_init (&axis, RN_SCALE_LOG, 1, 100, TRUE, 5);
  g_assert_cmpfloat_with_epsilon (rn_axis_place (&axis, 10), 0.5, DBL_EPSILON);
  g_assert_true (isnan (rn_axis_place (&axis, 0)));
}

/* Whatever the range: the axis has a length, holds its data, and its ticks lie on it. Below 1e-298 all is
 * zero. */
static void
test_any_range (void)
{
  static const double values[] = { -1e300,  -1e15,      -3,   -1e-5,    -1e-300, 0,
                                   DBL_MIN, 1e-300,     1e-5, 0.1,      1,       1.0000000001,
                                   1e9,     1e9 + 1e-7, 1e15, 1e15 + 1, 1e300 };

  for (int scale = RN_SCALE_LINEAR; scale <= RN_SCALE_LOG; scale++)
    for (gsize i = 0; i < G_N_ELEMENTS (values); i++)
      for (gsize k = i; k < G_N_ELEMENTS (values); k++)
        for (int is_fixed = 0; is_fixed < 2; is_fixed++)
          {
            const double slack = (values[k] - values[i]) * 1e-6 + 1e-298; /* far less than a pixel */
            RnAxis axis;

            if (scale == RN_SCALE_LOG && values[i] <= 0)
              continue;
            rn_axis_init (&axis, (RnScale) scale, values[i], values[k], is_fixed, 5);
            g_assert_true (isfinite (axis.min) && isfinite (axis.max));
            g_assert_cmpfloat (axis.min, <, axis.max);
            g_assert_cmpfloat (axis.min, <=, values[i] + slack);
            g_assert_cmpfloat (axis.max, >=, values[k] - slack);
            g_assert_cmpint (axis.n_ticks, <=, RN_AXIS_MAX_TICKS);
            for (int t = 0; t < axis.n_ticks; t++)
              {
                g_autofree char *label = rn_axis_label (&axis, axis.ticks[t]);
                g_assert_cmpfloat (axis.ticks[t], >=, axis.min);
                g_assert_cmpfloat (axis.ticks[t], <=, axis.max);
                g_assert_cmpuint (strlen (label), >, 0);
              }
          }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draw/axis/labels", test_labels);
  g_test_add_func ("/draw/axis/place", test_place);
  g_test_add_func ("/draw/axis/any-range", test_any_range);
  return g_test_run ();
}
