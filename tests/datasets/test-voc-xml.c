/* Annotation files as other tools write them, and as nobody should. */
#include "config.h"

#include "datasets/voc-xml.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <glib/gstdio.h>

#define WRAP(inside) "<annotation>" inside "</annotation>"
#define BOX "<bndbox><xmin>10</xmin><ymin>20</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>"

/* Parses @text, which has one object; gives it. */
static RnVocObject
parse_one (const char *text, gsize size)
{
  g_auto (RnVocAnnotation) annotation;
  GError *error = NULL;

  rn_voc_annotation_init (&annotation);
  rn_voc_xml_parse (text, size, &annotation, &error);
  g_assert_no_error (error);
  g_assert_cmpint (annotation.objects->len, ==, 1);
  return g_array_index (annotation.objects, RnVocObject, 0);
}

static void
check_box (const float box[4], float x1, float y1, float x2, float y2)
{
  g_assert_cmpfloat (box[0], ==, x1);
  g_assert_cmpfloat (box[1], ==, y1);
  g_assert_cmpfloat (box[2], ==, x2);
  g_assert_cmpfloat (box[3], ==, y2);
}

static void
expect_refusal (const char *text, gsize size, const char *message)
{
  g_auto (RnVocAnnotation) annotation;
  GError *error = NULL;

  rn_voc_annotation_init (&annotation);
  g_assert_false (rn_voc_xml_parse (text, size, &annotation, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  if (strstr (error->message, message) == NULL)
    g_error ("\"%s\" does not contain \"%s\"", error->message, message);
  g_error_free (error);
}

/* ---- Encodings ---- */

static void
test_encodings (void)
{
  static const struct
  {
    const char *declared, *iconv, *mark;
  } cases[] = {
    { "UTF-8", "UTF-8", "" },
    { "UTF-8", "UTF-8", "\xEF\xBB\xBF" },
    { "UTF-16", "UTF-16LE", "\xFF\xFE" },
    { "UTF-16", "UTF-16BE", "\xFE\xFF" },
    { "GBK", "GBK", "" },
    { "GB2312", "GB2312", "" },
    { "Shift_JIS", "SHIFT_JIS", "" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *utf8 = g_strdup_printf ("<?xml version=\"1.0\" encoding=\"%s\"?>\n" WRAP (
                                                   "<object><name>\xE4\xBA\xBA</name>" BOX "</object>") "\n",
                                               cases[i].declared);
      gsize size, n = strlen (cases[i].mark);
      g_autofree char *encoded = g_convert (utf8, -1, cases[i].iconv, "UTF-8", NULL, &size, NULL);
      g_autofree char *text = NULL;
      RnVocObject object;

      if (encoded == NULL) /* a system without this encoding */
        continue;
      text = g_malloc (n + size);
      memcpy (text, cases[i].mark, n);
      memcpy (text + n, encoded, size);
      object = parse_one (text, n + size);
      g_assert_cmpstr (object.name, ==, "\xE4\xBA\xBA");
    }
  /* GBK that calls itself nothing is no UTF-8: refused, not turned into other letters. */
  expect_refusal (WRAP ("\n<object><name>\xC8\xCB</name>" BOX "</object>"),
                  sizeof WRAP ("\n<object><name>\xC8\xCB</name>" BOX "</object>") - 1,
                  "2: not well-formed XML: ");
}

/* ---- Tools ---- */

static void
test_tools (void)
{
  /* Comments and CDATA cut a text into pieces; blanks surround it; elements that mean nothing here are long.
   */
  static const char pieces[] = WRAP (
      "<size><width/><height></height></size><segmentation>0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 "
      "5 6 7 "
      "8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 "
      "9 0 1 "
      "2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5</segmentation>"
      "<object>\n  <name>\n    traffic<!-- x --> <![CDATA[light & co]]>&#33;\n  </name><pose/><difficult/>"
      "<polygon><x1>1</x1><y1>2</y1><bndbox><xmin>5</xmin></bndbox></polygon>"
      "<bndbox><xmin> 1<!-- -->0 </xmin><ymin>2e1</ymin><xmax>30.0</xmax><ymax>+40</ymax></bndbox></object>");
  RnVocObject object = parse_one (pieces, sizeof pieces - 1);

  g_assert_cmpstr (object.name, ==, "traffic light & co!");
  g_assert_false (object.difficult);
  check_box (object.box, 9, 19, 29, 39);
}

/* Objects stay in the file's order, equal ones too. */
static void
test_duplicates (void)
{
  static const char text[] = WRAP (TEST_OBJECT ("a", "0", "1", "1", "9", "9") TEST_OBJECT (
      "a", "0", "1", "1", "9", "9") TEST_OBJECT ("b", "1", "1", "1", "9", "9"));
  g_auto (RnVocAnnotation) annotation;
  GError *error = NULL;

  rn_voc_annotation_init (&annotation);
  g_assert_true (rn_voc_xml_parse (text, sizeof text - 1, &annotation, &error));
  g_assert_cmpint (annotation.objects->len, ==, 3);
  g_assert_cmpstr (g_array_index (annotation.objects, RnVocObject, 2).name, ==, "b");
}

/* ---- Refusals ---- */

static void
test_refusals (void)
{
  static const struct
  {
    const char *text, *message;
  } cases[] = {
    /* Lines are those of the element, not of what libxml2 has read ahead. */
    { "<annotation>\n<object>\n<name>a</name>\n<bndbox>\n<xmin>1</xmin>\n<ymin>1</ymin>\n<xmax>ten</"
      "xmax>\n\n\n\n\n"
      "<ymax>9</ymax></bndbox></object>\n\n\n</annotation>",
      "7: \"ten\" is not a number" },
    { WRAP ("<object><name>a</name></object>"), "lacks its <bndbox>, or a part of it" },
    { WRAP ("<object><type>robndbox</type><name>a</name><robndbox><cx>1</cx></robndbox></object>"),
      "rotated boxes and polygons are not read" },
    { WRAP ("<object><name>a</name><polygon><x1>1</x1></polygon></object>"),
      "rotated boxes and polygons are not read" },
    { WRAP ("<object><name>a</name>" BOX BOX "</object>"), "a second <bndbox> in one <object>" },
    { WRAP ("<object><name>a</name><name>b</name>" BOX "</object>"), "a second <name> in one <object>" },
    { WRAP ("<object><name>a</name><bndbox><xmin>1</xmin><xmin>2</xmin></bndbox></object>"),
      "a second <xmin> in one <bndbox>" },
    { WRAP ("<object><name>a<b>c</b></name>" BOX "</object>"), "<b> inside <name>" },
    { WRAP ("<object><name>a\nb</name>" BOX "</object>"), "control character" },
    { WRAP ("<object><name>a</name><bndbox><xmin></xmin></bndbox></object>"), "\"\" is not a number" },
    { WRAP (TEST_OBJECT ("a", "0", "12,5", "1", "2", "2")), "\"12,5\" is not a number" },
    { WRAP (TEST_OBJECT ("a", "0", "inf", "1", "2", "2")), "\"inf\" is not a number" },
    { WRAP (TEST_OBJECT ("a", "yes", "1", "1", "2", "2")), "<difficult> is 0 or 1" },
    { "<!DOCTYPE annotation [<!ENTITY e \"b\">]>" WRAP (TEST_OBJECT ("a&e;", "0", "1", "1", "2", "2")),
      "<name> holds an entity, and entities are not expanded" },
    { "<annotations>\n</annotations>", "<annotations>, expected <annotation>" },
    { "<annotation>\n<object>\n<name>a</nam>", "3: not well-formed XML: Opening and ending tag mismatch" },
    { "<annotation>", "1: not well-formed XML: " },
    { "", "not well-formed XML" },
    { "[{\"bbox\": [1, 2, 3, 4]}]", "not well-formed XML" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    expect_refusal (cases[i].text, strlen (cases[i].text), cases[i].message);
}

/* A file is not read whole before its size is known to be sane, and pipes and folders are no files. */
static void
test_files (void)
{
  char *dir = test_dir_new ();
  g_autofree char *path = g_build_filename (dir, "x.xml", NULL);
  g_auto (RnVocAnnotation) annotation;
  GError *error = NULL;
  FILE *file = fopen (path, "wb");

  rn_voc_annotation_init (&annotation);
  g_assert_cmpint (fseek (file, 100 << 20, SEEK_SET), ==, 0); /* 100 MB, most of it a hole */
  g_assert_cmpint (fputc ('x', file), ==, 'x');
  g_assert_cmpint (fclose (file), ==, 0);
  g_assert_false (rn_voc_xml_parse_path (path, &annotation, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_assert_nonnull (
      strstr (error->message, "x.xml: the file is too large: 104857601 bytes, at most 8388608"));
  g_clear_error (&error);
  g_assert_cmpint (g_remove (path), ==, 0);

  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_assert_false (rn_voc_xml_parse_path (path, &annotation, &error));
  g_assert_true (g_str_has_suffix (error->message, "x.xml: not a regular file"));
  g_clear_error (&error);
  g_assert_false (rn_voc_xml_parse_path (dir, &annotation, &error));
  g_assert_true (g_str_has_suffix (error->message, ": not a regular file"));
  g_clear_error (&error);
  test_dir_remove (dir);
}

/* ---- In a set ---- */

/* Corners in the wrong order are put right, each named, all counted, also from the kept scan. */
static void
test_reversed (void)
{
  char *dir = test_dir_new ();
  RnDatasetOptions options = { .n_threads = 1, .cache_dir = dir };
  g_autofree char *yaml = g_strdup_printf ("{type: VOCDataset, ann_file: list.txt, img_prefix: ., classes: "
                                           "[a], pipeline: %s}",
                                           test_train_pipeline);

  test_write_image (dir, "x", 64, 48);
  test_write_xml (dir, "x", 64, 48,
                  TEST_OBJECT ("a", "0", "41", "11", "21", "31") TEST_OBJECT ("a", "0", "1", "9", "20", "2"));
  test_write (dir, "list.txt", "x", -1);
  for (int i = 0; i < 2; i++)
    {
      GError *error = NULL;
      g_autoptr (RnDataset) dataset = NULL;
      RnGroundTruth truth;

      if (i == 0)
        {
          g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING,
                                 "*x.xml: corners of the a box (41 11 21 31) exchanged");
          g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING,
                                 "*x.xml: corners of the a box (1 9 20 2) exchanged");
        }
      g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*2 boxes with exchanged corners put right");
      dataset = test_dataset (dir, yaml, &options, &error);
      g_assert_no_error (error);
      g_test_assert_expected_messages ();
      rn_dataset_ground_truth (dataset, 0, &truth);
      g_assert_cmpint (truth.n, ==, 2);
      check_box (truth.boxes[0], 20, 10, 40, 30);
      check_box (truth.boxes[1], 0, 1, 19, 8);
    }
  test_dir_remove (dir);
}

/* Fractions of the image, as other formats have them, all come to nothing; the message says why. */
static void
test_fractions (void)
{
  char *dir = test_dir_new ();
  GError *error = NULL;

  test_write_image (dir, "x", 64, 48);
  test_write_xml (dir, "x", 64, 48, TEST_OBJECT ("a", "0", "0.25", "0.125", "0.75", "0.5"));
  test_write (dir, "ImageSets/Main/train.txt", "x", -1);
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*x.xml: a box * dropped*pixels, not fractions");
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*1 boxes without area*");
  g_assert_null (test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error));
  g_test_assert_expected_messages ();
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY);
  g_error_free (error);
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/voc-xml/encodings", test_encodings);
  g_test_add_func ("/datasets/voc-xml/tools", test_tools);
  g_test_add_func ("/datasets/voc-xml/duplicates", test_duplicates);
  g_test_add_func ("/datasets/voc-xml/refusals", test_refusals);
  g_test_add_func ("/datasets/voc-xml/files", test_files);
  g_test_add_func ("/datasets/voc-xml/reversed", test_reversed);
  g_test_add_func ("/datasets/voc-xml/fractions", test_fractions);
  return g_test_run ();
}
