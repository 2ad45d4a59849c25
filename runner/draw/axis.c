#include "config.h"

#include "runner/draw/axis.h"

#include <float.h>
#include <math.h>

/* Shorter ranges, relative to the numbers in them, cannot be labelled with the digits of a double. */
#define MIN_SPAN 1e-9

/* 1, 2 or 5 times a power of ten, not below @x, which is positive. */
static double
round_step (double x)
{
  double power = pow (10, floor (log10 (x))), part = x / power;
  return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void
add_tick (RnAxis *axis, double value)
{
  double slack = axis->scale == RN_SCALE_LOG ? value * 1e-9 : axis->step * 1e-6;
  if (axis->n_ticks < RN_AXIS_MAX_TICKS && value >= axis->min - slack && value <= axis->max + slack)
    axis->ticks[axis->n_ticks++] = CLAMP (value, axis->min, axis->max);
}

static void
init_linear (RnAxis *axis, gboolean is_fixed, int n_ticks)
{
  double size = MAX (fabs (axis->min), fabs (axis->max)), extra = size * 0.05;

  if (size < DBL_MIN / MIN_SPAN) /* all zero, or as good as */
    {
      axis->min = 0;
      axis->max = 1;
    }
  else if (axis->max - axis->min < size * MIN_SPAN)
    {
      axis->min -= extra;
      axis->max += extra;
      is_fixed = FALSE;
    }
  axis->step = round_step ((axis->max - axis->min) / n_ticks);
  double first = floor (axis->min / axis->step + 1e-9), last = ceil (axis->max / axis->step - 1e-9);
  if (!is_fixed)
    {
      axis->min = first * axis->step;
      axis->max = last * axis->step;
    }
  for (int i = 0; i <= RN_AXIS_MAX_TICKS && first + i <= last; i++)
    add_tick (axis, (first + i) * axis->step);
}

static void
init_log (RnAxis *axis, gboolean is_fixed, int n_ticks)
{
  if (!(axis->max > axis->min * (1 + MIN_SPAN)))
    {
      axis->min = MAX (axis->min / 2, DBL_MIN);
      axis->max = MIN (axis->max * 2, DBL_MAX);
    }
  int low = (int) floor (log10 (axis->min) + 1e-9), high = (int) ceil (log10 (axis->max) - 1e-9);
  if (!is_fixed && high - low > 2)
    {
      axis->min = pow (10, low);
      axis->max = pow (10, high);
    }
  int by = MAX ((high - low + n_ticks - 1) / n_ticks, 1);
  for (int power = low; power <= high; power += by)
    for (int k = 1; k <= 5; k = k == 1 ? 2 : k + 3)
      if (k == 1 || high - low <= 2)
        add_tick (axis, k * pow (10, power));
  axis->step = 0;
}

void
rn_axis_init (RnAxis *axis, RnScale scale, double min, double max, gboolean is_fixed, int n_ticks)
{
  *axis = (RnAxis){ .scale = scale, .min = min, .max = max };
  if (scale == RN_SCALE_LOG)
    init_log (axis, is_fixed, n_ticks);
  else
    init_linear (axis, is_fixed, n_ticks);
}

double
rn_axis_place (const RnAxis *axis, double value)
{
  if (!isfinite (value) || (axis->scale == RN_SCALE_LOG && value <= 0))
    return (double) NAN;
  if (axis->scale == RN_SCALE_LOG)
    return log (value / axis->min) / log (axis->max / axis->min);
  return (value - axis->min) / (axis->max - axis->min);
}

/* With as many decimals as steps of @step need, and no zeros at the end without a step. */
static char *
format (double value, double step, const char *unit)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE], pattern[16];
  int decimals = step > 0 ? (int) CLAMP (-floor (log10 (step) + 1e-9), 0, 9) : 0;

  g_snprintf (pattern, sizeof pattern, step > 0 ? "%%.%df" : "%%.4g", decimals);
  g_ascii_formatd (text, sizeof text, pattern, value == 0 ? 0 : value); /* no -0 */
  return g_strconcat (text, unit, NULL);
}

char *
rn_axis_label (const RnAxis *axis, double value)
{
  static const struct
  {
    double size;
    const char *unit;
  } units[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e4, "k" } };
  double size = axis->scale == RN_SCALE_LOG ? fabs (value) : MAX (fabs (axis->min), fabs (axis->max));

  if (axis->step > 0 && fabs (value) < axis->step * 1e-6)
    value = 0;
  if (axis->percent)
    return format (value * 100, axis->step * 100, "%");
  if (value == 0)
    return g_strdup ("0");
  if (size >= 1e13 || size < 1e-3)
    {
      char text[G_ASCII_DTOSTR_BUF_SIZE];
      return g_strdup (g_ascii_formatd (text, sizeof text, "%.3g", value));
    }
  for (gsize i = 0; i < G_N_ELEMENTS (units); i++)
    if (size >= units[i].size)
      {
        double by = units[i].size == 1e4 ? 1e3 : units[i].size;
        return format (value / by, axis->step / by, units[i].unit);
      }
  return format (value, axis->step, "");
}
