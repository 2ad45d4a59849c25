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
explain_begin (const RnYamlProblem *problem, const char *begin)
{
  if (says (problem->context, "simple key"))
    return explain_key (begin);
  if (says (problem->context, "quoted scalar") && says (problem->problem, "end of stream"))
    return g_strdup_printf ("the quote that opens here has no end: %s", begin);
  if (says (problem->problem, "expected ',' or ']'"))
    return g_strdup_printf ("the list that opens here is not closed by line %" G_GSIZE_FORMAT
                            ": a \",\" or \"]\" is missing: %s",
                            problem->at.line + 1, begin);
  if (says (problem->problem, "expected ',' or '}'"))
    return g_strdup_printf ("the map that opens here is not closed by line %" G_GSIZE_FORMAT
                            ": a \",\" or \"}\" is missing: %s",
                            problem->at.line + 1, begin);
  return NULL;
}

/* A message about the place where the parser gave up, or NULL. */
static char *
explain_here (const RnYamlProblem *problem, const char *here, gboolean is_tab)
{
  const gsize begun = problem->begin.line + 1;

  if (says (problem->problem, "mapping values are not allowed"))
    return g_strdup ("a colon is not expected here; is the line indented like the one above it? (a text with "
                     "\": \" in it needs quotes)");
  if (says (problem->problem, "did not find expected key"))
    return g_strdup_printf ("\"%s\" does not fit here: the keys of one map begin in the same column (this "
                            "map begins in line %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT ")",
                            here, begun, problem->begin.column + 1);
  if (says (problem->problem, "expected '-' indicator"))
    return g_strdup_printf (
        "\"%s\" does not fit here: the items of one list begin with \"- \" in the same column (this list "
        "begins in line %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT ")",
        here, begun, problem->begin.column + 1);
  if (says (problem->problem, "cannot start any token") && is_tab)
    return g_strdup ("a tab cannot stand here; use spaces");
  if (says (problem->problem, "cannot start any token"))
    return g_strdup_printf ("a text that begins with \"%.*s\" needs quotes: %s",
                            (int) (g_utf8_next_char (here) - here), here, here);
  if (says (problem->problem, "unknown escape character"))
    return g_strdup ("a backslash between double quotes begins an escape; for a path use \"/\", or single "
                     "quotes");
  if (says (problem->context, "alias") || says (problem->context, "anchor"))
    return g_strdup ("a text that begins with \"*\" or \"&\" needs quotes");
  return NULL;
}

/* The place @line, @column of @text, both from 0; at most its end. */
static const char *
locate (const char *text, const char *end, gsize line, gsize column)
{
  const char *at = text;

  for (; line > 0 && at < end; line--)
    {
      const char *next = memchr (at, '\n', (gsize) (end - at));
      at = next ? next + 1 : end;
    }
  for (; column > 0 && at < end && *at != '\n'; column--)
    at = g_utf8_next_char (at);
  return MIN (at, end);
}

char *
rn_yaml_explain (const RnYamlProblem *problem, const char *text, gsize length, gsize *line, gsize *column)
{
  const char *end = text + length;
  const char *begin = locate (text, end, problem->begin.line, problem->begin.column),
             *at = locate (text, end, problem->at.line, problem->at.column);
  g_autofree char *from_begin = rest_of_line (text, length, (gsize) (begin - text)),
                  *from_here = rest_of_line (text, length, (gsize) (at - text));

  char *message = problem->context ? explain_begin (problem, from_begin) : NULL;
  *line = (message ? problem->begin.line : problem->at.line) + 1;
  *column = (message ? problem->begin.column : problem->at.column) + 1;
  if (!message)
    message = explain_here (problem, from_here, at < end && *at == '\t');
  if (message)
    return message;
  return problem->context ? g_strdup_printf ("%s (%s)", problem->problem, problem->context)
                          : g_strdup (problem->problem);
}
