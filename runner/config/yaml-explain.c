/*
 * yaml-explain.c: what libyaml's messages mean to somebody who writes a file by hand.
 *
 * The parser says where it gave up and which of its rules failed. The mistake is mostly where that rule
 * began: the key without a colon, the quote without an end. The texts compared here are those of libyaml's
 * scanner.c and parser.c; one that is not known is passed on as it is.
 */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/yaml-explain.h"

#include <string.h>
#include "runner/base/error.h"

#define MAX_SHOWN 40 /* characters of a line in a message */

/* The line that holds the byte at @offset, from there on, without its end and shortened. (transfer full) */
static char *
rest_of_line (const char *text, gsize length, gsize offset)
{
  gsize n = 0;

  while (offset + n < length && text[offset + n] != '\n' && text[offset + n] != '\r')
    n++;
  g_autofree char *line = g_strndup (text + offset, n);
  g_autofree char *valid = rn_printable (line, FALSE);
  if (g_utf8_strlen (valid, -1) <= MAX_SHOWN)
    return g_steal_pointer (&valid);
  *g_utf8_offset_to_pointer (valid, MAX_SHOWN) = '\0';
  return g_strconcat (valid, "...", NULL);
}

/* "seed:3", "seed = 3", "optimizer": the line that should have been a key with its colon. */
static char *
explain_key (const char *line)
{
  const char *colon = strchr (line, ':'), *equals = strchr (line, '=');

  if (colon && colon[1] != '\0' && colon[1] != ' ')
    return g_strdup_printf ("\"%s\" needs a space after the colon: \"%.*s: %s\"", line, (int) (colon - line),
                            line, colon + 1);
  if (equals)
    return g_strdup_printf ("\"%s\" is no \"key: value\"; YAML has a colon where Python has \"=\"", line);
  return g_strdup_printf ("\"%s\" has no colon; a line is \"key: value\" or \"key:\"", line);
}

static gboolean
says (const char *text, const char *words)
{
  return text && strstr (text, words) != NULL;
}

/* A message about the place where the failed rule began, or NULL. */
static char *
explain_begin (const yaml_parser_t *parser, const char *begin)
{
  if (says (parser->context, "simple key"))
    return explain_key (begin);
  if (says (parser->context, "quoted scalar") && says (parser->problem, "end of stream"))
    return g_strdup_printf ("the quote that opens here has no end: %s", begin);
  if (says (parser->problem, "expected ',' or ']'"))
    return g_strdup_printf ("the list that opens here is not closed by line %" G_GSIZE_FORMAT
                            ": a \",\" or \"]\" is missing: %s",
                            parser->problem_mark.line + 1, begin);
  if (says (parser->problem, "expected ',' or '}'"))
    return g_strdup_printf ("the map that opens here is not closed by line %" G_GSIZE_FORMAT
                            ": a \",\" or \"}\" is missing: %s",
                            parser->problem_mark.line + 1, begin);
  return NULL;
}

/* A message about the place where the parser gave up, or NULL. */
static char *
explain_here (const yaml_parser_t *parser, const char *here, gboolean is_tab)
{
  const gsize begun = parser->context_mark.line + 1;

  if (says (parser->problem, "mapping values are not allowed"))
    return g_strdup ("a colon is not expected here; is the line indented like the one above it? (a text with "
                     "\": \" in it needs quotes)");
  if (says (parser->problem, "did not find expected key"))
    return g_strdup_printf ("\"%s\" does not fit here: the keys of one map begin in the same column (this "
                            "map begins in line %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT ")",
                            here, begun, parser->context_mark.column + 1);
  if (says (parser->problem, "expected '-' indicator"))
    return g_strdup_printf (
        "\"%s\" does not fit here: the items of one list begin with \"- \" in the same column (this list "
        "begins in line %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT ")",
        here, begun, parser->context_mark.column + 1);
  if (says (parser->problem, "cannot start any token") && is_tab)
    return g_strdup ("a tab cannot stand here; use spaces");
  if (says (parser->problem, "cannot start any token"))
    return g_strdup_printf ("a text that begins with \"%.*s\" needs quotes: %s",
                            (int) (g_utf8_next_char (here) - here), here, here);
  if (says (parser->problem, "unknown escape character"))
    return g_strdup ("a backslash between double quotes begins an escape; for a path use \"/\", or single "
                     "quotes");
  if (says (parser->context, "alias") || says (parser->context, "anchor"))
    return g_strdup ("a text that begins with \"*\" or \"&\" needs quotes");
  return NULL;
}

char *
rn_yaml_explain (const yaml_parser_t *parser, const char *text, gsize length, gsize *line, gsize *column)
{
  /* Marks count characters in `index`; places in @text are found by line and column, which are ours too. */
  const yaml_mark_t *marks[] = { &parser->context_mark, &parser->problem_mark };
  g_autofree char *begin = NULL, *here = NULL; /* what stands at the marks */
  char **const shown[] = { &begin, &here };
  gboolean is_tab = FALSE; /* in the place of the second mark, in the end */
  char *message = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (marks); i++)
    {
      const char *start = text, *end = text + length;
      for (gsize n = 0; n < marks[i]->line && start < end; n++)
        {
          const char *next = memchr (start, '\n', (gsize) (end - start));
          start = next ? next + 1 : end;
        }
      for (gsize n = 0; n < marks[i]->column && start < end && *start != '\n'; n++)
        start = g_utf8_next_char (start);
      is_tab = start < end && *start == '\t';
      *shown[i] = rest_of_line (text, length, (gsize) (MIN (start, end) - text));
    }

  if (parser->context)
    message = explain_begin (parser, begin);
  const yaml_mark_t *mark = message ? &parser->context_mark : &parser->problem_mark;
  if (!message)
    message = explain_here (parser, here, is_tab);
  *line = mark->line + 1;
  *column = mark->column + 1;
  if (message)
    return message;
  const char *problem = parser->problem ? parser->problem : "out of memory";
  return parser->context ? g_strdup_printf ("%s (%s)", problem, parser->context) : g_strdup (problem);
}
