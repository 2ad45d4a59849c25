/* Weight files of all kinds that are sound, and files of other kinds, and sound files that were cut. */
#include "config.h"

#include "runner/weights/weights.h"

#include "runner/base/error.h"
#include "runner/checkpoint.h"
#include "runner/weights/weights-types.h"
#include "tests/weights/golden.h"
#include "tests/weights/weights-fixture.h"

#include <glib/gstdio.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What PyTorch wrote ---- */

/* Element (i, j, ...) is number offset + i * strides[0] + j * strides[1] + ... of the formula. */
typedef struct
{
  const char *name, *type;
  guint seed;
  int rank;
  int64_t dims[4], strides[4], offset;
} Expected;

static const Expected types[] = {
  { "f32", "F32", 1, 2, { 3, 4 }, { 4, 1 }, 0 },
  { "f16", "F16", 2, 2, { 2, 5 }, { 5, 1 }, 0 },
  { "bf16", "BF16", 3, 1, { 7 }, { 1 }, 0 },
  { "f64", "F64", 4, 2, { 2, 2 }, { 2, 1 }, 0 },
  { "i64", "I64", 5, 0, { 0 }, { 0 }, 0 },
  { "i32", "I32", 6, 1, { 3 }, { 1 }, 0 },
  { "i16", "I16", 7, 1, { 3 }, { 1 }, 0 },
  { "i8", "I8", 8, 1, { 5 }, { 1 }, 0 },
  { "u8", "U8", 9, 1, { 5 }, { 1 }, 0 },
  { "bool", "BOOL", 10, 1, { 6 }, { 1 }, 0 },
  { "empty", "F32", 0, 2, { 0, 3 }, { 0, 0 }, 0 },
  { "base", "F32", 20, 2, { 4, 6 }, { 6, 1 }, 0 },
  { "transposed", "F32", 20, 2, { 6, 4 }, { 1, 6 }, 0 },
  { "part", "F32", 20, 2, { 2, 3 }, { 6, 1 }, 8 },
  { "column", "F32", 20, 1, { 4 }, { 6 }, 1 },
  { "expanded", "F32", 21, 2, { 3, 4 }, { 0, 1 }, 0 },
  { "parameter", "F32", 22, 1, { 3 }, { 1 }, 0 },
  { "permuted", "F32", 23, 4, { 2, 5, 3, 4 }, { 60, 1, 20, 5 }, 0 },
};

static const Expected plain[] = {
  { "backbone.conv1.weight", "F32", 30, 4, { 4, 3, 3, 3 }, { 27, 9, 3, 1 }, 0 },
  { "backbone.bn1.weight", "F32", 31, 1, { 4 }, { 1 }, 0 },
  { "backbone.bn1.num_batches_tracked", "I64", 32, 0, { 0 }, { 0 }, 0 },
  { "bbox_head.retina_cls.bias", "F32", 33, 1, { 9 }, { 1 }, 0 },
};

static const Expected half[] = {
  { "backbone.conv1.weight", "F16", 30, 4, { 4, 3, 3, 3 }, { 27, 9, 3, 1 }, 0 },
  { "backbone.bn1.weight", "F16", 31, 1, { 4 }, { 1 }, 0 },
  { "backbone.bn1.num_batches_tracked", "I64", 32, 0, { 0 }, { 0 }, 0 },
  { "bbox_head.retina_cls.bias", "F16", 33, 1, { 9 }, { 1 }, 0 },
};

static const Expected detector[] = {
  { "module.backbone.conv1.weight", "F32", 30, 4, { 4, 3, 3, 3 }, { 27, 9, 3, 1 }, 0 },
  { "module.backbone.bn1.weight", "F32", 31, 1, { 4 }, { 1 }, 0 },
  { "module.backbone.bn1.num_batches_tracked", "I64", 32, 0, { 0 }, { 0 }, 0 },
  { "module.bbox_head.retina_cls.bias", "F32", 33, 1, { 9 }, { 1 }, 0 },
};

