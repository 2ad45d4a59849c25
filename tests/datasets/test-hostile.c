/*
 * Damaged files in-process: whatever the bytes, an answer and no crash. The mutations are the same on every
 * machine.
 */
#include "config.h"

#include "datasets/file.h"
#include "datasets/image.h"
#include "datasets/voc-cache.h"
#include "datasets/voc-xml.h"
#include "datasets/voc.h"
#include "runner/base/rng.h"
#include "tests/datasets/util.h"

#include <string.h>

#define N_MUTATIONS 300
#define MAX_DECODED (1 << 22) /* pixels; larger headers are only probed, to save time */

static const char seed_xml[] =
    "<?xml version=\"1.0\"?><!DOCTYPE annotation [<!ENTITY e \"eeee\"><!ENTITY f \"&e;&e;&e;\">]>\n"
    "<annotation><size><width>353</width><height>500</height><depth>3</depth></size>\n"
    "<object><name>dog&amp;</name><pose>&f;</pose><difficult>0</difficult><part><name>head</name></part>"
    "<bndbox><xmin>48</xmin><ymin>240.5</ymin><xmax>195</xmax><ymax>371</ymax></bndbox></object>\n"
    "<object><name><![CDATA[cat]]></name><difficult>1</difficult>"
    "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>\n";

/*
 * A copy of @seed with one of four kinds of damage at 1 to 8 places; its size goes to @size. (transfer full)
 */
static char *
mutate (const char *seed, gsize *size, guint32 number)
{
  char *bytes = g_malloc (*size + 1);
  RnRng rng;

  memcpy (bytes, seed, *size);
  rn_rng_init (&rng, 11, RN_STREAM_SYNTH, number, 0);
  for (guint64 n = 1 + rn_rng_below (&rng, 8); n > 0 && *size > 1; n--)
    {
      gsize at = rn_rng_below (&rng, *size);

      switch (rn_rng_below (&rng, 8))
        {
        case 0: /* cut off */
          *size = at + 1;
          break;
        case 1: /* cut out */
          memmove (bytes + at, bytes + at + 1, *size - at - 1);
          --*size;
          break;
        case 2: /* one bit */
          bytes[at] = (char) (bytes[at] ^ 1 << rn_rng_below (&rng, 8));
          break;
        default:
          bytes[at] = (char) rn_rng_u32 (&rng);
        }
    }
  return bytes;
}

/* Within its documented contract: TRUE and a size, or FALSE and an error. */
static gboolean
read_image (const char *bytes, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autofree guint8 *pixels = NULL;
  FILE *file = fmemopen ((gpointer) bytes, size, "rb");
  int width = 0, height = 0;
  gboolean ok = rn_image_probe (file, &width, &height, &error);

  g_assert_true (ok == (error == NULL));
  if (ok)
    {
      g_assert_cmpint ((gint64) width * height, >, 0);
      g_assert_cmpint ((gint64) width * height, <=, RN_IMAGE_MAX_PIXELS);
    }
  if (ok && width * height <= MAX_DECODED)
    {
      pixels = g_malloc ((gsize) width * height * 3);
      rewind (file);
      ok = rn_image_decode (file, pixels, width, height, &error);
      g_assert_true (ok == (error == NULL));
    }
  fclose (file);
  return ok;
}

static void
test_image (gconstpointer data)
{
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests", "datasets", "fixtures", data, NULL);
  g_autofree char *seed = NULL;
  gsize seed_size;
  int n_read = 0;

  g_assert_true (g_file_get_contents (path, &seed, &seed_size, NULL));
  g_assert_true (read_image (seed, seed_size));
  for (guint32 i = 0; i < N_MUTATIONS; i++)
    {
      gsize size = seed_size;
      g_autofree char *bytes = mutate (seed, &size, i);

      n_read += read_image (bytes, size);
    }
  g_assert_cmpint (n_read, <, N_MUTATIONS);
}

static void
test_xml (void)
{
  int n_read = 0;

  for (guint32 i = 0; i < N_MUTATIONS; i++)
    {
      g_auto (RnVocAnnotation) annotation;
      g_autoptr (GError) error = NULL;
      gsize size = sizeof seed_xml - 1;
      g_autofree char *bytes = mutate (seed_xml, &size, i);
      gboolean ok;

      rn_voc_annotation_init (&annotation);
      ok = rn_voc_xml_parse (bytes, size, &annotation, &error);
      g_assert_true (ok == (error == NULL));
      for (guint k = 0; ok && k < annotation.objects->len; k++)
        g_assert_cmpint (strlen (g_array_index (annotation.objects, RnVocObject, k).name), >, 0);
      n_read += ok;
    }
  g_assert_cmpint (n_read, >, 0);
  g_assert_cmpint (n_read, <, N_MUTATIONS);
}

