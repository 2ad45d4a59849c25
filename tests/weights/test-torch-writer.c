/* What we write as .pth: read back here, and byte for byte what PyTorch was seen to accept. */
#include "config.h"

#include "runner/weights/torch-writer.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "tests/weights/golden.h"
#include "tests/weights/weights-fixture.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <zip.h>

static const struct
{
  const char *name, *type;
  gsize element_bytes;
  int rank;
  int64_t dims[RN_WEIGHTS_MAX_DIMS];
} tensors[] = {
  { "backbone.conv1.weight", "F32", 4, 4, { 2, 3, 3, 3 } },
  { "half", "F16", 2, 2, { 3, 5 } },
  { "bfloat", "BF16", 2, 1, { 300 } },
  { "double", "F64", 8, 1, { 2 } },
  { "num_batches_tracked", "I64", 8, 0, { 0 } },
  { "i32", "I32", 4, 1, { 3 } },
  { "i16", "I16", 2, 1, { 1 } },
  { "i8", "I8", 1, 1, { 7 } },
  { "u8", "U8", 1, 1, { 65 } },
  { "bool", "BOOL", 1, 1, { 4 } },
  { "empty", "F32", 4, 2, { 0, 3 } },
  { "Größe", "F32", 4, 8, { 1, 2, 1, 2, 1, 2, 1, 2 } },
};

static gsize
tensor_bytes (guint i)
{
  gsize bytes = tensors[i].element_bytes;
  for (int d = 0; d < tensors[i].rank; d++)
    bytes *= (gsize) tensors[i].dims[d];
  return bytes;
}

/* Any bytes are a tensor; zeros and ones are bools. */
static void
fill (guint seed, guint8 *dst, gsize bytes)
{
  for (gsize k = 0; k < bytes; k++)
    dst[k] =
        (guint8) (golden_value (seed, (gint64) k) & (strcmp (tensors[seed].type, "BOOL") == 0 ? 1 : 255));
}

static gboolean
read_tensor (gpointer source, void *dst, gsize bytes, GError **error)
{
  guint i = GPOINTER_TO_UINT (source);
  g_assert_cmpuint (bytes, ==, tensor_bytes (i));
  fill (i, dst, bytes);
  return TRUE;
}

static RnTorchWriter *
make_writer (void)
{
  RnTorchWriter *writer = rn_torch_writer_new ();
  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++)
    rn_torch_writer_add (writer, tensors[i].name, tensors[i].type, tensors[i].rank, tensors[i].dims,
                         read_tensor, GUINT_TO_POINTER (i), NULL);
  return writer;
}

static void
test_round_trip (Fixture *f, gconstpointer data)
{
  static const char *const classes[] = { "cell", "Größe", NULL };

  for (int with_meta = 0; with_meta < 2; with_meta++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnTorchWriter) writer = make_writer ();
      rn_torch_writer_set_classes (writer, classes);
      g_assert_true (rn_torch_writer_save (writer, f->path, with_meta, &error));
      g_assert_no_error (error);

      g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
      g_assert_no_error (error);
      g_assert_cmpint (rn_weights_format (weights), ==, RN_WEIGHTS_TORCH_ZIP);
      g_assert_cmpuint (rn_weights_size (weights), ==, G_N_ELEMENTS (tensors));
      g_assert_cmpstr (rn_weights_ignored (weights)[0], ==, with_meta ? "meta" : NULL);
      if (with_meta)
        g_assert_cmpstrv (rn_weights_classes (weights), classes);
      else
        g_assert_null (rn_weights_classes (weights));
      for (guint i = 0; i < G_N_ELEMENTS (tensors); i++)
        {
          const RnWeight *weight = rn_weights_get (weights, i);
          gsize bytes = tensor_bytes (i);
          g_autofree guint8 *wanted = g_malloc (bytes + 1), *got = g_malloc (bytes + 1);
          g_assert_cmpstr (weight->name, ==, tensors[i].name);
          g_assert_cmpstr (weight->type, ==, tensors[i].type);
          g_assert_cmpint (weight->rank, ==, tensors[i].rank);
          for (int d = 0; d < weight->rank; d++)
            g_assert_cmpint (weight->dims[d], ==, tensors[i].dims[d]);
          fill (i, wanted, bytes);
          g_assert_true (rn_weights_read (weights, i, got, &error));
          g_assert_cmpmem (got, (int) bytes, wanted, (int) bytes);
        }
    }
}

/* PyTorch loads fixtures/ours.pth, as check-torch.py shows; whoever changes the writer must run that again.
 */
static void
test_bytes (Fixture *f, gconstpointer data)
{
  static const char *const classes[] = { "cell", "Größe", NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnTorchWriter) writer = make_writer ();
  g_autofree char *golden = g_test_build_filename (G_TEST_DIST, "tests/weights/fixtures/ours.pth", NULL);
  g_autofree char *bytes = NULL, *wanted = NULL;
  gsize n, n_wanted;

  rn_torch_writer_set_classes (writer, classes);
  g_assert_true (rn_torch_writer_save (writer, f->path, TRUE, &error));
  g_assert_true (g_file_get_contents (f->path, &bytes, &n, NULL));
  g_assert_true (g_file_get_contents (golden, &wanted, &n_wanted, NULL));
  if (n != n_wanted || memcmp (bytes, wanted, n) != 0)
    g_error ("%s differs from %s", f->path, golden); /* and stays, for check-torch.py */
}

