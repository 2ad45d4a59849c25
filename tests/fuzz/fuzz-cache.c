/* The kept scan of a VOC folder. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "datasets/voc-cache.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Paths are part of the file. The folder is temporary, but as a descriptor of fixed number it has the same
 * name in every process, and so an input means the same everywhere.
 */
#define FOLDER_FD 100
#define FOLDER "/proc/self/fd/100"
#define LIST FOLDER "/list.txt"
#define TIME 1700000000 /* of every file */

static int64_t findings[RN_VOC_N_FINDINGS];
static char *index_name;

static void
write_file (const char *path, gconstpointer data, gsize size)
{
  const struct timespec times[2] = { { TIME, 0 }, { TIME, 0 } };
  g_autoptr (GError) error = NULL;

  g_remove (path); /* GLib may leave the end of what was longer */
  g_file_set_contents_full (path, data, (gssize) size, G_FILE_SET_CONTENTS_NONE, 0600, &error);
  g_assert_no_error (error);
  g_assert_cmpint (utimensat (AT_FDCWD, path, times, 0), ==, 0);
}

/* Removed when the program ends: its folder is empty by then but for what is known. */
static void
remove_folder (void)
{
  static const char *const names[] = { "list.txt", "Annotations/x.xml", "x.jpg", "Annotations" };
  g_autofree char *folder = g_file_read_link (FOLDER, NULL);
  g_autofree char *path = g_strconcat (FOLDER "/", index_name, NULL);

  g_remove (path);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *name = g_strconcat (FOLDER "/", names[i], NULL);

      g_remove (name);
    }
  if (folder != NULL)
    g_rmdir (folder);
}

static RnVocSource
new_source (void)
{
  return (
      RnVocSource){ .ann_file = LIST, .prefix = FOLDER, .list = rn_file_stamp (LIST), .findings = findings };
}

/* An index of one image, two objects and two names. */
static void
save_index (void)
{
  g_autoptr (RnIndex) index = rn_index_new ();
  RnIndexImage image = { .width = 64, .height = 48, .n = 2 };
  RnVocStamps stamps = { rn_file_stamp (FOLDER "/x.jpg"), rn_file_stamp (FOLDER "/Annotations/x.xml") };
  RnVocSource source = new_source ();

  source.stamps = &stamps;
  image.id = rn_index_add_string (index, "x");
  image.path = rn_index_add_string (index, FOLDER "/x.jpg");
  g_array_append_val (index->images, image);
  g_ptr_array_add (index->names, g_strdup ("cat"));
  g_ptr_array_add (index->names, g_strdup ("dog"));
  rn_index_add_object (index, (float[4]){ 1, 2, 20, 30 }, 0, FALSE);
  rn_index_add_object (index, (float[4]){ 0, 0, 64, 48 }, 1, TRUE);
  rn_voc_cache_save (FOLDER, &source, index);
}

static void
make_folder (void)
{
  g_autofree char *folder = NULL;
  g_autoptr (GDir) dir = NULL;
  const char *name;
  int file;

  if (index_name != NULL)
    return;
  folder = g_dir_make_tmp ("rn-fuzz-XXXXXX", NULL);
  g_assert_nonnull (folder);
  file = g_open (folder, O_RDONLY | O_DIRECTORY, 0);
  g_assert_cmpint (dup2 (file, FOLDER_FD), ==, FOLDER_FD);
  g_close (file, NULL);
  g_mkdir (FOLDER "/Annotations", 0700);
  write_file (LIST, "x\n", 2);
  write_file (FOLDER "/x.jpg", "jpeg", 4);
  write_file (FOLDER "/Annotations/x.xml", "xml", 3);
  save_index ();
  dir = g_dir_open (FOLDER, 0, NULL);
  while ((name = g_dir_read_name (dir)) != NULL && !g_str_has_suffix (name, ".index"))
    ;
  g_assert_nonnull (name);
  index_name = g_strdup (name);
  atexit (remove_folder);
}

/* What is past the checksum would never be looked at if the checksum were not put right. */
static void
repair_checksum (guint8 *data, gsize size)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);

  for (gsize i = 16; i < size; i++)
    hash = (hash ^ data[i]) * G_GUINT64_CONSTANT (0x100000001b3);
  if (size >= 16)
    memcpy (data + 8, &hash, sizeof hash);
}

static void
check_index (const RnIndex *index)
{
  for (guint i = 0; i < index->images->len; i++)
    {
      const RnIndexImage *image = rn_index_image (index, i);

      g_assert_cmpuint (strlen (rn_index_string (index, image->path)), >, 0);
      g_assert_cmpuint (strlen (rn_index_string (index, image->id)), >, 0);
      g_assert_cmpuint (image->first + image->n, <=, index->labels->len);
      g_assert_cmpuint (image->first, <=, index->labels->len);
    }
  g_free (rn_index_count_names (index));
}

/* A damaged file is no error: the folder is scanned again. */
static int
fuzz_cache (const guint8 *data, gsize size)
{
  g_autofree guint8 *copy = g_memdup2 (data, size);
  g_autofree char *path = NULL;
  RnVocSource source;
  g_autoptr (RnIndex) index = NULL;

  make_folder ();
  path = g_strconcat (FOLDER "/", index_name, NULL);
  repair_checksum (copy, size);
  write_file (path, size > 0 ? (const void *) copy : "", size);
  source = new_source ();
  index = rn_voc_cache_load (FOLDER, &source);
  if (index != NULL)
    check_index (index);
  return index != NULL;
}

static void
add_seeds (GPtrArray *seeds)
{
  g_autofree char *path = NULL;
  char *bytes;
  gsize size;

  make_folder ();
  save_index ();
  path = g_strconcat (FOLDER "/", index_name, NULL);
  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  g_ptr_array_add (seeds, g_bytes_new_take (bytes, size));
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("cat\0"),  RN_FUZZ_TOKEN (LIST "\0"), RN_FUZZ_TOKEN (FOLDER "\0"),
  RN_FUZZ_TOKEN ("../x\0"), RN_FUZZ_TOKEN ("\0"),      { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_cache = { "cache", fuzz_cache, add_seeds, tokens };