static const struct
{
  const char *name;
  const Expected *tensors;
  guint n;
  const char *ignored, *classes; /* joined by commas */
} files[] = {
  { "types", types, G_N_ELEMENTS (types), "", NULL },
  { "plain", plain, G_N_ELEMENTS (plain), "", NULL },
  { "half", half, G_N_ELEMENTS (half), "", NULL },
  { "detector", detector, G_N_ELEMENTS (detector), "meta,optimizer", "cell,Größe,x y" },
  { "model", plain, G_N_ELEMENTS (plain), "epoch,args", NULL },
};

static double
decode (const char *type, const void *raw)
{
  const char *bytes = raw;

  if (strcmp (type, "F64") == 0 || strcmp (type, "I64") == 0)
    {
      gint64 number;
      double real;
      memcpy (&number, bytes, 8);
      memcpy (&real, bytes, 8);
      return type[0] == 'F' ? real : (double) number;
    }
  if (strcmp (type, "I32") == 0 || strcmp (type, "F32") == 0)
    {
      gint32 number;
      float real;
      memcpy (&number, bytes, 4);
      memcpy (&real, bytes, 4);
      return type[0] == 'F' ? (double) real : (double) number;
    }
  if (strcmp (type, "I16") == 0)
    {
      gint16 number;
      memcpy (&number, bytes, 2);
      return number;
    }
  return strcmp (type, "I8") == 0 ? (gint8) bytes[0] : (guint8) bytes[0];
}

static void
check_tensor (RnWeights *weights, guint i, const Expected *expected)
{
  g_autoptr (GError) error = NULL;
  const RnWeight *weight = rn_weights_get (weights, i);

  g_assert_cmpstr (weight->name, ==, expected->name);
  g_assert_cmpstr (weight->type, ==, expected->type);
  g_assert_cmpint (weight->rank, ==, expected->rank);
  int64_t n = 1;
  for (int d = 0; d < expected->rank; d++)
    {
      g_assert_cmpint (weight->dims[d], ==, expected->dims[d]);
      n *= expected->dims[d];
    }
  g_assert_cmpint (weight->n, ==, n);

  g_autofree float *values = g_new (float, n + 1);
  g_autofree char *raw = g_malloc ((gsize) n * weight->element_bytes + 1);
  g_assert_true (rn_weights_read_f32 (weights, i, values, &error));
  g_assert_true (rn_weights_read (weights, i, raw, &error));
  for (int64_t k = 0; k < n; k++)
    {
      int64_t at = expected->offset, rest = k;
      for (int d = expected->rank; d-- > 0; rest /= expected->dims[d])
        at += rest % expected->dims[d] * expected->strides[d];
      double wanted = golden_element (expected->type, expected->seed, at);
      g_assert_cmpfloat (values[k], ==, wanted);
      if (weight->element_bytes != 2 || expected->type[0] == 'I')
        g_assert_cmpfloat (decode (weight->type, raw + k * (int64_t) weight->element_bytes), ==, wanted);
    }
}

static void
test_pytorch (gconstpointer data)
{
  const char *suffix = data;

  for (guint f = 0; f < G_N_ELEMENTS (files); f++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *name = g_strconcat (files[f].name, suffix, NULL);
      g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests/weights/fixtures", name, NULL);
      g_autoptr (RnWeights) weights = rn_weights_open (path, &error);
      g_assert_no_error (error);
      g_assert_cmpstr (rn_weights_path (weights), ==, path);
      g_assert_cmpint (rn_weights_format (weights), ==,
                       strstr (suffix, "legacy") ? RN_WEIGHTS_TORCH_LEGACY : RN_WEIGHTS_TORCH_ZIP);
      g_assert_cmpuint (rn_weights_size (weights), ==, files[f].n);
      for (guint i = 0; i < files[f].n; i++)
        check_tensor (weights, i, &files[f].tensors[i]);
      for (guint i = files[f].n; i-- > 0;) /* again, in another order: storages are shared */
        check_tensor (weights, i, &files[f].tensors[i]);

      g_autofree char *ignored = g_strjoinv (",", (char **) rn_weights_ignored (weights));
      g_assert_cmpstr (ignored, ==, files[f].ignored);
      g_autofree char *classes =
          rn_weights_classes (weights) ? g_strjoinv (",", (char **) rn_weights_classes (weights)) : NULL;
      g_assert_cmpstr (classes, ==, files[f].classes);
    }
}