/* Entities that would grow to gigabytes are not expanded, and an element nest is cut by libxml2. */
static void
test_xml_bombs (void)
{
  g_autoptr (GString) text = g_string_new ("<!DOCTYPE annotation [<!ENTITY a0 \"aaaaaaaaaa\">");
  g_auto (RnVocAnnotation) annotation;
  GError *error = NULL;

  rn_voc_annotation_init (&annotation);
  for (int i = 1; i < 20; i++)
    g_string_append_printf (text, "<!ENTITY a%d \"&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;\">", i, i - 1,
                            i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
  g_string_append (text, "]><annotation><folder>&a19;</folder></annotation>");
  if (!rn_voc_xml_parse (text->str, text->len, &annotation, &error))
    g_clear_error (&error); /* some versions refuse the definitions themselves */
  g_assert_cmpint (annotation.objects->len, ==, 0);

  g_string_assign (text, "<annotation>");
  for (int i = 0; i < 100000; i++)
    g_string_append (text, "<a>");
  g_assert_false (rn_voc_xml_parse (text->str, text->len, &annotation, &error));
  g_clear_error (&error);
}

static void
test_lists (void)
{
  char *dir = test_dir_new ();
  g_autofree char *path = g_build_filename (dir, "list.txt", NULL);
  g_auto (GStrv) lines = NULL;
  GError *error = NULL;

  test_write (dir, "list.txt", "a\0b\n", 4);
  g_assert_null (rn_file_read_lines (path, &error));
  g_clear_error (&error);
  g_assert_null (rn_file_read_lines (dir, &error)); /* a folder */
  g_clear_error (&error);
  test_write (dir, "list.txt", "\xEF\xBB\xBF\r\n a 1 \r\n\ntwo words\nd", -1);
  lines = rn_file_read_lines (path, &error);
  g_assert_no_error (error);
  g_assert_cmpstrv (lines, ((const char *const[]){ "a 1", "two words", "d", NULL }));
  test_dir_remove (dir);
}

/*
 * A kept scan with damage behind a checksum that was put right: it is refused, or all that it says stays in
 * bounds.
 */
static void
test_cache (void)
{
  char *dir = test_dir_new ();
  g_autofree char *list = g_build_filename (dir, "list.txt", NULL);
  g_autoptr (GDir) listing = NULL;
  g_autofree char *seed = NULL;
  const char *name;
  gsize seed_size;
  RnDatasetOptions options = { .cache_dir = dir };
  int64_t findings[RN_VOC_N_FINDINGS];
  RnVocSource source = { .ann_file = list, .prefix = dir, .findings = findings };
  GError *error = NULL;
  int n_read = 0;

  for (int i = 0; i < 3; i++)
    {
      const char *id = (const char *[]){ "x", "y", "z" }[i];

      test_write_image (dir, id, 64, 48);
      test_write_xml (dir, id, 64, 48,
                      TEST_OBJECT ("a", "0", "1", "1", "20", "20")
                          TEST_OBJECT ("b", "1", "5", "5", "30", "20"));
    }
  test_write (dir, "list.txt", "x\ny\nz\n", -1);
  rn_index_free (rn_voc_index (list, dir, &options, &error));
  g_assert_no_error (error);
  listing = g_dir_open (dir, 0, NULL);
  while ((name = g_dir_read_name (listing)) != NULL && !g_str_has_suffix (name, ".index"))
    ;
  g_assert_nonnull (name);
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_assert_true (g_file_get_contents (path, &seed, &seed_size, NULL));

  for (guint32 i = 0; i < N_MUTATIONS; i++)
    {
      gsize size = seed_size;
      g_autofree char *bytes = mutate (seed, &size, i);
      g_autoptr (RnIndex) index = NULL;
      guint64 checksum;

      if (i == 0)
        {
          g_free (bytes);
          bytes = g_memdup2 (seed, seed_size); /* the undamaged file is read */
          size = seed_size;
        }
      else if (size > 16)
        {
          memcpy (bytes, seed, 8); /* magic number and version */
          checksum = test_hash (TEST_HASH_START, bytes + 16, size - 16);
          memcpy (bytes + 8, &checksum, sizeof checksum);
        }
      test_write (dir, name, bytes, (gssize) size);
      index = rn_voc_cache_load (dir, &source);
      g_assert_true (i > 0 || index != NULL);
      for (guint k = 0; index != NULL && k < index->images->len; k++)
        {
          const RnIndexImage *image = rn_index_image (index, k);

          g_assert_cmpint (strlen (rn_index_string (index, image->path)), >, 0);
          g_assert_cmpint (image->first + image->n, <=, index->labels->len);
        }
      n_read += index != NULL;
    }
  g_assert_cmpint (n_read, <, N_MUTATIONS / 2);
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  static const char *const seeds[] = { "baseline.jpg", "progressive.jpg", "cmyk.jpg",  "orientation-6.jpg",
                                       "palette.png",  "interlaced.png",  "rgb-16.png" };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (seeds); i++)
    {
      g_autofree char *path = g_strconcat ("/datasets/hostile/", seeds[i], NULL);

      g_test_add_data_func (path, seeds[i], test_image);
    }
  g_test_add_func ("/datasets/hostile/xml", test_xml);
  g_test_add_func ("/datasets/hostile/xml-bombs", test_xml_bombs);
  g_test_add_func ("/datasets/hostile/lists", test_lists);
  g_test_add_func ("/datasets/hostile/cache", test_cache);
  return g_test_run ();
}
