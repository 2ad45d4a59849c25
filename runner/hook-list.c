#include "config.h"

#include "runner/hook-list.h"

#include "hooks/builtin.h"
#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/config/schema.h"
#include "runner/record.h"

#include <string.h>

/* A descriptor as the registry keeps it. */
typedef struct
{
  RnComponent component; /* first */
  RnHookDesc desc;       /* a copy: the author's may be shorter or longer than ours */
} HookClass;

typedef struct
{
  const HookClass *class;
  RnHook *hook;
  char *label; /* name, made unique: of the state in checkpoints */
  gboolean is_initialised;
  RnHookFunc calls[RN_STAGE_COUNT];
} Slot;

struct _RnHookList
{
  GPtrArray *slots; /* of Slot, in order */
};

static const char *const stage_names[] = {
  "before_run",       "before_train_epoch", "before_train_iter", "before_step",
  "after_train_iter", "after_train_epoch",  "before_val_epoch",  "before_val_iter",
  "after_val_iter",   "after_val_epoch",    "after_run",
};
G_STATIC_ASSERT (G_N_ELEMENTS (stage_names) == RN_STAGE_COUNT);

static const struct
{
  const char *name;
  int value;
} priorities[] = {
  { "HIGHEST", RN_PRIORITY_HIGHEST }, { "VERY_HIGH", RN_PRIORITY_VERY_HIGH },
  { "HIGH", RN_PRIORITY_HIGH },       { "ABOVE_NORMAL", RN_PRIORITY_ABOVE_NORMAL },
  { "NORMAL", RN_PRIORITY_NORMAL },   { "BELOW_NORMAL", RN_PRIORITY_BELOW_NORMAL },
  { "LOW", RN_PRIORITY_LOW },         { "VERY_LOW", RN_PRIORITY_VERY_LOW },
  { "LOWEST", RN_PRIORITY_LOWEST },
};

gboolean
rn_hook_error (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED, text);
  return FALSE;
}

const char *
rn_stage_name (RnStage stage)
{
  return stage_names[stage];
}

static const RnKeySpec no_keys[] = { RN_KEY_END };

gboolean
rn_hook_register (const RnHookDesc *desc, GError **error)
{
  if (desc->abi >> 16 != RN_HOOK_ABI_MAJOR || desc->abi > RN_HOOK_ABI
      || desc->struct_size < G_STRUCT_OFFSET (RnHookDesc, before_run)
      || desc->instance_size < sizeof (RnHook))
    return rn_hook_error (error, "a hook of ABI %u.%u, this program has %u.%u", desc->abi >> 16,
                          desc->abi & 0xffff, RN_HOOK_ABI_MAJOR, RN_HOOK_ABI_MINOR);

  HookClass *class = g_new0 (HookClass, 1); /* lives as long as the registry */
  memcpy (&class->desc, desc, MIN (desc->struct_size, sizeof class->desc));
  class->component = (RnComponent){
    .name = desc->name,
    .summary = desc->summary,
    .instance_size = desc->instance_size,
    .keys = desc->keys != NULL ? desc->keys : no_keys,
  };
  if (rn_registry_add (rn_registry_family ("hook"), &class->component, error))
    return TRUE;
  g_free (class);
  return FALSE;
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
        g_error ("%s: %s", (*desc)->name, error->message); /* a fault of the program: two of one name */
    }
}

static void
slot_free (gpointer data)
{
  Slot *slot = data;
  if (slot->is_initialised && slot->class->desc.clear != NULL)
    slot->class->desc.clear (slot->hook);
  rn_component_free (&slot->class->component, slot->hook);
  g_free (slot->label);
  g_free (slot);
}

RnHookList *
rn_hook_list_new (void)
{
  RnHookList *list = g_new0 (RnHookList, 1);
  list->slots = g_ptr_array_new_with_free_func (slot_free);
  return list;
}

void
rn_hook_list_free (RnHookList *list)
{
  if (list == NULL)
    return;
  while (list->slots->len > 0)
    g_ptr_array_remove_index (list->slots, list->slots->len - 1);
  g_ptr_array_unref (list->slots);
  g_free (list);
}

