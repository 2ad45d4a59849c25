/* cuda-module.c: finds and opens the module of the CUDA device. */
#include "config.h"

#include "kernels/cuda-module.h"

#include "kernels/module-dir.h"
#include "runner/base/error.h"

#include <gmodule.h>
#include <string.h>

#define FILE_NAME "runner-cuda-1." G_MODULE_SUFFIX
#define VARIABLE "RN_CUDA_MODULE"

typedef const RnCudaModule *(*QueryFunc) (void);

static const RnCudaModule *opened;

static void fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
fail (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, "CUDA: %s", text);
}

/* Beside the library of a program that was built and not installed: libtool keeps programs in .libs of their
 * folder, and the module in .libs at the top. (transfer full) (nullable) */
static char *
find_built (void)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = program != NULL ? g_path_get_dirname (program) : g_strdup ("");

  if (!g_str_has_suffix (folder, G_DIR_SEPARATOR_S ".libs"))
    return NULL;
  g_autofree char *built = g_build_filename (folder, "..", "..", ".libs", FILE_NAME, NULL);
  return g_file_test (built, G_FILE_TEST_EXISTS) ? g_canonicalize_filename (built, NULL) : NULL;
}

void
rn_cuda_module_explain (const char *path, const char *reason, GError **error)
{
  /* "libcudnn.so.9: cannot open shared object file: No such file or directory" */
  const char *end = strstr (reason, ": cannot open shared object file");
  gsize n = end != NULL ? (gsize) (end - reason) : 0;
  g_autofree char *library = g_strndup (reason, n);
  const char *name = strrchr (library, ' ') != NULL ? strrchr (library, ' ') + 1 : library;

  if (g_str_has_prefix (name, "libcudnn"))
    fail (error,
          "the module %s needs %s, which is not found; what helps: cuDNN of that version, or its folder in "
          "LD_LIBRARY_PATH",
          path, name);
  else if (g_str_has_prefix (name, "libcudart"))
    fail (error,
          "the module %s needs %s, which is not found; what helps: the CUDA runtime of that version, or its "
          "folder in LD_LIBRARY_PATH",
          path, name);
  else if (n > 0)
    fail (error, "the module %s needs %s, which is not found; what helps: its folder in LD_LIBRARY_PATH",
          path, name);
  else
    fail (error, "the module %s cannot be opened: %s", path, reason);
}

static const RnCudaModule *
open_module (const char *path, GError **error)
{
  g_autoptr (GError) cause = NULL;
  gpointer symbol = NULL;
  /* Not lazily: a symbol that a library lacks is found now, not in the middle of a run. */
  GModule *module = g_module_open_full (path, G_MODULE_BIND_LOCAL, &cause);

  if (module == NULL)
    {
      rn_cuda_module_explain (path, cause->message, error);
      return NULL;
    }
  g_module_make_resident (module); /* the driver does not like to be closed */
  if (!g_module_symbol (module, RN_CUDA_MODULE_SYMBOL, &symbol) || symbol == NULL)
    {
      fail (error, "%s is no module of runner: it has no " RN_CUDA_MODULE_SYMBOL, path);
      return NULL;
    }
  const RnCudaModule *table = ((QueryFunc) symbol) ();
  if (table->number == RN_CUDA_MODULE_NUMBER)
    return table;
  fail (error, "the module %s is of another version of runner (%d, not %d): both must come from one build",
        path, table->number, RN_CUDA_MODULE_NUMBER);
  return NULL;
}

const RnCudaModule *
rn_cuda_module_get (GError **error)
{
  const char *given = g_getenv (VARIABLE);

  if (opened != NULL)
    return opened;
  g_autofree char *path = given != NULL ? g_strdup (given) : find_built ();
  if (path == NULL)
    path = g_build_filename (RN_MODULE_DIR, FILE_NAME, NULL);
  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR))
    {
      if (given != NULL)
        fail (error, VARIABLE "=%s: there is no such file", given);
      else
        fail (error,
              "the module %s is not there; what makes it: configure with --with-cuda, where the CUDA toolkit "
              "and "
              "cuDNN are; what works without: --device cpu",
              path);
      return NULL;
    }
  opened = open_module (path, error);
  return opened;
}

void
rn_cuda_module_use (const RnCudaModule *module)
{
  opened = module;
}
