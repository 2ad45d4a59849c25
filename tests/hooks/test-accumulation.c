/* Windows of accumulation, against MMCV 1.7 and against a walk through the run. */
#include "config.h"

#include "hooks/accumulation.h"
#include "tests/hooks/golden-accumulation.h"
#include "tests/hooks/run-length.h"

typedef struct
{
  RunLength factors, steps, weights;
} Course;

/* What a run does from iteration @start on, in the form of the golden table. The sums of fractions are those
 * of the script, in the same order. */
static Course
follow (const RnAccumulation *windows, gint64 start)
{
  Course course;
  double weight = 0;
  gint64 last_step = 0;

  run_length_init (&course.factors);
  run_length_init (&course.steps);
  run_length_init (&course.weights);
  for (gint64 i = start; i < windows->max_iters; i++)
    {
      RnWindow window = rn_accumulation_window (windows, i);
      run_length_add (&course.factors, (double) window.factor);
      weight += 1 / (double) window.factor;
      g_assert_true (window.begin <= i && i < window.end);
      if (i + 1 == window.end)
        {
          if (!window.is_dropped)
            {
              run_length_add (&course.steps, (double) (i - last_step));
              run_length_add (&course.weights, weight);
              last_step = i;
            }
          weight = 0;
        }
    }
  return course;
}

static void
course_assert (Course *course, const char *factors, const char *steps, const char *weights)
{
  run_length_assert (&course->factors, factors);
  run_length_assert (&course->steps, steps);
  run_length_assert (&course->weights, weights);
}

static RnAccumulation
accumulation (gint64 max_iters, gint64 n_iters)
{
  return (RnAccumulation){ .n_iters = n_iters, .max_iters = max_iters, .epoch_length = 51 };
}

static void
test_mmcv (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (mmcv_rows); i++)
    {
      const MmcvRow *row = &mmcv_rows[i];
      RnAccumulation windows = accumulation (row->max_iters, row->cumulative_iters);
      windows.is_mmcv = TRUE;
      windows.cut_at = row->start;
      Course course = follow (&windows, row->start);
      course_assert (&course, row->factors, row->steps, row->weights);
    }
}

/* Ours steps where MMCV does, and each step has the weight 1: with all gradients, and without those from
 * before the start. */
static void
test_weight_is_one (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (mmcv_rows); i++)
    {
      const MmcvRow *row = &mmcv_rows[i];
      RnAccumulation windows = accumulation (row->max_iters, row->cumulative_iters);
      windows.cut_at = row->start;
      double weight = 0;
      gint64 last_step = 0;
      RunLength steps;
      run_length_init (&steps);
      for (gint64 k = row->start; k < row->max_iters; k++)
        {
          RnWindow window = rn_accumulation_window (&windows, k);
          weight += 1 / (double) window.factor;
          if (k + 1 < window.end)
            continue;
          /* at most 4 fractions: 4 roundings of at most 2^-53 */
          g_assert_cmpfloat_with_epsilon (weight, 1, 4 * 0x1p-53);
          run_length_add (&steps, (double) (k - last_step));
          last_step = k;
          weight = 0;
        }
      run_length_assert (&steps, row->steps);

      windows.cut_at = 0; /* all gradients are there */
      for (gint64 k = row->start; k < row->max_iters; k++)
        {
          RnWindow window = rn_accumulation_window (&windows, k);
          g_assert_cmpint (window.begin, ==, k / row->cumulative_iters * row->cumulative_iters);
          g_assert_cmpint (window.factor, ==, window.end - window.begin);
        }
    }
}

