#define G_LOG_DOMAIN "rn-data"
#include "config.h"

#include "datasets/dataset-private.h"

#include "datasets/file.h"
#include "datasets/voc.h"
#include "runner/base/error.h"
#include "runner/base/registry.h"

#include <string.h>

#define MAX_LISTED 30 /* names in a message */

typedef struct
{
  const char *name; /* lent by an index */
  int64_t count;
} NameCount;

static int
by_name (gconstpointer a, gconstpointer b)
{
  return strcmp (((const NameCount *) a)->name, ((const NameCount *) b)->name);
}

static int
by_count (gconstpointer a, gconstpointer b)
{
  const NameCount *x = a, *y = b;

  return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp (x->name, y->name);
}

/* NameCount of every name in @bases with its objects, sorted by name. (transfer full) */
static GArray *
names_seen (GPtrArray *bases)
{
  GArray *seen = g_array_new (FALSE, FALSE, sizeof (NameCount));
  guint kept = 0;

  for (guint b = 0; b < bases->len; b++)
    {
      const RnIndex *index = ((const RnDataset *) bases->pdata[b])->index;
      g_autofree int64_t *counts = rn_index_count_names (index);

      for (guint i = 0; i < index->names->len; i++)
        {
          NameCount item = { index->names->pdata[i], counts[i] };

          g_array_append_val (seen, item);
        }
    }
  g_array_sort (seen, by_name);
  for (guint i = 0; i < seen->len; i++)
    {
      NameCount *items = (NameCount *) (gpointer) seen->data;

      if (kept > 0 && strcmp (items[kept - 1].name, items[i].name) == 0)
        items[kept - 1].count += items[i].count;
      else
        items[kept++] = items[i];
    }
  g_array_set_size (seen, kept);
  return seen;
}

/* "RBC (4155), WBC (372)", most frequent first; sorts @counts. */
static char *
list_counts (GArray *counts)
{
  GString *text = g_string_new (NULL);

  g_array_sort (counts, by_count);
  for (guint i = 0; i < MIN (counts->len, MAX_LISTED); i++)
    {
      const NameCount *item = &g_array_index (counts, NameCount, i);

      g_string_append_printf (text, "%s%s (%" G_GINT64_FORMAT ")", i > 0 ? ", " : "", item->name,
                              (gint64) item->count);
    }
  if (counts->len > MAX_LISTED)
    g_string_append_printf (text, " and %u more", counts->len - MAX_LISTED);
  return g_string_free (text, FALSE);
}

static char **
auto_names (GPtrArray *bases, const RnDatasetOptions *options)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  g_autoptr (GArray) seen = NULL;
  g_autofree char *list = NULL;
  char **result;

  if (options->class_source != NULL)
    return g_strdupv (options->class_source->classes);
  seen = names_seen (bases);
  for (guint i = 0; i < seen->len; i++)
    g_strv_builder_add (names, g_array_index (seen, NameCount, i).name);
  result = g_strv_builder_end (names);
  list = g_strjoinv (", ", result);
  g_message ("classes found in the annotations: %s", list);
  return result;
}

static char **
listed_names (const RnNode *node, GError **error)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < rn_node_size (node); i++)
    {
      const RnNode *item = rn_node_item (node, i);

      if (rn_node_kind (item) != RN_NODE_STRING)
        {
          rn_node_error (item, error, "a class name is a string; put it in quotes");
          return NULL;
        }
      if (!g_hash_table_add (seen, (gpointer) rn_node_as_string (item)))
        {
          rn_node_error (item, error, "\"%s\" is there twice", rn_node_as_string (item));
          return NULL;
        }
      g_strv_builder_add (names, rn_node_as_string (item));
    }
  return g_strv_builder_end (names);
}

static gboolean
is_auto (const RnNode *node)
{
  return node != NULL && rn_node_kind (node) == RN_NODE_STRING
         && strcmp (rn_node_as_string (node), "auto") == 0;
}

/* A name that UTF-8 allows and no terminal, table or picture can show: most likely the file is no text. */
static gboolean
has_control (const char *name)
{
  for (const char *p = name; *p != '\0'; p = g_utf8_next_char (p))
    if (g_unichar_iscntrl (g_utf8_get_char (p)))
      return TRUE;
  return FALSE;
}

