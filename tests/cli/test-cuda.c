/*
 * test-cuda.c: `device: cuda` where the module cannot be opened, or where there is no device that it can use:
 * one line that says what helps, exit code 3, and nothing is written. Modules that cannot be opened are made
 * here.
 */
#include "config.h"

#include "kernels/cuda-module.h"
#include "kernels/module-dir.h"
#include "kernels/module-number.h"
#include "runner/base/error.h"
#include "tests/cli/program.h"
#include "tests/plugins/build.h"

#include <glib/gstdio.h>
#include <gmodule.h>
#include <string.h>

#define VARIABLE "RN_CUDA_MODULE"

static char *tmp; /* the current folder */

/* One line for the user, and nothing for the next program. */
static void
assert_one_line (const Result *result, int code)
{
  if (result->code != code)
    g_error ("exit status %d, not %d: %s", result->code, code, result->err);
  g_assert_cmpstr (result->out, ==, "");
  const char *end = strchr (result->err, '\n');
  g_assert_nonnull (end);
  g_assert_cmpstr (end, ==, "\n");
}

/* ---- modules that cannot be opened ---- */

/* Compiles @text to NAME.so in the current folder. (transfer full) */
static char *
compile (const char *name, const char *text, const char *flags)
{
  const char *cc = g_getenv ("RN_TEST_CC");
  g_autofree char *source = g_strconcat (name, ".c", NULL);
  char *so = g_strconcat (tmp, "/", name, ".so", NULL);
  int code;

  write_text (tmp, source, text);
  g_autofree char *out =
      run_shell (&code, "%s -fPIC -shared -o '%s' '%s' %s", cc != NULL ? cc : "cc", so, source, flags);
  if (code != 0)
    g_error ("%s: %s", source, out);
  return so;
}

static void
assert_module_refused (const char *path, const char *words)
{
  g_setenv (VARIABLE, path, TRUE);
  g_auto (Result) result = run_program ("devices", NULL);
  g_unsetenv (VARIABLE);
  assert_one_line (&result, 3);
  assert_contains (result.err, "runner devices: CUDA: ");
  assert_contains (result.err, path);
  assert_contains (result.err, words);
}

static void
test_no_file (void)
{
  assert_module_refused ("/no/such/module.so", VARIABLE "=/no/such/module.so: there is no such file");
  assert_module_refused ("", VARIABLE "=: there is no such file");
  assert_module_refused (tmp, ": there is no such file"); /* a folder */
}

static void
test_no_module (void)
{
  g_autofree char *text = g_build_filename (tmp, "text.so", NULL);
  g_autofree char *empty = compile ("empty", "int nothing;\n", "");
  g_autofree char *dangling = compile ("dangling",
                                       "extern int missing (void);\n"
                                       "const void *rn_cuda_module (void);\n"
                                       "const void *rn_cuda_module (void)\n"
                                       "{ return missing () ? \"\" : \"\"; }\n",
                                       "");

  write_text (tmp, "text.so", "not a library\n");
  assert_module_refused (text, "cannot be opened: ");
  assert_module_refused (empty, "is no module of runner: it has no rn_cuda_module");
  assert_module_refused (dangling, "cannot be opened: ");
  assert_module_refused (dangling, "missing"); /* now, not when it is called */
}

static char *
compile_module (const char *name, int number, const char *flags)
{
  g_autofree char *text = g_strdup_printf ("static const int table[32] = { %d };\n"
                                           "const void *rn_cuda_module (void);\n"
                                           "const void *rn_cuda_module (void)\n"
                                           "{ return table; }\n",
                                           number);
  return compile (name, text, flags);
}

static void
test_other_number (void)
{
  for (int step = -1; step <= 1; step += 2)
    {
      g_autofree char *so = compile_module ("other", RN_CUDA_MODULE_NUMBER + step, "");
      g_autofree char *words =
          g_strdup_printf ("of another version of runner (%d, not %d): both must come from "
                           "one build",
                           RN_CUDA_MODULE_NUMBER + step, RN_CUDA_MODULE_NUMBER);
      assert_module_refused (so, words);
    }
}

