#include "config.h"

#include "runner/hook-class.h"

#include "hooks/builtin.h"
#include "runner/hook-list.h"

#include <string.h>

#define MAX_INSTANCE (64 << 20) /* bytes; more belongs into memory of the hook's own */
#define MAX_DESC 4096           /* bytes of a descriptor of any minor version */
#define DESC_1_0 (G_STRUCT_OFFSET (RnHookDesc, reserved) + 8 * sizeof (gpointer)) /* bytes of the first */
#define MAX_KEYS 1000
#define MAX_KEY_DEPTH 8

static const RnKeySpec no_keys[] = { RN_KEY_END };

/* ---- Checks ---- */

/* Size of the field that a key fills; 0: none of its own, -1: no such type. */
static int
field_size (RnKeyType type)
{
  switch (type)
    {
    case RN_KEY_BOOL:
      return sizeof (gboolean);
    case RN_KEY_INT:
      return sizeof (gint64);
    case RN_KEY_FLOAT:
      return sizeof (double);
    case RN_KEY_ENUM:
      return sizeof (int);
    case RN_KEY_STRING:
    case RN_KEY_INT_LIST:
    case RN_KEY_FLOAT_LIST:
    case RN_KEY_STRING_LIST:
    case RN_KEY_NODE:
      return sizeof (gpointer);
    case RN_KEY_MAP:
    case RN_KEY_UNUSED:
      return 0;
    }
  return -1;
}

/* What is wrong with @key, or NULL. Its struct begins at @base of an instance of @size bytes. */
static const char *
fault_of_key (const RnKeySpec *key, gsize base, gsize size, gboolean is_inner)
{
  int bytes = field_size (key->type);

  if (!is_inner && (g_str_equal (key->name, "type") || g_str_equal (key->name, "priority")))
    return "is a name that every hook has already";
  if (bytes < 0)
    return "has a type that this program does not know";
  if (key->type == RN_KEY_UNUSED)
    return NULL;
  if (key->help == NULL)
    return "has no help";
  if (key->type == RN_KEY_ENUM && key->names == NULL)
    return "has no list of names";
  if (key->type == RN_KEY_MAP && (key->keys == NULL || key->offset > size - base))
    return "has no keys inside, or lies outside of the struct";
  if (key->type == RN_KEY_MAP && key->present != 0
      && (key->present > size - base || size - base - key->present < sizeof (gboolean)))
    return "has .present outside of the struct";
  if (key->type != RN_KEY_MAP
      && (base + key->offset < sizeof (RnHook) || key->offset > size - base
          || size - base - key->offset < (gsize) bytes || key->offset % (gsize) bytes != 0))
    return "lies outside of the struct, or in its first member";
  return NULL;
}

static gboolean
check_keys (const RnKeySpec *keys, gsize base, gsize size, int depth, GError **error)
{
  int n = 0;

  if (depth > MAX_KEY_DEPTH)
    return rn_hook_error (error, "its keys are nested more than %d deep", MAX_KEY_DEPTH);
  for (const RnKeySpec *key = keys; key != NULL && key->name != NULL; key++)
    {
      const char *fault = fault_of_key (key, base, size, depth > 0);
      if (fault != NULL)
        return rn_hook_error (error, "its key \"%s\" %s", key->name, fault);
      if (++n > MAX_KEYS)
        return rn_hook_error (error, "its table of keys has no RN_KEY_END");
      if (key->type == RN_KEY_MAP && !check_keys (key->keys, base + key->offset, size, depth + 1, error))
        return FALSE;
    }
  return TRUE;
}

/* Before anything else is read: the place of the other members depends on it. */
static gboolean
check_abi (const RnHookDesc *desc, GError **error)
{
  guint major = desc->abi >> 16, minor = desc->abi & 0xffff;

  if (major != RN_HOOK_ABI_MAJOR || minor > RN_HOOK_ABI_MINOR)
    return rn_hook_error (error,
                          "made for hook ABI %u.%u, this program has %u.%u: compile it again with the "
                          "headers of this program",
                          major, minor, RN_HOOK_ABI_MAJOR, RN_HOOK_ABI_MINOR);
  if (desc->struct_size < DESC_1_0 || desc->struct_size > MAX_DESC
      || (minor == RN_HOOK_ABI_MINOR && desc->struct_size != sizeof (RnHookDesc)))
    return rn_hook_error (error, "its descriptor has %u bytes, ABI %u.%u has %" G_GSIZE_FORMAT,
                          desc->struct_size, major, minor, sizeof (RnHookDesc));
  return TRUE;
}