/* The cases that are easy to check by hand. */
static void
test_examples (void)
{
  static const struct
  {
    gint64 max_iters, start;
    const char *factors;
  } cases[] = {
    { 102, 50, "2x2 4x48 2x2" }, { 102, 101, "1x1" },         { 3, 1, "2x2" },     { 102, 99, "1x1 2x2" },
    { 102, 0, "4x100 2x2" },     { 103, 49, "3x3 4x48 3x3" }, { 100, 40, "4x60" }, { 3, 0, "3x3" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnAccumulation windows = accumulation (cases[i].max_iters, 4);
      windows.cut_at = cases[i].start;
      Course course = follow (&windows, cases[i].start);
      run_length_assert (&course.factors, cases[i].factors);
      g_string_free (course.steps.text, TRUE);
      g_string_free (course.weights.text, TRUE);
    }
}

static void
test_tails (void)
{
  RnAccumulation windows = accumulation (102, 4);
  Course course;

  windows.tail = RN_TAIL_SCALE;
  course = follow (&windows, 0);
  course_assert (&course, "4x102", "3x1 4x24 2x1", "1x25 0.5x1");
  windows.cut_at = 50; /* a window that lost gradients is no tail */
  course = follow (&windows, 50);
  course_assert (&course, "2x2 4x50", "51x1 4x12 2x1", "1x13 0.5x1");
  windows.cut_at = 101;
  course = follow (&windows, 101);
  course_assert (&course, "4x1", "101x1", "0.25x1");

  windows.tail = RN_TAIL_DROP;
  windows.cut_at = 0;
  course = follow (&windows, 0);
  course_assert (&course, "4x100 2x2", "3x1 4x24", "1x25");
  g_assert_true (rn_accumulation_window (&windows, 101).is_dropped);
  g_assert_false (rn_accumulation_window (&windows, 99).is_dropped);
}

/* Two epochs of 51: windows cross the border, or end there. */
static void
test_epochs (void)
{
  RnAccumulation windows = accumulation (102, 4);
  Course course;
  RnWindow across = rn_accumulation_window (&windows, 51);

  g_assert_cmpint (across.begin, ==, 48);
  g_assert_cmpint (across.end, ==, 52);
  windows.flush_at_epoch_end = TRUE;
  course = follow (&windows, 0);
  course_assert (&course, "4x48 3x3 4x48 3x3", "3x1 4x11 3x1 4x12 3x1", "1x26");
  windows.tail = RN_TAIL_DROP;
  course = follow (&windows, 0);
  course_assert (&course, "4x48 3x3 4x48 3x3", "3x1 4x11 7x1 4x11", "1x24");
  windows.max_iters = 60; /* the run ends in the second epoch */
  windows.tail = RN_TAIL_AVERAGE;
  course = follow (&windows, 0);
  course_assert (&course, "4x48 3x3 4x8 1x1", "3x1 4x11 3x1 4x2 1x1", "1x16");
  for (gint64 start = 0; start < 102; start++)
    {
      windows = accumulation (102, 4);
      windows.flush_at_epoch_end = TRUE;
      windows.cut_at = start;
      double weight = 0;
      for (gint64 i = start; i < 102; i++)
        {
          RnWindow window = rn_accumulation_window (&windows, i);
          g_assert_cmpint (window.begin / 51, ==, (window.end - 1) / 51);
          weight += 1 / (double) window.factor;
          if (i + 1 < window.end)
            continue;
          g_assert_cmpfloat_with_epsilon (weight, 1, 4 * 0x1p-53);
          weight = 0;
        }
    }
}

/* The number of steps is that of a walk, for all small runs. */
static void
test_n_steps (void)
{
  for (gint64 max_iters = 1; max_iters < 30; max_iters++)
    for (gint64 n_iters = 1; n_iters < 7; n_iters++)
      for (int option = 0; option < 6; option++)
        {
          RnAccumulation windows = { .n_iters = n_iters,
                                     .max_iters = max_iters,
                                     .epoch_length = 7,
                                     .tail = (RnTail) (option % 3),
                                     .flush_at_epoch_end = option >= 3 };
          gint64 n = 0;
          for (gint64 i = 0; i < max_iters; i++)
            {
              RnWindow window = rn_accumulation_window (&windows, i);
              n += i + 1 == window.end && !window.is_dropped;
            }
          g_assert_cmpint (rn_accumulation_n_steps (&windows), ==, n);
        }
}

/* Runs without an end, as far as a counter can go. */
static void
test_large (void)
{
  RnAccumulation windows = { .n_iters = 1000000, .max_iters = G_MAXINT64, .epoch_length = G_MAXINT64 };
  RnWindow window = rn_accumulation_window (&windows, G_MAXINT64 - 1);

  g_assert_cmpint (window.end, ==, G_MAXINT64);
  g_assert_cmpint (window.begin, ==, G_MAXINT64 - G_MAXINT64 % 1000000);
  windows.flush_at_epoch_end = TRUE;
  window = rn_accumulation_window (&windows, G_MAXINT64 - 1);
  g_assert_cmpint (window.end, ==, G_MAXINT64);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/hooks/accumulation/mmcv", test_mmcv);
  g_test_add_func ("/hooks/accumulation/weight-is-one", test_weight_is_one);
  g_test_add_func ("/hooks/accumulation/examples", test_examples);
  g_test_add_func ("/hooks/accumulation/tails", test_tails);
  g_test_add_func ("/hooks/accumulation/epochs", test_epochs);
  g_test_add_func ("/hooks/accumulation/n-steps", test_n_steps);
  g_test_add_func ("/hooks/accumulation/large", test_large);
  return g_test_run ();
}