/* It was linked with a library that is not there any more. Versions are such as no machine has. */
static void
test_missing_library (void)
{
  static const struct
  {
    const char *library, *words;
  } cases[] = {
    { "libcudnn.so.4095", "needs libcudnn.so.4095, which is not found; what helps: cuDNN of that version" },
    { "libcudart.so.4095",
      "needs libcudart.so.4095, which is not found; what helps: the CUDA runtime of that" },
    { "librunnertest.so.4095", "needs librunnertest.so.4095, which is not found; what helps: its folder in "
                               "LD_LIBRARY_PATH" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *soname = g_strconcat ("-Wl,-soname,", cases[i].library, NULL);
      g_autofree char *library = compile ("needed", "int nothing;\n", soname);
      g_autofree char *flags = g_strdup_printf ("-Wl,--no-as-needed '%s'", library);
      g_autofree char *so = compile_module ("needs", RN_CUDA_MODULE_NUMBER, flags);
      g_remove (library);
      assert_module_refused (so, cases[i].words);
    }
}

/* The program of a test lies beside no module. */
static void
test_not_built (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *installed = g_build_filename (RN_MODULE_DIR, "runner-cuda-1.so", NULL);

  if (g_file_test (installed, G_FILE_TEST_EXISTS))
    {
      g_test_skip ("the module is installed");
      return;
    }
  g_assert_null (rn_cuda_module_get (&error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING);
  g_assert_cmpint (rn_error_exit_code (error), ==, 3);
  assert_contains (error->message, installed);
  assert_contains (error->message, "configure with --with-cuda, where the CUDA toolkit and cuDNN are");
  assert_contains (error->message, "--device cpu");
}

/* ---- no device ---- */

/* What is said here, where no device may be seen. */
static const char *
expected_reason (void)
{
  g_autofree char *built = g_test_build_filename (G_TEST_BUILT, ".libs", "runner-cuda-1.so", NULL);
  g_autofree char *installed = g_build_filename (RN_MODULE_DIR, "runner-cuda-1.so", NULL);

  if (!g_file_test (built, G_FILE_TEST_EXISTS) && !g_file_test (installed, G_FILE_TEST_EXISTS))
    return "is not there; what makes it: configure with --with-cuda";
  GModule *driver = g_module_open ("libcuda.so.1", G_MODULE_BIND_LAZY);
  if (driver == NULL)
    return "CUDA: no NVIDIA driver is installed";
  g_module_close (driver);
  return "CUDA: there is no device, or CUDA_VISIBLE_DEVICES= hides it";
}

static void
test_no_device (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  const char *const commands[][9] = {
    { "train", config, "--device", "cuda", "--work-dir", "work" },
    { "train", config, "--device", "cuda:3", "--work-dir", "work" },
    { "train", config, "--set", "device={type: cuda, tf32: true}", "--work-dir", "work" },
    { "eval", config, "weights.safetensors", "--device", "cuda", "--work-dir", "work" },
    { "infer", config, "weights.safetensors", "picture.jpg", "--device", "cuda", "--work-dir", "work" },
    { "bench", config, "--shape", "64x64", "--device", "cuda", "--work-dir", "work" },
    { "plan", config, "--shape", "64x64", "--measure", "--device", "cuda", "--work-dir", "work" },
    { "devices" },
    { "devices", "--json" },
    { "devices", "--profile", "0" },
  };
  const char *reason = expected_reason ();

  write_text (tmp, "weights.safetensors", "");
  write_text (tmp, "picture.jpg", "");
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    {
      const char *const *a = commands[i];
      g_auto (Result) result = run_program (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], NULL);
      g_test_message ("%s: %s", a[0], result.err);
      assert_one_line (&result, 3);
      assert_contains (result.err, reason);
      g_assert_false (g_file_test ("work", G_FILE_TEST_EXISTS));
    }
}

/* What only looks at a configuration needs no device: it may be written on another machine. */
static void
test_without_need (void)
{
  g_autofree char *base = config_file ("retinanet_shapes.yaml");
  g_autofree char *text = g_strdup_printf ("_base_: %s\ndevice: cuda\n", base);
  static const char *const commands[][3] = {
    { "config", "mine.yaml" },
    { "schedule", "mine.yaml", "--epoch-length=10" },
    { "plan", "mine.yaml", "--shape=64x64" },
  };

  write_text (tmp, "mine.yaml", text);
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    {
      g_auto (Result) result = run_program (commands[i][0], commands[i][1], commands[i][2], NULL);
      if (result.code != 0)
        g_error ("%s: %s", commands[i][0], result.err);
    }
}

/* ---- mistakes in what asks for it: found before a device is looked for ---- */

static void
test_mistakes (void)
{
  static const struct
  {
    const char *lines, *words[2];
  } cases[] = {
    { "device:\n  type: cuda\n  tf3: true\n", { "mine.yaml:4:3: ", "did you mean \"tf32\"?" } },
    { "device: {type: cuda, tf3: true}\n", { "mine.yaml:2:", "did you mean \"tf32\"?" } },
    { "device: {type: cuda, tf32: 1}\n", { "mine.yaml:2:", "tf32" } },
    { "device: {type: coda}\n", { "mine.yaml:2:", "no device \"coda\"; did you mean \"cuda\"?" } },
    { "device: {}\n", { "mine.yaml:2:", "what works: device: {type: cuda}" } },
    { "device: cuda:-1\n", { "mine.yaml:2:", "cuda:N" } },
    { "device: 'cuda:'\n", { "mine.yaml:2:", "cuda:N" } },
    { "device: cuda:4096\n", { "mine.yaml:2:", "cuda:N" } },
    { "device: cuda:0x1\n", { "mine.yaml:2:", "cuda:N" } },
    { "device: 0\n", { "mine.yaml:2:", "cuda:N" } },
    { "device: gpu\n", { "mine.yaml:2:", "did you mean \"cuda\"?" } },
    { "device: cuda\ndevice_options: {layot: nhwc}\n", { "mine.yaml:3:", "did you mean \"layout\"?" } },
    { "device: cuda\ndevice_options: {layout: nhcw}\n",
      { "mine.yaml:3:", "needs one of \"auto\", \"nhwc\", \"nchw\"" } },
    { "device: cuda\ndevice_option: {layout: nhwc}\n",
      { "mine.yaml:3:", "did you mean \"device_options\"?" } },
    { "device: {type: cuda, layout: nhwc}\ndevice_options: {layout: nhwc}\n",
      { "mine.yaml:2:", "device_options has it too" } },
  };
  g_autofree char *base = config_file ("retinanet_shapes.yaml");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *text = g_strdup_printf ("_base_: %s\n%s", base, cases[i].lines);
      write_text (tmp, "mine.yaml", text);
      g_auto (Result) result = run_program ("train", "mine.yaml", "--work-dir", "work", NULL);
      g_test_message ("%s", result.err);
      assert_one_line (&result, 2);
      assert_contains (result.err, cases[i].words[0]);
      assert_contains (result.err, cases[i].words[1]);
      g_assert_false (g_file_test ("work", G_FILE_TEST_EXISTS));
    }
}