/* ---- safetensors ---- */

static const float numbers[6] = { 1, -2, 3.5f, 0, 5, 6e-20f };

static gboolean
read_memory (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const char *) source + offset, size);
  return TRUE;
}

static void
write_safetensors (const Fixture *f, gboolean is_checkpoint)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  RnTensorDesc matrix = { RN_F32, 2, { 2, 3, 1, 1 }, 1 }, raw = rn_desc_vector (RN_U8, 3);

  rn_safetensors_writer_add (writer, "a.weight", &matrix, read_memory, (gpointer) numbers, NULL);
  rn_safetensors_writer_add (writer, "momentum/a.weight", &matrix, read_memory, (gpointer) numbers, NULL);
  rn_safetensors_writer_add (writer, "z", &raw, read_memory, (gpointer) "\1\2\3", NULL);
  if (is_checkpoint)
    rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_FORMAT, RN_CHECKPOINT_FORMAT_NAME);
  rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_CLASSES, "cat\nmad dog\n");
  g_assert_true (rn_safetensors_writer_save (writer, f->path, &error));
}

/* In our own checkpoints momentum is no weight; elsewhere the name means nothing. */
static void
test_safetensors (Fixture *f, gconstpointer data)
{
  for (int is_checkpoint = 0; is_checkpoint < 2; is_checkpoint++)
    {
      g_autoptr (GError) error = NULL;
      float values[6];
      write_safetensors (f, is_checkpoint);
      g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
      g_assert_no_error (error);
      g_assert_cmpint (rn_weights_format (weights), ==, RN_WEIGHTS_SAFETENSORS);
      guint n = rn_weights_size (weights);
      g_assert_cmpuint (n, ==, is_checkpoint ? 2 : 3);
      g_assert_cmpstr (rn_weights_get (weights, 0)->name, ==, "a.weight");
      g_assert_cmpint (rn_weights_get (weights, 0)->dims[1], ==, 3);
      g_assert_true (rn_weights_read_f32 (weights, 0, values, &error));
      g_assert_cmpmem (values, sizeof values, numbers, sizeof numbers);
      g_assert_true (rn_weights_read_f32 (weights, n - 1, values, &error));
      g_assert_cmpfloat (values[2], ==, 3);
      g_assert_cmpstr (rn_weights_ignored (weights)[0], ==, is_checkpoint ? "momentum" : NULL);
      g_assert_cmpstr (rn_weights_classes (weights)[1], ==, "mad dog");
      g_assert_null (rn_weights_classes (weights)[2]);
    }
}

