/* Safetensors files: checkpoints and weights. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "runner/safetensors.h"

#include <glib/gstdio.h>
#include <string.h>

/* Every byte that a tensor claims can be read. */
static guint
touch_tensors (const RnSafetensors *file)
{
  guint sum = 0;

  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      const RnStoredTensor *tensor = rn_safetensors_get (file, i);
      gsize bytes = tensor->element_bytes;

      g_assert_true (rn_safetensors_find (file, tensor->name) == tensor);
      g_assert_cmpint (tensor->rank, <=, RN_SAFETENSORS_MAX_DIMS);
      for (int k = 0; k < tensor->rank; k++)
        bytes *= (gsize) tensor->dims[k];
      g_assert_cmpuint (bytes, ==, tensor->bytes);
      for (gsize k = 0; k < tensor->bytes; k++)
        sum += tensor->data[k];
    }
  return sum;
}

static gboolean
read_file (const guint8 *data, gsize size, GError **error)
{
  static volatile guint sink;
  g_autoptr (RnSafetensors) file = rn_safetensors_open_memory (data, size, "memory", error);
  gboolean ok = file != NULL;

  if (ok)
    {
      g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, "");

      for (guint i = 0; i < keys->len; i++)
        g_assert_nonnull (rn_safetensors_metadata (file, keys->pdata[i]));
      sink = sink + touch_tensors (file);
      ok = rn_safetensors_verify (file, error);
    }
  return ok;
}

/* Lets the header end at the last brace, or most damage would end at its size. */
static void
repair_size (guint8 *data, gsize size)
{
  guint64 header = size;

  while (header > 8 && data[header - 1] != '}')
    header--;
  header = GUINT64_TO_LE (header - 8);
  memcpy (data, &header, sizeof header);
}

static int
fuzz_safetensors (const guint8 *data, gsize size)
{
  g_autofree guint8 *copy = g_memdup2 (data, size);
  g_autoptr (GError) error = NULL;
  gboolean ok = read_file (data, size, &error);

  if (ok || size < 8)
    return rn_fuzz_check (ok, error);
  rn_fuzz_check (FALSE, error);
  g_clear_error (&error);
  repair_size (copy, size);
  ok = read_file (copy, size, &error);
  return rn_fuzz_check (ok, error);
}

static gboolean
read_source (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const guint8 *) source + offset, size);
  return TRUE;
}

/* One as we write it, with a checksum. */
static void
add_own (GPtrArray *seeds)
{
  static float values[6] = { 0, 1, 2, 3, 4, 5 };
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  RnTensorDesc desc = { .dtype = RN_F32, .rank = 2, .dims = { 2, 3 } };
  g_autofree char *path = NULL;
  g_autoptr (GError) error = NULL;
  char *bytes;
  gsize size;
  int file = g_file_open_tmp ("rn-fuzz-XXXXXX", &path, &error);

  g_assert_no_error (error);
  g_close (file, NULL);
  rn_safetensors_writer_set_metadata (writer, "runner.counters", "{\"iter\": 1}");
  rn_safetensors_writer_add (writer, "a.weight", &desc, read_source, values, NULL);
  rn_safetensors_writer_save (writer, path, &error);
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  g_unlink (path);
  g_ptr_array_add (seeds, g_bytes_new_take (bytes, size));
}

static void
add_seeds (GPtrArray *seeds)
{
  static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"I64\",\"shape\":[],"
                               "\"data_offsets\":[6,14]},\"a\":{\"dtype\":\"F16\",\"shape\":[3,1],"
                               "\"data_offsets\":[0,6]},\"empty\":{\"dtype\":\"U8\",\"shape\":[0,4],"
                               "\"data_offsets\":[14,14]}}";
  GByteArray *bytes = g_byte_array_new ();
  guint64 size = GUINT64_TO_LE (sizeof header - 1);

  g_byte_array_append (bytes, (const guint8 *) &size, sizeof size);
  g_byte_array_append (bytes, (const guint8 *) header, sizeof header - 1);
  g_byte_array_append (bytes, (const guint8 *) "0123456789ABCD", 14);
  g_ptr_array_add (seeds, g_byte_array_free_to_bytes (bytes));
  add_own (seeds);
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("{"),
  RN_FUZZ_TOKEN ("}"),
  RN_FUZZ_TOKEN ("["),
  RN_FUZZ_TOKEN ("]"),
  RN_FUZZ_TOKEN ("\""),
  RN_FUZZ_TOKEN (","),
  RN_FUZZ_TOKEN (":"),
  RN_FUZZ_TOKEN ("\"dtype\":"),
  RN_FUZZ_TOKEN ("\"shape\":"),
  RN_FUZZ_TOKEN ("\"F64\""),
  RN_FUZZ_TOKEN ("\"BOOL\""),
  RN_FUZZ_TOKEN ("\"F8_E4M3\""),
  RN_FUZZ_TOKEN ("[0,0]"),
  RN_FUZZ_TOKEN ("-1"),
  RN_FUZZ_TOKEN ("4294967296,4294967296"),
  RN_FUZZ_TOKEN ("1.5"),
  RN_FUZZ_TOKEN ("1e3"),
  RN_FUZZ_TOKEN ("null"),
  RN_FUZZ_TOKEN ("__metadata__"),
  RN_FUZZ_TOKEN ("\\u0000"),
  RN_FUZZ_TOKEN ("\\u001b"),
  RN_FUZZ_TOKEN ("/*"),
  RN_FUZZ_TOKEN ("\"checksum\":\"crc32c:00000000\""),
  { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_safetensors = { "safetensors", fuzz_safetensors, add_seeds, tokens };
