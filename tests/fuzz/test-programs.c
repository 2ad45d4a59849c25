/*
 * The program on hand-made bad files, in every place where it takes one: each is refused in one line, with
 * the right exit code, within limits of memory and time, and nothing in a file is executed.
 */
#include "config.h"

#include "tests/fuzz/bad-files.h"

#include "datasets/image.h"
#include "tests/cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WALL 120 /* seconds; only for what waits for ever */
#if defined(__SANITIZE_ADDRESS__)
  #define MAX_CPU 60
  #define MAX_MEMORY RLIM_INFINITY /* ASan reserves terabytes of addresses */
#else
  #define MAX_CPU 10
  #define MAX_MEMORY ((rlim_t) 2 << 30)
#endif

/* Where the bad file stands. */
typedef enum
{
  AS_CONFIG,
  AS_BASE,       /* named by a configuration */
  AS_CHECKPOINT, /* of eval */
  AS_RESUME,
  AS_WEIGHTS, /* where training starts: load_from */
  AS_CONVERTED,
  AS_LOG, /* of report */
  AS_LIST,
  AS_IMAGE,
  AS_XML,
  AS_PHOTO, /* of infer */
  N_ROLES,
} Role;

static struct
{
  char *dir;    /* of all */
  char *config; /* a sound one */
  char *checkpoint;
  char *bad; /* CONFIG, CHECKPOINT or LIST */
  char *work_dir, *list, *image, *xml;
} paths;

static void
limit_child (gpointer data)
{
  const struct rlimit cpu = { MAX_CPU, MAX_CPU }, memory = { MAX_MEMORY, MAX_MEMORY }, core = { 0, 0 };

  setrlimit (RLIMIT_CPU, &cpu);
  setrlimit (RLIMIT_AS, &memory);
  setrlimit (RLIMIT_CORE, &core);
  alarm (MAX_WALL); /* outlives exec */
}

/* Being killed by a signal, a limit's too, is code -1. */
static Result
run_limited (const char *const *arguments)
{
  g_autofree char *built = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  g_autofree char *program = g_canonicalize_filename (built, NULL);
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  Result result = { 0 };
  int status;

  g_ptr_array_add (argv, program);
  for (guint i = 0; arguments[i] != NULL; i++)
    g_ptr_array_add (argv, (gpointer) arguments[i]);
  g_ptr_array_add (argv, NULL);
  g_spawn_sync (paths.dir, (char **) argv->pdata, NULL, G_SPAWN_DEFAULT, limit_child, NULL, &result.out,
                &result.err, &status, &error);
  g_assert_no_error (error);
  result.code = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
  return result;
}

/* ---- A small sound world ---- */

static void
save (const char *path, gconstpointer bytes, gsize size)
{
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, bytes, (gssize) size, &error);
  g_assert_no_error (error);
}

static void
write_sound_image (void)
{
  static guint8 pixels[64 * 48 * 3];
  GError *error = NULL;

  rn_image_write_jpeg (paths.image, pixels, 64, 48, 80, &error);
  g_assert_no_error (error);
}

static void
write_sound_files (void)
{
  static const char xml[] = "<annotation><object><name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
                            "<xmax>40</xmax><ymax>40</ymax></bndbox></object></annotation>";
  g_autofree char *base = config_file ("retinanet_shapes.yaml");
  g_autofree char *yaml = g_strdup_printf ("_base_: %s\ndata_root: %s\nclasses: [a, b, c]\nseed: 0\n"
                                           "data: {samples_per_gpu: 1, workers_per_gpu: 1, "
                                           "val: {ann_file: ImageSets/Main/train.txt}}\n"
                                           "runner: {_delete_: true, type: IterBasedRunner, max_iters: 1}\n",
                                           base, paths.dir);

  save (paths.config, yaml, strlen (yaml));
  save (paths.list, "x\n", 2);
  save (paths.xml, xml, sizeof xml - 1);
  write_sound_image ();
}

static void
make_world (void)
{
  static const char *const folders[] = { "JPEGImages", "Annotations", "ImageSets", "ImageSets/Main" };

  paths.dir = g_dir_make_tmp ("rn-bad-XXXXXX", NULL);
  g_assert_nonnull (paths.dir);
  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *path = g_build_filename (paths.dir, folders[i], NULL);
      g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
    }
  paths.config = g_build_filename (paths.dir, "sound.yaml", NULL);
  paths.bad = g_build_filename (paths.dir, "bad", NULL);
  paths.work_dir = g_build_filename (paths.dir, "work", NULL);
  paths.checkpoint = g_build_filename (paths.work_dir, "iter_1.safetensors", NULL);
  paths.list = g_build_filename (paths.dir, "ImageSets", "Main", "train.txt", NULL);
  paths.image = g_build_filename (paths.dir, "JPEGImages", "x.jpg", NULL);
  paths.xml = g_build_filename (paths.dir, "Annotations", "x.xml", NULL);
  write_sound_files ();
}

