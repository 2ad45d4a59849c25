/* The file format: what is written is read back; what is damaged is refused, and never followed. */
#include "config.h"

#include "runner/safetensors.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/rng.h"
#include "runner/crc32c.h"
#include "runner/process-memory.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#define N_MUTATIONS 1000

typedef struct
{
  char *dir, *path;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->dir = g_dir_make_tmp ("rn-safetensors-XXXXXX", NULL);
  f->path = g_build_filename (f->dir, "file.safetensors", NULL);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  rn_atomic_file_set_fault (NULL, NULL);
  g_unlink (f->path);
  g_assert_cmpint (g_rmdir (f->dir), ==, 0); /* nothing else was left */
  g_free (f->dir);
  g_free (f->path);
}

static const float weights[2][3] = { { 1, 2, 3 }, { -4, 0.5f, 1e-30f } };
static const guint8 bytes[5] = { 9, 8, 7, 6, 5 };
static gint64 counter = 1234567890123;

static gboolean
read_memory (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const char *) source + offset, size);
  return TRUE;
}

static RnSafetensorsWriter *
make_writer (void)
{
  RnSafetensorsWriter *writer = rn_safetensors_writer_new ();
  RnTensorDesc matrix = { RN_F32, 2, { 2, 3, 1, 1 }, 1 }, raw = rn_desc_vector (RN_U8, 5),
               scalar = { RN_I64, 0, { 1, 1, 1, 1 }, 1 };

  rn_safetensors_writer_add (writer, "b", &raw, read_memory, (gpointer) bytes, NULL);
  rn_safetensors_writer_add (writer, "z.weight", &matrix, read_memory, (gpointer) weights, NULL);
  rn_safetensors_writer_add (writer, "a", &scalar, read_memory, &counter, NULL);
  rn_safetensors_writer_set_metadata (writer, "counters", "old");
  rn_safetensors_writer_set_metadata (writer, "counters", "{\"iter\": 3}");
  rn_safetensors_writer_set_metadata (writer, "log/b", "1");
  rn_safetensors_writer_set_metadata (writer, "log/a", "2");
  return writer;
}

static void
write_file (const Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensorsWriter) writer = make_writer ();
  g_assert_true (rn_safetensors_writer_save (writer, f->path, &error));
  g_assert_no_error (error);
}

static void
test_round_trip (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  write_file (f);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_true (rn_safetensors_verify (file, &error));

  g_assert_cmpuint (rn_safetensors_size (file), ==, 3);
  g_assert_cmpstr (rn_safetensors_get (file, 0)->name, ==,
                   "a"); /* wide elements first, so that all are aligned */
  g_assert_cmpstr (rn_safetensors_get (file, 1)->name, ==, "z.weight");
  g_assert_cmpstr (rn_safetensors_get (file, 2)->name, ==, "b");
  const RnStoredTensor *z = rn_safetensors_find (file, "z.weight");
  g_assert_cmpstr (z->type, ==, "F32");
  g_assert_cmpint (z->rank, ==, 2);
  g_assert_cmpint (z->dims[0], ==, 2);
  g_assert_cmpint (z->dims[1], ==, 3);
  g_assert_cmpmem (z->data, (int) z->bytes, weights, sizeof weights);
  g_assert_cmpint (rn_safetensors_get (file, 0)->rank, ==, 0);
  g_assert_cmpmem (rn_safetensors_find (file, "b")->data, 5, bytes, 5);
  g_assert_null (rn_safetensors_find (file, "c"));
  g_assert_cmpstr (rn_safetensors_metadata (file, "counters"), ==, "{\"iter\": 3}");
  g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, "log/");
  g_assert_cmpuint (keys->len, ==, 2);
  g_assert_cmpstr (g_ptr_array_index (keys, 0), ==, "log/a");

  /* The data starts on an 8-byte border. */
  g_autofree char *text = NULL;
  gsize size;
  g_assert_true (g_file_get_contents (f->path, &text, &size, NULL));
  guint64 header_bytes;
  memcpy (&header_bytes, text, 8);
  g_assert_cmpuint (GUINT64_FROM_LE (header_bytes) % 8, ==, 0);
  g_assert_cmpuint (8 + GUINT64_FROM_LE (header_bytes) + 8 + 24 + 5, ==, size);
}