/* libzip, strict: headers and directory agree. Every entry's data on a 64-byte border, as a map needs it. */
static void
test_archive (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnTorchWriter) writer = make_writer ();
  g_autofree char *bytes = NULL;
  gsize n;
  guint n_entries = 0;

  g_assert_true (rn_torch_writer_save (writer, f->path, FALSE, &error));
  zip_t *archive = zip_open (f->path, ZIP_RDONLY | ZIP_CHECKCONS, NULL);
  g_assert_nonnull (archive);
  g_assert_cmpint (zip_get_num_entries (archive, 0), ==, G_N_ELEMENTS (tensors) + 3);
  g_assert_cmpstr (zip_get_name (archive, 0, 0), ==, "archive/data.pkl");
  g_assert_cmpint (zip_name_locate (archive, "archive/version", 0), >=, 0);
  zip_discard (archive);

  g_assert_true (g_file_get_contents (f->path, &bytes, &n, NULL));
  for (gsize at = 0; memcmp (bytes + at, "PK\3\4", 4) == 0; n_entries++)
    {
      guint32 size;
      guint16 name, extra;
      memcpy (&size, bytes + at + 18, 4);
      memcpy (&name, bytes + at + 26, 2);
      memcpy (&extra, bytes + at + 28, 2);
      at += 30u + GUINT16_FROM_LE (name) + GUINT16_FROM_LE (extra);
      g_assert_cmpuint (at % 64, ==, 0);
      at += GUINT32_FROM_LE (size);
    }
  g_assert_cmpuint (n_entries, ==, G_N_ELEMENTS (tensors) + 3);
}

/* More entries than 16 bits count: zip64. */
static void
test_many (Fixture *f, gconstpointer data)
{
  const guint n = 65600, number_of_u8 = 8;
  const int64_t dims[] = { 65 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnTorchWriter) writer = rn_torch_writer_new ();
  guint8 wanted[65], got[65];

  for (guint i = 0; i < n; i++)
    {
      char name[16];
      g_snprintf (name, sizeof name, "t%u", i);
      rn_torch_writer_add (writer, name, "U8", 1, dims, read_tensor, GUINT_TO_POINTER (number_of_u8), NULL);
    }
  g_assert_true (rn_torch_writer_save (writer, f->path, FALSE, &error));
  g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (rn_weights_size (weights), ==, n);
  g_assert_cmpstr (rn_weights_get (weights, n - 1)->name, ==, "t65599");
  g_assert_true (rn_weights_read (weights, n - 1, got, &error));
  fill (number_of_u8, wanted, sizeof wanted);
  g_assert_cmpmem (got, sizeof got, wanted, sizeof wanted);
}

/* ---- Failures ---- */

static int
fail_at (RnAtomicFileStep step, gpointer data)
{
  return step == (RnAtomicFileStep) GPOINTER_TO_INT (data) ? ENOSPC : 0;
}

static gboolean
fail_to_read (gpointer source, void *dst, gsize bytes, GError **error)
{
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_IO, "the device is gone");
  return FALSE;
}

static void
expect_failure (const Fixture *f, RnTorchWriter *writer, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *bytes = NULL;

  g_assert_false (rn_torch_writer_save (writer, f->path, TRUE, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
  g_assert_nonnull (strstr (error->message, part));
  g_assert_true (g_file_get_contents (f->path, &bytes, NULL, NULL));
  g_assert_cmpstr (bytes, ==, "old");
}

/* The old file stays, and nothing else. */
static void
test_failures (Fixture *f, gconstpointer data)
{
  static const int64_t dims[] = { 3 };

  fixture_write (f, "old", 3);
  for (int step = RN_ATOMIC_FILE_OPEN; step <= RN_ATOMIC_FILE_RENAME; step++)
    {
      g_autoptr (RnTorchWriter) writer = make_writer ();
      rn_atomic_file_set_fault (fail_at, GINT_TO_POINTER (step));
      expect_failure (f, writer, f->path);
      rn_atomic_file_set_fault (NULL, NULL);
    }
  g_autoptr (RnTorchWriter) unreadable = make_writer ();
  rn_torch_writer_add (unreadable, "w", "F32", 1, dims, fail_to_read, NULL, NULL);
  expect_failure (f, unreadable, "the device is gone");
  g_autoptr (RnTorchWriter) untyped = make_writer ();
  rn_torch_writer_add (untyped, "w", "U16", 1, dims, read_tensor, NULL, NULL);
  expect_failure (f, untyped, "no storage for");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) \
  g_test_add ("/torch-writer/" name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("round-trip", test_round_trip);
  ADD ("bytes", test_bytes);
  ADD ("archive", test_archive);
  ADD ("many", test_many);
  ADD ("failures", test_failures);
  return g_test_run ();
}
