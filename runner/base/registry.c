#include "config.h"
#include "runner/base/registry.h"

#include "runner/base/error.h"

#include <string.h>

struct _RnRegistry
{
  const char *family;     /* interned */
  GHashTable *components; /* name (lent by the component) -> RnComponent * */
};

/* Family name -> RnRegistry *. Never freed: descriptors are static data of the program and its plugins. */
static GHashTable *families;

RnRegistry *
rn_registry_family (const char *family)
{
  g_return_val_if_fail (family != NULL && *family, NULL);

  if (!families)
    families = g_hash_table_new (g_str_hash, g_str_equal);

  RnRegistry *registry = g_hash_table_lookup (families, family);
  if (!registry)
    {
      registry = g_new0 (RnRegistry, 1);
      registry->family = g_intern_string (family);
      registry->components = g_hash_table_new (g_str_hash, g_str_equal);
      g_hash_table_insert (families, (gpointer) registry->family, registry);
    }
  return registry;
}

static gboolean
is_valid_name (const char *name)
{
  return name && g_ascii_isalpha (*name)
         && name[strspn (name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_")] == '\0';
}

gboolean
rn_registry_add (RnRegistry *registry, const RnComponent *component, GError **error)
{
  if (!is_valid_name (component->name))
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "\"%s\" is not a valid name for a %s",
                   component->name ? component->name : "", registry->family);
      return FALSE;
    }
  if (g_hash_table_contains (registry->components, component->name))
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "there is a %s named \"%s\" already",
                   registry->family, component->name);
      return FALSE;
    }
  g_hash_table_insert (registry->components, (gpointer) component->name, (gpointer) component);
  return TRUE;
}

const RnComponent *
rn_registry_lookup (const RnRegistry *registry, const char *name)
{
  return g_hash_table_lookup (registry->components, name);
}

const char *
rn_registry_family_name (const RnRegistry *registry)
{
  return registry->family;
}

static int
compare_components (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(const RnComponent *const *) a)->name, (*(const RnComponent *const *) b)->name);
}

static int
compare_registries (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(const RnRegistry *const *) a)->family, (*(const RnRegistry *const *) b)->family);
}

static GPtrArray *
sorted_values (GHashTable *table, GCompareFunc compare)
{
  GPtrArray *values = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    g_ptr_array_add (values, value);
  g_ptr_array_sort (values, compare);
  return values;
}

GPtrArray *
rn_registry_list (const RnRegistry *registry)
{
  return sorted_values (registry->components, compare_components);
}

GPtrArray *
rn_registry_families (void)
{
  return families ? sorted_values (families, compare_registries) : g_ptr_array_new ();
}