/* The sound world trains, so that a refusal is one of the bad file. */
static void
test_sound (void)
{
  g_auto (Result) result =
      run_limited ((const char *const[]){ "train", paths.config, "--work-dir", paths.work_dir, NULL });

  if (result.code != 0)
    g_error ("exit code %d: %s", result.code, result.err);
  g_assert_true (g_file_test (paths.checkpoint, G_FILE_TEST_EXISTS));
}

/* ---- Bad files ---- */

static const char *
path_of (Role role)
{
  return role == AS_LIST    ? paths.list
         : role == AS_IMAGE ? paths.image
         : role == AS_XML   ? paths.xml
                            : paths.bad;
}

static Result
run_role (Role role)
{
  const char *bad = paths.bad, *work = paths.work_dir;

  switch (role)
    {
    case AS_CONFIG:
      return run_limited ((const char *const[]){ "train", bad, "--work-dir", work, NULL });
    case AS_BASE:
      {
        g_autofree char *path = g_build_filename (paths.dir, "names-bad.yaml", NULL);

        save (path, "_base_: bad\n", strlen ("_base_: bad\n"));
        return run_limited ((const char *const[]){ "train", path, "--work-dir", work, NULL });
      }
    case AS_CHECKPOINT:
      return run_limited ((const char *const[]){ "eval", paths.config, bad, NULL });
    case AS_RESUME:
      return run_limited (
          (const char *const[]){ "train", paths.config, "--work-dir", work, "--resume-from", bad, NULL });
    case AS_WEIGHTS:
      return run_limited (
          (const char *const[]){ "train", paths.config, "--work-dir", work, "--set", "load_from=bad", NULL });
    case AS_CONVERTED:
      return run_limited ((const char *const[]){ "convert", bad, "converted.pth", NULL });
    case AS_LOG:
      return run_limited ((const char *const[]){ "report", bad, NULL });
    case AS_PHOTO:
      return run_limited (
          (const char *const[]){ "infer", paths.config, paths.checkpoint, bad, "--out", "shown", NULL });
    default:
      return run_limited ((const char *const[]){ "train", paths.config, "--work-dir", work, NULL });
    }
}

static const char *
command_of (Role role)
{
  switch (role)
    {
    case AS_CHECKPOINT:
      return "runner eval: ";
    case AS_CONVERTED:
      return "runner convert: ";
    case AS_LOG:
      return "runner report: ";
    case AS_PHOTO:
      return "runner infer: ";
    default:
      return "runner train: ";
    }
}

/* One line that says what is wrong; of many photographs each gets a warning before it. */
static void
check_refusal (Role role, const char *name, const Result *result, int code, const char *words)
{
  g_auto (GStrv) lines = g_strsplit (result->err, "\n", -1);
  guint n = g_strv_length (lines), n_warnings = 0;

  g_test_message ("%s: exit code %d: %s", name, result->code, result->err);
  if (result->code != code)
    g_error ("%s: exit code %d instead of %d: %s", name, result->code, code, result->err);
  while (role == AS_PHOTO && g_str_has_prefix (lines[n_warnings], "warning: "))
    n_warnings++;
  g_assert_cmpuint (n, ==, n_warnings + 2); /* what follows the last line's end is empty */
  g_assert_true (g_str_has_prefix (lines[n_warnings], command_of (role)));
  assert_contains (result->err, words);
  g_assert_cmpuint (strlen (result->err), <, 8192);
  g_assert_true (g_utf8_validate (result->err, -1, NULL));
  for (const char *c = result->err; *c != '\0'; c++)
    g_assert_true (!g_ascii_iscntrl (*c) || *c == '\n');
}

static void
refuse (Role role, const char *name, int code, const char *words)
{
  g_auto (Result) result = run_role (role);

  check_refusal (role, name, &result, code, words);
}

/* What is no file at all, and nothing: in every place. */
static void
test_no_files (void)
{
  static const struct
  {
    const char *name;
    int empty, folder, pipe; /* exit codes; 0: is read */
    const char *empty_words;
  } roles[N_ROLES] = {
    [AS_CONFIG] = { "config", 2, 2, 2, "has no" },
    [AS_BASE] = { "base", 2, 2, 2, "has no" },
    [AS_CHECKPOINT] = { "checkpoint", 1, 2, 2, "empty" },
    [AS_RESUME] = { "resume", 1, 2, 2, "" },
    [AS_WEIGHTS] = { "weights", 1, 2, 2, "empty" },
    [AS_CONVERTED] = { "converted", 1, 2, 2, "empty" },
    [AS_LOG] = { "log", 0, 2, 2, "" },
    [AS_LIST] = { "list", 1, 1, 1, "" },
    [AS_IMAGE] = { "image", 1, 2, 2, "empty file" },
    [AS_XML] = { "xml", 1, 1, 1, ":1: " },
    [AS_PHOTO] = { "photo", 1, 2, 1, "empty file" },
  };

  for (Role role = 0; role < N_ROLES; role++)
    {
      const char *path = path_of (role);
      g_autofree char *filling = g_malloc0 (1 << 16);
      int pipe_end;

      g_remove (path);
      save (path, "", 0);
      if (roles[role].empty != 0)
        refuse (role, roles[role].name, roles[role].empty, roles[role].empty_words);
      g_remove (path);
      g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
      refuse (role, roles[role].name, roles[role].folder, "");
      g_assert_cmpint (g_rmdir (path), ==, 0);

      g_assert_cmpint (mkfifo (path, 0600), ==, 0); /* nobody writes */
      refuse (role, roles[role].name, roles[role].pipe, "");
      pipe_end = g_open (path, O_RDWR | O_NONBLOCK, 0); /* it never ends */
      g_assert_cmpint (pipe_end, >=, 0);
      g_assert_cmpint (write (pipe_end, filling, 1 << 16), >, 0);
      refuse (role, roles[role].name, roles[role].pipe, "");
      g_close (pipe_end, NULL);
      g_remove (path);
      write_sound_files ();
    }
}

