/* cmd-list.c: `runner hooks`, `runner models`, `runner ops`: what is registered, and its keys. */
#include "config.h"

#include "runner/cli/commands.h"

#include "datasets/dataset.h"
#include "kernels/cuda-module.h"
#include "kernels/device.h"
#include "models/model.h"
#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/cli/common.h"
#include "runner/config/config.h"
#include "runner/config/schema.h"
#include "runner/hook-class.h"
#include "runner/optimizer.h"
#include "runner/plugin.h"

#include <string.h>

/* ---- Components: whatever `type:` can name ---- */

typedef gboolean (*WantsFamily) (const char *family);

static gboolean
is_hook_family (const char *family)
{
  return g_str_equal (family, "hook");
}

static gboolean
is_other_family (const char *family)
{
  return !is_hook_family (family);
}

static gboolean
register_all (GError **error)
{
  rn_datasets_register ();
  rn_hooks_register ();
  rn_optimizers_register ();
  return rn_models_register (error);
}

static void
print_component (const RnRegistry *family, const RnComponent *component)
{
  g_print ("%s (%s): %s\n", component->name, rn_registry_family_name (family), component->summary);
  if (is_hook_family (rn_registry_family_name (family)))
    {
      g_autofree char *more = rn_hook_class_describe ((const RnHookClass *) component);
      g_print ("%s", more);
    }
  g_autofree char *keys = rn_keys_describe (component->keys);
  g_print ("%s", *keys != '\0' ? keys : "no keys\n");
}

static void
print_family (const RnRegistry *family)
{
  g_autoptr (GPtrArray) components = rn_registry_list (family);
  gsize width = 0;

  g_print ("%s:\n", rn_registry_family_name (family));
  for (guint i = 0; i < components->len; i++)
    {
      const RnComponent *component = g_ptr_array_index (components, i);
      width = MAX (width, strlen (component->name));
    }
  for (guint i = 0; i < components->len; i++)
    {
      const RnComponent *component = g_ptr_array_index (components, i);
      g_print ("  %-*s %s\n", (int) width, component->name, component->summary);
    }
}

/* @elsewhere: where else it may be, as the end of the message. */
static gboolean
unknown_name (const char *name, GPtrArray *names, const char *elsewhere, GError **error)
{
  g_ptr_array_add (names, NULL);
  const char *nearest = rn_suggest (name, (const char *const *) names->pdata);
  if (nearest != NULL)
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "no \"%s\"; did you mean \"%s\"?%s", name,
                 nearest, elsewhere);
  else
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "no \"%s\"; without a name all are listed%s",
                 name, elsewhere);
  return FALSE;
}

/* @name NULL: the list. */
static gboolean
show_components (WantsFamily wants, const char *name, GError **error)
{
  gboolean found = FALSE;
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GPtrArray) families = rn_registry_families ();
  for (guint i = 0; i < families->len; i++)
    {
      const RnRegistry *family = g_ptr_array_index (families, i);
      if (!wants (rn_registry_family_name (family)))
        continue;
      if (name == NULL)
        {
          print_family (family);
          continue;
        }
      g_autoptr (GPtrArray) components = rn_registry_list (family);
      for (guint j = 0; j < components->len; j++)
        {
          const RnComponent *component = g_ptr_array_index (components, j);
          g_ptr_array_add (names, (gpointer) component->name);
          if (!g_str_equal (component->name, name))
            continue;
          print_component (family, component);
          found = TRUE;
        }
    }
  const char *elsewhere =
      wants == is_hook_family
          ? " (a hook of a plugin: name its file, as my_hook/my_hook.so, or add --config FILE)"
          : "";
  return name == NULL || found || unknown_name (name, names, elsewhere, error);
}

/* ---- Hooks, those of plugins too ---- */

/* `runner hooks`: where hooks come from besides the program. */
typedef struct
{
  char **plugins, **plugin_path;
  char *config;
} HookSources;

static gboolean
load_plugins (const HookSources *sources, GError **error)
{
  rn_plugins_set_path ((const char *const *) sources->plugin_path);
  for (char **name = sources->plugins; name != NULL && *name != NULL; name++)
    if (!rn_plugins_load_name (*name, error))
      return FALSE;
  if (sources->config == NULL)
    return TRUE;
  g_autoptr (RnNode) root = rn_config_load (sources->config, NULL, error);
  return root != NULL && rn_plugins_load (root, error);
}

/* All hooks of the plugin @path, which is loaded for that. */
static gboolean
show_plugin (const char *path, GError **error)
{
  if (!rn_plugins_load_name (path, error))
    return FALSE;
  g_autofree char *real = realpath (path, NULL);
  const RnRegistry *family = rn_registry_family ("hook");
  g_autoptr (GPtrArray) hooks = rn_registry_list (family);
  for (guint i = 0; i < hooks->len; i++)
    if (g_strcmp0 (((const RnHookClass *) g_ptr_array_index (hooks, i))->plugin, real) == 0)
      print_component (family, g_ptr_array_index (hooks, i));
  return TRUE;
}

