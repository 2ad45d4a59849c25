/*
 * scalar.c: the type of a plain (unquoted) text.
 *
 *   null   empty, ~, null, Null, NULL
 *   bool   true, True, TRUE, false, False, FALSE; on, off, yes and no are strings
 *   int    [-+]?(0|[1-9][0-9]*) that fits 64 bits; 007 and 0x10 are strings, as image names need it
 *   float  [-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)? with a point or an exponent, so 1e-4, 1. and
 * .5
 *          (YAML 1.1 readers make strings of these); [-+]?.inf and .nan in the usual three cases
 *   string everything else
 */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static gboolean
is_one_of (const char *text, const char *lower, const char *capital, const char *upper)
{
  return strcmp (text, lower) == 0 || strcmp (text, capital) == 0 || strcmp (text, upper) == 0;
}

/* INT, FLOAT, or STRING for what is no number. */
static RnNodeKind
number_kind (const char *text)
{
  gboolean is_float = FALSE;
  const char *c = text + (*text == '-' || *text == '+');
  gsize digits = strspn (c, G_CSET_DIGITS);
  gboolean leading_zero = digits > 1 && *c == '0';

  c += digits;
  if (*c == '.')
    {
      gsize decimals = strspn (++c, G_CSET_DIGITS);
      c += decimals;
      digits += decimals;
      is_float = TRUE;
    }
  if (digits == 0)
    return RN_NODE_STRING;
  if (*c == 'e' || *c == 'E')
    {
      c++;
      c += *c == '-' || *c == '+';
      gsize exponent = strspn (c, G_CSET_DIGITS);
      if (exponent == 0)
        return RN_NODE_STRING;
      c += exponent;
      is_float = TRUE;
    }
  if (*c)
    return RN_NODE_STRING;
  return is_float ? RN_NODE_FLOAT : leading_zero ? RN_NODE_STRING : RN_NODE_INT;
}

const char *
rn_node_become_plain (RnNode *node, const char *text)
{
  const char *unsigned_text = text + (*text == '-' || *text == '+');
  RnNodeKind kind = number_kind (text);

  if (*text == '\0' || strcmp (text, "~") == 0 || is_one_of (text, "null", "Null", "NULL"))
    return NULL;

  gboolean is_true = is_one_of (text, "true", "True", "TRUE");
  if (is_true || is_one_of (text, "false", "False", "FALSE"))
    {
      node->kind = RN_NODE_BOOL;
      node->value.truth = is_true;
    }
  else if (is_one_of (unsigned_text, ".inf", ".Inf", ".INF"))
    {
      node->kind = RN_NODE_FLOAT;
      node->value.real = *text == '-' ? -INFINITY : INFINITY;
    }
  else if (is_one_of (text, ".nan", ".NaN", ".NAN"))
    {
      node->kind = RN_NODE_FLOAT;
      node->value.real = NAN;
    }
  else if (kind == RN_NODE_INT)
    {
      errno = 0;
      node->value.integer = g_ascii_strtoll (text, NULL, 10);
      if (errno)
        return "the integer does not fit 64 bits";
      node->kind = RN_NODE_INT;
    }
  else if (kind == RN_NODE_FLOAT)
    {
      node->value.real = g_ascii_strtod (text, NULL);
      if (isinf (node->value.real))
        return "the number is too large";
      node->kind = RN_NODE_FLOAT;
    }
  else
    {
      rn_node_become_string (node, text);
    }
  return NULL;
}
