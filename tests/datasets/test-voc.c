/* What an annotation file, a split list and a configuration mean. */
#include "config.h"

#include "datasets/voc-xml.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <stdio.h>
#include <string.h>
#include <utime.h>
#include <glib/gstdio.h>

#define WRAP(inside) "<annotation>" inside "</annotation>"

/* ---- Annotation files ---- */

static void
parse (const char *text, RnVocAnnotation *annotation)
{
  GError *error = NULL;

  rn_voc_annotation_init (annotation);
  rn_voc_xml_parse (text, strlen (text), annotation, &error);
  g_assert_no_error (error);
}

static void
test_xml_numbers (void)
{
  g_auto (RnVocAnnotation) annotation;
  const RnVocObject *objects;

  /* The numbers of MMDetection's test image: all four lose 1; decimals are cut. */
  parse (WRAP ("<size><width>353</width><height>500</height></size>" TEST_OBJECT ("dog", "0", "48", "240",
                                                                                  "195", "371")
                   TEST_OBJECT (" person ", "1", "8.9", "12.0", " 352.99 ", "498")),
         &annotation);
  objects = (const RnVocObject *) (gpointer) annotation.objects->data;
  g_assert_cmpint (annotation.width, ==, 353);
  g_assert_cmpint (annotation.height, ==, 500);
  g_assert_cmpint (annotation.objects->len, ==, 2);
  g_assert_cmpstr (objects[0].name, ==, "dog");
  g_assert_false (objects[0].difficult);
  g_assert_true (memcmp (objects[0].box, (float[4]){ 47, 239, 194, 370 }, sizeof (float[4])) == 0);
  g_assert_cmpstr (objects[1].name, ==, "person");
  g_assert_true (objects[1].difficult);
  g_assert_true (memcmp (objects[1].box, (float[4]){ 7, 11, 351, 497 }, sizeof (float[4])) == 0);
}

static void
test_xml_structure (void)
{
  g_auto (RnVocAnnotation) annotation;

  /*
   * No size, no difficult; the parts of VOC's person layout have names and boxes of their own, which are not
   * the object's.
   */
  parse (
      "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><!DOCTYPE annotation>"
      "<annotation><object><name>caf\xe9</name><part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"
      "<bndbox><xmin>10</xmin><ymin>20</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>",
      &annotation);
  g_assert_cmpint (annotation.width, ==, 0);
  g_assert_cmpint (annotation.objects->len, ==, 1);
  g_assert_cmpstr (g_array_index (annotation.objects, RnVocObject, 0).name, ==, "caf\xc3\xa9");
  g_assert_cmpfloat (g_array_index (annotation.objects, RnVocObject, 0).box[0], ==, 9);
}