/* A file that is open is read as it is, whatever stands under its name by now. */
static void
test_safetensors_lent (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  float values[6];

  write_safetensors (f, TRUE);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_cmpint (g_unlink (f->path), ==, 0);
  fixture_write (f, "another", 7);

  g_autoptr (RnWeights) weights = rn_weights_from_safetensors (file, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (rn_weights_size (weights), ==, 2);
  g_assert_cmpstr (rn_weights_path (weights), ==, f->path);
  g_assert_true (rn_weights_read_f32 (weights, 0, values, &error));
  g_assert_cmpmem (values, sizeof values, numbers, sizeof numbers);
  g_assert_cmpstr (rn_weights_ignored (weights)[0], ==, "momentum");
  g_assert_null (rn_weights_ignored (weights)[1]);
  g_assert_cmpstr (rn_weights_classes (weights)[0], ==, "cat");
}

/* Our checksum is compared when the file is opened. */
static void
test_safetensors_checksum (Fixture *f, gconstpointer data)
{
  g_autofree char *bytes = NULL;
  gsize n;

  write_safetensors (f, FALSE);
  g_assert_true (g_file_get_contents (f->path, &bytes, &n, NULL));
  bytes[n - 1] ^= 1;
  fixture_write (f, bytes, n);
  fixture_refused (f, "checksum");
}

/* ---- Conversion ---- */

/* IEEE 754-2008, table 3.5; the values by hand. */
static void
test_half (void)
{
  static const struct
  {
    guint16 half;
    float value;
  } cases[] = {
    { 0x0000, 0 },
    { 0x3c00, 1 },
    { 0xc000, -2 },
    { 0x3555, 0x1.554p-2f },
    { 0x7bff, 65504 },
    { 0x0400, 0x1p-14f },
    { 0x0001, 0x1p-24f },
    { 0x03ff, 0x1.ff8p-15f },
    { 0x83ff, -0x1.ff8p-15f },
    { 0x7c00, INFINITY },
    { 0xfc00, -INFINITY },
  };
  const RnWeightType *type = rn_weight_type_by_name ("F16");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      float value;
      guint16 little = GUINT16_TO_LE (cases[i].half);
      g_assert_true (rn_weight_type_to_f32 (type, &little, 1, &value));
      g_assert_cmpfloat (value, ==, cases[i].value);
    }
  float values[2];
  g_assert_true (rn_weight_type_to_f32 (type, "\x00\x80\x01\x7e", 2, values));
  g_assert_true (values[0] == 0 && signbit (values[0]));
  g_assert_true (isnan (values[1]));
}

static void
test_conversions (void)
{
  float value;

  g_assert_true (
      rn_weight_type_to_f32 (rn_weight_type_by_name ("I64"), "\xfe\xff\xff\xff\xff\xff\xff\xff", 1, &value));
  g_assert_cmpfloat (value, ==, -2);
  g_assert_true (
      rn_weight_type_to_f32 (rn_weight_type_by_name ("U64"), "\xfe\xff\xff\xff\xff\xff\xff\xff", 1, &value));
  g_assert_cmpfloat (value, ==, 0x1p64f);
  g_assert_true (rn_weight_type_to_f32 (rn_weight_type_by_name ("I8"), "\xfe", 1, &value));
  g_assert_cmpfloat (value, ==, -2);
  g_assert_true (rn_weight_type_to_f32 (rn_weight_type_by_name ("U16"), "\xfe\xff", 1, &value));
  g_assert_cmpfloat (value, ==, 65534);
  g_assert_true (rn_weight_type_to_f32 (rn_weight_type_by_name ("BF16"), "\x80\x7f", 1, &value));
  g_assert_true (isinf (value));
  g_assert_true (rn_weight_type_to_f32 (rn_weight_type_by_name ("BOOL"), "\x02", 1, &value));
  g_assert_cmpfloat (value, ==, 1);
  g_assert_false (rn_weight_type_to_f32 (rn_weight_type_by_name ("F8_E4M3"), "\x38", 1, &value));
}

/* ---- What is no checkpoint ---- */

