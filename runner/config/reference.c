/*
 * reference.c: ${...} in texts.
 *
 *   ${a.b.0}             value of the merged configuration
 *   ${_base_.a.b}        value of the bases, before this file goes over them
 *   ${file.dir}          folder of the file that says so, absolute; ${file.name} "x.yaml", ${file.stem} "x"
 *   ${env:NAME:default}  environment variable; typed like plain YAML; without a default it must be set
 *
 * Inside [] and {} a reference needs quotes, since YAML takes its brace for a map. A text that is one
 * reference and nothing else becomes the value itself, of any type; inside a longer text scalars become text.
 * $${ stands for ${. Names do not nest. Two stages: what depends on the file is filled in when the file is
 * read, the rest at the end.
 */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <string.h>

/* What a stage needs. */
typedef struct Context Context;
struct Context
{
  /* The value of @name as a new detached node; NULL without error: not of this stage; NULL with error. */
  RnNode *(*lookup) (Context *context, const RnNode *site, const char *name, GError **error);
  gboolean is_last; /* unescapes, and leaves nothing open */
  RnNode *root;
  const RnNode *bases; /* first stage, nullable */
  const char *path;    /* first stage */
  gint64 *budget;
  int depth; /* second stage: of the text being expanded, see MAX_CHAIN */
};

static gboolean resolve (Context *context, RnNode *node, int depth, GError **error);

/* Text of a scalar inside a longer text. */
static char *
plain_text (const RnNode *value)
{
  return value->kind == RN_NODE_STRING ? g_strdup (value->value.string) : rn_node_scalar_text (value);
}

/* One ${name} inside a text. */
static gboolean
expand_one (Context *context, const RnNode *site, const char *name, GString *out, GError **error)
{
  GError *cause = NULL;
  g_autoptr (RnNode) value = context->lookup (context, site, name, &cause);

  if (cause)
    {
      g_propagate_error (error, cause);
      return FALSE;
    }
  if (!value)
    {
      g_string_append_printf (out, "${%s}", name);
      return TRUE;
    }
  if (value->kind == RN_NODE_LIST || value->kind == RN_NODE_MAP)
    return rn_node_error (site, error, "${%s} is %s and cannot stand inside a text", name,
                          rn_node_kind_name (value->kind));
  g_autofree char *text = plain_text (value);
  g_string_append (out, text);
  return TRUE;
}

/* Name of the reference at @text, which begins with "${", and its end; NULL with error. */
static char *
reference_name (const RnNode *site, const char *text, const char **end, GError **error)
{
  const char *close = strchr (text, '}');
  g_autofree char *name = close ? g_strndup (text + 2, (gsize) (close - text - 2)) : NULL;

  if (!name || !*name || strstr (name, "${"))
    {
      rn_node_error (site, error, "\"%s\": a reference is written ${name}, and $${ stands for a literal ${",
                     text);
      return NULL;
    }
  *end = close + 1;
  return g_steal_pointer (&name);
}

static gboolean
expand_text (Context *context, RnNode *node, GError **error)
{
  g_autofree char *text = g_strdup (node->value.string);
  g_autoptr (GString) out = g_string_new (NULL);

  for (const char *c = text; *c;)
    {
      if (g_str_has_prefix (c, "$${"))
        {
          g_string_append (out, context->is_last ? "${" : "$${");
          c += 3;
        }
      else if (g_str_has_prefix (c, "${"))
        {
          g_autofree char *name = reference_name (node, c, &c, error);
          if (!name || !expand_one (context, node, name, out, error))
            return FALSE;
        }
      else
        {
          g_string_append_c (out, *c++);
        }
      if (out->len > RN_NODE_MAX_TEXT)
        return rn_node_error (node, error, "more than %d bytes when its references are filled in",
                              RN_NODE_MAX_TEXT);
    }

  rn_node_reset (node);
  rn_node_become_string (node, out->str);
  *context->budget -= rn_node_cost (node);
  return *context->budget >= 0
         || rn_node_error (node, error, "references expand to more than %d values", RN_NODE_BUDGET);
}

/* A text that is a single reference becomes its value. */
static gboolean
expand_string (Context *context, RnNode *node, GError **error)
{
  const char *text = node->value.string, *end;

  if (!strstr (text, "${"))
    return TRUE;
  if (!g_str_has_prefix (text, "${"))
    return expand_text (context, node, error);

  g_autofree char *name = reference_name (node, text, &end, error);
  if (!name)
    return FALSE;
  if (*end)
    return expand_text (context, node, error);

  GError *cause = NULL;
  g_autoptr (RnNode) value = context->lookup (context, node, name, &cause);
  if (cause)
    {
      g_propagate_error (error, cause);
      return FALSE;
    }
  if (value)
    rn_node_move (node, value, FALSE);
  return TRUE;
}

/* A copy of @target that fits where @site stands. */
static RnNode *
copy_for (Context *context, const RnNode *site, const RnNode *target, const char *name, GError **error)
{
  RnNode *copy = rn_node_copy_within (target, RN_NODE_MAX_DEPTH - rn_node_depth (site), context->budget);

  if (!copy)
    rn_node_error (site, error, "${%s}: more than %d values or %d levels when everything is expanded", name,
                   RN_NODE_BUDGET, RN_NODE_MAX_DEPTH);
  return copy;
}

/* First stage */