static void
test_xml_errors (void)
{
  static const struct
  {
    const char *text, *message;
  } cases[] = {
    { "", "1:" },
    { "plain text", "not well-formed" },
    { "<html/>", "<html>" },
    { WRAP ("<object>") "x", "not well-formed" },
    { WRAP ("<object/>"), "empty <object>" },
    { WRAP ("<object><name>a</name></object>"), "<bndbox>" },
    { WRAP ("\n\n<object><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></object>"),
      "3: an <object> lacks its <name>" },
    { WRAP (TEST_OBJECT ("a", "0", "x", "1", "2", "2")), "\"x\" is not a number" },
    { WRAP (TEST_OBJECT ("a", "0", "1", "1", "nan", "2")), "not a number" },
    { WRAP (TEST_OBJECT ("a", "0", "1", "1", "0x10", "2")), "not a number" },
    { WRAP (TEST_OBJECT ("a", "0", "1", "1", "1e30", "2")), "not a number" },
    { WRAP (TEST_OBJECT ("a", "maybe", "1", "1", "2", "2")), "\"maybe\"" },
    { WRAP (TEST_OBJECT ("   ", "0", "1", "1", "2", "2")), "<name>" },
    { WRAP (TEST_OBJECT ("0123456789012345678901234567890123456789012345678901234567890123", "0", "1", "1",
                         "2", "2")),
      "class name" },
    /* Nothing is fetched and nothing is expanded: the name stays empty. */
    { "<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>" WRAP (
          TEST_OBJECT ("&e;", "0", "1", "1", "2", "2")),
      "<name>" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (RnVocAnnotation) annotation;
      GError *error = NULL;

      rn_voc_annotation_init (&annotation);
      g_assert_false (rn_voc_xml_parse (cases[i].text, strlen (cases[i].text), &annotation, &error));
      g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
      if (strstr (error->message, cases[i].message) == NULL)
        g_error ("\"%s\" does not contain \"%s\"", error->message, cases[i].message);
      g_error_free (error);
    }
}

/* ---- Sets ---- */

/* Seven images; see the comments for what each is there for. */
static char *
make_tree (void)
{
  char *dir = test_dir_new ();

  test_write_image (dir, "good", 80, 60);
  test_write_xml (dir, "good", 80, 60,
                  TEST_OBJECT ("a", "0", "11", "11", "40", "50")
                      TEST_OBJECT ("b", "1", "1", "1", "20", "20"));
  test_write_image (dir, "difficult", 60, 80); /* only difficult objects: stays, without boxes to train on */
  test_write_xml (dir, "difficult", 60, 80, TEST_OBJECT ("b", "1", "11", "11", "40", "50"));
  test_write_image (dir, "unknown", 80, 60); /* no known class */
  test_write_xml (dir, "unknown", 80, 60, TEST_OBJECT ("zebra", "0", "11", "11", "40", "50"));
  test_write_image (dir, "empty", 60, 60); /* no object; a square belongs to group 0 */
  test_write_xml (dir, "empty", 60, 60, "");
  test_write_image (dir, "small", 80, 31); /* below 32 pixels */
  test_write_xml (dir, "small", 80, 31, TEST_OBJECT ("a", "0", "1", "1", "20", "20"));
  test_write_image (dir, "boxes", 80, 60); /* a box of no area, one outside, one partly outside */
  test_write_xml (dir, "boxes", 80, 60,
                  TEST_OBJECT ("a", "0", "5", "5", "5", "20") TEST_OBJECT ("a", "0", "81", "1", "99", "20")
                      TEST_OBJECT ("c", "0", "-5", "31", "200", "61"));
  test_write_image (dir, "size", 70, 50); /* the XML is wrong about it */
  test_write_xml (dir, "size", 50, 70, TEST_OBJECT ("a", "0", "1", "1", "70", "50"));
  test_write (dir, "ImageSets/Main/train.txt",
              "\xEF\xBB\xBFgood 1\r\ndifficult -1 \r\n\r\nunknown\r\nempty\nsmall\n\n  boxes\nsize", -1);
  return dir;
}

static void
expect_findings (void)
{
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*boxes.xml: a box (5 5 5 20) dropped*");
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*boxes.xml: a box (81 1 99 20) dropped*");
  g_test_expect_message (
      "rn-data", G_LOG_LEVEL_WARNING,
      "*size.jpg: the XML says 50 x 70, the image is 70 x 50; *counts; *before it was turned*");
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*2 boxes*dropped*");
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*1 images of another size*");
  g_test_expect_message ("rn-data", G_LOG_LEVEL_MESSAGE, "*left out: zebra (1)*");
}

static RnDataset *
open_tree (const char *dir, const char *type_and_keys, RnDatasetOptions options, GError **error)
{
  g_autofree char *yaml = g_strdup_printf ("{%s, pipeline: %s}", type_and_keys,
                                           options.test_mode ? test_test_pipeline : test_train_pipeline);

  options.n_threads = 1; /* warnings in order */
  return test_dataset (dir, yaml, &options, error);
}

#define VOC "type: VOCDataset, ann_file: ImageSets/Main/train.txt, img_prefix: ."

static void
check_ids (const RnDataset *dataset, const char *expected)
{
  g_autoptr (GString) ids = g_string_new (NULL);

  for (int64_t i = 0; i < rn_dataset_size (dataset); i++)
    g_string_append_printf (ids, "%s%s", i > 0 ? " " : "", rn_dataset_id (dataset, i));
  g_assert_cmpstr (ids->str, ==, expected);
}

static void
test_set_train (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;
  RnGroundTruth truth;
  int width, height;

  expect_findings ();
  dataset = open_tree (dir, VOC ", classes: [a, b, c]", (RnDatasetOptions){ .num_classes = 3 }, &error);
  g_assert_no_error (error);
  g_test_assert_expected_messages ();
  check_ids (dataset, "good difficult boxes size");
  g_assert_cmpint (rn_dataset_n_classes (dataset), ==, 3);
  g_assert_cmpint (rn_dataset_group (dataset, 0), ==, 1);
  g_assert_cmpint (rn_dataset_group (dataset, 1), ==, 0);

  rn_dataset_ground_truth (dataset, 0, &truth);
  g_assert_cmpint (truth.n, ==, 2);
  g_assert_cmpint (truth.labels[1], ==, 1);
  g_assert_cmpint (truth.difficult[1], ==, 1);
  rn_dataset_ground_truth (dataset, 2, &truth);
  g_assert_cmpint (truth.n, ==, 1);
  g_assert_true (memcmp (truth.boxes[0], (float[4]){ 0, 30, 80, 60 }, sizeof (float[4])) == 0);
  rn_dataset_image_size (dataset, 3, &width, &height);
  g_assert_cmpint (width, ==, 70);
  g_assert_cmpint (height, ==, 50);
  test_dir_remove (dir);
}

static void
test_set_test_mode (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;

  expect_findings ();
  dataset = open_tree (dir, VOC ", classes: [a, b, c]", (RnDatasetOptions){ .test_mode = TRUE }, &error);
  g_assert_no_error (error);
  check_ids (dataset, "good difficult unknown empty small boxes size");
  g_assert_cmpint (rn_dataset_group (dataset, 3), ==, 0);
  g_test_assert_expected_messages ();
  test_dir_remove (dir);
}

static void
test_set_keys (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;
  RnGroundTruth truth;

  expect_findings ();
  dataset = open_tree (dir, VOC ", classes: [a, b, c], filter_empty_gt: false, min_size: 20",
                       (RnDatasetOptions){ 0 }, &error);
  g_assert_no_error (error);
  check_ids (dataset, "good difficult unknown empty boxes size");
  rn_dataset_ground_truth (dataset, 4, &truth); /* 80 x 30 */
  g_assert_cmpint (truth.difficult[0], ==, 0);
  g_test_assert_expected_messages ();
  test_dir_remove (dir);
}

static void
test_set_views (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;
  g_autofree char *yaml = NULL;
  RnDatasetOptions options = { .n_threads = 1 };

  test_write (dir, "VOC2007.txt", "good\n", -1);
  test_write (dir, "more.txt", "difficult\nempty\ngood\n", -1);
  yaml = g_strdup_printf (
      "{type: RepeatDataset, times: 3, dataset: {type: VOCDataset, ann_file: [VOC2007.txt, more.txt], "
      "img_prefix: [., .], classes: auto, pipeline: %s}}",
      test_train_pipeline);
  g_test_expect_message ("rn-data", G_LOG_LEVEL_MESSAGE, "classes found*: a, b");
  dataset = test_dataset (dir, yaml, &options, &error);
  g_assert_no_error (error);
  check_ids (dataset, "good difficult good good difficult good good difficult good");
  g_assert_cmpint (rn_dataset_n_bases (dataset), ==, 2);
  g_assert_cmpint (rn_dataset_size (rn_dataset_base (dataset, 0)), ==, 1);
  g_assert_cmpint (rn_dataset_size (rn_dataset_base (dataset, 1)), ==, 2);
  g_assert_cmpstr (rn_dataset_class_name (rn_dataset_base (dataset, 1), 1), ==, "b");
  g_assert_cmpint (rn_dataset_default_ap_mode (dataset), ==, RN_AP_AREA);
  g_test_assert_expected_messages ();
  test_dir_remove (dir);
}

static void
test_set_classes (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) train = NULL, val = NULL;

  test_write (dir, "train.txt", "good\n", -1);
  test_write (dir, "classes.txt", "b\r\na\r\ntwo words\r\n", -1);
  train = open_tree (dir, "type: VOCDataset, ann_file: train.txt, img_prefix: ., classes: classes.txt",
                     (RnDatasetOptions){ 0 }, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (rn_dataset_class_name (train, 0), ==, "b");
  g_assert_cmpstr (rn_dataset_class_name (train, 2), ==, "two words");

  /* `auto` of a validation set means the classes of training. */
  val = open_tree (dir, "type: VOCDataset, ann_file: train.txt, img_prefix: ., classes: auto",
                   (RnDatasetOptions){ .class_source = train, .test_mode = TRUE }, &error);
  g_assert_no_error (error);
  g_assert_cmpint (rn_dataset_n_classes (val), ==, 3);
  test_dir_remove (dir);
}

/* A name that nearly is a class is a mistake, other names are a choice; so is a class that is never seen. */
static void
test_set_near_names (void)
{
  static const struct
  {
    const char *classes;
    GLogLevelFlags level;
    const char *others, *unused; /* messages; NULL: none */
  } cases[] = {
    { "[dog, cat]", G_LOG_LEVEL_WARNING, "*left out: Dog (2), bird (1); is Dog (2) meant to be dog?", NULL },
    { "[cat, birds]", G_LOG_LEVEL_WARNING, "*Dog (2), bird (1), dog (1); is bird (1) meant to be birds?",
      "*without an object*: birds" },
    { "[cat, bird, truck]", G_LOG_LEVEL_MESSAGE, "*left out: Dog (2), dog (1)",
      "*without an object*: truck" },
    { "[cat, Dog, bird, dog]", 0, NULL, NULL },
  };
  char *dir = test_dir_new ();

  test_write_image (dir, "x", 80, 60);
  test_write_xml (
      dir, "x", 80, 60,
      TEST_OBJECT ("Dog", "0", "1", "1", "20", "20") TEST_OBJECT ("Dog", "0", "1", "1", "30", "20")
          TEST_OBJECT ("dog", "0", "1", "1", "9", "9") TEST_OBJECT ("cat", "0", "1", "1", "9", "9")
              TEST_OBJECT ("bird", "0", "1", "1", "9", "9"));
  test_write (dir, "list.txt", "x", -1);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *keys = g_strdup_printf (
          "type: VOCDataset, ann_file: list.txt, img_prefix: ., classes: %s", cases[i].classes);
      g_autoptr (RnDataset) dataset = NULL;
      GError *error = NULL;

      if (cases[i].others != NULL)
        g_test_expect_message ("rn-data", cases[i].level, cases[i].others);
      if (cases[i].unused != NULL)
        g_test_expect_message ("rn-data", G_LOG_LEVEL_MESSAGE, cases[i].unused);
      dataset = open_tree (dir, keys, (RnDatasetOptions){ 0 }, &error);
      g_assert_no_error (error);
      g_test_assert_expected_messages ();
    }
  test_dir_remove (dir);
}

