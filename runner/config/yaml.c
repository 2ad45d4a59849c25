/*
 * yaml.c: YAML text to a tree, by libyaml's event parser.
 *
 * One document. Typing is ours (scalar.c); tags other than !!str, !!seq, !!map and PyYAML's !!python/tuple,
 * which is a list, are refused. Keys are texts
 * and unique. Aliases are copies; `<<` merges maps as in YAML 1.1, explicit keys first. A tab never indents.
 */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <string.h>
#include <yaml.h>
#include "runner/config/sniff.h"
#include "runner/config/yaml-explain.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (yaml_event_t, yaml_event_delete)

typedef struct
{
  yaml_parser_t yaml;
  const char *text;
  gsize length;
  const char *file;
  gboolean flow;
  gint64 *budget;
  GHashTable *anchors; /* name -> finished node of the tree or of merged, lent */
  GPtrArray *merged;   /* values of `<<`, kept because they may have anchors */
} Parser;

static gboolean fill (Parser *p, RnNode *node, const yaml_event_t *event, int depth, GError **error);

/* Line and column, from 1, of the byte at @offset. */
static void
locate (const char *text, gsize offset, gsize *line, gsize *column)
{
  *line = *column = 1;
  for (gsize i = 0; i < offset; i++)
    {
      gboolean is_end = text[i] == '\n';
      *column = is_end ? 1 : *column + 1;
      *line += is_end;
    }
}

static void
syntax_error (Parser *p, gsize line, gsize column, GError **error, const char *problem)
{
  if (p->flow)
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_SYNTAX, "%s: %s", p->file, problem);
  else
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_SYNTAX,
                 "%s:%" G_GSIZE_FORMAT ":%" G_GSIZE_FORMAT ": %s", p->file, line, column, problem);
}

static gboolean
next_event (Parser *p, yaml_event_t *event, GError **error)
{
  if (yaml_parser_parse (&p->yaml, event))
    return TRUE;

  const char *problem = p->yaml.problem ? p->yaml.problem : "out of memory";
  if (p->yaml.error == YAML_READER_ERROR)
    {
      gsize line, column;
      locate (p->text, p->yaml.problem_offset, &line, &column);
      syntax_error (p, line, column, error, problem);
    }
  else if (p->flow) /* on a command line there is nothing to point at */
    {
      g_autofree char *text =
          p->yaml.context ? g_strdup_printf ("%s (%s)", problem, p->yaml.context) : g_strdup (problem);
      syntax_error (p, 1, 1, error, text);
    }
  else
    {
      const yaml_mark_t *at = &p->yaml.problem_mark, *begin = &p->yaml.context_mark;
      const RnYamlProblem failure = { .problem = problem,
                                      .context = p->yaml.context,
                                      .at = { at->line, at->column },
                                      .begin = { begin->line, begin->column } };
      gsize line, column;
      g_autofree char *text = rn_yaml_explain (&failure, p->text, p->length, &line, &column);
      syntax_error (p, line, column, error, text);
    }
  return FALSE;
}

static gboolean
too_large (const RnNode *node, GError **error)
{
  return rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error,
                       "more than %d values or %d levels when everything is expanded", RN_NODE_BUDGET,
                       RN_NODE_MAX_DEPTH);
}

/* Where @event begins, as a detached null: for nodes and for messages. */
static RnNode *
node_at (Parser *p, const yaml_event_t *event)
{
  if (p->flow)
    return rn_node_new (p->file, 0, 0);
  return rn_node_new (p->file, (int) event->start_mark.line + 1, (int) event->start_mark.column + 1);
}

/* PyYAML's name for a list that was a tuple. */
#define TUPLE_TAG "tag:yaml.org,2002:python/tuple"

static gboolean
check_tag (const RnNode *node, const yaml_char_t *tag, const char *only, GError **error)
{
  if (!tag || strcmp ((const char *) tag, only) == 0 || strcmp ((const char *) tag, "!") == 0)
    return TRUE;
  if (strcmp (only, YAML_SEQ_TAG) == 0 && strcmp ((const char *) tag, TUPLE_TAG) == 0)
    return TRUE;
  return rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error, "the tag \"%s\" is not supported",
                       (const char *) tag);
}

static gboolean
fill_scalar (Parser *p, RnNode *node, const yaml_event_t *event, GError **error)
{
  const char *text = (const char *) event->data.scalar.value;
  const char *problem = NULL;

  if (!check_tag (node, event->data.scalar.tag, YAML_STR_TAG, error))
    return FALSE;
  if (memchr (text, 0, event->data.scalar.length))
    return rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error, "a text must not contain the character NUL");
  if (event->data.scalar.length > RN_NODE_MAX_TEXT)
    return rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error, "a text must not exceed %d bytes",
                         RN_NODE_MAX_TEXT);

  if (event->data.scalar.plain_implicit)
    problem = rn_node_become_plain (node, text);
  else
    rn_node_become_string (node, text);
  *p->budget -= rn_node_cost (node) - 1;
  return !problem || rn_node_fail (node, RN_CONFIG_ERROR_VALUE, error, "%s", problem);
}