static void
test_other_files (Fixture *f, gconstpointer data)
{
  static const struct
  {
    const char *bytes;
    gsize n;
    const char *what;
  } others[] = {
    { BYTES (""), "it is empty" },
    { BYTES ("\xff\xd8\xff\xe0\0\x10JFIF"), "a JPEG image" },
    { BYTES ("\x89PNG\r\n\x1a\n"), "a PNG image" },
    { BYTES ("hello\nworld \xc3\xa4\n"), "it is text" },
    { BYTES (" \n<!DOCTYPE html><title>404</title>"), "a web page" },
    { BYTES ("<?xml version=\"1.0\"?><annotation/>"), "an XML file" },
    { BYTES ("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull" },
    { BYTES ("\x1f\x8b\x08\0"), "gzip" },
    { BYTES ("\x7f"
             "ELF\2\1"),
      "a program" },
    { BYTES ("\x80\x04\x95\0\0\0\0\0\0\0\0}."), "a Python pickle" },
    { BYTES ("abc\0\0\0\0def"), "unknown kind" },
    { BYTES ("\xfe\xfe\xfd"), "unknown kind" },
    { BYTES ("BMx: 1\n"), "it is text" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    {
      fixture_write (f, others[i].bytes, others[i].n);
      fixture_refused (f, others[i].what);
    }

  char tar[512] = "sys_info";
  memcpy (tar + 257, "ustar", 5);
  fixture_write (f, tar, sizeof tar);
  fixture_refused (f, "0.1.10");
}

static void
expect_missing (const char *path, const char *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (rn_weights_open (path, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING);
  g_assert_nonnull (strstr (error->message, path));
  g_assert_nonnull (strstr (error->message, part));
}

static void
test_no_files (Fixture *f, gconstpointer data)
{
  expect_missing (f->path, "No such file");
  expect_missing (f->dir, "a folder");
  expect_missing ("/dev/zero", "not a regular file");
  g_assert_cmpint (mkfifo (f->path, 0600), ==, 0);
  expect_missing (f->path, "not a regular file"); /* and does not wait */
}

/* ---- Files that were cut ---- */

static char *
load_fixture (const char *name, gsize *n)
{
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests/weights/fixtures", name, NULL);
  char *bytes = NULL;
  g_assert_true (g_file_get_contents (path, &bytes, n, NULL));
  return bytes;
}

static void
test_truncated (Fixture *f, gconstpointer data)
{
  static const char *const names[] = { "detector-1.13.pth", "types-1.13-legacy.pth", NULL };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      gsize n;
      GStatBuf info;
      if (names[i] != NULL)
        {
          g_autofree char *bytes = load_fixture (names[i], &n);
          fixture_write (f, bytes, n);
        }
      else
        write_safetensors (f, FALSE);
      g_assert_cmpint (g_stat (f->path, &info), ==, 0);
      for (off_t k = info.st_size; k-- > 0;)
        {
          g_assert_cmpint (truncate (f->path, k), ==, 0);
          fixture_refused (f, "");
        }
    }
}

/* A file that shrinks after it was opened gives an error. */
static void
test_shrinks (Fixture *f, gconstpointer data)
{
  static const char *const names[] = { "types-2.15.pth", "types-2.15-legacy.pth", NULL };

  for (guint k = 0; k < G_N_ELEMENTS (names); k++)
    {
      g_autoptr (GError) error = NULL;
      gsize n;
      if (names[k] != NULL)
        {
          g_autofree char *bytes = load_fixture (names[k], &n);
          fixture_write (f, bytes, n);
        }
      else
        write_safetensors (f, FALSE);
      g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);
      g_assert_no_error (error);
      g_assert_cmpint (truncate (f->path, 100), ==, 0);

      guint last = rn_weights_size (weights) - 1; /* beyond what a buffer may hold */
      g_autofree float *values = g_new (float, rn_weights_get (weights, last)->n);
      g_assert_false (rn_weights_read_f32 (weights, last, values, &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/weights/pytorch/1.13/zip", "-1.13.pth", test_pytorch);
  g_test_add_data_func ("/weights/pytorch/1.13/legacy", "-1.13-legacy.pth", test_pytorch);
  g_test_add_data_func ("/weights/pytorch/2.15/zip", "-2.15.pth", test_pytorch);
  g_test_add_data_func ("/weights/pytorch/2.15/legacy", "-2.15-legacy.pth", test_pytorch);
  g_test_add_func ("/weights/half", test_half);
  g_test_add_func ("/weights/conversions", test_conversions);
#define ADD(name, func) g_test_add ("/weights/" name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("safetensors", test_safetensors);
  ADD ("safetensors-lent", test_safetensors_lent);
  ADD ("safetensors-checksum", test_safetensors_checksum);
  ADD ("other-files", test_other_files);
  ADD ("no-files", test_no_files);
  ADD ("truncated", test_truncated);
  ADD ("shrinks", test_shrinks);
  return g_test_run ();
}