/* @is_given: by the configuration and not by the annotations. */
static gboolean
check_names (const char *const *names, gboolean is_given, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  gsize n = g_strv_length ((char **) names);

  if (n == 0 || n > G_MAXINT16)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY,
                   n > 0      ? "classes: more than 32767"
                   : is_given ? "classes: the list is empty"
                              : "classes: auto finds no object in any annotation");
      return FALSE;
    }
  for (gsize i = 0; i < n; i++)
    if (!g_utf8_validate (names[i], -1, NULL)) /* annotations are UTF-8 once they are read */
      {
        g_autofree char *text = g_utf8_make_valid (names[i], -1);

        g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "classes: \"%s\" is not UTF-8", text);
        return FALSE;
      }
    else if (is_given && has_control (names[i]))
      {
        g_autofree char *text = rn_printable (names[i], FALSE);

        g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                     "classes: name %" G_GSIZE_FORMAT ", \"%s\", has a control character, shown as ?", i + 1,
                     text);
        return FALSE;
      }
    else if (!g_hash_table_add (seen, (gpointer) names[i]))
      {
        g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "classes: \"%s\" is there twice",
                     names[i]);
        return FALSE;
      }
  return TRUE;
}

static char **
read_names (const RnNode *node, const char *data_root, GError **error)
{
  if (rn_node_is_null (node))
    return g_strdupv ((char **) rn_voc_class_names);
  if (rn_node_kind (node) == RN_NODE_LIST)
    return listed_names (node, error);
  if (rn_node_kind (node) != RN_NODE_STRING)
    {
      rn_node_error (node, error,
                     "expected a list of names, the path of a file with a name per line, or auto");
      return NULL;
    }
  g_autofree char *path = rn_dataset_resolve_path (data_root, rn_node_as_string (node));
  char **names = rn_file_read_lines (path, error);
  if (names != NULL && names[0] == NULL)
    {
      g_clear_pointer (&names, g_strfreev);
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY,
                   "%s: there is no class in this file; it takes one name on each line", path);
    }
  if (names == NULL)
    g_prefix_error (error, "%s: classes: ", rn_node_origin (node));
  return names;
}

/* Begins @error with where the names are: in the configuration, and in which file if they are in one. */
static void
name_source (const RnNode *node, const char *data_root, GError **error)
{
  if (rn_node_is_null (node))
    return;
  if (rn_node_kind (node) == RN_NODE_STRING)
    {
      g_autofree char *path = rn_dataset_resolve_path (data_root, rn_node_as_string (node));
      g_prefix_error (error, "%s: ", path);
    }
  g_prefix_error (error, "%s: ", rn_node_origin (node));
}

char **
rn_class_names_read (const RnNode *node, const char *data_root, GError **error)
{
  g_auto (GStrv) names = read_names (node, data_root, error);

  if (names == NULL)
    return NULL;
  if (check_names ((const char *const *) names, TRUE, error))
    return g_steal_pointer (&names);
  name_source (node, data_root, error);
  return NULL;
}

/* Objects whose name is in @names, and the others counted by name in @unknown (transfer full). */
static int64_t
count_known (GPtrArray *bases, const char *const *names, GArray **unknown)
{
  g_autoptr (GArray) seen = names_seen (bases);
  int64_t known = 0;

  *unknown = g_array_new (FALSE, FALSE, sizeof (NameCount));
  for (guint i = 0; i < seen->len; i++)
    {
      const NameCount *item = &g_array_index (seen, NameCount, i);

      if (g_strv_contains (names, item->name))
        known += item->count;
      else
        g_array_append_val (*unknown, *item);
    }
  return known;
}

static gboolean
is_seen (const GArray *seen, const char *name)
{
  for (guint i = 0; i < seen->len; i++)
    if (strcmp (g_array_index (seen, NameCount, i).name, name) == 0)
      return TRUE;
  return FALSE;
}

/*
 * "; is Dog (12) meant to be dog?" for the most frequent such name, or "": it differs in case only, or a
 * class of nearly that name has no object. @unknown is sorted. (transfer full)
 */
static char *
nearest_class (GPtrArray *bases, const GArray *unknown, const char *const *names)
{
  g_autoptr (GArray) seen = names_seen (bases);

  for (guint i = 0; i < MIN (unknown->len, MAX_LISTED); i++)
    {
      const NameCount *item = &g_array_index (unknown, NameCount, i);
      const char *near = rn_suggest (item->name, names);

      if (near != NULL
          && (g_ascii_strcasecmp (near, item->name) == 0 || (strlen (near) > 2 && !is_seen (seen, near))))
        return g_strdup_printf ("; is %s (%" G_GINT64_FORMAT ") meant to be %s?", item->name,
                                (gint64) item->count, near);
    }
  return g_strdup ("");
}

/* A class that nothing is learnt for: it may be misspelt. */
static void
name_unused (GPtrArray *bases, const char *const *names)
{
  g_autoptr (GArray) seen = names_seen (bases);
  g_autoptr (GString) unused = g_string_new (NULL);
  guint n = 0;

  for (guint k = 0; names[k] != NULL; k++)
    if (!is_seen (seen, names[k]) && n++ < MAX_LISTED)
      g_string_append_printf (unused, "%s%s", n > 1 ? ", " : "", names[k]);
  if (n > 0)
    g_message ("classes without an object to learn from: %s%s", unused->str,
               n > MAX_LISTED ? " and more" : "");
}

