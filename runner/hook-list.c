#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/hook-list.h"

#include <runner/engine.h>
#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/base/trace.h"
#include "runner/config/schema.h"
#include "runner/hook-hints.h"
#include "runner/record.h"

#include <string.h>

typedef struct
{
  const RnHookClass *class;
  RnHook *hook;
  char *label;                          /* name, made unique: of the state in checkpoints */
  gboolean is_prepared, is_initialised; /* or at least begun: there is something to clear */
  RnHookFunc calls[RN_STAGE_COUNT];
} Slot;

struct _RnHookList
{
  GPtrArray *slots; /* of Slot, in order */
  const RnHook *failed;
};

static const char *const stage_names[RN_STAGE_COUNT + 1] = {
  "before_run",       "before_train_epoch", "before_train_iter", "before_step",
  "after_train_iter", "after_train_epoch",  "before_val_epoch",  "before_val_iter",
  "after_val_iter",   "after_val_epoch",    "after_run",
};
G_STATIC_ASSERT (RN_STAGE_COUNT == 11);

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

const char *const *
rn_stage_names (void)
{
  return stage_names;
}

RnStage
rn_stage_find (const char *name)
{
  int stage = 0;

  while (stage < RN_STAGE_COUNT && strcmp (stage_names[stage], name) != 0)
    stage++;
  return (RnStage) stage;
}

void
rn_hook_keep_stages (RnHook *hook, guint stages)
{
  Slot *slot = hook->reserved[0];

  for (int i = 0; i < RN_STAGE_COUNT; i++)
    if ((stages & 1u << i) == 0)
      slot->calls[i] = NULL;
}

static void
slot_free (gpointer data)
{
  Slot *slot = data;
  if ((slot->is_prepared || slot->is_initialised) && slot->class->desc.clear != NULL)
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
  if (!rn_hook_explain_type (config, error))
    return FALSE;
  RnHook *hook = rn_component_new (rn_registry_family ("hook"), config, deflt_type,
                                   (const char *const *) skipped->pdata, &component, error);
  if (hook == NULL)
    return FALSE;

  Slot *slot = g_new0 (Slot, 1);
  slot->class = (const RnHookClass *) component;
  slot->hook = hook;
  slot->label = make_label (list, component->name);
  hook->desc = &slot->class->desc;
  hook->config = config;
  hook->priority = hook->desc->priority != 0 ? hook->desc->priority : RN_PRIORITY_NORMAL;
  hook->reserved[0] = slot;
  rn_hook_desc_calls (hook->desc, slot->calls);
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

/* What a failed function of a hook gives: a cause always, with the hook's name unless the message starts with
 * a place in the configuration. */
static void
propagate (const Slot *slot, GError *cause, GError **error)
{
  if (cause == NULL)
    rn_hook_error (&cause, "failed without saying why");
  if (g_error_matches (cause, RN_RUN_ERROR, RN_RUN_ERROR_FAILED))
    g_prefix_error (&cause, "%s: ", slot->class->desc.name);
  g_propagate_error (error, cause);
}

guint
rn_hook_list_needs (const RnHookList *list)
{
  guint needs = 0;
  for (guint i = 0; i < list->slots->len; i++)
    needs |= ((const Slot *) g_ptr_array_index (list->slots, i))->class->desc.needs;
  return needs;
}

/* There is one array for the mean. */
static gboolean
check_ema (const RnHookList *list, GError **error)
{
  const RnHook *first = NULL;

  for (guint i = 0; i < list->slots->len; i++)
    {
      const RnHook *hook = ((const Slot *) g_ptr_array_index (list->slots, i))->hook;
      if ((hook->desc->needs & RN_NEEDS_EMA) == 0)
        continue;
      if (first != NULL)
        return hook->config != NULL
                   ? rn_node_error (hook->config, error,
                                    "%s is there already, and a run has one running mean of the weights",
                                    first->desc->name)
                   : rn_hook_error (error, "%s and %s both keep the one running mean of the weights",
                                    first->desc->name, hook->desc->name);
      first = hook;
    }
  return TRUE;
}

/* The built-in optimizer hooks can do without: they hand over what the step needs. */
static gboolean
needs_whole_gradients (const RnHookClass *class)
{
  gboolean is_optimizer = class->plugin == NULL && g_str_has_suffix (class->desc.name, "OptimizerHook");
  return !is_optimizer && ((class->desc.needs & RN_NEEDS_GRADIENTS) != 0 || class->desc.before_step != NULL);
}

gboolean
rn_hook_list_prepare (RnHookList *list, RnWants *wants, GError **error)
{
  if (!check_ema (list, error))
    return FALSE;
  wants->needs |= rn_hook_list_needs (list);
  for (guint i = 0; i < list->slots->len; i++)
    {
      Slot *slot = g_ptr_array_index (list->slots, i);
      GError *cause = NULL;
      if (wants->gradients_hook == NULL && needs_whole_gradients (slot->class))
        wants->gradients_hook = slot->class->desc.name;
      slot->is_prepared = slot->class->desc.prepare != NULL;
      wants->hook = &slot->class->desc;
      gboolean is_ok =
          slot->class->desc.prepare == NULL || slot->class->desc.prepare (slot->hook, wants, &cause);
      wants->hook = NULL;
      if (is_ok && wants->fault != NULL)
        is_ok = rn_hook_error (&cause, "%s", wants->fault);
      if (!is_ok)
        {
          propagate (slot, cause, error);
          return FALSE;
        }
    }
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
      slot->is_initialised = TRUE;
      GError *cause = NULL;
      if (slot->class->desc.init != NULL && !slot->class->desc.init (slot->hook, runner, &cause))
        {
          propagate (slot, cause, error);
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
  gint64 start = rn_trace_begin ();
  gboolean is_ok = slot->calls[stage](slot->hook, runner, &cause);
  rn_trace_end (start, RN_TRACE_HOOK, slot->class->desc.name, stage_names[stage]);
  if (is_ok)
    return TRUE;
  if (cause == NULL)
    rn_hook_error (&cause, "failed without saying why");
  g_propagate_prefixed_error (error, cause, "%s: %s: ", slot->class->desc.name, stage_names[stage]);
  return FALSE;
}

gboolean
rn_hook_list_call (RnHookList *list, RnStage stage, RnRunner *runner, GError **error)
{
  list->failed = NULL;
  for (guint i = 0; i < list->slots->len; i++)
    {
      Slot *slot = g_ptr_array_index (list->slots, i);
      if (call (slot, stage, runner, error))
        continue;
      list->failed = slot->hook;
      return FALSE;
    }
  return TRUE;
}

gboolean
rn_hook_list_has_stage (const RnHookList *list, RnStage stage)
{
  for (guint i = 0; i < list->slots->len; i++)
    if (((const Slot *) g_ptr_array_index (list->slots, i))->calls[stage] != NULL)
      return TRUE;
  return FALSE;
}

const RnHook *
rn_hook_list_failed (const RnHookList *list)
{
  return list->failed;
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
      g_autoptr (GError) cause = NULL;
      g_autofree char *json = rn_record_to_state (state, &cause);
      if (json != NULL)
        rn_safetensors_writer_set_metadata (writer, key, json);
      else /* the weights are worth saving all the same */
        g_warning ("THE STATE OF %s IS NOT SAVED: %s; a resume will not give the same bits", slot->label,
                   cause->message);
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
