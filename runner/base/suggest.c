/* suggest.c: what did they mean? The nearest name to a mistyped one. */
#include "config.h"
#include "runner/base/registry.h"

#include <string.h>

#define MAX_WORD 64 /* bytes; longer words get no suggestion */
#define MIN_PART 4  /* bytes; shorter words are part of too many names */

/* Damerau-Levenshtein distance, the restricted form (optimal string alignment), over bytes, case ignored. */
static gsize
distance (const char *a, gsize na, const char *b, gsize nb)
{
  gsize rows[3][MAX_WORD + 1];
  gsize *before = rows[0], *last = rows[1], *row = rows[2];

  for (gsize j = 0; j <= nb; j++)
    last[j] = j;
  for (gsize i = 1; i <= na; i++)
    {
      row[0] = i;
      for (gsize j = 1; j <= nb; j++)
        {
          char x = g_ascii_tolower (a[i - 1]), y = g_ascii_tolower (b[j - 1]);
          row[j] = MIN (MIN (last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
          if (i > 1 && j > 1 && x == g_ascii_tolower (b[j - 2]) && g_ascii_tolower (a[i - 2]) == y)
            row[j] = MIN (row[j], before[j - 2] + 1);
        }
      gsize *oldest = before;
      before = last;
      last = row;
      row = oldest;
    }
  return last[nb];
}

/* The shortest of @names that goes on where @word ends ("max_keep"), or ends like it ("interval"). */
static const char *
longer_name (const char *word, gsize n, const char *const *names)
{
  const char *best = NULL;

  for (; n >= MIN_PART && *names; names++)
    {
      gsize length = strlen (*names);
      gboolean is_part = length > n
                         && (g_ascii_strncasecmp (*names, word, n) == 0
                             || (g_ascii_strcasecmp (*names + length - n, word) == 0));
      if (is_part && (!best || length < strlen (best)))
        best = *names;
    }
  return best;
}

const char *
rn_suggest (const char *word, const char *const *names)
{
  const char *const *first = names;
  const char *best = NULL;
  gsize n = strlen (word), best_distance = MAX (n / 3, 1) + 1;

  if (n == 0 || n > MAX_WORD)
    return NULL;
  for (; *names; names++)
    {
      gsize length = strlen (*names);
      if (length > MAX_WORD)
        continue;
      gsize d = distance (word, n, *names, length);
      if (d < best_distance)
        {
          best_distance = d;
          best = *names;
        }
    }
  return best ? best : longer_name (word, n, first);
}
