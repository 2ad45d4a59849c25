/* cmd-list.c: `runner hooks`, `runner models`, `runner ops`: what is registered, and its keys. */
#include "config.h"

#include "runner/cli/commands.h"

#include "datasets/dataset.h"
#include "kernels/device.h"
#include "models/model.h"
#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/cli/common.h"
#include "runner/config/schema.h"
#include "runner/hook-list.h"
#include "runner/optimizer.h"

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
  g_autofree char *keys = rn_keys_describe (component->keys);
  g_print ("%s", *keys != '\0' ? keys : "no keys\n");
}

static void
print_family (const RnRegistry *family)
{
  g_autoptr (GPtrArray) components = rn_registry_list (family);
  g_print ("%s:\n", rn_registry_family_name (family));
  for (guint i = 0; i < components->len; i++)
    {
      const RnComponent *component = g_ptr_array_index (components, i);
      g_print ("  %-30s %s\n", component->name, component->summary);
    }
}

static gboolean
unknown_name (const char *name, GPtrArray *names, GError **error)
{
  g_ptr_array_add (names, NULL);
  const char *nearest = rn_suggest (name, (const char *const *) names->pdata);
  if (nearest != NULL)
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "no \"%s\"; did you mean \"%s\"?", name,
                 nearest);
  else
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "no \"%s\"; without a name all are listed",
                 name);
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
  return name == NULL || found || unknown_name (name, names, error);
}

static int
list_components (const RnUsage *usage, WantsFamily wants, int argc, char **argv)
{
  GError *error = NULL;
  g_auto (RnOptions) options;
  if (!rn_options_parse (usage, argc, argv, &options, &error) || !register_all (&error)
      || !show_components (wants, options.arguments[0], &error))
    return rn_cli_fail (error);
  return 0;
}

int
rn_cmd_hooks (int argc, char **argv)
{
  const RnUsage usage = {
    .arguments = "[NAME]",
    .summary = "Lists the hooks, or explains the keys of one.",
    .examples = "  runner hooks\n"
                "  runner hooks CheckpointHook\n",
    .n_max = 1,
  };
  return list_components (&usage, is_hook_family, argc, argv);
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
  return list_components (&usage, is_other_family, argc, argv);
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
print_op (RnOp op)
{
  g_print ("%s\n", rn_op_name (op));
  print_slots (op, "inputs", rn_op_n_in (op), rn_op_in_name, rn_op_optional_in (op));
  print_slots (op, "outputs", rn_op_n_out (op), rn_op_out_name, rn_op_optional_out (op));
  for (const RnKernel *const *k = rn_kernels_all (); *k != NULL; k++)
    if ((*k)->op == op)
      g_print ("  kernel: %s, priority %d\n", (*k)->name, (*k)->priority);
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
  return found || unknown_name (name, names, error);
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
