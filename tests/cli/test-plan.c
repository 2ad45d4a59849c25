/* `runner plan`: what it prints, the strategies of a budget, the largest batch, and plans of devices that are
 * not there. Nothing runs. */
#include "config.h"

#include "tests/cli/program.h"
#include "tests/small-model.h"

#include <glib/gstdio.h>
#include <string.h>

#define SHAPE "--shape", "64x96", "--threads", "1"
#define SMALL                                                                                   \
  "--set", "classes=[circle, square, triangle]", SMALL_MODEL, "model.backbone.frozen_stages=2", \
      "optimizer_config.grad_clip=null"

#define T4_BYTES 17179869184.0 /* as its profile has it */

/* Fewer strategies for a budget to try. */
#define FEW SMALL, "memory.offload=none", "memory.workspace_limit=64MiB"

typedef struct
{
  char *config;
} Fixture;

static void
set_up (Fixture *f, gconstpointer user_data)
{
  f->config = config_file ("retinanet_shapes.yaml");
}

static void
tear_down (Fixture *f, gconstpointer user_data)
{
  g_free (f->config);
}

static JsonObject *
find_strategy (JsonParser *parser, const char *name)
{
  JsonArray *rows = json_object_get_array_member (json_object_of (parser), "strategies");

  for (guint i = 0; i < json_array_get_length (rows); i++)
    {
      JsonObject *row = json_array_get_object_element (rows, i);
      if (g_str_equal (json_object_get_string_member (row, "name"), name))
        return row;
    }
  g_error ("no strategy %s", name);
}

static gint64
total_of (const char *config, const char *line)
{
  g_auto (Result) result = run_program ("plan", config, SHAPE, "--json", SMALL, line, NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);

  return json_object_get_int_member (json_object_of (parser), "total_bytes");
}

/* A row of the table is what a file with the line needs; and in such a file the row says that it is on. */
static void
test_rows (Fixture *f, gconstpointer user_data)
{
  static const char *const lines[][2] = { { "depth_first", "memory.head=depth_first" },
                                          { "in_backward", "memory.update=in_backward" },
                                          { "with_cp", "model.backbone.with_cp=true" },
                                          { "momentum_host", "memory.momentum=host" } };
  g_auto (Result) result = run_program ("plan", f->config, SHAPE, "--json", SMALL, NULL);
  g_autoptr (JsonParser) plain = parse_json (&result);
  gint64 base = json_object_get_int_member (json_object_of (plain), "total_bytes");

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++)
    {
      JsonObject *row = find_strategy (plain, lines[i][0]);
      g_assert_false (json_object_get_boolean_member (row, "is_on"));
      gint64 total = json_object_get_int_member (row, "total_bytes");
      g_assert_cmpint (total, ==, total_of (f->config, lines[i][1]));
      g_assert_cmpint (json_object_get_int_member (row, "saved_bytes"), ==, base - total);
    }

  g_auto (Result) with = run_program ("plan", f->config, SHAPE, "--json", SMALL, lines[0][1], NULL);
  g_autoptr (JsonParser) parser = parse_json (&with);
  JsonObject *row = find_strategy (parser, lines[0][0]);
  g_assert_true (json_object_get_boolean_member (row, "is_on"));
  g_assert_cmpint (json_object_get_int_member (row, "total_bytes"), ==,
                   json_object_get_int_member (json_object_of (parser), "total_bytes"));
  g_assert_cmpint (json_object_get_int_member (row, "saved_bytes"), ==,
                   json_object_get_int_member (find_strategy (plain, lines[0][0]), "saved_bytes"));
}

