/* Changes of colour against OpenCV's float conversions, see make-photometric.py. */
#include "config.h"

#include "datasets/photometric.h"

#include "photometric-golden.h"

#include <math.h>
#include <string.h>

/*
 * Ours is the float rounded to a byte: within 1/2 of the clipped golden value, and what the two floats differ
 * by. That is some ten roundings of numbers below 512 at most (2^-15 each), and where the hue jumps between
 * sectors no more.
 */
#define TOLERANCE (0.5 + 1e-3)

static void
test_golden (void)
{
  for (gsize k = 0; k < G_N_ELEMENTS (golden_changes); k++)
    {
      guint8 pixels[GOLDEN_N_PIXELS * 3];

      memcpy (pixels, golden_pixels, sizeof pixels);
      rn_photometric_apply (&golden_changes[k].change, pixels, GOLDEN_N_PIXELS);
      for (int i = 0; i < GOLDEN_N_PIXELS * 3; i++)
        {
          double golden = CLAMP (golden_changes[k].rgb[i], 0, 255);

          if (fabs (pixels[i] - golden) > TOLERANCE)
            g_error ("change %u, value %d: %d, not %g", (guint) k, i, pixels[i], golden);
        }
    }
}

/* No change is none, on all colours of a grid. */
static void
test_identity (void)
{
  const RnPhotometric none = RN_PHOTOMETRIC_INIT;

  for (int r = 0; r < 256; r += 5)
    for (int g = 0; g < 256; g += 5)
      for (int b = 0; b < 256; b += 5)
        {
          guint8 pixel[3] = { (guint8) r, (guint8) g, (guint8) b };

          rn_photometric_apply (&none, pixel, 1);
          g_assert_true (pixel[0] == r && pixel[1] == g && pixel[2] == b);
        }
}

/* A turn of the hue by 120 degrees and back, and one that does not stay within bytes. */
static void
test_turns (void)
{
  RnPhotometric turn = RN_PHOTOMETRIC_INIT, bright = RN_PHOTOMETRIC_INIT;
  guint8 pixel[3] = { 200, 40, 10 }, dark[3] = { 5, 250, 100 };

  turn.hue = 120;
  rn_photometric_apply (&turn, pixel, 1); /* red becomes green */
  g_assert_true (memcmp (pixel, (guint8[3]){ 10, 200, 40 }, 3) == 0);
  turn.hue = -120;
  rn_photometric_apply (&turn, pixel, 1);
  g_assert_true (memcmp (pixel, (guint8[3]){ 200, 40, 10 }, 3) == 0);

  bright.brightness = -20;
  bright.contrast = 2;
  rn_photometric_apply (&bright, dark, 1);
  g_assert_true (memcmp (dark, (guint8[3]){ 0, 255, 160 }, 3) == 0);
}

/* Many pixels at once come out as each alone. */
static void
test_many (void)
{
  enum
  {
    N = 1000
  };
  guint8 pixels[N * 3], alone[N * 3];

  for (int i = 0; i < N * 3; i++)
    pixels[i] = alone[i] = (guint8) (i * 167 + i / 256 * 31);
  rn_photometric_apply (&golden_changes[8].change, pixels, N);
  for (int i = 0; i < N; i++)
    rn_photometric_apply (&golden_changes[8].change, alone + 3 * i, 1);
  g_assert_cmpmem (pixels, sizeof pixels, alone, sizeof alone);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/photometric/golden", test_golden);
  g_test_add_func ("/datasets/photometric/identity", test_identity);
  g_test_add_func ("/datasets/photometric/turns", test_turns);
  g_test_add_func ("/datasets/photometric/many", test_many);
  return g_test_run ();
}
