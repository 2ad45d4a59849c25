/* `runner bench`: every row is what its lines say, measured memory is planned memory, and it stops when told
 * to. No times: only that their ratios are those of the repetitions. */
#include "config.h"

#include "tests/cli/program.h"
#include "tests/small-model.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define SHAPE "--shape=64x96", "--batch=2", "--threads=1"
#define SMALL                                                                                   \
  "--set", "classes=[circle, square, triangle]", SMALL_MODEL, "model.backbone.frozen_stages=1", \
      "optimizer_config.grad_clip=null"

static JsonObject *
row_of (JsonParser *parser, guint index, const char *name)
{
  JsonArray *rows = json_object_get_array_member (json_object_of (parser), "strategies");

  g_assert_cmpuint (index, <, json_array_get_length (rows));
  JsonObject *row = json_array_get_object_element (rows, index);
  g_assert_cmpstr (json_object_get_string_member (row, "name"), ==, name);
  return row;
}

static gint64
get (JsonObject *object, const char *name)
{
  g_assert_true (json_object_has_member (object, name));
  return json_object_get_int_member (object, name);
}

/* The lines of a row, given to `plan`, must plan what the row says. */
static void
assert_as_planned (const char *config, JsonObject *row)
{
  JsonArray *lines = json_object_get_array_member (row, "lines");
  const char *line[3] = { NULL };

  g_assert_cmpuint (json_array_get_length (lines), <=, 2);
  for (guint i = 0; i < json_array_get_length (lines); i++)
    line[i] = json_array_get_string_element (lines, i);
  g_auto (Result) result = run_program ("plan", config, SHAPE, "--json", SMALL, line[0], line[1], NULL);
  g_autoptr (JsonParser) plan = parse_json (&result);
  g_assert_cmpint (get (row, "planned_bytes"), ==, get (json_object_of (plan), "total_bytes"));
  g_assert_cmpint (get (row, "arena_bytes"), ==, get (json_object_of (plan), "arena_bytes"));
  g_assert_cmpint (get (row, "host_bytes"), ==, get (json_object_of (plan), "host_bytes"));
}

/* Nothing is written behind the arena, and its last buffer is written. A buffer ends at most 63 bytes before
 * the next multiple of 64, and its last bytes may have the value of a mark. */
static void
assert_measured (JsonObject *row)
{
  gint64 arena = get (row, "arena_bytes"), highest = get (row, "highest_arena_byte");

  g_assert_cmpint (highest, <=, arena);
  g_assert_cmpint (highest, >, arena - 128);
  g_assert_cmpint (get (row, "measured_bytes"), ==, get (row, "planned_bytes") - arena + highest);
  g_assert_cmpint (get (row, "peak_resident_bytes"), >, get (row, "measured_bytes"));
  /* The CPU has no memory of its own. */
  g_assert_cmpint (get (row, "device_used_bytes"), ==, 0);
  g_assert_cmpint (get (row, "outside_plan_bytes"), ==, 0);
}

static void
assert_ratios (JsonObject *base, JsonObject *row, guint repeat)
{
  JsonArray *of_base = json_object_get_array_member (base, "seconds_of_repetitions"),
            *of_row = json_object_get_array_member (row, "seconds_of_repetitions");
  double least = INFINITY, most = -INFINITY, ratio = json_object_get_double_member (row, "time_ratio");

  g_assert_cmpuint (json_array_get_length (of_row), ==, repeat);
  for (guint i = 0; i < repeat; i++)
    {
      double r = json_array_get_double_element (of_row, i) / json_array_get_double_element (of_base, i);
      least = MIN (least, r);
      most = MAX (most, r);
    }
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (row, "time_ratio_min"), least, 1e-9);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (row, "time_ratio_max"), most, 1e-9);
  g_assert_cmpfloat_with_epsilon (ratio, (least + most) / 2, 1e-9); /* of two: the median is the mean */
}

static void
assert_png (const char *path)
{
  g_autofree char *data = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &data, &size, NULL));
  g_assert_cmpuint (size, >, 8);
  g_assert_cmpmem (data, 8, "\x89PNG\r\n\x1a\n", 8);
}

