/* Weight files of any kind: PyTorch's two, and safetensors behind the same door. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "runner/weights/weights.h"

#include <string.h>

/* Larger tensors are not read, to save time; nothing may be that large in a seed's size. */
#define MAX_READ (1 << 20)

static gboolean
read_tensors (RnWeights *weights, GError **error)
{
  for (guint i = 0; i < rn_weights_size (weights); i++)
    {
      const RnWeight *weight = rn_weights_get (weights, i);
      int64_t n = 1;

      g_assert_cmpint (weight->rank, <=, RN_WEIGHTS_MAX_DIMS);
      for (int k = 0; k < weight->rank; k++)
        {
          g_assert_cmpint (weight->dims[k], >=, 0);
          n *= weight->dims[k];
        }
      g_assert_cmpint (n, ==, weight->n);
      if (n > MAX_READ)
        continue;
      g_autofree float *values = g_new (float, MAX (n, 1));
      g_autofree guint8 *bytes = g_malloc (MAX ((gsize) n * weight->element_bytes, 1));
      if (!rn_weights_read (weights, i, bytes, error) || !rn_weights_read_f32 (weights, i, values, error))
        return FALSE;
    }
  return TRUE;
}

static int
fuzz_weights (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnWeights) weights = rn_weights_open (rn_fuzz_file (data, size), &error);
  gboolean ok = weights != NULL;

  if (ok)
    {
      g_assert_nonnull (rn_weights_ignored (weights));
      ok = read_tensors (weights, &error);
    }
  return rn_fuzz_check (ok, error);
}

static void
add_seeds (GPtrArray *seeds)
{
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/plain.pth");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/detector.pth");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/plain-old.pth");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/detector-old.pth");
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("PK\3\4"),
  RN_FUZZ_TOKEN ("PK\1\2"),
  RN_FUZZ_TOKEN ("PK\5\6"),
  RN_FUZZ_TOKEN ("PK\6\6"),
  RN_FUZZ_TOKEN ("PK\6\7"),
  RN_FUZZ_TOKEN ("PK\7\x8"),
  RN_FUZZ_TOKEN ("data.pkl"),
  RN_FUZZ_TOKEN ("/data/0"),
  RN_FUZZ_TOKEN ("byteorder"),
  RN_FUZZ_TOKEN ("../"),
  RN_FUZZ_TOKEN ("\xff\xff\xff\xff\xff\xff\xff\xff"),
  RN_FUZZ_TOKEN ("ctorch._utils\n_rebuild_tensor_v2\n"),
  RN_FUZZ_TOKEN ("cos\nsystem\n"),
  RN_FUZZ_TOKEN ("J\xff\xff\xff\x7f"),
  RN_FUZZ_TOKEN ("\x8a\x08\0\0\0\0\0\0\0\x40"),
  RN_FUZZ_TOKEN ("q\0h\0"),
  RN_FUZZ_TOKEN ("\x80\x02."),
  { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_weights = { "weights", fuzz_weights, add_seeds, tokens };