static gboolean
fill_alias (Parser *p, RnNode *node, const yaml_event_t *event, int depth, GError **error)
{
  const char *name = (const char *) event->data.alias.anchor;
  const RnNode *target = g_hash_table_lookup (p->anchors, name);

  if (!target)
    return rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error,
                         "there is no finished anchor \"%s\" before this", name);

  g_autoptr (RnNode) copy = rn_node_copy_within (target, RN_NODE_MAX_DEPTH - depth, p->budget);
  if (!copy)
    return too_large (node, error);
  rn_node_move (node, copy, FALSE);
  return TRUE;
}

static gboolean
fill_list (Parser *p, RnNode *list, int depth, GError **error)
{
  rn_node_become_list (list);
  for (;;)
    {
      g_auto (yaml_event_t) event = { 0 };

      if (!next_event (p, &event, error))
        return FALSE;
      if (event.type == YAML_SEQUENCE_END_EVENT)
        return TRUE;

      g_autoptr (RnNode) at = node_at (p, &event);
      if (!fill (p, rn_node_append (list, at), &event, depth + 1, error))
        return FALSE;
    }
}

/* Copies what @source has and @map lacks. */
static gboolean
merge_map (Parser *p, RnNode *map, const RnNode *source, int depth, GError **error)
{
  if (source->kind != RN_NODE_MAP)
    return rn_node_fail (source, RN_CONFIG_ERROR_SYNTAX, error, "\"<<\" needs a map or a list of maps");
  for (guint i = 0; i < rn_node_size (source); i++)
    {
      RnNode *item = g_ptr_array_index (source->value.items, i);
      if (rn_node_get (map, item->key))
        continue;
      g_autoptr (RnNode) copy = rn_node_copy_within (item, RN_NODE_MAX_DEPTH - depth - 1, p->budget);
      if (!copy)
        return too_large (map, error);
      rn_node_move (rn_node_insert (map, item->key, item), copy, FALSE);
    }
  return TRUE;
}

static gboolean
merge_all (Parser *p, RnNode *map, const RnNode *value, int depth, GError **error)
{
  if (value->kind != RN_NODE_LIST)
    return merge_map (p, map, value, depth, error);
  for (guint i = 0; i < rn_node_size (value); i++)
    if (!merge_map (p, map, rn_node_item (value, i), depth, error))
      return FALSE;
  return TRUE;
}

static gboolean
check_key (const RnNode *map, const RnNode *at, const yaml_event_t *event, GError **error)
{
  const char *key = (const char *) event->data.scalar.value;

  if (event->type != YAML_SCALAR_EVENT)
    return rn_node_fail (at, RN_CONFIG_ERROR_SYNTAX, error, "a key must be a text");
  if (event->data.scalar.length == 0 || event->data.scalar.length > RN_NODE_MAX_KEY
      || memchr (key, 0, event->data.scalar.length))
    return rn_node_fail (at, RN_CONFIG_ERROR_SYNTAX, error, "a key must have 1 to %d bytes, none of them NUL",
                         RN_NODE_MAX_KEY);
  return TRUE;
}

static gboolean
fill_map (Parser *p, RnNode *map, int depth, GError **error)
{
  RnNode *merge = NULL; /* the value of `<<`, owned by p->merged */

  rn_node_become_map (map);
  for (;;)
    {
      g_auto (yaml_event_t) key_event = { 0 };
      g_auto (yaml_event_t) event = { 0 };

      if (!next_event (p, &key_event, error))
        return FALSE;
      if (key_event.type == YAML_MAPPING_END_EVENT)
        return !merge || merge_all (p, map, merge, depth, error);

      g_autoptr (RnNode) at = node_at (p, &key_event);
      if (!check_key (map, at, &key_event, error) || !next_event (p, &event, error))
        return FALSE;

      const char *key = (const char *) key_event.data.scalar.value;
      gboolean is_merge = key_event.data.scalar.plain_implicit && strcmp (key, "<<") == 0;
      const RnNode *first = is_merge ? merge : rn_node_get (map, key);
      if (first)
        {
          at->parent = map; /* for the message */
          at->key = g_strdup (key);
          return rn_node_fail (at, RN_CONFIG_ERROR_KEY, error, "duplicate key, first at %s",
                               rn_node_origin (first));
        }
      if (is_merge)
        {
          g_ptr_array_add (p->merged, merge = g_steal_pointer (&at));
          if (!fill (p, merge, &event, depth + 1, error))
            return FALSE;
        }
      else if (!fill (p, rn_node_insert (map, key, at), &event, depth + 1, error))
        {
          return FALSE;
        }
    }
}

static gboolean
check_style (Parser *p, const RnNode *node, gboolean is_block, GError **error)
{
  return !p->flow || !is_block
         || rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error,
                          "write maps as {a: 1} and lists as [1, 2], and put a text with \": \" in quotes");
}