static void
resolve_calls (Slot *slot)
{
  const RnHookDesc *d = &slot->class->desc;
#define OR(specific, generic) ((specific) != NULL ? (specific) : (generic))
  slot->calls[RN_STAGE_BEFORE_RUN] = d->before_run;
  slot->calls[RN_STAGE_BEFORE_TRAIN_EPOCH] = OR (d->before_train_epoch, d->before_epoch);
  slot->calls[RN_STAGE_BEFORE_TRAIN_ITER] = OR (d->before_train_iter, d->before_iter);
  slot->calls[RN_STAGE_BEFORE_STEP] = d->before_step;
  slot->calls[RN_STAGE_AFTER_TRAIN_ITER] = OR (d->after_train_iter, d->after_iter);
  slot->calls[RN_STAGE_AFTER_TRAIN_EPOCH] = OR (d->after_train_epoch, d->after_epoch);
  slot->calls[RN_STAGE_BEFORE_VAL_EPOCH] = OR (d->before_val_epoch, d->before_epoch);
  slot->calls[RN_STAGE_BEFORE_VAL_ITER] = OR (d->before_val_iter, d->before_iter);
  slot->calls[RN_STAGE_AFTER_VAL_ITER] = OR (d->after_val_iter, d->after_iter);
  slot->calls[RN_STAGE_AFTER_VAL_EPOCH] = OR (d->after_val_epoch, d->after_epoch);
  slot->calls[RN_STAGE_AFTER_RUN] = d->after_run;
#undef OR
}

static gboolean
read_priority (const RnNode *node, int *priority, GError **error)
{
  if (rn_node_is_null (node))
    return TRUE;
  if (rn_node_kind (node) == RN_NODE_INT && rn_node_as_int (node) >= 0 && rn_node_as_int (node) <= 100)
    {
      *priority = (int) rn_node_as_int (node);
      return TRUE;
    }
  if (rn_node_kind (node) == RN_NODE_STRING)
    for (gsize i = 0; i < G_N_ELEMENTS (priorities); i++)
      if (g_ascii_strcasecmp (rn_node_as_string (node), priorities[i].name) == 0)
        {
          *priority = priorities[i].value;
          return TRUE;
        }
  return rn_node_error (node, error,
                        "must be a number from 0 to 100, or one of HIGHEST, VERY_HIGH, HIGH, ABOVE_NORMAL, "
                        "NORMAL, BELOW_NORMAL, "
                        "LOW, VERY_LOW, LOWEST");
}

static char *
make_label (const RnHookList *list, const char *name)
{
  guint n = 1;
  for (guint i = 0; i < list->slots->len; i++)
    n += strcmp (((const Slot *) g_ptr_array_index (list->slots, i))->class->desc.name, name) == 0;
  return n == 1 ? g_strdup (name) : g_strdup_printf ("%s#%u", name, n);
}

gboolean
rn_hook_list_add (RnHookList *list, const RnNode *config, const char *deflt_type, const char *const *skip,
                  GError **error)
{
  g_autoptr (GPtrArray) skipped = g_ptr_array_new ();
  for (; skip != NULL && *skip != NULL; skip++)
    g_ptr_array_add (skipped, (gpointer) *skip);
  g_ptr_array_add (skipped, (gpointer) "priority");
  g_ptr_array_add (skipped, NULL);

  const RnComponent *component;
  rn_hooks_register ();
  RnHook *hook = rn_component_new (rn_registry_family ("hook"), config, deflt_type,
                                   (const char *const *) skipped->pdata, &component, error);
  if (hook == NULL)
    return FALSE;

  Slot *slot = g_new0 (Slot, 1);
  slot->class = (const HookClass *) component;
  slot->hook = hook;
  slot->label = make_label (list, component->name);
  hook->desc = &slot->class->desc;
  hook->config = config;
  hook->priority = hook->desc->priority != 0 ? hook->desc->priority : RN_PRIORITY_NORMAL;
  resolve_calls (slot);
  if (config != NULL && !read_priority (rn_node_get (config, "priority"), &hook->priority, error))
    {
      slot_free (slot);
      return FALSE;
    }

  guint place = list->slots->len;
  while (place > 0
         && ((const Slot *) g_ptr_array_index (list->slots, place - 1))->hook->priority > hook->priority)
    place--;
  g_ptr_array_insert (list->slots, (gint) place, slot);
  return TRUE;
}

