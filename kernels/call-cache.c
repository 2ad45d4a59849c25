/* call-cache.c: a hash table from calls to the kernels that took them. */
#include "config.h"

#include "kernels/call-cache.h"

#include <string.h>

typedef struct
{
  RnOpCall call;
  gsize limit;
} Key;

typedef struct
{
  Key key;
  RnPrepared described; /* without state */
  RnPrepared owned;     /* with it */
} Entry;

struct _RnCallCache
{
  GHashTable *entries; /* Key, in the entry, to Entry */
};

/*
 * Calls are compared byte by byte. They are written into zeroed memory, so that what no field covers is the
 * same too; if it were not, a call would only be described once more.
 */
static guint
hash_key (gconstpointer data)
{
  const guchar *bytes = data;
  guint64 hash = 14695981039346656037u; /* FNV-1a, over words */

  G_STATIC_ASSERT (sizeof (Key) % sizeof (guint64) == 0);
  for (gsize i = 0; i < sizeof (Key); i += sizeof (guint64))
    {
      guint64 word;
      memcpy (&word, bytes + i, sizeof word);
      hash = (hash ^ word) * 1099511628211u;
      hash ^= hash >> 29;
    }
  return (guint) (hash ^ hash >> 32);
}

static gboolean
keys_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (Key)) == 0;
}

static Key
make_key (const RnOpCall *call, gsize limit)
{
  Key key;

  memset (&key, 0, sizeof key);
  memcpy (&key.call, call, sizeof *call);
  key.limit = limit;
  return key;
}

static void
free_entry (gpointer data)
{
  Entry *entry = data;

  rn_prepared_release (&entry->owned);
  g_free (entry);
}

RnCallCache *
rn_call_cache_new (void)
{
  RnCallCache *cache = g_new0 (RnCallCache, 1);

  cache->entries = g_hash_table_new_full (hash_key, keys_equal, NULL, free_entry);
  return cache;
}

void
rn_call_cache_free (RnCallCache *cache)
{
  if (cache == NULL)
    return;
  g_hash_table_unref (cache->entries);
  g_free (cache);
}

const RnPrepared *
rn_call_cache_find (RnCallCache *cache, const RnOpCall *call, gsize limit)
{
  Key key = make_key (call, limit);
  const Entry *entry = g_hash_table_lookup (cache->entries, &key);

  return entry != NULL ? &entry->described : NULL;
}

void
rn_call_cache_add (RnCallCache *cache, const RnOpCall *call, gsize limit, const RnPrepared *prepared)
{
  Entry *entry = g_new0 (Entry, 1);

  entry->key = make_key (call, limit);
  entry->owned = entry->described = *prepared;
  entry->described.state = NULL;
  g_hash_table_replace (cache->entries, &entry->key, entry);
}