/* RFC 3720, B.4. */
static void
test_crc32c (void)
{
  guint8 block[32] = { 0 };

  g_assert_cmphex (rn_crc32c (0, block, 32), ==, 0x8a9136aa);
  memset (block, 0xff, 32);
  g_assert_cmphex (rn_crc32c (0, block, 32), ==, 0x62a8ab43);
  for (guint8 i = 0; i < 32; i++)
    block[i] = i;
  g_assert_cmphex (rn_crc32c (0, block, 32), ==, 0x46dd794e);
  g_assert_cmphex (rn_crc32c (rn_crc32c (0, block, 13), block + 13, 19), ==, 0x46dd794e);
}

/* Any one changed byte is found. */
static void
test_checksum (Fixture *f, gconstpointer data)
{
  g_autofree char *text = NULL;
  gsize size;

  write_file (f);
  g_assert_true (g_file_get_contents (f->path, &text, &size, NULL));
  for (gsize i = 0; i < size; i++)
    {
      text[i] ^= 1;
      g_autoptr (RnSafetensors) file = rn_safetensors_open_memory (text, size, "changed", NULL);
      /* A header that hides its checksum's key counts as a foreign one. */
      if (file != NULL && rn_safetensors_metadata (file, "checksum") != NULL)
        g_assert_false (rn_safetensors_verify (file, NULL));
      text[i] ^= 1;
    }
}

/* Reads everything that the reader vouches for. */
static guint
touch (const RnSafetensors *file)
{
  guint sum = 0;
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      const RnStoredTensor *tensor = rn_safetensors_get (file, i);
      for (gsize k = 0; k < tensor->bytes; k++)
        sum += tensor->data[k];
    }
  return sum;
}

static void
test_mutations (Fixture *f, gconstpointer data)
{
  static const char *const tokens[] = { "9223372036854775807",
                                        "-1",
                                        "18446744073709551616",
                                        "1e308",
                                        "[",
                                        "{",
                                        "}",
                                        "]",
                                        "\"",
                                        "null",
                                        "\"F64\"",
                                        "\"data_offsets\":[0,0]",
                                        "\\u0000",
                                        ",",
                                        "0",
                                        "4294967296" };
  g_autofree char *text = NULL;
  gsize size;
  guint n_opened = 0;
  RnRng rng;

  write_file (f);
  g_assert_true (g_file_get_contents (f->path, &text, &size, NULL));
  rn_rng_init (&rng, 7, RN_STREAM_SYNTH, 0, 0);
  for (int i = 0; i < N_MUTATIONS; i++)
    {
      g_autoptr (GByteArray) copy = g_byte_array_new ();
      g_byte_array_append (copy, (const guint8 *) text, (guint) size);
      for (guint64 n = 1 + rn_rng_below (&rng, 3); n > 0; n--)
        {
          gsize place = rn_rng_below (&rng, copy->len);
          gsize n_gone = 1 + rn_rng_below (&rng, 9);
          const char *token = tokens[rn_rng_below (&rng, G_N_ELEMENTS (tokens))];
          switch (rn_rng_below (&rng, 4))
            {
            case 0:
              copy->data[place] = (guint8) rn_rng_u32 (&rng);
              break;
            case 1:
              memcpy (copy->data + place, token, MIN (strlen (token), copy->len - place));
              break;
            case 2:
              g_byte_array_set_size (copy, (guint) place + 1);
              break;
            default:
              g_byte_array_remove_range (copy, (guint) place, (guint) MIN (n_gone, copy->len - place));
              if (copy->len == 0)
                g_byte_array_append (copy, bytes, 1);
            }
        }
      /* A block of its own size, so that checkers see a read past its end. */
      g_autofree guint8 *exact = g_memdup2 (copy->data, copy->len);
      g_autoptr (GError) error = NULL;
      g_autoptr (RnSafetensors) file = rn_safetensors_open_memory (exact, copy->len, "mutation", &error);
      if (file == NULL)
        {
          g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
          continue;
        }
      n_opened += touch (file) > 0;
      rn_safetensors_verify (file, NULL);
    }
  /* Some damage lies in data and texts only; if all or nothing were refused, the test would test nothing. */
  g_assert_cmpuint (n_opened, >, 0);
  g_assert_cmpuint (n_opened, <, N_MUTATIONS);
}

