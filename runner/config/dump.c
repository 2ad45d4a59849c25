/* dump.c: a tree as YAML that loads to an equal one. Lists of scalars go on one line. */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <math.h>
#include <string.h>

/* The shortest of three precisions that reads back as the same number; always with a point or an exponent. */
static char *
float_text (double x)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  if (isnan (x))
    return g_strdup (".nan");
  if (isinf (x))
    return g_strdup (x > 0 ? ".inf" : "-.inf");
  for (int digits = 15; digits <= 17; digits++)
    {
      char format[] = "%.15g";
      format[3] = (char) ('0' + digits % 10);
      g_ascii_formatd (text, sizeof text, format, x);
      if (g_ascii_strtod (text, NULL) == x)
        break;
    }
  return g_strconcat (text, strpbrk (text, ".e") ? "" : ".0", NULL);
}

/* Would it come back as the same string without quotes, in a list and as a key too? */
static gboolean
is_plain (const char *text)
{
  g_autoptr (RnNode) node = rn_node_new ("", 0, 0);
  gsize length = strlen (text);

  if (!(g_ascii_isalpha (*text) || *text == '_' || *text == '/') || text[length - 1] == ' '
      || text[strspn (text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-./+ ")])
    return FALSE;
  rn_node_become_plain (node, text);
  return node->kind == RN_NODE_STRING;
}

/* In double quotes, with escapes for what YAML does not allow bare and, in values, for "${". */
static void
add_quoted (GString *out, const char *text, gboolean is_key)
{
  g_string_append_c (out, '"');
  for (const char *c = text; *c; c = g_utf8_next_char (c))
    {
      gunichar u = g_utf8_get_char (c);
      if (u == '"' || u == '\\')
        g_string_append_printf (out, "\\%c", (char) u);
      else if (u == '\n')
        g_string_append (out, "\\n");
      else if (u == '$' && c[1] == '{' && !is_key)
        g_string_append (out, "$$");
      else if (u < 0x20 || (u >= 0x7f && u < 0xa0))
        g_string_append_printf (out, "\\x%02X", u);
      else if (u == 0x2028 || u == 0x2029 || u == 0xfeff || u == 0xfffe || u == 0xffff)
        g_string_append_printf (out, "\\u%04X", u);
      else
        g_string_append_unichar (out, u);
    }
  g_string_append_c (out, '"');
}

static void
add_text (GString *out, const char *text, gboolean is_key)
{
  if (is_plain (text))
    g_string_append (out, text);
  else
    add_quoted (out, text, is_key);
}

char *
rn_node_scalar_text (const RnNode *node)
{
  switch (node->kind)
    {
    case RN_NODE_BOOL:
      return g_strdup (node->value.truth ? "true" : "false");
    case RN_NODE_INT:
      return g_strdup_printf ("%" G_GINT64_FORMAT, node->value.integer);
    case RN_NODE_FLOAT:
      return float_text (node->value.real);
    case RN_NODE_STRING:
      {
        GString *out = g_string_new (NULL);
        add_text (out, node->value.string, FALSE);
        return g_string_free (out, FALSE);
      }
    case RN_NODE_NULL:
    case RN_NODE_LIST:
    case RN_NODE_MAP:
      break;
    }
  return g_strdup ("null");
}

/* Scalars, empty containers, and lists of nothing but these and one another. */
static gboolean
is_flow (const RnNode *node)
{
  if (node->kind == RN_NODE_MAP)
    return rn_node_size (node) == 0;
  for (guint i = 0; i < rn_node_size (node); i++)
    if (!is_flow (rn_node_item (node, i)))
      return FALSE;
  return TRUE;
}

static void
add_flow (GString *out, const RnNode *node)
{
  if (node->kind == RN_NODE_MAP)
    {
      g_string_append_c (out, '{');
      for (guint i = 0; i < rn_node_size (node); i++)
        {
          if (i > 0)
            g_string_append (out, ", ");
          add_text (out, rn_node_key (node, i), TRUE);
          g_string_append (out, ": ");
          add_flow (out, rn_node_item (node, i));
        }
      g_string_append_c (out, '}');
    }
  else if (node->kind == RN_NODE_LIST)
    {
      g_string_append_c (out, '[');
      for (guint i = 0; i < rn_node_size (node); i++)
        {
          if (i > 0)
            g_string_append (out, ", ");
          add_flow (out, rn_node_item (node, i));
        }
      g_string_append_c (out, ']');
    }
  else
    {
      g_autofree char *text = rn_node_scalar_text (node);
      g_string_append (out, text);
    }
}

/* The rest of a line and its end. Names of files may hold anything, so controls are replaced. */
static void
add_flow_line (GString *out, const RnNode *node, gboolean origins)
{
  add_flow (out, node);
  if (origins)
    {
      g_autofree char *origin = g_utf8_make_valid (rn_node_origin (node), -1);
      g_string_append (out, "  # ");
      for (const char *c = origin; *c; c = g_utf8_next_char (c))
        g_string_append_unichar (out, g_unichar_isprint (g_utf8_get_char (c)) ? g_utf8_get_char (c) : '?');
    }
  g_string_append_c (out, '\n');
}

static void
add_indent (GString *out, int indent)
{
  for (int i = 0; i < indent; i++)
    g_string_append_c (out, ' ');
}

/*
 * The lines of a container that is not flow. @started: the first line has its indentation already, after a "-
 * ".
 */
static void
add_block (GString *out, const RnNode *node, int indent, gboolean started, gboolean origins)
{
  for (guint i = 0; i < rn_node_size (node); i++)
    {
      const RnNode *item = rn_node_item (node, i);

      if (!started || i > 0)
        add_indent (out, indent);
      if (item->key)
        {
          add_text (out, item->key, TRUE);
          g_string_append (out, is_flow (item) ? ": " : ":\n");
        }
      else
        {
          g_string_append (out, "- ");
        }

      if (is_flow (item))
        add_flow_line (out, item, origins);
      else
        add_block (out, item, indent + 2, !item->key, origins);
    }
}

char *
rn_config_dump (const RnNode *node, gboolean origins)
{
  GString *out = g_string_new (NULL);

  if (is_flow (node))
    add_flow_line (out, node, origins);
  else
    add_block (out, node, 0, FALSE, origins);
  return g_string_free (out, FALSE);
}

char *
rn_config_dump_line (const RnNode *node)
{
  GString *out = g_string_new (NULL);

  add_flow (out, node);
  return g_string_free (out, FALSE);
}
