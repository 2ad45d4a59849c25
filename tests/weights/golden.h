/* golden.h: the elements of the tensors in fixtures/, by the formula of make-fixtures.py. */
#ifndef TESTS_WEIGHTS_GOLDEN_H
#define TESTS_WEIGHTS_GOLDEN_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

/* An integer from -1024 to 1023. */
static inline int
golden_value (guint seed, gint64 i)
{
  guint32 h = (guint32) i * 2654435761u + seed * 40503u + 12345u;
  h ^= h >> 15;
  return (int) (h >> 8 & 0x7ff) - 1024;
}

/* Element @i of a tensor of @type made with @seed; exact in every type that it is for. */
static inline double
golden_element (const char *type, guint seed, gint64 i)
{
  int value = golden_value (seed, i);

  if (strcmp (type, "BF16") == 0)
    return value & 255;
  if (type[0] == 'F')
    return value / 64.0;
  if (strcmp (type, "BOOL") == 0)
    return value & 1;
  if (strcmp (type, "U8") == 0 || strcmp (type, "I8") == 0)
    return value & 127;
  return value;
}

#endif
