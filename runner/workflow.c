#include "config.h"

#include "runner/workflow.h"

#include "runner/base/registry.h"

#include <string.h>

#define MAX_N 1000000000000

static const char *const modes[] = { "train", "val", NULL };

enum
{
  MODE_TRAIN,
  MODE_VAL,
};

static int
find_mode (const char *name)
{
  for (int i = 0; modes[i] != NULL; i++)
    if (strcmp (modes[i], name) == 0)
      return i;
  return -1;
}

static gboolean
fail_item (const RnNode *node, GError **error)
{
  return rn_node_error (node, error,
                        "not [mode, number], such as [train, 1] for an epoch (or iteration) of training and "
                        "[val, 1] for one of validation loss");
}

static gboolean
add_item (GArray *workflow, const RnNode *node, const char *mode, gint64 n, GError **error)
{
  int found = find_mode (mode);

  if (found < 0)
    {
      const char *nearest = rn_suggest (mode, modes);
      return rn_node_error (node, error, "no mode \"%s\" in a workflow; there are train and val%s%s%s", mode,
                            nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                            nearest != NULL ? "\"?" : "");
    }
  if (n < 1 || n > MAX_N)
    return rn_node_error (node, error, "%s %" G_GINT64_FORMAT " times; the number must be from 1 to 1e12",
                          mode, n);
  RnWorkflowItem item = { found == MODE_VAL, n };
  g_array_append_val (workflow, item);
  return TRUE;
}

static gboolean
read_list (GArray *workflow, const RnNode *item, GError **error)
{
  const RnNode *mode = rn_node_size (item) == 2 ? rn_node_item (item, 0) : NULL;
  const RnNode *n = mode != NULL ? rn_node_item (item, 1) : NULL;

  if (n == NULL || rn_node_kind (mode) != RN_NODE_STRING || rn_node_kind (n) != RN_NODE_INT)
    return fail_item (item, error);
  return add_item (workflow, item, rn_node_as_string (mode), rn_node_as_int (n), error);
}

/* Python's ('train', 1), which the comma has cut into the texts @first and @second. */
static gboolean
read_tuple (GArray *workflow, const RnNode *first, const RnNode *second, GError **error)
{
  if (second == NULL || rn_node_kind (second) != RN_NODE_STRING
      || !g_str_has_suffix (rn_node_as_string (second), ")"))
    return fail_item (first, error);

  g_autofree char *mode = g_strdup (rn_node_as_string (first) + strlen ("("));
  g_autofree char *number = g_strdup (rn_node_as_string (second));
  g_strstrip (mode);
  gsize length = strlen (mode);
  if (length >= 2 && (mode[0] == '\'' || mode[0] == '"') && mode[length - 1] == mode[0])
    {
      mode[length - 1] = '\0';
      memmove (mode, mode + 1, length - 1);
    }
  number[strlen (number) - 1] = '\0';
  g_strstrip (number);
  gint64 n;
  if (!g_ascii_string_to_signed (number, 10, G_MININT64, G_MAXINT64, &n, NULL))
    return fail_item (first, error);
  return add_item (workflow, first, mode, n, error);
}

static gboolean
is_tuple (const RnNode *item)
{
  return rn_node_kind (item) == RN_NODE_STRING && g_str_has_prefix (rn_node_as_string (item), "(");
}

static gboolean
has_train (const GArray *workflow)
{
  for (guint i = 0; i < workflow->len; i++)
    if (!g_array_index (workflow, RnWorkflowItem, i).is_val)
      return TRUE;
  return FALSE;
}

GArray *
rn_workflow_parse (const RnNode *node, GError **error)
{
  g_autoptr (GArray) workflow = g_array_new (FALSE, FALSE, sizeof (RnWorkflowItem));

  if (node == NULL)
    {
      RnWorkflowItem only = { FALSE, 1 };
      g_array_append_val (workflow, only);
      return g_steal_pointer (&workflow);
    }
  if (rn_node_kind (node) != RN_NODE_LIST || rn_node_size (node) == 0)
    {
      rn_node_error (node, error,
                     "not a list of [mode, number]; what works: [[train, 1]], or [[train, 1], [val, 1]] for "
                     "the loss on the validation set too");
      return NULL;
    }
  for (guint i = 0; i < rn_node_size (node); i++)
    {
      const RnNode *item = rn_node_item (node, i);
      gboolean is_ok;
      if (is_tuple (item))
        {
          i++;
          is_ok = read_tuple (workflow, item, i < rn_node_size (node) ? rn_node_item (node, i) : NULL, error);
        }
      else
        is_ok = read_list (workflow, item, error);
      if (!is_ok)
        return NULL;
    }
  if (!has_train (workflow))
    {
      rn_node_error (node, error, "a workflow without train never ends; what works: [[train, 1], [val, 1]]");
      return NULL;
    }
  return g_steal_pointer (&workflow);
}

gboolean
rn_workflow_has_val (const GArray *workflow)
{
  for (guint i = 0; i < workflow->len; i++)
    if (g_array_index (workflow, RnWorkflowItem, i).is_val)
      return TRUE;
  return FALSE;
}

char *
rn_workflow_describe (const GArray *workflow, gboolean is_by_epoch)
{
  g_autoptr (GString) text = g_string_new ("[");

  for (guint i = 0; i < workflow->len; i++)
    {
      const RnWorkflowItem *item = &g_array_index (workflow, RnWorkflowItem, i);
      g_string_append_printf (text, "%s[%s, %" G_GINT64_FORMAT "]", i > 0 ? ", " : "",
                              modes[item->is_val ? MODE_VAL : MODE_TRAIN], item->n);
    }
  g_string_append (text, is_by_epoch ? "] epochs" : "] iterations");
  return g_strdup (text->str);
}