/* What a line cannot do here is said in its row. */
static void
test_refused_row (Fixture *f, gconstpointer user_data)
{
  g_auto (Result) result = run_program ("plan", f->config, SHAPE, "--json", SMALL,
                                        "optimizer_config.grad_clip={max_norm: 1, norm_type: 2}", NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonObject *row = find_strategy (parser, "in_backward");

  assert_contains (json_object_get_string_member (row, "refused"), "grad_clip");
  g_assert_false (json_object_has_member (row, "total_bytes"));
}

/* Kept, computed again, waiting in host memory: an output is one of them at most. */
static void
test_layers (Fixture *f, gconstpointer user_data)
{
  static const char *const columns[] = { "kept_bytes", "recomputed_bytes", "offloaded_bytes" };
  gint64 plain[3] = { 0 }, saving[3] = { 0 };

  for (int with = 0; with < 2; with++)
    {
      g_auto (Result) result =
          with ? run_program ("plan", f->config, SHAPE, "--json", SMALL, "model.backbone.with_cp=true",
                              "memory.offload=block_outputs", NULL)
               : run_program ("plan", f->config, SHAPE, "--json", SMALL, NULL);
      g_autoptr (JsonParser) parser = parse_json (&result);
      JsonArray *layers = json_object_get_array_member (json_object_of (parser), "layers");
      for (guint i = 0; i < json_array_get_length (layers); i++)
        {
          JsonObject *layer = json_array_get_object_element (layers, i);
          int n = 0;
          for (gsize c = 0; c < G_N_ELEMENTS (columns); c++)
            {
              gint64 bytes = json_object_get_int_member (layer, columns[c]);
              (with ? saving : plain)[c] += bytes;
              n += bytes > 0;
            }
          g_assert_cmpint (n, <=, 1);
        }
    }
  g_assert_cmpint (plain[0], >, saving[0]);
  g_assert_cmpint (plain[1], ==, 0);
  g_assert_cmpint (plain[2], ==, 0);
  g_assert_cmpint (saving[1], >, 0);
  g_assert_cmpint (saving[2], >, 0);
}

/* What is alive at the peak sums up to it. */
static void
test_peak (Fixture *f, gconstpointer user_data)
{
  g_auto (Result) result = run_program ("plan", f->config, SHAPE, "--json", SMALL, NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonArray *alive = json_object_get_array_member (json_object_of (parser), "peak");
  gint64 sum = 0, last = G_MAXINT64;

  for (guint i = 0; i < json_array_get_length (alive); i++)
    {
      gint64 bytes = json_object_get_int_member (json_array_get_object_element (alive, i), "bytes");
      g_assert_cmpint (bytes, <=, last);
      sum += last = bytes;
    }
  g_assert_cmpint (sum, ==, json_object_get_int_member (json_object_of (parser), "live_bound_bytes"));
}

static void
test_budget (Fixture *f, gconstpointer user_data)
{
  static const char words[] = "--set memory.budget=";
  g_auto (Result) infeasible = run_program ("plan", f->config, SHAPE, "--budget", "1MiB", FEW, NULL);

  g_assert_cmpint (infeasible.code, ==, 3);
  const char *number = strstr (infeasible.err, words);
  g_assert_nonnull (number);
  gint64 least = g_ascii_strtoll (number + strlen (words), NULL, 10);
  g_autofree char *least_text = g_strdup_printf ("%" G_GINT64_FORMAT, least);
  g_autofree char *less_text = g_strdup_printf ("%" G_GINT64_FORMAT, least - 1);

  g_auto (Result) result =
      run_program ("plan", f->config, SHAPE, "--budget", least_text, "--json", FEW, NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonObject *budget = json_object_get_object_member (json_object_of (parser), "budget");
  g_assert_cmpint (json_object_get_int_member (json_object_of (parser), "total_bytes"), ==, least);
  g_assert_cmpint (json_object_get_int_member (budget, "budget_bytes"), ==, least);
  g_assert_cmpint (json_object_get_int_member (budget, "unchanged_bytes"), >, least);
  g_assert_cmpfloat (json_object_get_double_member (budget, "time_ratio"), >=, 1);
  JsonArray *lines = json_object_get_array_member (budget, "lines");
  g_assert_cmpuint (json_array_get_length (lines), >, 0);

  g_auto (Result) less = run_program ("plan", f->config, SHAPE, "--budget", less_text, FEW, NULL);
  g_assert_cmpint (less.code, ==, 3);
  g_auto (Result) no_size = run_program ("plan", f->config, SHAPE, "--budget", "plenty", FEW, NULL);
  g_assert_cmpint (no_size.code, ==, 2);
  assert_contains (no_size.err, "--budget");

  /* The lines that it prints, in a file of their own, need the same. */
  g_auto (Result) text = run_program ("plan", f->config, SHAPE, "--budget", least_text, FEW, NULL);
  for (guint i = 0; i < json_array_get_length (lines); i++)
    assert_contains (text.out, json_array_get_string_element (lines, i));
  assert_contains (text.out, "budget: the fastest of ");
}

/* The batch that is named fits, and one more does not. */
static void
test_largest (Fixture *f, gconstpointer user_data)
{
  gint64 two = total_of (f->config, "data.samples_per_gpu=2");
  g_autofree char *bytes =
      g_strdup_printf ("%" G_GINT64_FORMAT, two * 10 / 9 + 10000); /* a tenth is left free */

  g_setenv ("RN_FREE_MEMORY", bytes, TRUE);
  g_auto (Result) result = run_program ("plan", f->config, SHAPE, "--batch", "auto", "--json", FEW, NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonObject *largest = json_object_get_object_member (json_object_of (parser), "largest_batch");
  gint64 batch = json_object_get_int_member (largest, "batch"),
         room = json_object_get_int_member (largest, "room_bytes");
  g_assert_cmpint (batch, ==, 2);
  g_assert_cmpint (json_object_get_int_member (json_object_of (parser), "batch"), ==, batch);
  g_assert_cmpint (json_object_get_int_member (json_object_of (parser), "total_bytes"), ==, two);
  g_assert_cmpint (json_object_get_int_member (largest, "needed_bytes"), ==, two);
  g_assert_cmpint (two, <=, room);
  gint64 next = json_object_get_int_member (largest, "next_needed_bytes");
  g_assert_cmpint (next, >, room);
  g_assert_cmpint (next, ==, total_of (f->config, "data.samples_per_gpu=3"));

  /* With a budget of the same size its strategies give a larger one. */
  g_autofree char *budget = g_strdup_printf ("%" G_GINT64_FORMAT, room);
  g_auto (Result) saving =
      run_program ("plan", f->config, SHAPE, "--batch", "auto", "--budget", budget, "--json", FEW, NULL);
  g_autoptr (JsonParser) saved = parse_json (&saving);
  JsonObject *larger = json_object_get_object_member (json_object_of (saved), "largest_batch");
  g_assert_cmpint (json_object_get_int_member (larger, "batch"), >, batch);
  g_assert_cmpint (json_object_get_int_member (json_object_of (saved), "total_bytes"), <=, room);
  g_assert_cmpint (json_object_get_int_member (larger, "next_needed_bytes"), >, room);

  g_setenv ("RN_FREE_MEMORY", "1KiB", TRUE);
  g_auto (Result) none = run_program ("plan", f->config, SHAPE, "--batch", "auto", FEW, NULL);
  g_assert_cmpint (none.code, ==, 3);
  assert_contains (none.err, "one image");
  g_unsetenv ("RN_FREE_MEMORY");
  g_auto (Result) wrong = run_program ("plan", f->config, SHAPE, "--batch", "many", FEW, NULL);
  g_assert_cmpint (wrong.code, ==, 2);
}

static gint64
count_largest_workspace (const char *config, const char *line)
{
  g_auto (Result) result =
      run_program ("plan", config, SHAPE, "--device", "cuda", "--json", SMALL, line, NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonArray *layers = json_object_get_array_member (json_object_of (parser), "layers");
  gint64 most = 0;

  g_assert_true (json_object_get_boolean_member (json_object_of (parser), "is_upper_bound"));
  for (guint i = 0; i < json_array_get_length (layers); i++)
    {
      JsonObject *layer = json_array_get_object_element (layers, i);
      gint64 bytes = json_object_get_int_member (layer, "workspace_bytes");
      if (g_str_equal (json_object_get_string_member (layer, "op"), "conv2d_fwd"))
        g_assert_cmpint (bytes, >, 0);
      most = MAX (most, bytes);
    }
  return most;
}

/* Every convolution has the limit, no more, and nothing can be trained. Without a limit it has what an engine
 * may take, and room for the weights as that reads them: of this model less than 1 MiB. */
static void
test_cuda (Fixture *f, gconstpointer user_data)
{
  gint64 unlimited = count_largest_workspace (f->config, "seed=0");
  g_assert_cmpint (unlimited, >, 64 << 20);
  g_assert_cmpint (unlimited, <, 65 << 20);
  g_assert_cmpint (count_largest_workspace (f->config, "memory.workspace_limit=16MiB"), ==, 16 << 20);

  g_auto (Result) text = run_program ("plan", f->config, SHAPE, "--device", "cuda:1", SMALL, NULL);
  g_assert_cmpint (text.code, ==, 0);
  assert_contains (text.out, "upper bound");
  assert_contains (text.out, "planned without looking at one");
  g_auto (Result) train = run_program ("train", f->config, "--device", "cuda", SMALL, NULL);
  g_assert_cmpint (train.code, ==, 3);
  /* Nobody knows what it has free; what the process has would be a wrong answer. */
  g_auto (Result) budget =
      run_program ("plan", f->config, SHAPE, "--device", "cuda:1", "--budget", "auto", SMALL, NULL);
  g_assert_cmpint (budget.code, ==, 3);
  assert_contains (budget.err,
                   "memory.budget: auto asks what the device has free, which nobody says (CUDA: ");
  g_auto (Result) batch =
      run_program ("plan", f->config, SHAPE, "--device", "cuda:1", "--batch", "auto", SMALL, NULL);
  g_assert_cmpint (batch.code, ==, 3);
  assert_contains (batch.err, "--batch auto asks what the device has free, which nobody says (CUDA: ");
  g_auto (Result) cpu = run_program ("plan", f->config, SHAPE, SMALL, NULL);
  g_assert_null (strstr (cpu.out, "upper bound"));
}

/* A device that is not there, by the library's own answers for it. */
static void
test_device_profile (Fixture *f, gconstpointer user_data)
{
  g_auto (Result) wrong = run_program ("plan", f->config, SHAPE, "--device-profile", "t5", SMALL, NULL);
  g_assert_cmpint (wrong.code, ==, 2);
  assert_contains (wrong.err, "no device profile \"t5\"");
  assert_contains (wrong.err, "rtx4090");
  g_auto (Result) cpu =
      run_program ("plan", f->config, SHAPE, "--device-profile", "t4", "--device", "cpu", SMALL, NULL);
  g_assert_cmpint (cpu.code, ==, 2);
  g_auto (Result) measure =
      run_program ("plan", f->config, SHAPE, "--device-profile", "t4", "--measure", SMALL, NULL);
  g_assert_cmpint (measure.code, ==, 2);

#ifdef __SANITIZE_ADDRESS__
  /* Its dlopen () is called in the name of the sanitizer, whose folder the parts of cuDNN are not in. */
  g_test_skip ("under AddressSanitizer cuDNN does not find its own parts");
  return;
#endif
  g_auto (Result) text = run_program ("plan", f->config, SHAPE, "--device-profile", "t4", SMALL, NULL);
  if (text.code == 3)
    {
      assert_contains (text.err, "CUDA: the module ");
      g_test_skip (text.err);
      return;
    }
  g_assert_cmpint (text.code, ==, 0);
  assert_contains (text.out, "profile of Tesla T4 (sm_75)");
  assert_contains (text.out, "the most of any engine of cuDNN within");
  for (int deterministic = 0; deterministic < 2; deterministic++)
    {
      g_auto (Result) json =
          run_program ("plan", f->config, SHAPE, "--device-profile", "h200", "--json", SMALL, "fp16={}",
                       deterministic ? "deterministic=true" : "deterministic=false", NULL);
      g_autoptr (JsonParser) parser = parse_json (&json);
      gint64 bytes = json_object_get_int_member (json_object_of (parser), "workspace_bytes");
      g_assert_cmpint (bytes, >, 0);
      g_assert_cmpint (bytes, <=, 64 << 20);
      g_assert_false (json_object_get_boolean_member (json_object_of (parser), "is_upper_bound"));
    }
  /* An older card than kernels are made for. */
  g_autofree char *t4 = g_test_build_filename (G_TEST_DIST, "kernels", "cuda", "profiles", "t4.json", NULL);
  g_autofree char *json = NULL;
  g_assert_true (g_file_get_contents (t4, &json, NULL, NULL));
  strstr (json, "750")[0] = '5';
  g_autofree char *dir = g_dir_make_tmp ("rn-plan-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "old.json", NULL);
  g_assert_true (g_file_set_contents (path, json, -1, NULL));
  g_auto (Result) too_old = run_program ("plan", f->config, SHAPE, "--device-profile", path, SMALL, NULL);
  remove_tree (dir);
  g_assert_cmpint (too_old.code, ==, 3);
  assert_contains (too_old.err, "compute capability 5.5; what works: 7.5 and later");
  /* Nine tenths of what the card has. */
  g_auto (Result) room = run_program ("plan", f->config, SHAPE, "--device-profile", "t4", "--budget", "auto",
                                      "--json", SMALL, NULL);
  g_autoptr (JsonParser) room_parser = parse_json (&room);
  JsonObject *chosen = json_object_get_object_member (json_object_of (room_parser), "budget");
  g_assert_cmpint (json_object_get_int_member (chosen, "budget_bytes"), ==, (gint64) (0.9 * T4_BYTES));
  /* It knows what a device cannot do. */
  g_auto (Result) bf16 =
      run_program ("plan", f->config, SHAPE, "--device-profile", "t4", SMALL, "fp16={dtype: bf16}", NULL);
  g_assert_cmpint (bf16.code, ==, 1);
  assert_contains (bf16.err, "no kernel takes it: bf16 needs compute capability 8.0");
}

/* A step writes what the plan has, in both arenas, and says so for each layer. */
static void
test_measure (Fixture *f, gconstpointer user_data)
{
  g_auto (Result) json =
      run_program ("plan", f->config, SHAPE, "--measure", "--json", SMALL, "memory.offload=idle>4",
                   "memory.update=in_backward", "optimizer_config.grad_clip=null", NULL);
  g_autoptr (JsonParser) parser = parse_json (&json);
  JsonObject *measured = json_object_get_object_member (json_object_of (parser), "measured");
  JsonArray *layers = json_object_get_array_member (json_object_of (parser), "layers");

  g_assert_cmpint (json_object_get_int_member (measured, "difference_bytes"), ==, 0);
  g_assert_cmpint (json_object_get_int_member (measured, "arena_bytes"), ==,
                   json_object_get_int_member (json_object_of (parser), "arena_bytes"));
  g_assert_cmpint (json_object_get_int_member (measured, "host_bytes"), >, 0);
  for (guint i = 0; i < json_array_get_length (layers); i++)
    {
      JsonObject *layer = json_array_get_object_element (layers, i);
      gint64 written = json_object_get_int_member (layer, "written_bytes");
      g_assert_cmpint (written, >=, json_object_get_int_member (layer, "output_bytes"));
      g_assert_cmpint (written, <=, json_object_get_int_member (layer, "planned_write_bytes"));
    }

  g_auto (Result) text = run_program ("plan", f->config, SHAPE, "--measure", SMALL, NULL);
  g_assert_cmpint (text.code, ==, 0);
  assert_contains (text.out, "difference 0 bytes");
  assert_contains (text.out, "written MiB");
  g_auto (Result) cuda = run_program ("plan", f->config, SHAPE, "--measure", "--device", "cuda", SMALL, NULL);
  g_assert_cmpint (cuda.code, ==, 3);
}

/* A training that does not fit ends before its first step, with lines that fit. */
static void
test_refused_training (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("runner-plan-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *data = g_build_filename (dir, "data", NULL), *work = g_build_filename (dir, "work", NULL);
  g_autofree char *root = g_strconcat ("data_root=", data, "/", NULL);
  g_auto (Result) synth = run_program ("synth", data, "--train", "4", "--val", "2", "--test", "1", "--width",
                                       "96", "--height", "64", NULL);
  g_assert_cmpint (synth.code, ==, 0);

  g_setenv ("RN_FREE_MEMORY", "8MiB", TRUE);
  g_auto (Result) result = run_program ("train", f->config, "--work-dir", work, "--set", SMALL_MODEL, root,
                                        "x_size=[96, 64]", "optimizer_config.grad_clip=null", NULL);
  g_unsetenv ("RN_FREE_MEMORY");
  g_assert_cmpint (result.code, ==, 3);
  assert_contains (result.err, "are available; ");
  assert_contains (result.err, "--set ");
  remove_tree (dir);
}

static void
test_text (Fixture *f, gconstpointer user_data)
{
  static const char *const words[] = { "the worst of the run",
                                       "what each strategy gives here",
                                       "depth_first ",
                                       "memory.head=depth_first",
                                       "alive at the peak",
                                       "kept MiB again MiB",
                                       "bit-equal" };
  g_auto (Result) result = run_program ("plan", f->config, SHAPE, SMALL, NULL);

  g_assert_cmpint (result.code, ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    assert_contains (result.out, words[i]);
}

#define ADD(path, function) g_test_add (path, Fixture, NULL, set_up, function, tear_down)

/* The picture is there, or an error is. */
static void
test_png (Fixture *f, gconstpointer user_data)
{
  g_autofree char *dir = g_dir_make_tmp ("rn-plan-XXXXXX", NULL);
  g_autofree char *png = g_build_filename (dir, "timeline.png", NULL);
  g_autofree char *missing = g_build_filename (dir, "missing", "timeline.png", NULL);
  g_autofree char *data = NULL;
  gsize size;

  g_auto (Result) result = run_program ("plan", f->config, SHAPE, "--png", png, FEW, NULL);
  g_assert_cmpint (result.code, ==, 0);
  assert_contains (result.out, "alive at the peak");
  g_assert_true (g_file_get_contents (png, &data, &size, NULL));
  g_assert_cmpuint (size, >, 8);
  g_assert_cmpmem (data, 8, "\x89PNG\r\n\x1a\n", 8);
  g_auto (Result) refused = run_program ("plan", f->config, SHAPE, "--png", missing, FEW, NULL);
  g_assert_cmpint (refused.code, ==, 1);
  assert_contains (refused.err, "missing");
  g_assert_cmpint (g_remove (png), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/plan/text", test_text);
  ADD ("/plan/rows", test_rows);
  ADD ("/plan/refused-row", test_refused_row);
  ADD ("/plan/layers", test_layers);
  ADD ("/plan/peak", test_peak);
  ADD ("/plan/budget", test_budget);
  ADD ("/plan/largest-batch", test_largest);
  ADD ("/plan/png", test_png);
  ADD ("/plan/cuda", test_cuda);
  ADD ("/plan/device-profile", test_device_profile);
  ADD ("/plan/measure", test_measure);
  ADD ("/plan/refused-training", test_refused_training);
  return g_test_run ();
}
