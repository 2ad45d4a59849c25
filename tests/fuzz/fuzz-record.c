/* The JSON of records: a checkpoint's counters, hooks and log. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "runner/record.h"

#include <string.h>

static int
fuzz_record (const guint8 *data, gsize size)
{
  g_autofree char *text = g_strndup ((const char *) data, size);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) record = rn_record_parse (text, &error);

  if (record != NULL)
    {
      g_autofree char *json = rn_record_to_json (record, 17);
      g_autoptr (RnRecord) again = rn_record_parse (json, &error);

      g_assert_no_error (error);
      g_assert_cmpuint (rn_record_size (again), ==, rn_record_size (record));
    }
  return rn_fuzz_check (record != NULL, error);
}

static void
add_seeds (GPtrArray *seeds)
{
  rn_fuzz_add_text (seeds, "{\"iter\": 12, \"epoch\": 1, \"inner_iter\": 2, \"opt_step\": 12}");
  rn_fuzz_add_text (seeds,
                    "{\"mode\": \"tr\\\"ain \\u00e9\\n\", \"lr\": 1e-09, \"whole\": 3.0, \"loss\": null, "
                    "\"list\": [1.0, null, -5], \"empty\": [], \"non_finite\": [\"loss\", \"list\"]}");
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("{"),       RN_FUZZ_TOKEN ("}"),          RN_FUZZ_TOKEN ("["),  RN_FUZZ_TOKEN ("]"),
  RN_FUZZ_TOKEN ("\""),      RN_FUZZ_TOKEN (", "),         RN_FUZZ_TOKEN (": "), RN_FUZZ_TOKEN ("null"),
  RN_FUZZ_TOKEN ("true"),    RN_FUZZ_TOKEN ("1e999"),      RN_FUZZ_TOKEN ("-0"), RN_FUZZ_TOKEN ("\\u0000"),
  RN_FUZZ_TOKEN ("\\ud800"), RN_FUZZ_TOKEN ("\\u001b"),    RN_FUZZ_TOKEN ("/*"), RN_FUZZ_TOKEN ("//"),
  RN_FUZZ_TOKEN ("0x10"),    RN_FUZZ_TOKEN ("\"a\": 1, "), RN_FUZZ_TOKEN ("\\"), { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_record = { "record", fuzz_record, add_seeds, tokens };