gboolean
rn_hook_desc_check (const RnHookDesc *desc, GError **error)
{
  if (!check_abi (desc, error))
    return FALSE;
  if (desc->name == NULL || !g_ascii_isalpha (*desc->name)
      || desc->name[strspn (desc->name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_")] != '\0')
    return rn_hook_error (error, "a hook without a valid .name (letters, digits and _)");
  if (rn_registry_lookup (rn_registry_family ("hook"), desc->name) != NULL)
    return rn_hook_error (error, "there is a hook named %s already", desc->name);
  if (desc->summary == NULL)
    return rn_hook_error (error, "%s has no .summary", desc->name);
  if (desc->version != NULL && strpbrk (desc->version, "\t\n") != NULL)
    return rn_hook_error (error, "%s: a .version with a tab or the end of a line", desc->name);
  if (desc->instance_size < sizeof (RnHook) || desc->instance_size > MAX_INSTANCE)
    return rn_hook_error (error, "%s: a struct of %" G_GSIZE_FORMAT " bytes", desc->name,
                          desc->instance_size);
  if (desc->priority < RN_PRIORITY_HIGHEST || desc->priority > RN_PRIORITY_LOWEST)
    return rn_hook_error (error, "%s: a priority of %d, outside of 0 to 100", desc->name, desc->priority);
  if ((desc->save_state == NULL) != (desc->load_state == NULL))
    return rn_hook_error (error, "%s has only one of save_state and load_state", desc->name);
  if (!check_keys (desc->keys, 0, desc->instance_size, 0, error))
    {
      g_prefix_error (error, "%s: ", desc->name);
      return FALSE;
    }
  return TRUE;
}

/* ---- Registration ---- */

gboolean
rn_hook_register_from (const RnHookDesc *desc, const char *plugin, GError **error)
{
  if (!rn_hook_desc_check (desc, error))
    return FALSE;
  RnHookClass *class = g_new0 (RnHookClass, 1); /* lives as long as the registry */
  memcpy (&class->desc, desc, MIN (desc->struct_size, sizeof class->desc));
  class->component = (RnComponent){
    .name = desc->name,
    .summary = desc->summary,
    .instance_size = desc->instance_size,
    .keys = desc->keys != NULL ? desc->keys : no_keys,
  };
  class->plugin = g_strdup (plugin);
  return rn_registry_add (rn_registry_family ("hook"), &class->component, error);
}

gboolean
rn_hook_register (const RnHookDesc *desc, GError **error)
{
  return rn_hook_register_from (desc, NULL, error);
}

void
rn_hooks_register (void)
{
  static gboolean done = FALSE;
  if (done)
    return;
  done = TRUE;
  for (const RnHookDesc *const *desc = rn_builtin_hooks; *desc != NULL; desc++)
    {
      g_autoptr (GError) error = NULL;
      if (!rn_hook_register (*desc, &error))
        g_error ("%s: %s", (*desc)->name, error->message); /* a fault of the program */
    }
}

/* ---- Stages and documentation ---- */

void
rn_hook_desc_calls (const RnHookDesc *d, RnHookFunc calls[RN_STAGE_COUNT])
{
#define OR(specific, generic) ((specific) != NULL ? (specific) : (generic))
  calls[RN_STAGE_BEFORE_RUN] = d->before_run;
  calls[RN_STAGE_BEFORE_TRAIN_EPOCH] = OR (d->before_train_epoch, d->before_epoch);
  calls[RN_STAGE_BEFORE_TRAIN_ITER] = OR (d->before_train_iter, d->before_iter);
  calls[RN_STAGE_BEFORE_STEP] = d->before_step;
  calls[RN_STAGE_AFTER_TRAIN_ITER] = OR (d->after_train_iter, d->after_iter);
  calls[RN_STAGE_AFTER_TRAIN_EPOCH] = OR (d->after_train_epoch, d->after_epoch);
  calls[RN_STAGE_BEFORE_VAL_EPOCH] = OR (d->before_val_epoch, d->before_epoch);
  calls[RN_STAGE_BEFORE_VAL_ITER] = OR (d->before_val_iter, d->before_iter);
  calls[RN_STAGE_AFTER_VAL_ITER] = OR (d->after_val_iter, d->after_iter);
  calls[RN_STAGE_AFTER_VAL_EPOCH] = OR (d->after_val_epoch, d->after_epoch);
  calls[RN_STAGE_AFTER_RUN] = d->after_run;
#undef OR
}

static char *
join_stages (const RnHookDesc *desc)
{
  RnHookFunc calls[RN_STAGE_COUNT];
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  rn_hook_desc_calls (desc, calls);
  for (int stage = 0; stage < RN_STAGE_COUNT; stage++)
    if (calls[stage] != NULL)
      g_ptr_array_add (names, (gpointer) rn_stage_name ((RnStage) stage));
  g_ptr_array_add (names, (gpointer) (names->len == 0 ? "none" : NULL));
  g_ptr_array_add (names, NULL);
  return g_strjoinv (", ", (char **) names->pdata);
}

static char *
join_needs (guint needs)
{
  static const struct
  {
    guint bit;
    const char *name;
  } all[] = {
    { RN_NEEDS_LOSS, "loss" },
    { RN_NEEDS_ACTIVATIONS, "activations" },
    { RN_NEEDS_GRADIENTS, "gradients" },
    { RN_NEEDS_EMA, "a running mean of the weights" },
  };
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    if (needs & all[i].bit)
      g_ptr_array_add (names, (gpointer) all[i].name);
  g_ptr_array_add (names, NULL);
  return g_strjoinv (", ", (char **) names->pdata);
}

char *
rn_hook_class_describe (const RnHookClass *class)
{
  const RnHookDesc *desc = &class->desc;
  GString *text = g_string_new (NULL);
  g_autofree char *stages = join_stages (desc), *needs = join_needs (desc->needs);

  if (class->plugin != NULL)
    g_string_append_printf (text, "plugin: %s, version %s, licence %s, hook ABI %u.%u\n", class->plugin,
                            desc->version != NULL ? desc->version : "not said",
                            desc->license != NULL ? desc->license : "not said", desc->abi >> 16,
                            desc->abi & 0xffff);
  g_string_append_printf (text, "stages: %s; priority %d\n", stages,
                          desc->priority != 0 ? desc->priority : RN_PRIORITY_NORMAL);
  if (*needs != '\0')
    g_string_append_printf (text, "needs: %s\n", needs);
  if (desc->save_state != NULL)
    g_string_append (text, "state: kept in checkpoints, restored by a resume\n");
  return g_string_free (text, FALSE);
}
