/* Records and their JSON, read back by json-glib and by ourselves. */
#include "config.h"

#include "runner/record.h"

#include "runner/base/error.h"
#include "runner/base/rng.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

static void
test_json (void)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  const double list[] = { 1, -0.5 };

  rn_record_set_string (record, "mode", "tr\"ain\\\n\t\x01\xff");
  rn_record_set_int (record, "iter", G_MININT64);
  rn_record_set_float (record, "lr", 1e-9);
  rn_record_set_float (record, "whole", 3);
  rn_record_set_floats (record, "list", list, 2);
  rn_record_set_floats (record, "empty", NULL, 0);
  rn_record_set_string (record, "mode", "train"); /* keeps its place */
  rn_record_set_string (record, "odd", "q\" b\\ n\n t\t c\x01 x\xff");
  g_autofree char *json = rn_record_to_json (record, 9);
  g_assert_cmpstr (json, ==,
                   "{\"mode\": \"train\", \"iter\": -9223372036854775808, \"lr\": 1e-09, \"whole\": 3.0, "
                   "\"list\": [1.0, -0.5], \"empty\": [], "
                   "\"odd\": \"q\\\" b\\\\ n\\n t\\t c\\u0001 x\xef\xbf\xbd\"}");
  g_assert_nonnull (json_from_string (json, NULL));
}

static void
test_non_finite (void)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  const double list[] = { 1, (double) NAN };

  rn_record_set_float (record, "loss", (double) NAN);
  rn_record_set_float (record, "norm", (double) INFINITY);
  rn_record_set_float (record, "fine", 0);
  rn_record_set_floats (record, "list", list, 2);
  g_autofree char *json = rn_record_to_json (record, 9);
  g_assert_cmpstr (json, ==,
                   "{\"loss\": null, \"norm\": null, \"fine\": 0.0, \"list\": [1.0, null], \"non_finite\": "
                   "[\"loss\", \"norm\", \"list\"]}");

  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) back = rn_record_parse (json, &error);
  g_assert_no_error (error);
  g_assert_true (isnan (rn_record_float (back, "loss", 0)));
  g_assert_cmpuint (rn_record_size (back), ==, 4);
}

/* 17 digits keep every bit of a double. */
static void
test_bits (void)
{
  RnRng rng;
  rn_rng_init (&rng, 1, RN_STREAM_SYNTH, 0, 0);

  for (int i = 0; i < 2000; i++)
    {
      guint64 bits = rn_rng_u64 (&rng);
      double value;
      memcpy (&value, &bits, sizeof value);
      if (!isfinite (value))
        continue;
      g_autoptr (RnRecord) record = rn_record_new ();
      rn_record_set_float (record, "x", value);
      g_autofree char *json = rn_record_to_json (record, 17);
      g_autoptr (RnRecord) back = rn_record_parse (json, NULL);
      double read = rn_record_float (back, "x", 0);
      g_assert_cmpmem (&read, sizeof read, &value, sizeof value);
    }
}

/* What JSON has no word for comes back from a checkpoint too. */
static void
test_state (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) record = rn_record_new ();
  const double list[] = { -(double) INFINITY, (double) NAN, 5e-324 };
  gsize n;

  rn_record_set_float (record, "best", (double) INFINITY);
  rn_record_set_float (record, "loss", (double) NAN);
  rn_record_set_floats (record, "list", list, G_N_ELEMENTS (list));
  rn_record_set_int (record, "non_finite", G_MAXINT64);
  g_autofree char *json = rn_record_to_state (record, &error);
  g_assert_no_error (error);
  g_autoptr (RnRecord) back = rn_record_parse (json, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (rn_record_size (back), ==, 4);
  g_assert_cmpfloat (rn_record_float (back, "best", 0), ==, (double) INFINITY);
  g_assert_true (isnan (rn_record_float (back, "loss", 0)));
  g_assert_cmpint (rn_record_int (back, "non_finite", 0), ==, G_MAXINT64);
  const double *values = rn_record_floats (back, "list", &n);
  g_assert_cmpuint (n, ==, 3);
  g_assert_cmpfloat (values[0], ==, list[0]);
  g_assert_true (isnan (values[1]));
  g_assert_cmpfloat (values[2], ==, list[2]);
}

/* A state that could not be read back is not written. */
static void
test_large_state (void)
{
  const gsize n = 6 << 20; /* more values than rn_json_check takes */
  g_autofree double *values = g_new0 (double, n);
  g_autofree char *text = g_strnfill (17 << 20, 'x');
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) many = rn_record_new (), longs = rn_record_new ();

  rn_record_set_floats (many, "values", values, n);
  g_assert_null (rn_record_to_state (many, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
  g_clear_error (&error);
  rn_record_set_string (longs, "text", text);
  g_assert_null (rn_record_to_state (longs, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
}

static void
test_get (void)
{
  g_autoptr (RnRecord) record =
      rn_record_parse ("{\"i\": 3, \"f\": 0.25, \"s\": \"text\", \"l\": [1, 2.5]}", NULL);
  gsize n;

  g_assert_cmpint (rn_record_int (record, "i", -1), ==, 3);
  g_assert_cmpfloat (rn_record_float (record, "i", -1), ==, 3);
  g_assert_cmpint (rn_record_int (record, "f", -1), ==, -1); /* another kind */
  g_assert_cmpint (rn_record_int (record, "absent", -1), ==, -1);
  g_assert_cmpstr (rn_record_string (record, "s"), ==, "text");
  g_assert_null (rn_record_string (record, "i"));
  const double *list = rn_record_floats (record, "l", &n);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpfloat (list[0], ==, 1);
  g_assert_cmpfloat (list[1], ==, 2.5);
  g_assert_null (rn_record_floats (record, "s", &n));
  g_assert_cmpuint (n, ==, 0);
}

static void
test_hostile (void)
{
  static const char *const bad[] = { "",
                                     "[]",
                                     "{",
                                     "nothing",
                                     "{\"a\": {\"b\": 1}}",
                                     "{\"a\": [[1]]}",
                                     "{\"a\": [\"b\"]}",
                                     "{\"a\": true}",
                                     "{\"a\": 1} /* [[[[ */",
                                     "{\"a\": \"\xff\"}",
                                     "]]]]" };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (rn_record_parse (bad[i], &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
    }

  g_autofree char *deep = g_malloc (1000001);
  memset (deep, '[', 1000000);
  deep[1000000] = '\0';
  g_assert_null (rn_record_parse (deep, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/runner/record/json", test_json);
  g_test_add_func ("/runner/record/non-finite", test_non_finite);
  g_test_add_func ("/runner/record/bits", test_bits);
  g_test_add_func ("/runner/record/state", test_state);
  g_test_add_func ("/runner/record/large-state", test_large_state);
  g_test_add_func ("/runner/record/get", test_get);
  g_test_add_func ("/runner/record/hostile", test_hostile);
  return g_test_run ();
}
