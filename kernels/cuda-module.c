/* cuda-module.c: finds and opens the module of the CUDA device. */
#include "config.h"

#include "kernels/cuda-module.h"

#include "kernels/module-dir.h"
#include "kernels/module-number.h"
#include "runner/base/built-file.h"
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

/* The error for a module that the dynamic loader refused with @reason. */
static void
explain (const char *path, const char *reason, GError **error)
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
      explain (path, cause->message, error);
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
  g_autofree char *path = given != NULL ? g_strdup (given) : rn_built_file (".libs/" FILE_NAME);
  if (path == NULL)
    path = g_build_filename (RN_MODULE_DIR, FILE_NAME, NULL);
  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR))
    {
      if (given != NULL)
        fail (error, VARIABLE "=%s: there is no such file", given);
      else
        fail (error,
              "the module %s is not there; what makes it: configure with --with-cuda, where the CUDA toolkit "
              "and cuDNN are; what works without: --device cpu",
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