int
rn_cmd_hooks (int argc, char **argv)
{
  HookSources sources = { 0 };
  const GOptionEntry entries[] = {
    { "plugin", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &sources.plugins,
      "Load this plugin, a name or a path, first; again for more", "PLUGIN" },
    { "plugin-path", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &sources.plugin_path,
      "A folder to look for plugins in, before RN_PLUGIN_PATH; again for more", "DIR" },
    { "config", 0, 0, G_OPTION_ARG_FILENAME, &sources.config, "Load the plugins of this configuration",
      "FILE" },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "[NAME|PLUGIN]",
    .summary = "Lists the hooks, or explains one: its stages and keys. The file of a plugin, such as "
               "my_hook/my_hook.so, explains the hooks in it.",
    .examples = "  runner hooks\n"
                "  runner hooks CheckpointHook\n"
                "  runner hooks my_hook/my_hook.so\n"
                "  runner hooks MyHook --config configs/mine.yaml\n",
    .n_max = 1,
    .entries = entries,
  };
  GError *error = NULL;
  g_auto (RnOptions) options;
  gboolean is_ok = rn_options_parse (&usage, argc, argv, &options, &error) && load_plugins (&sources, &error)
                   && register_all (&error);
  if (is_ok)
    {
      const char *name = options.arguments[0];
      gboolean is_file = name != NULL && g_file_test (name, G_FILE_TEST_IS_REGULAR);
      is_ok = is_file ? show_plugin (name, &error) : show_components (is_hook_family, name, &error);
    }
  g_strfreev (sources.plugins);
  g_strfreev (sources.plugin_path);
  g_free (sources.config);
  return is_ok ? 0 : rn_cli_fail (error);
}

int
rn_cmd_models (int argc, char **argv)
{
  const RnUsage usage = {
    .arguments = "[NAME]",
    .summary = "Lists what `type:` can name in a configuration besides hooks, or explains the keys of one.",
    .examples = "  runner models\n"
                "  runner models ResNet\n",
    .n_max = 1,
  };
  GError *error = NULL;
  g_auto (RnOptions) options;
  if (!rn_options_parse (&usage, argc, argv, &options, &error) || !register_all (&error)
      || !show_components (is_other_family, options.arguments[0], &error))
    return rn_cli_fail (error);
  return 0;
}

/* ---- Ops and their kernels ---- */

static void
print_slots (RnOp op, const char *title, int n, const char *(*name) (RnOp, int), guint optional)
{
  g_print ("  %s:", title);
  for (int i = 0; i < n; i++)
    g_print (optional >> i & 1 ? " [%s]" : " %s", name (op, i));
  g_print ("\n");
}

static void
print_kernels (RnOp op, const RnKernel *const *kernels)
{
  for (; *kernels != NULL; kernels++)
    if ((*kernels)->op == op)
      g_print ("  kernel: %s, priority %d\n", (*kernels)->name, (*kernels)->priority);
}

/* Those of the module too, where it can be opened; that needs no device. */
static void
print_op (RnOp op)
{
  const RnCudaModule *module = rn_cuda_module_get (NULL);

  g_print ("%s\n", rn_op_name (op));
  print_slots (op, "inputs", rn_op_n_in (op), rn_op_in_name, rn_op_optional_in (op));
  print_slots (op, "outputs", rn_op_n_out (op), rn_op_out_name, rn_op_optional_out (op));
  print_kernels (op, rn_kernels_all ());
  if (module != NULL)
    print_kernels (op, module->kernels ());
}

static gboolean
show_ops (const char *name, GError **error)
{
  gboolean found = FALSE;
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (int op = 0; op < RN_OP_COUNT; op++)
    {
      g_ptr_array_add (names, (gpointer) rn_op_name ((RnOp) op));
      if (name != NULL && !g_str_equal (name, rn_op_name ((RnOp) op)))
        continue;
      print_op ((RnOp) op);
      found = TRUE;
    }
  return found || unknown_name (name, names, "", error);
}

int
rn_cmd_ops (int argc, char **argv)
{
  const RnUsage usage = {
    .arguments = "[NAME]",
    .summary = "Lists the ops with their tensors ([optional]) and kernels. A plan takes the kernel with the "
               "highest priority that can "
               "do the call.",
    .examples = "  runner ops\n"
                "  runner ops conv2d_fwd\n",
    .n_max = 1,
  };
  GError *error = NULL;
  g_auto (RnOptions) options;
  if (!rn_options_parse (&usage, argc, argv, &options, &error) || !show_ops (options.arguments[0], &error))
    return rn_cli_fail (error);
  return 0;
}