typedef struct
{
  const char *name;
  Role role;
  GByteArray *(*make) (void);
  int code;
  const char *words;
} Case;

static const Case cases[] = {
  { "entity-bomb", AS_XML, bad_entity_bomb, 1, "x.xml:" },
  { "external-entity", AS_XML, bad_external_entity, 1, "x.xml:" },
  { "deep-xml", AS_XML, bad_deep_xml, 1, "x.xml:" },
  { "alias-bomb", AS_CONFIG, bad_alias_bomb, 2, "when everything is expanded" },
  { "deep-yaml", AS_CONFIG, bad_deep_yaml, 2, "bad:1:" },
  { "large-yaml", AS_CONFIG, bad_large_yaml, 2, "bad" },
  { "nul-yaml", AS_CONFIG, bad_nul, 2, "bad" },
  { "own-base", AS_BASE, bad_own_base, 2, "its own _base_" },
  { "jpeg-65535", AS_IMAGE, bad_jpeg_65535, 1, "x.jpg: JPEG: " },
  { "png-2147483647", AS_IMAGE, bad_png_2147483647, 1, "x.jpg: PNG: " },
  { "png-as-photo", AS_PHOTO, bad_png_2147483647, 1, "PNG: " },
  { "list-out-of-folder", AS_LIST, bad_list_up, 1, "train.txt:2: " },
  { "list-absolute", AS_LIST, bad_list_absolute, 1, "train.txt:1: " },
  { "list-of-nul", AS_LIST, bad_nul, 1, "train.txt" },
  { "list-long-name", AS_LIST, bad_list_long, 1, "is longer than" },
  { "list-of-many-names", AS_LIST, bad_list_many, 1, "train.txt:4194305: more than 4194304 names" },
  { "header-of-2-63", AS_CHECKPOINT, bad_header_2_63, 1, "" },
  { "shape-overflow", AS_CHECKPOINT, bad_shape_overflow, 1, "no sound shape" },
  { "offsets-outside", AS_CHECKPOINT, bad_offsets_outside, 1, "does not lie inside the file" },
  { "deep-header", AS_CHECKPOINT, bad_deep_header, 1, "" },
  { "many-values", AS_CHECKPOINT, bad_many_values, 1, "more than 4194304 values" },
  { "resume-shape-overflow", AS_RESUME, bad_shape_overflow, 1, "no sound shape" },
  { "zip-bomb", AS_CHECKPOINT, bad_zip_bomb, 1, "claims to expand" },
  { "zip-out-of-folder", AS_CHECKPOINT, bad_zip_up, 1, "" },
  { "converted-zip-bomb", AS_CONVERTED, bad_zip_bomb, 1, "claims to expand" },
  { "converted-os.system", AS_CONVERTED, bad_old_system, 1, "refuses os.system" },
  { "weights-offsets-outside", AS_WEIGHTS, bad_offsets_outside, 1, "does not lie inside the file" },
  { "weights-os.system", AS_WEIGHTS, bad_zip_system, 1, "refuses os.system" },
  { "zip-cut-off", AS_CHECKPOINT, bad_zip_cut, 1, "zip" },
  { "os.system", AS_CHECKPOINT, bad_zip_system, 1, "refuses os.system" },
  { "os.system-4", AS_CHECKPOINT, bad_zip_system_4, 1, "refuses posix.system" },
  { "os.system-old", AS_CHECKPOINT, bad_old_system, 1, "refuses os.system" },
};

static void
test_case (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GByteArray) bytes = c->make ();
  g_autofree char *trace = g_build_filename (paths.dir, BAD_TRACE, NULL);

  save (path_of (c->role), bytes->data, bytes->len);
  refuse (c->role, c->name, c->code, c->words);
  g_assert_false (g_file_test (trace, G_FILE_TEST_EXISTS));
  g_remove (path_of (c->role));
  write_sound_files ();
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  g_setenv ("OMP_WAIT_POLICY", "passive", TRUE);
  make_world ();
  g_test_add_func ("/programs/sound", test_sound);
  g_test_add_func ("/programs/no-files", test_no_files);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/programs/", cases[i].name, NULL);

      g_test_add_data_func (path, &cases[i], test_case);
    }
  result = g_test_run ();
  remove_tree (paths.dir);
  return result;
}