gboolean
rn_hook_list_init (RnHookList *list, RnRunner *runner, GError **error)
{
  for (guint i = 0; i < list->slots->len; i++)
    {
      Slot *slot = g_ptr_array_index (list->slots, i);
      if (slot->is_initialised)
        continue;
      slot->is_initialised = TRUE; /* clear must run after a failure half-way too */
      GError *cause = NULL;
      if (slot->class->desc.init != NULL && !slot->class->desc.init (slot->hook, runner, &cause))
        {
          if (cause == NULL)
            rn_hook_error (&cause, "failed without saying why");
          /* An error of the configuration says where it is, and starts with that. */
          if (g_error_matches (cause, RN_RUN_ERROR, RN_RUN_ERROR_FAILED))
            g_prefix_error (&cause, "%s: ", slot->class->desc.name);
          g_propagate_error (error, cause);
          return FALSE;
        }
    }
  return TRUE;
}

static gboolean
call (Slot *slot, RnStage stage, RnRunner *runner, GError **error)
{
  if (slot->calls[stage] == NULL)
    return TRUE;

  GError *cause = NULL;
  if (slot->calls[stage](slot->hook, runner, &cause))
    return TRUE;
  if (cause == NULL)
    rn_hook_error (&cause, "failed without saying why");
  g_propagate_prefixed_error (error, cause, "%s: %s: ", slot->class->desc.name, stage_names[stage]);
  return FALSE;
}

gboolean
rn_hook_list_call (RnHookList *list, RnStage stage, RnRunner *runner, GError **error)
{
  for (guint i = 0; i < list->slots->len; i++)
    if (!call (g_ptr_array_index (list->slots, i), stage, runner, error))
      return FALSE;
  return TRUE;
}

gboolean
rn_hook_list_finish (RnHookList *list, RnRunner *runner, GError **error)
{
  gboolean is_ok = TRUE;

  for (guint i = 0; i < list->slots->len; i++)
    {
      Slot *slot = g_ptr_array_index (list->slots, i);
      if (slot->is_initialised && !call (slot, RN_STAGE_AFTER_RUN, runner, is_ok ? error : NULL))
        is_ok = FALSE;
    }
  return is_ok;
}

char *
rn_hook_list_describe (const RnHookList *list, RnStage stage)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < list->slots->len; i++)
    {
      const Slot *slot = g_ptr_array_index (list->slots, i);
      if (slot->calls[stage] != NULL)
        g_string_append_printf (text, "%s%s (%d)", text->len > 0 ? ", " : "", slot->class->desc.name,
                                slot->hook->priority);
    }
  return text->len > 0 ? g_strdup (text->str) : NULL;
}

void
rn_hook_list_save (RnHookList *list, RnSafetensorsWriter *writer)
{
  for (guint i = 0; i < list->slots->len; i++)
    {
      Slot *slot = g_ptr_array_index (list->slots, i);
      if (slot->class->desc.save_state == NULL)
        continue;
      g_autoptr (RnRecord) state = rn_record_new ();
      slot->class->desc.save_state (slot->hook, state);
      g_autofree char *key = g_strconcat ("hook/", slot->label, NULL);
      g_autofree char *json = rn_record_to_json (state, 17);
      rn_safetensors_writer_set_metadata (writer, key, json);
    }
}

gboolean
rn_hook_list_load (RnHookList *list, const RnSafetensors *file, GError **error)
{
  for (guint i = 0; i < list->slots->len; i++)
    {
      Slot *slot = g_ptr_array_index (list->slots, i);
      g_autofree char *key = g_strconcat ("hook/", slot->label, NULL);
      const char *json = rn_safetensors_metadata (file, key);
      if (json == NULL || slot->class->desc.load_state == NULL)
        continue;
      GError *cause = NULL;
      g_autoptr (RnRecord) state = rn_record_parse (json, &cause);
      if (state == NULL || !slot->class->desc.load_state (slot->hook, state, &cause))
        {
          if (cause == NULL)
            rn_hook_error (&cause, "failed without saying why");
          g_propagate_prefixed_error (error, cause, "%s: %s: ", rn_safetensors_path (file), key);
          return FALSE;
        }
    }
  return TRUE;
}