static void
test_profile_number (void)
{
  static const char *const numbers[] = { "-1", "one", "99999999999" };

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    {
      g_auto (Result) result = run_program ("devices", "--profile", numbers[i], NULL);
      assert_one_line (&result, 2);
      assert_contains (result.err, "--profile");
    }
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  g_unsetenv (VARIABLE);
  g_setenv ("CUDA_VISIBLE_DEVICES", "", TRUE);
  tmp = g_dir_make_tmp ("rn-cuda-XXXXXX", &error);
  g_assert_no_error (error);
  g_assert_cmpint (g_chdir (tmp), ==, 0);
  g_test_add_func ("/cuda/module/no-file", test_no_file);
  g_test_add_func ("/cuda/module/no-module", test_no_module);
  g_test_add_func ("/cuda/module/other-number", test_other_number);
  g_test_add_func ("/cuda/module/missing-library", test_missing_library);
  g_test_add_func ("/cuda/module/not-built", test_not_built);
  g_test_add_func ("/cuda/no-device", test_no_device);
  g_test_add_func ("/cuda/without-need", test_without_need);
  g_test_add_func ("/cuda/mistakes", test_mistakes);
  g_test_add_func ("/cuda/profile-number", test_profile_number);
  int status = g_test_run ();
  g_assert_cmpint (g_chdir ("/"), ==, 0);
  remove_tree (tmp);
  g_free (tmp);
  return status;
}
