/*
 * Memory of the host over a training whose batches have more shapes than there are plans kept: plans are made
 * and dropped all the time, and after the first epoch, in which every shape was met, nothing may grow.
 *
 * RN_TEST_LONG=1: 60 shapes and 10 epochs; else 12 and 5.
 */
#include "config.h"

#include "tests/cli/program.h"
#include "tests/small-model.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 10
#define MAX_EPOCHS 10

typedef struct
{
  int n_shapes, n_epochs, plan_cache;
} Run;

/* One photograph of each size: batches of one image have as many padded shapes. */
static void
make_image (const char *dir, int index, GString *list)
{
  g_autofree char *part = g_build_filename (dir, "part", NULL);
  g_autofree char *width = g_strdup_printf ("--width=%d", 64 + 32 * (index % COLUMNS));
  g_autofree char *height = g_strdup_printf ("--height=%d", 64 + 32 * (index / COLUMNS));
  g_autofree char *seed = g_strdup_printf ("--seed=%d", index);
  g_auto (Result) synth =
      run_program ("synth", part, "--train=1", "--val=0", "--test=0", width, height, seed, NULL);
  static const char *const kinds[][2] = { { "JPEGImages", "jpg" }, { "Annotations", "xml" } };

  if (synth.code != 0)
    g_error ("%s", synth.err);
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autofree char *from = g_strdup_printf ("%s/%s/000001.%s", part, kinds[i][0], kinds[i][1]);
      g_autofree char *to = g_strdup_printf ("%s/%s/%06d.%s", dir, kinds[i][0], index, kinds[i][1]);
      g_assert_cmpint (g_rename (from, to), ==, 0);
    }
  g_string_append_printf (list, "%06d\n", index);
  remove_tree (part);
}

static void
make_data (const char *dir, int n_shapes)
{
  g_autoptr (GString) list = g_string_new (NULL);
  static const char *const folders[] = { "JPEGImages", "Annotations", "ImageSets/Main" };

  for (gsize i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *path = g_build_filename (dir, folders[i], NULL);
      g_assert_cmpint (g_mkdir_with_parents (path, 0777), ==, 0);
    }
  for (int i = 0; i < n_shapes; i++)
    make_image (dir, i, list);
  g_autofree char *path = g_build_filename (dir, "ImageSets", "Main", "train.txt", NULL);
  g_assert_true (g_file_set_contents (path, list->str, -1, NULL));
}

/* `memory_current` of the last log line of each epoch, MiB. Returns how many epochs there are. */
static int
read_memory (const char *dir, double memory[MAX_EPOCHS])
{
  g_autoptr (GDir) files = g_dir_open (dir, 0, NULL);
  g_autofree char *text = NULL;
  int n = 0;

  for (const char *name; text == NULL && (name = g_dir_read_name (files)) != NULL;)
    if (g_str_has_suffix (name, ".log.json"))
      {
        g_autofree char *path = g_build_filename (dir, name, NULL);
        g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
      }
  g_assert_nonnull (text);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line != NULL; line++)
    {
      g_autoptr (JsonParser) parser = json_parser_new ();
      if (**line == '\0' || strstr (*line, "\"memory_current\"") == NULL)
        continue;
      g_assert_true (json_parser_load_from_data (parser, *line, -1, NULL));
      JsonObject *object = json_node_get_object (json_parser_get_root (parser));
      int epoch = (int) json_object_get_int_member (object, "epoch");
      g_assert_cmpint (epoch, >=, 1);
      g_assert_cmpint (epoch, <=, MAX_EPOCHS);
      memory[epoch - 1] = json_object_get_double_member (object, "memory_current");
      n = MAX (n, epoch);
    }
  return n;
}

static void
train (const char *data, const char *work_dir, const Run *run)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_autofree char *root = g_strdup_printf ("data_root=%s/", data);
  g_autofree char *epochs =
      g_strdup_printf ("runner={type: EpochBasedRunner, max_epochs: %d}", run->n_epochs);
  g_autofree char *cache = g_strdup_printf ("memory.plan_cache=%d", run->plan_cache);
  g_autofree char *interval = g_strdup_printf ("log_config.interval=%d", run->n_shapes);
  g_auto (Result) result =
      run_program ("train", config, "--work-dir", work_dir, "--threads=1", "--set", root,
                   "classes=[circle, square, triangle]", SMALL_MODEL, "optimizer.lr=0.001",
                   "data.samples_per_gpu=1", "data.workers_per_gpu=1", interval, "evaluation=null",
                   "checkpoint_config.interval=100", "~train_pipeline.2", /* Resize */
                   epochs, cache, NULL);
  if (result.code != 0)
    g_error ("%s", result.err);
}

static void
test_soak (void)
{
#ifdef __SANITIZE_ADDRESS__
  g_test_skip ("AddressSanitizer keeps freed memory for a while: what grows is its own");
  return;
#endif
  gboolean is_long = g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") == 0;
  const Run run = is_long ? (Run){ 60, 10, 8 } : (Run){ 12, 5, 4 };
  g_autofree char *dir = g_dir_make_tmp ("rn-soak-XXXXXX", NULL);
  g_autofree char *data = g_build_filename (dir, "data", NULL),
                  *work_dir = g_build_filename (dir, "run", NULL);
  double memory[MAX_EPOCHS] = { 0 }, late = 0;
  int n_late = run.n_epochs / 2;

  make_data (data, run.n_shapes);
  train (data, work_dir, &run);
  g_assert_cmpint (read_memory (work_dir, memory), ==, run.n_epochs);
  for (int i = 0; i < run.n_epochs; i++)
    g_test_message ("epoch %d: %.1f MiB", i + 1, memory[i]);
  for (int i = run.n_epochs - n_late; i < run.n_epochs; i++)
    late += memory[i] / n_late;
  /* Which plans are kept when an epoch ends is chance: the mean of the later epochs counts. The log has whole
   * MiB, so two equal amounts may differ by one. */
  g_assert_cmpfloat (late, <=, memory[0] * 1.01 + 1);
  remove_tree (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/soak/shapes", test_soak);
  return g_test_run ();
}