static void
test_table (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_autofree char *dir = g_dir_make_tmp ("rn-bench-XXXXXX", NULL);
  g_autofree char *png = g_build_filename (dir, "bench.png", NULL);
  g_auto (Result) result =
      run_program ("bench", config, SHAPE, "--iters=3", "--warmup=0", "--repeat=2", "--json", "--png", png,
                   "--strategies=accumulation,with_cp,with_cp+in_backward,budget", "--budget=8MiB", SMALL,
                   "memory.offload=none", "memory.workspace_limit=64MiB", NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonObject *base = row_of (parser, 0, "base"), *accumulation = row_of (parser, 1, "accumulation"),
             *with_cp = row_of (parser, 2, "with_cp"), *both = row_of (parser, 3, "with_cp+in_backward"),
             *budget = row_of (parser, 4, "budget");
  JsonObject *const rows[] = { base, accumulation, with_cp, both, budget };

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      assert_measured (rows[i]);
      assert_ratios (base, rows[i], 2);
      if (i != 4) /* the plan of a budget has the lines that it chose too */
        assert_as_planned (config, rows[i]);
    }
  g_assert_cmpint (get (json_object_of (parser), "planned_bytes"), ==, get (base, "planned_bytes"));
  g_assert_cmpint (get (json_object_of (parser), "batch"), ==, 2);
  g_assert_cmpint (get (base, "iters"), ==, 3);
  g_assert_cmpint (get (accumulation, "iters"), ==, 4); /* whole steps */
  g_assert_cmpint (get (with_cp, "planned_bytes"), <, get (base, "planned_bytes"));
  g_assert_cmpint (get (both, "planned_bytes"), <, get (with_cp, "planned_bytes"));
  g_assert_cmpint (get (budget, "planned_bytes"), <=, 8 << 20);
  g_assert_cmpint (get (base, "planned_bytes"), >, 8 << 20);
  g_assert_cmpint (get (base, "recompute_macs"), ==, 0);
  g_assert_cmpint (get (with_cp, "recompute_macs"), >, 0);
  /* The same steps: recomputation keeps the bits. */
  g_assert_cmpfloat (json_object_get_double_member (base, "loss"), ==,
                     json_object_get_double_member (both, "loss"));
  g_assert_cmpfloat (json_object_get_double_member (base, "loss"), !=,
                     json_object_get_double_member (base, "first_loss"));
  assert_png (png);
  g_assert_cmpint (g_remove (png), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

/* Marks that are looked for once find what the comparison after each op finds. */
static void
test_check (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  gint64 highest[2], host[2];

  for (int check = 0; check < 2; check++)
    {
      g_auto (Result) result =
          run_program ("bench", config, "--single", SHAPE, "--iters=1", "--warmup=0", "--json", SMALL,
                       "memory.offload=idle>16", check ? "--check" : NULL, NULL);
      g_autoptr (JsonParser) parser = parse_json (&result);
      highest[check] = get (json_object_of (parser), "highest_arena_byte");
      host[check] = get (json_object_of (parser), "highest_host_byte");
      g_assert_cmpint (get (json_object_of (parser), "arena_bytes"), >=, highest[check]);
    }
  g_assert_cmpint (ABS (highest[0] - highest[1]), <, 64);
  g_assert_cmpint (host[0], >, 0);
  g_assert_cmpint (ABS (host[0] - host[1]), <, 64);
}

static void
test_refused (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) result = run_program ("bench", config, SHAPE, "--iters=1", "--warmup=0", "--repeat=1",
                                        "--strategies=inplace,in_backward", SMALL,
                                        "optimizer_config.grad_clip={max_norm: 35}", NULL);

  g_assert_cmpint (result.code, ==, 0);
  assert_contains (result.out, "inplace       not measured: the file has it already\n");
  assert_contains (result.out, "in_backward   not measured: ");
  assert_contains (result.out, "grad_clip");
  assert_contains (result.out, "--set 'memory.update=in_backward'");
}

/* Element @i of the times of one side. */
static double
seconds_of (JsonObject *object, const char *side, guint i)
{
  return json_array_get_double_element (json_object_get_array_member (object, side), i);
}

/* Three pairs: the median of their ratios is the second largest. A strategy that keeps all bits has the loss
 * of the file as it is, and what is predicted is what `plan` says. */
static void
test_pairs (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) result = run_program ("bench", config, SHAPE, "--json", "--iters=3", "--warmup=0",
                                        "--against=memory.head=depth_first", SMALL, NULL);
  g_auto (Result) planned = run_program ("plan", config, SHAPE, "--json", SMALL, NULL);
  g_assert_cmpint (result.code, ==, 0);
  g_autoptr (JsonParser) parser = parse_json (&result), plan = parse_json (&planned);
  JsonObject *pairs = json_object_of (parser);
  double ratios[3], predicted = NAN;

  g_assert_cmpfloat (json_object_get_double_member (pairs, "processor_time_ratio"), >, 0);
  for (guint i = 0; i < 3; i++)
    {
      g_assert_cmpfloat (seconds_of (pairs, "processor_with", i), >, 0);
      g_assert_cmpfloat (seconds_of (pairs, "without", i), >, 0);
      ratios[i] = seconds_of (pairs, "with", i) / seconds_of (pairs, "without", i);
    }
  double least = fmin (ratios[0], fmin (ratios[1], ratios[2]));
  double most = fmax (ratios[0], fmax (ratios[1], ratios[2]));
  double middle = ratios[0] + ratios[1] + ratios[2] - least - most;
  /* The sum rounds: a few units of its last place. */
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (pairs, "time_ratio"), middle, 1e-12 * most);
  g_assert_cmpfloat (json_object_get_double_member (pairs, "time_ratio_min"), ==, least);
  g_assert_cmpfloat (json_object_get_double_member (pairs, "time_ratio_max"), ==, most);
  g_assert_cmpfloat (json_object_get_double_member (pairs, "loss_with"), ==,
                     json_object_get_double_member (pairs, "loss_without"));

  JsonArray *rows = json_object_get_array_member (json_object_of (plan), "strategies");
  for (guint i = 0; i < json_array_get_length (rows); i++)
    {
      JsonObject *row = json_array_get_object_element (rows, i);
      if (g_str_equal (json_object_get_string_member (row, "name"), "depth_first"))
        predicted = json_object_get_double_member (row, "time_ratio");
    }
  g_assert_cmpfloat (json_object_get_double_member (pairs, "predicted_ratio"), ==, predicted);
}