static void
test_set_ap_mode (void)
{
  char *dir = test_dir_new ();
  g_autofree char *year = g_build_filename (dir, "VOC2007", NULL);
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;

  g_assert_cmpint (g_mkdir_with_parents (year, 0777), ==, 0);
  for (int i = 0; i < 2; i++)
    {
      g_autofree char *path = g_build_filename (year, i == 0 ? "JPEGImages" : "Annotations", NULL);

      g_assert_cmpint (g_mkdir_with_parents (path, 0777), ==, 0);
    }
  test_write_image (year, "x", 64, 64);
  test_write_xml (year, "x", 64, 64, TEST_OBJECT ("dog", "0", "1", "1", "20", "20"));
  test_write (year, "list.txt", "x\n", -1);
  dataset = open_tree (dir, "type: VOCDataset, ann_file: VOC2007/list.txt, img_prefix: VOC2007/",
                       (RnDatasetOptions){ 0 }, &error);
  g_assert_no_error (error);
  g_assert_cmpint (rn_dataset_n_classes (dataset), ==, 20);
  g_assert_cmpint (rn_dataset_default_ap_mode (dataset), ==, RN_AP_11POINTS);
  test_dir_remove (dir);
}

#define GOOD "type: VOCDataset, ann_file: good.txt, img_prefix: ."

