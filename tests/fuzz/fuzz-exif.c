/* The payload of a JPEG's APP1 marker. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "datasets/codec.h"

/* No error is known here: what is damaged counts as upright. */
static int
fuzz_exif (const guint8 *data, gsize size)
{
  int orientation = rn_exif_orientation (data, size);

  g_assert_cmpint (orientation, >=, 1);
  g_assert_cmpint (orientation, <=, 8);
  return orientation > 1;
}

static void
add_seeds (GPtrArray *seeds)
{
  static const char big[] =
      "Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\0\0\x04\0\0\0\x01\0\0\0\x1a\x01\x12\0\x03\0\0\0"
      "\x01\0\x06\0\0\0\0\0\0";
  static const char little[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0";

  g_ptr_array_add (seeds, g_bytes_new_static (big, sizeof big - 1));
  g_ptr_array_add (seeds, g_bytes_new_static (little, sizeof little - 1));
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("Exif\0\0"),       RN_FUZZ_TOKEN ("MM\0*"),          RN_FUZZ_TOKEN ("II*\0"),
  RN_FUZZ_TOKEN ("\x01\x12\0\x03"), RN_FUZZ_TOKEN ("\x12\x01\x03\0"), { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_exif = { "exif", fuzz_exif, add_seeds, tokens };
