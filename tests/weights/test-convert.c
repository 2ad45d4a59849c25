/* Conversion to half precision: each value, and what half precision does not have. */
#include "config.h"

#include "runner/safetensors.h"
#include "runner/weights/convert.h"
#include "tests/cli/program.h"

#include <glib.h>
#include <math.h>
#include <string.h>

/* The value of half-precision bits, by the definition of IEEE 754. */
static float
half_value (guint16 bits)
{
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  float size =
      exponent == 0 ? ldexpf ((float) fraction, -24) : ldexpf ((float) (1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

static void
test_half (void)
{
  for (guint32 bits = 0; bits < 0x7c00; bits++)
    {
      float x = half_value ((guint16) bits),
            next = bits == 0x7bff ? 65536.0f : half_value ((guint16) (bits + 1));
      float middle = (x + next) / 2; /* exact: floats have 13 bits more */
      guint16 even = (guint16) (bits + (bits & 1));
      g_assert_cmphex (rn_half_from_float (x), ==, bits);
      g_assert_cmphex (rn_half_from_float (-x), ==, bits | 0x8000);
      g_assert_cmphex (rn_half_from_float (middle), ==, even);
      g_assert_cmphex (rn_half_from_float (nextafterf (middle, 0)), ==, bits);
      g_assert_cmphex (rn_half_from_float (nextafterf (middle, INFINITY)), ==, bits + 1);
    }
  g_assert_cmphex (rn_half_from_float (INFINITY), ==, 0x7c00);
  g_assert_cmphex (rn_half_from_float (-1e30f), ==, 0xfc00);
  g_assert_cmphex (rn_half_from_float (NAN) & 0x7e00, ==, 0x7e00);
}

static gboolean
read_bytes (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const guint8 *) source + offset, size);
  return TRUE;
}

static void
add_doubles (RnSafetensorsWriter *writer, const char *name, const double *values, int64_t n)
{
  rn_safetensors_writer_add_typed (writer, name, "F64", sizeof *values, 1, &n, read_bytes, (gpointer) values,
                                   NULL);
}

static const RnStoredTensor *
find_typed (const RnSafetensors *file, const char *name, const char *type)
{
  const RnStoredTensor *tensor = rn_safetensors_find (file, name);
  g_assert_nonnull (tensor);
  g_assert_cmpstr (tensor->type, ==, type);
  return tensor;
}

/* A finite double that is an infinite float does not become an infinite half. */
static void
test_doubles (void)
{
  static const double large[] = { 1, -1e300 }, small[] = { 1, 2 };
  static const guint8 halves[] = { 0x00, 0x3c, 0x00, 0x40 };
  const RnConvertOptions options = { RN_NAMES_TO_SAME, TRUE };
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("runner-convert-XXXXXX", &error);
  g_autofree char *in = g_build_filename (dir, "in.safetensors", NULL),
                  *out = g_build_filename (dir, "out.safetensors", NULL);
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();

  add_doubles (writer, "large", large, G_N_ELEMENTS (large));
  add_doubles (writer, "small", small, G_N_ELEMENTS (small));
  g_assert_true (rn_safetensors_writer_save (writer, in, &error));
  g_autoptr (RnWeights) weights = rn_weights_open (in, &error);
  g_assert_no_error (error);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING,
                         "large: 1 values are too large for half precision, so it stays F64");
  g_autofree char *text = rn_weights_convert (weights, out, &options, &error);
  g_assert_no_error (error);
  g_test_assert_expected_messages ();

  g_autoptr (RnSafetensors) file = rn_safetensors_open (out, &error);
  g_assert_no_error (error);
  const RnStoredTensor *tensor = find_typed (file, "large", "F64");
  g_assert_cmpuint (tensor->bytes, ==, sizeof large);
  g_assert_cmpint (memcmp (tensor->data, large, sizeof large), ==, 0);
  tensor = find_typed (file, "small", "F16");
  g_assert_cmpuint (tensor->bytes, ==, sizeof halves);
  g_assert_cmpint (memcmp (tensor->data, halves, sizeof halves), ==, 0);
  remove_tree (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/convert/half", test_half);
  g_test_add_func ("/convert/half/doubles", test_doubles);
  return g_test_run ();
}
