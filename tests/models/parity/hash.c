#include "config.h"

#include "tests/models/parity/hash.h"

guint64
hash_stream (guint64 seed, const char *name)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT "/%s", seed, name);
  guint64 h = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (const char *c = text; *c; c++)
    h = (h ^ (guint8) *c) * G_GUINT64_CONSTANT (0x100000001b3);
  return h;
}

guint64
hash_next (guint64 *state)
{
  guint64 z = *state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}