static void
test_usage (void)
{
  static const struct
  {
    const char *options[2], *message;
  } cases[] = {
    { { "--strategies=with_pc" }, "did you mean \"with_cp\"" },
    { { "--strategies=fp16+quux" }, "no strategy \"quux\"" },
    { { "--budget=lots" }, "--budget: " },
    { { "--repeat=0" }, "--repeat must be at least 1" },
    { { "--single", "--strategies=fp16" }, "no rows" },
    { { "--against=memory.head=depth_first", "--strategies=fp16" }, "--against has one result" },
    { { "--against=memory.haed=depth_first" }, "did you mean \"head\"" },
  };
  g_autofree char *config = config_file ("retinanet_shapes.yaml");

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (Result) result =
          run_program ("bench", config, SHAPE, cases[i].options[0], cases[i].options[1], NULL);
      g_assert_cmpint (result.code, ==, 2);
      assert_contains (result.err, cases[i].message);
    }
}

/* The process that measures for @pid, or 0. Before the program itself starts, the script that finds its
 * library in the build folder has other children. */
static pid_t
child_of (pid_t pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/task/%d/children", (int) pid, (int) pid);
  g_autofree char *text = NULL, *arguments = NULL;
  gsize size;

  if (!g_file_get_contents (path, &text, NULL, NULL) || *text == '\0')
    return 0;
  pid_t child = (pid_t) g_ascii_strtoll (text, NULL, 10);
  g_autofree char *of_child = g_strdup_printf ("/proc/%d/cmdline", (int) child);
  if (!g_file_get_contents (of_child, &arguments, &size, NULL))
    return 0;
  static const char wanted[] = "--single";
  return memmem (arguments, size, wanted, sizeof wanted) != NULL ? child : 0;
}

/* Stops both processes. */
static void
test_signal (void)
{
  g_autofree char *program = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  char *argv[] = { program, (char *) "bench", config, (char *) "--iters=1000000", (char *) "--shape=64x64",
                   NULL };
  g_autoptr (GError) error = NULL;
  pid_t pid, child;
  int status;

  g_spawn_async (NULL, argv, NULL,
                 G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                 NULL, &pid, &error);
  g_assert_no_error (error);
  while ((child = child_of (pid)) == 0)
    {
      g_assert_cmpint (waitpid (pid, &status, WNOHANG), ==, 0);
      g_usleep (10000);
    }
  g_assert_cmpint (kill (pid, SIGTERM), ==, 0);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 128 + SIGTERM);
  g_assert_cmpint (kill (child, 0), ==, -1);
  g_assert_cmpint (errno, ==, ESRCH);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bench/table", test_table);
  g_test_add_func ("/bench/check", test_check);
  g_test_add_func ("/bench/refused", test_refused);
  g_test_add_func ("/bench/pairs", test_pairs);
  g_test_add_func ("/bench/usage", test_usage);
  g_test_add_func ("/bench/signal", test_signal);
  return g_test_run ();
}
