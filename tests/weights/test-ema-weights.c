/* Checkpoints of ours with a running mean of the weights: which of the two is read. */
#include "config.h"

#include "runner/checkpoint.h"
#include "runner/weights/convert.h"
#include "tests/weights/weights-fixture.h"

#include <glib/gstdio.h>
#include <string.h>

static const float weights_of[6] = { 1, 2, 3, 4, 5, 6 }, means_of[6] = { 7, 8, 9, 10, 11, 12 };

static gboolean
read_memory (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const char *) source + offset, size);
  return TRUE;
}

static void
write_file (const Fixture *f, gboolean is_checkpoint)
{
  static const char *const others[] = { "exp_avg/a.weight", "exp_avg/b.weight", "pending/a.weight" };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  RnTensorDesc matrix = { RN_F32, 2, { 2, 2, 1, 1 }, 1 }, vector = rn_desc_vector (RN_F32, 2);

  rn_safetensors_writer_add (writer, "a.weight", &matrix, read_memory, (gpointer) weights_of, NULL);
  rn_safetensors_writer_add (writer, "ema/a.weight", &matrix, read_memory, (gpointer) means_of, NULL);
  rn_safetensors_writer_add (writer, "b.weight", &vector, read_memory, (gpointer) (weights_of + 4), NULL);
  rn_safetensors_writer_add (writer, "ema/b.weight", &vector, read_memory, (gpointer) (means_of + 4), NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    rn_safetensors_writer_add (writer, others[i], &vector, read_memory, (gpointer) weights_of, NULL);
  if (is_checkpoint)
    rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_FORMAT, RN_CHECKPOINT_FORMAT_NAME);
  g_assert_true (rn_safetensors_writer_save (writer, f->path, &error));
}

static RnWeights *
open_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  RnWeights *weights = rn_weights_open (path, &error);
  g_assert_no_error (error);
  return weights;
}

static void
assert_values (RnWeights *weights, const float *expected)
{
  g_autoptr (GError) error = NULL;
  float values[6];

  g_assert_cmpuint (rn_weights_size (weights), ==, 2);
  g_assert_cmpstr (rn_weights_get (weights, 0)->name, ==, "a.weight");
  g_assert_cmpint (rn_weights_get (weights, 0)->rank, ==, 2);
  g_assert_cmpstr (rn_weights_get (weights, 1)->name, ==, "b.weight");
  g_assert_true (rn_weights_read_f32 (weights, 0, values, &error));
  g_assert_true (rn_weights_read_f32 (weights, 1, values + 4, &error));
  g_assert_cmpmem (values, sizeof values, expected, sizeof values);
}

static void
assert_ignored (RnWeights *weights, const char *expected)
{
  g_autofree char *ignored = g_strjoinv (", ", (char **) rn_weights_ignored (weights));
  g_assert_cmpstr (ignored, ==, expected);
}

static void
test_choice (Fixture *f, gconstpointer data)
{
  write_file (f, TRUE);
  g_autoptr (RnWeights) weights = open_file (f->path);
  assert_values (weights, weights_of);
  assert_ignored (weights, "ema, exp_avg, pending");

  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE,
                         "*its running mean of the weights is taken*; this is how not");
  rn_weights_use_ema (weights, "this is how not");
  g_test_assert_expected_messages ();
  assert_values (weights, means_of);
  assert_ignored (weights, "the weights without their mean, exp_avg, pending");
  rn_weights_use_ema (weights, NULL); /* no second time, and no message */
  assert_values (weights, means_of);
}

/* A file of somebody else's may use such names for what it likes. */
static void
test_foreign (Fixture *f, gconstpointer data)
{
  write_file (f, FALSE);
  g_autoptr (RnWeights) weights = open_file (f->path);
  g_assert_cmpuint (rn_weights_size (weights), ==, 7);
  rn_weights_use_ema (weights, NULL);
  g_assert_cmpuint (rn_weights_size (weights), ==, 7);
  assert_ignored (weights, "");
}

/* What is written has no mean beside it, so nothing is left to choose. */
static void
test_convert (Fixture *f, gconstpointer data)
{
  const RnConvertOptions options = { RN_NAMES_TO_SAME, FALSE };
  g_autofree char *out = g_strconcat (f->path, ".pth", NULL);

  write_file (f, TRUE);
  for (int use_ema = 0; use_ema < 2; use_ema++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnWeights) weights = open_file (f->path);
      if (use_ema)
        {
          g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "*running mean*");
          rn_weights_use_ema (weights, NULL);
        }
      g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "left out: *, exp_avg, pending");
      g_autofree char *text = rn_weights_convert (weights, out, &options, &error);
      g_test_assert_expected_messages ();
      g_assert_no_error (error);
      g_assert_nonnull (text);
      g_autoptr (RnWeights) again = open_file (out);
      assert_values (again, use_ema ? means_of : weights_of);
    }
  g_assert_cmpint (g_remove (out), ==, 0);
}

/* Resuming reads a file that is open: the weights, never their mean. */
static void
test_lent (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  write_file (f, TRUE);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (f->path, &error);
  g_assert_no_error (error);
  g_autoptr (RnWeights) weights = rn_weights_from_safetensors (file, &error);
  g_assert_no_error (error);
  assert_values (weights, weights_of);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name, function) \
  g_test_add ("/weights/ema/" name, Fixture, NULL, fixture_set_up, function, fixture_tear_down)
  TEST ("choice", test_choice);
  TEST ("foreign", test_foreign);
  TEST ("convert", test_convert);
  TEST ("lent", test_lent);
  return g_test_run ();
}