typedef struct
{
  const char *keys;
  int num_classes, test_mode;
  const char *message;
  gboolean is_config; /* else RN_DATA_ERROR with @code */
  int code;
} Refusal;

static void
test_set_refusals (void)
{
  static const Refusal cases[] = {
    { "type: VOCDatset, ann_file: a, img_prefix: b", 0, 0, "VOCDataset", TRUE, 0 },
    { GOOD ", anfile: x", 0, 0, "anfile", TRUE, 0 },
    { "type: VOCDataset, ann_file: [a.txt, b.txt], img_prefix: .", 0, 0, "img_prefix", TRUE, 0 },
    { GOOD ", classes: [a, b]", 20, 0, "num_classes: 20, the data set has 2", TRUE, 0 },
    { GOOD ", classes: [a, a]", 0, 0, "twice", TRUE, 0 },
    { GOOD ", classes: [1]", 0, 0, "quotes", TRUE, 0 },
    { "type: VOCDataset, ann_file: none.txt, img_prefix: .", 0, 0, "none.txt  (split list", FALSE,
      RN_DATA_ERROR_MISSING },
    { "type: VOCDataset, ann_file: good.txt, img_prefix: nowhere", 0, 0, "nowhere/Annotations is missing",
      FALSE, RN_DATA_ERROR_MISSING },
    { "type: VOCDataset, ann_file: absent.txt, img_prefix: .", 0, 0, "absent: no image of this name", FALSE,
      RN_DATA_ERROR_MISSING },
    { "type: VOCDataset, ann_file: noxml.txt, img_prefix: .", 0, 0, "noxml.xml", FALSE,
      RN_DATA_ERROR_MISSING },
    { GOOD, 0, 0, "seen: a (1), b (1)", FALSE, RN_DATA_ERROR_EMPTY },
    { GOOD ", classes: [B]", 0, 0, "or to auto; is b (1) meant to be B?", FALSE, RN_DATA_ERROR_EMPTY },
    { GOOD ", classes: [x]", 0, 0, "test.yaml:", FALSE, RN_DATA_ERROR_EMPTY }, /* where they are */
    { "type: VOCDataset, ann_file: empty.txt, img_prefix: ., classes: [a]", 0, 0,
      "no image is left: 0 of 1 images", FALSE, RN_DATA_ERROR_EMPTY },
    { GOOD ", classes: latin1.txt", 0, 0, "latin1.txt: classes: \"b\357\277\275\" is not UTF-8", TRUE, 0 },
    { GOOD ", classes: del.txt", 0, 0, "del.txt: classes: name 2, \"b?\", has a control", TRUE, 0 },
    { GOOD ", classes: [a, \"b\\t\"]", 0, 0, "name 2, \"b?\", has a control", TRUE, 0 },
    { GOOD ", classes: blank.txt", 0, 0, "blank.txt: there is no class", FALSE, RN_DATA_ERROR_EMPTY },
    { GOOD ", classes: []", 0, 0, "the list is empty", FALSE, RN_DATA_ERROR_EMPTY },
    { "type: VOCDataset, ann_file: blank.txt, img_prefix: ., classes: [a]", 0, 0,
      "blank.txt, which ann_file names, is empty", FALSE, RN_DATA_ERROR_EMPTY },
    { "type: VOCDataset, ann_file: blank.txt, img_prefix: ., classes: auto", 0, 0,
      "blank.txt: classes: auto finds no object", FALSE, RN_DATA_ERROR_EMPTY },
    { GOOD ", classes: none.txt", 0, 0, "none.txt", FALSE, RN_DATA_ERROR_MISSING },
  };
  char *dir = make_tree ();

  test_write (dir, "good.txt", "good\n", -1);
  test_write (dir, "empty.txt", "empty\n", -1);
  test_write (dir, "del.txt", "a\nb\x7F\n", -1);
  test_write (dir, "blank.txt", "\n \r\n", -1);
  test_write (dir, "latin1.txt", "a\nb\xE9\n", -1);
  test_write (dir, "absent.txt", "good\nabsent\n", -1);
  test_write_image (dir, "noxml", 64, 64);
  test_write (dir, "noxml.txt", "noxml\n", -1);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnDatasetOptions options = { .num_classes = cases[i].num_classes, .test_mode = cases[i].test_mode };
      GError *error = NULL;

      g_assert_null (open_tree (dir, cases[i].keys, options, &error));
      if (cases[i].is_config)
        g_assert_true (error->domain == RN_CONFIG_ERROR);
      else
        g_assert_error (error, RN_DATA_ERROR, cases[i].code);
      if (strstr (error->message, cases[i].message) == NULL)
        g_error ("\"%s\" does not contain \"%s\"", error->message, cases[i].message);
      g_error_free (error);
    }
  test_dir_remove (dir);
}

