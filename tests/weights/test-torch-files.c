/* PyTorch's two forms, made by hand: what a hostile or broken file can hold. */
#include "config.h"

#include "runner/weights/weights.h"

#include "runner/base/error.h"
#include "tests/weights/weights-fixture.h"

#include <glib/gstdio.h>
#include <string.h>

static const gint64 one = 1, two = 2;
static const float six[6] = { 1, 2, 3, 4, 5, 6 };

static void
put_entry (GString *pickle, const char *name, const char *key, gint64 n)
{
  pickle_text (pickle, name);
  pickle_tensor (pickle, "FloatStorage", key, n, 0, 1, &n, &one);
}

/* {"w": six floats in storage "0"} */
static GString *
plain_pickle (void)
{
  GString *pickle = g_string_new ("\x80\x02}(");
  put_entry (pickle, "w", "0", 6);
  g_string_append (pickle, "u.");
  return pickle;
}

static void
check_six (const Fixture *f, guint i)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
  float values[6];

  g_assert_no_error (error);
  g_assert_cmpint (rn_weights_get (weights, i)->n, ==, 6);
  g_assert_true (rn_weights_read_f32 (weights, i, values, &error));
  g_assert_cmpmem (values, sizeof values, six, sizeof six);
}

/* ---- Zip ---- */

static void
write_zip (const Fixture *f, const GString *pickle, const char *extra, const char *content)
{
  const ZipEntry entries[] = {
    { "x/data.pkl", pickle->str, pickle->len, FALSE },
    { "x/data/0", six, sizeof six, FALSE },
    { extra, content, content != NULL ? strlen (content) : 0, FALSE },
  };
  fixture_write_zip (f, entries, extra != NULL ? 3 : 2);
}

static void
test_zip_entries (Fixture *f, gconstpointer data)
{
  GString *pickle = plain_pickle ();

  write_zip (f, pickle, NULL, NULL);
  check_six (f, 0);
  write_zip (f, pickle, "x/byteorder", "little");
  check_six (f, 0);
  write_zip (f, pickle, "../../../tmp/x", "never written anywhere");
  check_six (f, 0);
  write_zip (f, pickle, "x/byteorder", "big");
  fixture_refused (f, "big-endian");
  write_zip (f, pickle, "x/constants.pkl", "");
  fixture_refused (f, "TorchScript");

  const ZipEntry document[] = { { "word/document.xml", "<a/>", 4, FALSE } };
  fixture_write_zip (f, document, 1);
  fixture_refused (f, "without data.pkl");
  const ZipEntry alone[] = { { "x/data.pkl", pickle->str, pickle->len, FALSE } };
  fixture_write_zip (f, alone, 1);
  fixture_refused (f, "storage \"0\" is not in the archive");
  const ZipEntry short_storage[] = { alone[0], { "x/data/0", six, 23, FALSE } };
  fixture_write_zip (f, short_storage, 2);
  fixture_refused (f, "storage \"0\" has 23 bytes, its tensors expect 24");
  const ZipEntry empty_pickle[] = { { "x/data.pkl", "", 0, FALSE } };
  fixture_write_zip (f, empty_pickle, 1);
  fixture_refused (f, "ends early");
  g_string_free (pickle, TRUE);

  fixture_write (f, BYTES ("PK\3\4 and no more"));
  fixture_refused (f, "damaged zip archive");
}

/* A key like ../../etc/passwd names nothing, and is refused as a key. */
static void
test_zip_paths (Fixture *f, gconstpointer data)
{
  GString *pickle = g_string_new ("}(");
  put_entry (pickle, "w", "../../data/0", 6);
  g_string_append (pickle, "u.");
  write_zip (f, pickle, "x/data/../../data/0", "");
  fixture_refused (f, "sound type and key");
  g_string_free (pickle, TRUE);
}

/* Packed again by somebody: fine, within reason. */
static void
test_zip_packed (Fixture *f, gconstpointer data)
{
  GString *pickle = plain_pickle ();
  const ZipEntry honest[] = { { "x/data.pkl", pickle->str, pickle->len, TRUE },
                              { "x/data/0", six, sizeof six, TRUE } };
  fixture_write_zip (f, honest, 2);
  check_six (f, 0);
  g_string_free (pickle, TRUE);

  /* A storage of zeros shrinks a thousandfold. */
  const gsize n = 4 << 20;
  g_autofree char *zeros = g_malloc0 (n * 4);
  pickle = g_string_new ("}(");
  put_entry (pickle, "w", "0", n);
  g_string_append (pickle, "u.");
  const ZipEntry bomb[] = { { "x/data.pkl", pickle->str, pickle->len, FALSE },
                            { "x/data/0", zeros, n * 4, TRUE } };
  fixture_write_zip (f, bomb, 2);
  fixture_refused (f, "claims to expand from");
  g_string_free (pickle, TRUE);
  const ZipEntry pickle_bomb[] = { { "x/data.pkl", zeros, n * 4, TRUE } };
  fixture_write_zip (f, pickle_bomb, 1);
  fixture_refused (f, "claims to expand from");

  /* Two tensors in one packed storage. */
  pickle = g_string_new ("}(");
  put_entry (pickle, "a", "0", 6);
  put_entry (pickle, "b", "0", 6);
  g_string_append (pickle, "u.");
  const ZipEntry shared[] = { { "x/data.pkl", pickle->str, pickle->len, FALSE },
                              { "x/data/0", six, sizeof six, TRUE } };
  fixture_write_zip (f, shared, 2);
  fixture_refused (f, "zip -0");
  g_string_free (pickle, TRUE);
}