/* Gives @node, a null in its place in the tree, the value that starts with @event. */
static gboolean
fill (Parser *p, RnNode *node, const yaml_event_t *event, int depth, GError **error)
{
  const yaml_char_t *anchor = NULL;
  gboolean ok = FALSE;

  if (depth >= RN_NODE_MAX_DEPTH || --*p->budget < 0)
    return too_large (node, error);
  switch (event->type)
    {
    case YAML_ALIAS_EVENT:
      return fill_alias (p, node, event, depth, error);
    case YAML_SCALAR_EVENT:
      anchor = event->data.scalar.anchor;
      ok = fill_scalar (p, node, event, error);
      break;
    case YAML_SEQUENCE_START_EVENT:
      anchor = event->data.sequence_start.anchor;
      if (anchor) /* an alias to it is unknown until it is complete */
        g_hash_table_remove (p->anchors, anchor);
      ok = check_style (p, node, event->data.sequence_start.style == YAML_BLOCK_SEQUENCE_STYLE, error)
           && check_tag (node, event->data.sequence_start.tag, YAML_SEQ_TAG, error)
           && fill_list (p, node, depth, error);
      break;
    case YAML_MAPPING_START_EVENT:
      anchor = event->data.mapping_start.anchor;
      if (anchor)
        g_hash_table_remove (p->anchors, anchor);
      ok = check_style (p, node, event->data.mapping_start.style == YAML_BLOCK_MAPPING_STYLE, error)
           && check_tag (node, event->data.mapping_start.tag, YAML_MAP_TAG, error)
           && fill_map (p, node, depth, error);
      break;
    default:
      return rn_node_fail (node, RN_CONFIG_ERROR_SYNTAX, error, "a value was expected");
    }
  if (ok && anchor)
    g_hash_table_replace (p->anchors, g_strdup ((const char *) anchor), node);
  return ok;
}

/* Takes the next event, which must be of @type. */
static gboolean
expect (Parser *p, yaml_event_type_t type, const char *problem, GError **error)
{
  g_auto (yaml_event_t) event = { 0 };

  if (!next_event (p, &event, error))
    return FALSE;
  if (event.type == type)
    return TRUE;
  syntax_error (p, event.start_mark.line + 1, event.start_mark.column + 1, error, problem);
  return FALSE;
}

static RnNode *
parse_document (Parser *p, GError **error)
{
  g_auto (yaml_event_t) start = { 0 };
  g_auto (yaml_event_t) event = { 0 };
  g_autoptr (RnNode) root = NULL;

  if (!expect (p, YAML_STREAM_START_EVENT, "not YAML", error) || !next_event (p, &start, error))
    return NULL;
  root = node_at (p, &start);
  if (start.type == YAML_STREAM_END_EVENT)
    return g_steal_pointer (&root);

  if (!next_event (p, &event, error) || !fill (p, root, &event, 0, error)
      || !expect (p, YAML_DOCUMENT_END_EVENT, "the document should end here", error)
      || !expect (p, YAML_STREAM_END_EVENT, "a file has one document only", error))
    return NULL;
  return g_steal_pointer (&root);
}

/* What libyaml would accept or describe badly. */
static gboolean
check_text (Parser *p, gsize length, GError **error)
{
  const char *end;
  const char *content = p->flow ? NULL : rn_sniff_content (p->text, length);
  gsize line, column;

  if (content)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_SYNTAX, "%s: not a configuration: it is %s",
                   p->file, content);
      return FALSE;
    }
  if (!g_utf8_validate (p->text, (gssize) length, &end))
    {
      locate (p->text, (gsize) (end - p->text), &line, &column);
      syntax_error (p, line, column, error, "not UTF-8 text; save the file as UTF-8");
      return FALSE;
    }
  for (gsize i = 0; i < length && !p->flow; i++)
    {
      while (i < length && p->text[i] == ' ')
        i++;
      if (i < length && p->text[i] == '\t')
        {
          locate (p->text, i, &line, &column);
          syntax_error (p, line, column, error, "a tab in the indentation; use spaces");
          return FALSE;
        }
      while (i < length && p->text[i] != '\n')
        i++;
    }
  return TRUE;
}

RnNode *
rn_yaml_parse (const char *text, gsize length, const char *name, gboolean flow, gint64 *budget,
               GError **error)
{
  static const char bom[] = "\xef\xbb\xbf"; /* some editors begin every UTF-8 file with it */
  if (!flow && length >= strlen (bom) && memcmp (text, bom, strlen (bom)) == 0)
    {
      text += strlen (bom);
      length -= strlen (bom);
    }
  Parser p = { .text = text, .length = length, .file = name, .flow = flow, .budget = budget };

  if (!check_text (&p, length, error))
    return NULL;
  if (!yaml_parser_initialize (&p.yaml))
    {
      syntax_error (&p, 1, 1, error, "out of memory");
      return NULL;
    }
  yaml_parser_set_encoding (&p.yaml, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string (&p.yaml, (const yaml_char_t *) text, length);
  p.anchors = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  p.merged = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_node_free);

  RnNode *root = parse_document (&p, error);

  g_ptr_array_unref (p.merged);
  g_hash_table_unref (p.anchors);
  yaml_parser_delete (&p.yaml);
  return root;
}