/* on_error: skip leaves out what cannot be read, with a warning each and a count. */
static void
test_set_skip (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;

  test_write (dir, "JPEGImages/torn.jpg", "\xFF\xD8\xFF\xE0", 4);
  test_write_xml (dir, "torn", 1, 1, "");
  test_write_image (dir, "badxml", 64, 64);
  test_write (dir, "Annotations/badxml.xml", "<annotation>", -1);
  test_write (dir, "list.txt", "torn\ngood\nbadxml\nabsent\n", -1);
  for (int i = 0; i < 4; i++)
    g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING,
                           i < 3 ? "*left out (on_error: skip)" : "*3 unreadable images left out");
  dataset = open_tree (dir, "type: VOCDataset, ann_file: list.txt, img_prefix: ., classes: [a, b]",
                       (RnDatasetOptions){ .on_error = RN_ON_ERROR_SKIP }, &error);
  g_assert_no_error (error);
  g_test_assert_expected_messages ();
  check_ids (dataset, "good");
  test_dir_remove (dir);
}

/* Images are found by stem, whatever the spelling of the ending, and read by content. */
static void
test_set_endings (void)
{
  static const char *const endings[] = { "jpg", "JPEG", "Png" };
  char *dir = test_dir_new ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = NULL;

  for (int i = 0; i < 3; i++)
    {
      g_autofree char *id = g_strdup_printf ("im%d", i);
      g_autofree char *from = g_strdup_printf ("%s/JPEGImages/%s.jpg", dir, id);
      g_autofree char *to = g_strdup_printf ("%s/JPEGImages/%s.%s", dir, id, endings[i]);

      test_write_image (dir, id, 64, 48);
      g_assert_cmpint (rename (from, to), ==, 0);
      test_write_xml (dir, id, 64, 48, TEST_OBJECT ("a", "0", "1", "1", "20", "20"));
    }
  test_write (dir, "ImageSets/Main/train.txt", "im0\nim1\nim2\n", -1);
  dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
  g_assert_no_error (error);
  g_assert_true (g_str_has_suffix (rn_dataset_path (dataset, 2), "im2.Png"));
  test_dir_remove (dir);
}

