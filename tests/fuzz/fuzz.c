/*
 * fuzz.c: the program that libFuzzer drives (`make fuzz`).
 *
 *   fuzz --reader=NAME --seeds=DIR [libFuzzer's options] DIR...
 *
 * The seeds are written into an existing folder before it is read.
 */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerInitialize (int *argc, char ***argv);
int LLVMFuzzerTestOneInput (const guint8 *data, gsize size);
gsize LLVMFuzzerCustomMutator (guint8 *data, gsize size, gsize room, guint32 seed);
gsize LLVMFuzzerMutate (guint8 *data, gsize size, gsize room);

static const RnFuzzReader *reader;

static void
write_seeds (const char *dir)
{
  g_autoptr (GPtrArray) seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  g_autoptr (GError) error = NULL;

  reader->add_seeds (seeds);
  for (guint i = 0; i < seeds->len; i++)
    {
      g_autofree char *name = g_strdup_printf ("seed-%u", i);
      g_autofree char *path = g_build_filename (dir, name, NULL);
      gsize size;
      const char *bytes = g_bytes_get_data (seeds->pdata[i], &size);

      if (!g_file_set_contents (path, bytes, (gssize) size, &error))
        g_error ("%s", error->message);
    }
}

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  const char *name = "", *dir = NULL;

  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  for (int i = 1; i < *argc; i++)
    {
      if (g_str_has_prefix ((*argv)[i], "--reader="))
        name = strchr ((*argv)[i], '=') + 1;
      if (g_str_has_prefix ((*argv)[i], "--seeds="))
        dir = strchr ((*argv)[i], '=') + 1;
    }
  reader = rn_fuzz_find (name);
  if (reader == NULL)
    g_error ("--reader=\"%s\": there is none of this name", name);
  if (dir != NULL)
    write_seeds (dir);
  return 0;
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  reader->run (data, size);
  return 0;
}

/* One time in four something that the reader knows; else libFuzzer's own ideas. */
gsize
LLVMFuzzerCustomMutator (guint8 *data, gsize size, gsize room, guint32 seed)
{
  if (seed % 4 != 0)
    return LLVMFuzzerMutate (data, size, room);
  rn_fuzz_insert (reader, data, &size, room, seed);
  return size;
}