/* One bit of a storage: nothing but the archive's checksum can tell. */
static void
test_zip_checksum (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *bytes = NULL;
  gsize n, at = 0;
  float values[6];
  GString *pickle = plain_pickle ();

  write_zip (f, pickle, NULL, NULL);
  g_string_free (pickle, TRUE);
  g_assert_true (g_file_get_contents (f->path, &bytes, &n, NULL));
  while (memcmp (bytes + at, six, sizeof six) != 0)
    at++;
  bytes[at + 1] ^= 1;
  fixture_write (f, bytes, n);
  g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
  g_assert_no_error (error);
  for (int i = 0; i < 2; i++) /* not only the first time */
    {
      g_clear_error (&error);
      g_assert_false (rn_weights_read_f32 (weights, 0, values, &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
      g_assert_nonnull (strstr (error->message, "checksum"));
    }
}

/* ---- The object ---- */

static void
refused_object (const Fixture *f, GString *pickle, const char *part)
{
  g_string_append_c (pickle, '.');
  write_zip (f, pickle, NULL, NULL);
  fixture_refused (f, part);
  g_string_free (pickle, TRUE);
}

static void
test_objects (Fixture *f, gconstpointer data)
{
  refused_object (f, g_string_new ("]"), "it holds a list");
  refused_object (f, g_string_new ("K\1"), "it holds an object");
  refused_object (f, g_string_new ("}"), "no tensor in it");

  GString *single = g_string_new (NULL);
  pickle_tensor (single, "FloatStorage", "0", 6, 0, 1, &two, &one);
  refused_object (f, single, "it holds a single tensor");

  GString *cycle = g_string_new ("}q\1(");
  pickle_text (cycle, "a");
  g_string_append (cycle, "h\1u");
  refused_object (f, cycle, "over and over");

  GString *deep = g_string_new (NULL);
  for (int i = 0; i < 20; i++)
    {
      g_string_append_c (deep, '}');
      pickle_text (deep, "a");
    }
  g_string_append_c (deep, 'N');
  for (int i = 0; i < 20; i++)
    g_string_append_c (deep, 's');
  refused_object (f, deep, "more than 16 deep");

  /* Each of 14 dicts has the next one ten times: 10^14 tensors, if one were to list them. */
  GString *many = g_string_new ("}q\1(");
  put_entry (many, "w", "0", 6);
  g_string_append_c (many, 'u');
  for (guint8 depth = 2; depth < 16; depth++)
    {
      g_string_append_printf (many, "0}q%c(", depth);
      for (char key[] = "0"; key[0] <= '9'; key[0]++)
        {
          pickle_text (many, key);
          g_string_append_printf (many, "h%c", depth - 1);
        }
      g_string_append_c (many, 'u');
    }
  refused_object (f, many, "over and over");

  /* 70000 entries with the same long name, which is in the file once. */
  GString *keys = g_string_new ("\x80\x02");
  g_autofree char *long_key = g_strnfill (500, 'k');
  pickle_text (keys, long_key);
  g_string_append (keys, "q\1"
                         "0}(");
  for (guint i = 0; i < 70000; i++)
    g_string_append (keys, "h\1N");
  g_string_append_c (keys, 'u');
  refused_object (f, keys, "entries that are no tensors");

  GString *twice = g_string_new ("}(");
  put_entry (twice, "w", "0", 6);
  put_entry (twice, "w", "0", 6);
  g_string_append_c (twice, 'u');
  refused_object (f, twice, "two tensors are called \"w\"");

  GString *unnamed = g_string_new ("}(");
  g_string_append (unnamed, ")");
  pickle_tensor (unnamed, "FloatStorage", "0", 6, 0, 1, &two, &one);
  g_string_append_c (unnamed, 'u');
  refused_object (f, unnamed, "no usable name");

  GString *classes = g_string_new ("}(");
  pickle_text (classes, "meta");
  g_string_append_c (classes, '}');
  pickle_text (classes, "CLASSES");
  g_string_append (classes, "](K\1es");
  put_entry (classes, "w", "0", 6);
  g_string_append_c (classes, 'u');
  refused_object (f, classes, "meta.CLASSES[0]");
}

/* Weights at the top, states and settings beside them; dicts in dicts. */
static void
test_nested (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  GString *pickle = g_string_new ("}(");
  pickle_text (pickle, "net");
  g_string_append (pickle, "}(K\7}(");
  put_entry (pickle, "w", "0", 6);
  g_string_append (pickle, "uu");
  pickle_text (pickle, "optimizer");
  g_string_append (pickle, "}(");
  put_entry (pickle, "momentum", "0", 6);
  g_string_append_c (pickle, 'u');
  pickle_text (pickle, "epoch");
  g_string_append (pickle, "K\3");
  pickle_text (pickle, "meta");
  g_string_append_c (pickle, '}');
  pickle_text (pickle, "dataset_meta");
  g_string_append_c (pickle, '}');
  pickle_text (pickle, "classes");
  g_string_append_c (pickle, ']');
  pickle_text (pickle, "cat");
  g_string_append (pickle, "assu.");
  write_zip (f, pickle, NULL, NULL);
  g_string_free (pickle, TRUE);

  check_six (f, 0);
  g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (rn_weights_size (weights), ==, 1);
  g_assert_cmpstr (rn_weights_get (weights, 0)->name, ==, "net.7.w");
  g_autofree char *ignored = g_strjoinv (",", (char **) rn_weights_ignored (weights));
  g_assert_cmpstr (ignored, ==, "optimizer,epoch,meta");
  g_assert_cmpstr (rn_weights_classes (weights)[0], ==, "cat");
  g_assert_null (rn_weights_classes (weights)[1]);
}

/* ---- The older form ---- */

#define MAGIC "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define VERSION_1001 "\x80\x02M\xe9\x03."
#define LITTLE "\x80\x02}X\x0d\0\0\0little_endian\x88s."

typedef struct
{
  const char *preamble;
  gsize preamble_bytes;
  const char *keys; /* the list, pickled */
  guint64 n;        /* as the storage says */
  gsize bytes;      /* of it that follow */
} Legacy;

static void
write_legacy (const Fixture *f, const GString *object, const Legacy *legacy)
{
  g_autoptr (GString) file = g_string_new_len (legacy->preamble, (gssize) legacy->preamble_bytes);
  guint64 n = GUINT64_TO_LE (legacy->n);

  g_string_append_len (file, object->str, (gssize) object->len);
  g_string_append (file, legacy->keys);
  g_string_append_len (file, (const char *) &n, sizeof n);
  g_string_append_len (file, (const char *) six, (gssize) legacy->bytes);
  fixture_write (f, file->str, file->len);
}

static void
test_legacy (Fixture *f, gconstpointer data)
{
  static const Legacy sound = { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0010e.", 6, 24 };
  static const struct
  {
    Legacy legacy;
    const char *part;
  } bad[] = {
    { { BYTES (MAGIC "K\1." LITTLE), "](U\0010e.", 6, 24 }, "version 1001" },
    { { BYTES (MAGIC VERSION_1001 "}U\x0dlittle_endian\x89s."), "](U\0010e.", 6, 24 }, "big-endian" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0010e.", 7, 24 },
      "has 7 elements of 4 bytes, its tensors expect 24" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0010e.", G_MAXUINT64, 24 }, "its tensors expect 24" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0010e.", 6, 23 }, "ends inside storage \"0\"" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0011e.", 6, 24 }, "belongs to no tensor" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "].", 6, 24 }, "storage \"0\" is not in the file" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0010U\0010e.", 6, 24 }, "listed twice" },
    { { BYTES (MAGIC VERSION_1001 LITTLE), "}.", 6, 24 }, "list of storages is missing" },
    { { BYTES (MAGIC VERSION_1001 LITTLE "cos\nsystem\nU\1a\x85R."), "](U\0010e.", 6, 24 },
      "refuses os.system" },
  };
  GString *object = plain_pickle ();

  write_legacy (f, object, &sound);
  check_six (f, 0);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      write_legacy (f, object, &bad[i].legacy);
      fixture_refused (f, bad[i].part);
    }
  g_string_free (object, TRUE);
}

/* PyTorch 0.3 with Python 2: an OrderedDict of pairs, and a view of a storage. */
static void
test_legacy_python2 (Fixture *f, gconstpointer data)
{
  static const Legacy sound = { BYTES (MAGIC VERSION_1001 LITTLE), "](U\0010e.", 6, 24 };
  g_autoptr (GError) error = NULL;
  float values[2];
  g_autoptr (GString) object =
      g_string_new ("\x80\x02"
                    "ccollections\nOrderedDict\n](](U\1wctorch._utils\n_rebuild_tensor\n((U\7storage"
                    "ctorch\nFloatStorage\nU\0010U\3cpuK\6(U\1vK\2K\3tt"
                    "QK\1K\2\x85K\1\x85tRee\x85R.");

  write_legacy (f, object, &sound);
  g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (rn_weights_get (weights, 0)->name, ==, "w");
  g_assert_true (rn_weights_read_f32 (weights, 0, values, &error));
  g_assert_cmpfloat (values[0], ==, 4);
  g_assert_cmpfloat (values[1], ==, 5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) g_test_add ("/torch/" name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("zip/entries", test_zip_entries);
  ADD ("zip/paths", test_zip_paths);
  ADD ("zip/packed", test_zip_packed);
  ADD ("zip/checksum", test_zip_checksum);
  ADD ("objects", test_objects);
  ADD ("nested", test_nested);
  ADD ("legacy", test_legacy);
  ADD ("legacy/python2", test_legacy_python2);
  return g_test_run ();
}