/* Sets the last change of @path to a fixed time, so that it looks untouched. */
static void
set_time (const char *dir, const char *name, gint64 seconds)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  struct utimbuf times = { seconds, seconds };

  g_assert_cmpint (g_utime (path, &times), ==, 0);
}

static int
first_label (const char *dir, const char *cache)
{
  GError *error = NULL;
  g_autoptr (RnDataset) dataset =
      open_tree (dir, "type: VOCDataset, ann_file: list.txt, img_prefix: ., classes: [a, b]",
                 (RnDatasetOptions){ .cache_dir = cache }, &error);
  RnGroundTruth truth;

  g_assert_no_error (error);
  rn_dataset_ground_truth (dataset, 0, &truth);
  g_assert_cmpint (truth.n, ==, 2);
  g_assert_cmpfloat (truth.boxes[0][0], ==, 10);
  return truth.labels[0];
}

/* The scan is kept, until the time or size of one of its files changes. */
static void
test_set_cache (void)
{
  static const char as_a[] =
      TEST_OBJECT ("a", "0", "11", "11", "40", "50") TEST_OBJECT ("b", "1", "1", "1", "20", "20");
  static const char as_b[] =
      TEST_OBJECT ("b", "0", "11", "11", "40", "50") TEST_OBJECT ("b", "1", "1", "1", "20", "20");
  char *dir = make_tree ();

  test_write (dir, "list.txt", "good\n", -1);
  test_write_xml (dir, "good", 80, 60, as_a);
  set_time (dir, "Annotations/good.xml", 1000);
  g_assert_cmpint (first_label (dir, dir), ==, 0);
  test_write_xml (dir, "good", 80, 60, as_b);
  set_time (dir, "Annotations/good.xml", 1000);
  g_assert_cmpint (first_label (dir, NULL), ==, 1); /* without a cache */
  g_assert_cmpint (first_label (dir, dir), ==, 0);  /* what was kept */
  set_time (dir, "Annotations/good.xml", 1001);
  g_assert_cmpint (first_label (dir, dir), ==, 1); /* seen to be old */
  g_assert_cmpint (first_label (dir, "/nonexistent"), ==, 1);
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/voc/xml/numbers", test_xml_numbers);
  g_test_add_func ("/datasets/voc/xml/structure", test_xml_structure);
  g_test_add_func ("/datasets/voc/xml/errors", test_xml_errors);
  g_test_add_func ("/datasets/voc/set/train", test_set_train);
  g_test_add_func ("/datasets/voc/set/test-mode", test_set_test_mode);
  g_test_add_func ("/datasets/voc/set/keys", test_set_keys);
  g_test_add_func ("/datasets/voc/set/views", test_set_views);
  g_test_add_func ("/datasets/voc/set/classes", test_set_classes);
  g_test_add_func ("/datasets/voc/set/near-names", test_set_near_names);
  g_test_add_func ("/datasets/voc/set/ap-mode", test_set_ap_mode);
  g_test_add_func ("/datasets/voc/set/refusals", test_set_refusals);
  g_test_add_func ("/datasets/voc/set/skip", test_set_skip);
  g_test_add_func ("/datasets/voc/set/endings", test_set_endings);
  g_test_add_func ("/datasets/voc/set/cache", test_set_cache);
  return g_test_run ();
}
