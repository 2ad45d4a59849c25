/* The pickles inside PyTorch's files. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "runner/weights/pickle.h"

#include <string.h>

static gboolean
read_memory (gpointer source, void *dst, gsize bytes, GError **error)
{
  const guint8 **at = source;

  memcpy (dst, *at, bytes);
  *at += bytes;
  return TRUE;
}

/* What a tensor claims lies in its storage. */
static void
check_tensor (const RnPickle *pickle, const RnPickleTensor *tensor)
{
  const RnPickleStorage *storage;
  gsize last = 0;

  g_assert_cmpuint (tensor->storage, <, pickle->storages->len);
  storage = g_ptr_array_index (pickle->storages, tensor->storage);
  if (tensor->n == 0)
    return;
  for (int k = 0; k < tensor->rank; k++)
    last += (gsize) (tensor->dims[k] - 1) * (gsize) tensor->strides[k];
  g_assert_cmpuint (tensor->offset + (last + 1) * tensor->type->bytes, <=, storage->bytes);
}

static int
fuzz_pickle (const guint8 *data, gsize size)
{
  const guint8 *at = data;
  RnPickleSource source = { read_memory, &at, size };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnPickle) pickle = rn_pickle_read (&source, "memory", &error);

  g_assert_cmpuint (source.remaining, ==, size - (gsize) (at - data));
  for (guint i = 0; pickle != NULL && i < pickle->values->len; i++)
    {
      const RnPickleValue *value = g_ptr_array_index (pickle->values, i);

      rn_pickle_string (value);
      rn_pickle_lookup (value, "state_dict");
      for (guint k = 0; k < rn_pickle_n_items (value); k++)
        g_assert_nonnull (rn_pickle_item (value, k));
      if (value->kind == RN_PICKLE_TENSOR)
        check_tensor (pickle, value->tensor);
    }
  return rn_fuzz_check (pickle != NULL, error);
}

static void
add_seeds (GPtrArray *seeds)
{
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/plain.pkl");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/detector.pkl");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/values-2.pkl");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/values-4.pkl");
  rn_fuzz_add_file (seeds, "tests/fuzz/seeds/values-5.pkl");
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("("),
  RN_FUZZ_TOKEN ("."),
  RN_FUZZ_TOKEN ("0"),
  RN_FUZZ_TOKEN ("1"),
  RN_FUZZ_TOKEN ("J\xff\xff\xff\x7f"),
  RN_FUZZ_TOKEN ("K\x05"),
  RN_FUZZ_TOKEN ("M\xff\xff"),
  RN_FUZZ_TOKEN ("N"),
  RN_FUZZ_TOKEN ("Q"),
  RN_FUZZ_TOKEN ("R"),
  RN_FUZZ_TOKEN ("X\x01\0\0\0a"),
  RN_FUZZ_TOKEN ("]"),
  RN_FUZZ_TOKEN ("a"),
  RN_FUZZ_TOKEN ("b"),
  RN_FUZZ_TOKEN ("e"),
  RN_FUZZ_TOKEN ("h\0"),
  RN_FUZZ_TOKEN ("q\0"),
  RN_FUZZ_TOKEN ("s"),
  RN_FUZZ_TOKEN ("t"),
  RN_FUZZ_TOKEN (")"),
  RN_FUZZ_TOKEN ("u"),
  RN_FUZZ_TOKEN ("}"),
  RN_FUZZ_TOKEN ("\x81"),
  RN_FUZZ_TOKEN ("\x85"),
  RN_FUZZ_TOKEN ("\x86"),
  RN_FUZZ_TOKEN ("\x87"),
  RN_FUZZ_TOKEN ("\x88"),
  RN_FUZZ_TOKEN ("\x8a\x08\0\0\0\0\0\0\0\x40"),
  RN_FUZZ_TOKEN ("\x8b\xff\xff\xff\x7f"),
  RN_FUZZ_TOKEN ("\x8c\x02os\x8c\x06system\x93"),
  RN_FUZZ_TOKEN ("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"),
  RN_FUZZ_TOKEN ("\x92"),
  RN_FUZZ_TOKEN ("\x93"),
  RN_FUZZ_TOKEN ("\x94"),
  RN_FUZZ_TOKEN ("\x95\0\0\0\0\0\0\0\x80"),
  RN_FUZZ_TOKEN ("]q\0h\0a"),
  RN_FUZZ_TOKEN ("}q\0X\x01\0\0\0ah\0s"),
  RN_FUZZ_TOKEN ("ctorch._utils\n_rebuild_tensor_v2\n"),
  RN_FUZZ_TOKEN ("ctorch._utils\n_rebuild_parameter\n"),
  RN_FUZZ_TOKEN ("ctorch\nFloatStorage\n"),
  RN_FUZZ_TOKEN ("ctorch\nfloat16\n"),
  RN_FUZZ_TOKEN ("ccollections\nOrderedDict\n"),
  RN_FUZZ_TOKEN ("ctorch\nSize\n"),
  RN_FUZZ_TOKEN ("cos\nsystem\n"),
  RN_FUZZ_TOKEN ("X\x07\0\0\0storage"),
  { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_pickle = { "pickle", fuzz_pickle, add_seeds, tokens };