static void
assert_refused (const char *header, gsize n_data, const char *pattern)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) file = g_byte_array_new ();
  guint64 length = GUINT64_TO_LE (strlen (header));
  const guint8 zeros[64] = { 0 };

  g_byte_array_append (file, (const guint8 *) &length, 8);
  g_byte_array_append (file, (const guint8 *) header, (guint) strlen (header));
  g_byte_array_append (file, zeros, (guint) n_data);
  g_autoptr (RnSafetensors) opened = rn_safetensors_open_memory (file->data, file->len, "made", &error);
  g_assert_null (opened);
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
}

#define T(name, shape, begin, end) \
  "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

static void
test_bad_headers (void)
{
  assert_refused ("{" T ("a", "2", "0", "8") "," T ("b", "2", "4", "12") "}", 12, "*overlaps*");
  assert_refused ("{" T ("a", "2", "0", "8") "," T ("b", "2", "12", "20") "}", 20, "*gap*");
  assert_refused ("{" T ("a", "2", "0", "8") "}", 9, "*belong to no tensor*");
  assert_refused ("{" T ("a", "2", "0", "8") "}", 7, "*inside the file*");
  assert_refused ("{" T ("a", "3", "0", "8") "}", 8, "*its shape 12*");
  assert_refused ("{" T ("a", "2", "8", "0") "}", 8, "*inside the file*");
  assert_refused ("{" T ("a", "-2", "0", "8") "}", 8, "*shape*");
  assert_refused ("{" T ("a", "4294967296,4294967296", "0", "0") "}", 0,
                  "*shape*"); /* 2^64 elements wrap to none */
  assert_refused ("{" T ("a", "1,1,1,1,1,1,1,1,1", "0", "4") "}", 4, "*shape*");
  assert_refused ("{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "*dtype*");
  assert_refused ("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "*dtype*");
  assert_refused ("{\"a\":[2]}", 8, "*object*");
  assert_refused ("{\"__metadata__\":{\"a\":1}}", 0, "*not a text*");
  assert_refused ("{\"__metadata__\":[]}", 0, "*not an object*");
  assert_refused ("[]", 0, "*not an object*");
  assert_refused ("{\"a\":{\"b\":{\"c\":{\"d\":{}}}}}", 0, "*not JSON of the expected kind*");
  assert_refused ("", 0, "*");

  g_autoptr (GError) error = NULL;
  const guint8 huge[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
  g_assert_null (rn_safetensors_open_memory (huge, 16, "huge", &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
  g_clear_error (&error);
  g_assert_null (rn_safetensors_open_memory (huge, 7, "short", &error));
  g_clear_error (&error);
  g_assert_null (rn_safetensors_open ("/nonexistent/file", &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING);
}

static int
fail_step (RnAtomicFileStep step, gpointer data)
{
  return step == *(const RnAtomicFileStep *) data ? ENOSPC : 0;
}

/* A disk that fills up leaves the old file as it was. */
static void
test_failed_write (Fixture *f, gconstpointer data)
{
  static const RnAtomicFileStep steps[] = { RN_ATOMIC_FILE_OPEN, RN_ATOMIC_FILE_WRITE, RN_ATOMIC_FILE_FSYNC,
                                            RN_ATOMIC_FILE_RENAME };

  g_assert_true (g_file_set_contents (f->path, "old", 3, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnSafetensorsWriter) writer = make_writer ();
      g_autofree char *text = NULL;
      rn_atomic_file_set_fault (fail_step, (gpointer) &steps[i]);
      g_assert_false (rn_safetensors_writer_save (writer, f->path, &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
      g_assert_true (g_str_has_prefix (error->message, f->path));
      g_assert_null (strstr (error->message + 1, f->path)); /* named once */
      g_assert_true (g_file_get_contents (f->path, &text, NULL, NULL));
      g_assert_cmpstr (text, ==, "old");
    }
}

/* The message begins with the path, and says what is wrong with it. */
/* What could not be read back is not written. */
static void
test_long_header (void)
{
  g_autofree char *dir = g_dir_make_tmp ("rn-header-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "x.safetensors", NULL);
  g_autofree char *text = g_strnfill (101 << 20, 'x');
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  g_autoptr (GError) error = NULL;

  rn_safetensors_writer_set_metadata (writer, "text", text);
  g_assert_false (rn_safetensors_writer_save (writer, path, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

static void
test_not_a_file (void)
{
  static const char *const paths[][2] = {
    { "/", "/: not a regular file" },
    { "/dev/null", "/dev/null: not a regular file" },
    { "/nonexistent", "/nonexistent: No such file or directory" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (rn_safetensors_open (paths[i][0], &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING);
      g_assert_cmpstr (error->message, ==, paths[i][1]);
    }
}

/* A checkpoint is as large as the model; the pages that were read through its mapping must not count as the
 * run's memory. */
static void
test_pages (Fixture *f, gconstpointer data)
{
  enum
  {
    N = 32 << 20
  };
  g_autofree guint8 *large = g_malloc (N);
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  RnTensorDesc desc = rn_desc_vector (RN_U8, N);
  GError *error = NULL;
  guint64 before, after, peak;

  memset (large, 7, N);
  rn_safetensors_writer_add (writer, "large", &desc, read_memory, large, NULL);
  g_assert_true (rn_safetensors_writer_save (writer, f->path, &error));
  g_assert_no_error (error);

  rn_process_memory (&before, &peak);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_true (rn_safetensors_verify (file, &error));
  rn_process_memory (&after, &peak);
  if (before == 0)
    {
      g_test_skip ("the system does not say what is resident");
      return;
    }
  g_assert_cmpuint (after, <, before + N / 2);

  const RnStoredTensor *tensor = rn_safetensors_get (file, 0);
  g_assert_cmpint (memcmp (tensor->data, large, N), ==, 0); /* they come back */
  rn_safetensors_forget (file, tensor);
  rn_process_memory (&after, &peak);
  g_assert_cmpuint (after, <, before + N / 2);
}

static gboolean
read_lost (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "the device is lost");
  return FALSE;
}

/* A device that fails while its tensors are read is no fault of the file: who catches it can tell. */
static void
test_failed_read (Fixture *f, gconstpointer data)
{
  g_autoptr (RnSafetensorsWriter) writer = make_writer ();
  RnTensorDesc scalar = { RN_F32, 0, { 1, 1, 1, 1 }, 1 };
  g_autoptr (GError) error = NULL;

  rn_safetensors_writer_add (writer, "lost", &scalar, read_lost, NULL, NULL);
  g_assert_false (rn_safetensors_writer_save (writer, f->path, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
  g_assert_false (g_file_test (f->path, G_FILE_TEST_EXISTS));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/runner/safetensors/round-trip", Fixture, NULL, set_up, test_round_trip, tear_down);
  g_test_add_func ("/runner/safetensors/crc32c", test_crc32c);
  g_test_add ("/runner/safetensors/pages", Fixture, NULL, set_up, test_pages, tear_down);
  g_test_add ("/runner/safetensors/checksum", Fixture, NULL, set_up, test_checksum, tear_down);
  g_test_add ("/runner/safetensors/mutations", Fixture, NULL, set_up, test_mutations, tear_down);
  g_test_add_func ("/runner/safetensors/bad-headers", test_bad_headers);
  g_test_add_func ("/runner/safetensors/long-header", test_long_header);
  g_test_add_func ("/runner/safetensors/not-a-file", test_not_a_file);
  g_test_add ("/runner/safetensors/failed-write", Fixture, NULL, set_up, test_failed_write, tear_down);
  g_test_add ("/runner/safetensors/failed-read", Fixture, NULL, set_up, test_failed_read, tear_down);
  return g_test_run ();
}