/* Refuses a set in which every object has an unknown name: the classes belong to other data. */
static gboolean
check_known (GPtrArray *bases, const char *const *names, const RnDatasetOptions *options, GError **error)
{
  const RnDataset *first = bases->pdata[0];
  const RnNode *node = first->classes_node != NULL ? first->classes_node : options->classes;
  g_autoptr (GArray) unknown = NULL;
  int64_t known = count_known (bases, names, &unknown);
  g_autofree char *list = list_counts (unknown);
  g_autofree char *near = nearest_class (bases, unknown, names);

  if (unknown->len == 0 || known > 0)
    {
      if (unknown->len > 0) /* a likely mistake is louder than a choice */
        g_log (G_LOG_DOMAIN, *near != '\0' ? G_LOG_LEVEL_WARNING : G_LOG_LEVEL_MESSAGE,
               "objects of other classes, left out: %s%s", list, near);
      if (!options->test_mode && node != NULL && known > 0)
        name_unused (bases, names);
      return TRUE;
    }
  g_set_error (
      error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY,
      "%s: no object has a known class; seen: %s. Set `classes:` to a list of these names, to a file of "
      "them, or to auto%s",
      node != NULL ? rn_node_origin (node) : first->prefix, list, near);
  return FALSE;
}

/*
 * Labels from indices in the index's names to classes; unknown ones go, and objects come to lie in the order
 * of the images.
 */
static void
relabel (RnDataset *base, const char *const *names)
{
  RnIndex *old = base->index, *index = rn_index_new ();
  g_autofree int16_t *label_of = g_new (int16_t, old->names->len + 1);
  RnIndex shell = *old;

  for (guint i = 0; i < old->names->len; i++)
    {
      label_of[i] = -1;
      for (int k = 0; names[k] != NULL && label_of[i] < 0; k++)
        if (strcmp (names[k], old->names->pdata[i]) == 0)
          label_of[i] = (int16_t) k;
    }
  for (guint i = 0; i < old->images->len; i++)
    {
      RnIndexImage *image = rn_index_image (old, i);
      guint first = index->labels->len;

      for (guint j = image->first; j < image->first + image->n; j++)
        {
          int16_t label = label_of[g_array_index (old->labels, int16_t, j)];

          if (label >= 0)
            rn_index_add_object (index, (const float *) (gpointer) (old->boxes->data + j * sizeof (float[4])),
                                 label, old->difficult->data[j]);
        }
      image->first = first;
      image->n = index->labels->len - first;
    }
  /* The new objects take the place of the old; texts and images stay. */
  old->boxes = index->boxes, index->boxes = shell.boxes;
  old->labels = index->labels, index->labels = shell.labels;
  old->difficult = index->difficult, index->difficult = shell.difficult;
  rn_index_free (index);
}

/* The names that all of @bases have. (transfer full) */
static char **
agree_on_names (GPtrArray *bases, const RnDatasetOptions *options, GError **error)
{
  g_auto (GStrv) names = NULL;
  const RnNode *last = NULL;

  for (guint b = 0; b < bases->len; b++)
    {
      const RnNode *own = ((const RnDataset *) bases->pdata[b])->classes_node;
      const RnNode *node = own != NULL ? own : options->classes;
      g_auto (GStrv) these = NULL;

      if (b > 0 && node == last)
        continue;
      last = node;
      these = is_auto (node) ? auto_names (bases, options)
                             : rn_class_names_read (node, options->data_root, error);
      if (these == NULL)
        return NULL;
      if (is_auto (node) && !check_names ((const char *const *) these, FALSE, error))
        {
          g_prefix_error (error, "%s: %s: ", rn_node_origin (node),
                          ((const RnDataset *) bases->pdata[b])->ann_file);
          return NULL;
        }
      if (names == NULL)
        names = g_steal_pointer (&these);
      else if (!g_strv_equal ((const char *const *) names, (const char *const *) these))
        {
          g_set_error_literal (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                               "the parts of one data set must have the same classes");
          return NULL;
        }
    }
  return g_steal_pointer (&names);
}

gboolean
rn_dataset_settle_classes (GPtrArray *bases, const RnDatasetOptions *options, char ***names_out,
                           GError **error)
{
  g_auto (GStrv) names = agree_on_names (bases, options, error);

  if (names == NULL || !check_known (bases, (const char *const *) names, options, error))
    return FALSE;
  for (guint b = 0; b < bases->len; b++)
    relabel (bases->pdata[b], (const char *const *) names);
  *names_out = g_steal_pointer (&names);
  return TRUE;
}