static char *
file_part (const char *path, const char *part)
{
  g_autofree char *name = g_path_get_basename (path);
  const char *dot = strrchr (name, '.');

  if (strcmp (part, "name") == 0)
    return g_steal_pointer (&name);
  if (strcmp (part, "stem") == 0)
    return dot && dot > name ? g_strndup (name, (gsize) (dot - name)) : g_strdup (name);
  if (strcmp (part, "dir") == 0)
    {
      g_autofree char *absolute = g_canonicalize_filename (path, NULL);
      return g_path_get_dirname (absolute);
    }
  return NULL;
}

static RnNode *
lookup_in_file (Context *context, const RnNode *site, const char *name, GError **error)
{
  if (g_str_has_prefix (name, "file."))
    {
      g_autofree char *text = file_part (context->path, name + strlen ("file."));
      g_auto (GStrv) pieces = text && g_utf8_validate (text, -1, NULL) ? g_strsplit (text, "${", -1) : NULL;
      if (!pieces)
        {
          rn_node_error (site, error, "${%s}: there are file.dir, file.name and file.stem, as UTF-8", name);
          return NULL;
        }
      g_autofree char *escaped = g_strjoinv ("$${", pieces); /* the second stage takes it back */
      return rn_node_new_string (escaped, site->file);
    }
  if (g_str_has_prefix (name, "_base_."))
    {
      const RnNode *target = context->bases ? rn_node_path (context->bases, name + strlen ("_base_.")) : NULL;
      if (target)
        return copy_for (context, site, target, name, error);
      rn_node_fail (site, RN_CONFIG_ERROR_KEY, error, "${%s}: the bases have no such value", name);
    }
  return NULL;
}

/* Every string below @node, none of which is resolved yet. */
static gboolean
expand_below (Context *context, RnNode *node, GError **error)
{
  if (node->kind == RN_NODE_STRING)
    return expand_string (context, node, error);
  for (guint i = 0; i < rn_node_size (node); i++)
    if (!expand_below (context, g_ptr_array_index (node->value.items, i), error))
      return FALSE;
  return TRUE;
}

gboolean
rn_reference_expand_file (RnNode *root, const RnNode *bases, const char *path, gint64 *budget, GError **error)
{
  Context context = { .lookup = lookup_in_file, .bases = bases, .path = path, .budget = budget };

  return expand_below (&context, root, error);
}

/* Second stage */

static RnNode *
lookup_environment (const RnNode *site, const char *name, GError **error)
{
  const char *colon = strchr (name, ':');
  g_autofree char *variable = colon ? g_strndup (name, (gsize) (colon - name)) : g_strdup (name);
  const char *text = g_getenv (variable);
  g_autoptr (RnNode) value = rn_node_new (site->file, site->line, site->column);

  if (!text && !colon)
    {
      rn_node_error (site, error, "the environment variable %s is not set; ${env:%s:default} gives a default",
                     variable, variable);
      return NULL;
    }
  if (!text)
    text = colon + 1;
  if (!g_utf8_validate_len (text, strlen (text), NULL) || strlen (text) > RN_NODE_MAX_TEXT)
    {
      rn_node_error (site, error, "the environment variable %s is not UTF-8 or too long", variable);
      return NULL;
    }
  const char *problem = NULL;
  if (*text)
    problem = rn_node_become_plain (value, text);
  else
    rn_node_become_string (value, text); /* set but empty is a text, not a null */
  if (problem)
    {
      rn_node_error (site, error, "${env:%s}: %s", variable, problem);
      return NULL;
    }
  return g_steal_pointer (&value);
}

/* How deep references may lead on from one to the next, tree levels counted: a bound for the stack. */
#define MAX_CHAIN 1000

static RnNode *
lookup_in_tree (Context *context, const RnNode *site, const char *name, GError **error)
{
  int depth = context->depth + 1;
  RnNode *node = context->root;

  if (g_str_has_prefix (name, "env:"))
    return lookup_environment (site, name + strlen ("env:"), error);

  g_auto (GStrv) parts = g_strsplit (name, ".", RN_NODE_MAX_DEPTH);
  for (guint i = 0; parts[i]; i++)
    {
      /* On the way a text may itself stand for a map or list. */
      if (node->kind == RN_NODE_STRING && !resolve (context, node, depth, error))
        return NULL;
      RnNode *child = rn_node_child (node, parts[i]);
      if (!child)
        {
          g_autofree char *hint = rn_node_hint (node, parts[i]);
          rn_node_fail (site, RN_CONFIG_ERROR_KEY, error, "${%s}: there is no such value%s", name, hint);
          return NULL;
        }
      node = child;
    }
  if (!resolve (context, node, depth, error))
    return NULL;
  return copy_for (context, site, node, name, error);
}

static gboolean
resolve (Context *context, RnNode *node, int depth, GError **error)
{
  int outer_depth = context->depth;
  gboolean ok = TRUE;

  if (node->state == RN_NODE_RESOLVED)
    return TRUE;
  if (node->state == RN_NODE_BUSY)
    return rn_node_error (node, error, "references go in a circle");
  if (depth > MAX_CHAIN)
    return rn_node_error (node, error, "references lead on to one another too many times");

  node->state = RN_NODE_BUSY;
  if (node->kind == RN_NODE_STRING)
    {
      context->depth = depth;
      ok = expand_string (context, node, error);
      context->depth = outer_depth;
    }
  for (guint i = 0; ok && node->state == RN_NODE_BUSY && i < rn_node_size (node); i++)
    ok = resolve (context, g_ptr_array_index (node->value.items, i), depth + 1, error);
  node->state = RN_NODE_RESOLVED;
  return ok;
}

gboolean
rn_reference_resolve (RnNode *root, gint64 *budget, GError **error)
{
  Context context = { .lookup = lookup_in_tree, .is_last = TRUE, .root = root, .budget = budget };

  return resolve (&context, root, 0, error);
}
