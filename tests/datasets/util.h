/* util.h: small data sets in a temporary folder. */
#ifndef TESTS_DATASETS_UTIL_H
#define TESTS_DATASETS_UTIL_H

#include <glib.h>
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "runner/config/config.h"

/* A new folder with Annotations, JPEGImages and ImageSets/Main. (transfer full) */
char *test_dir_new (void);
/* Removes it with all that is in it, and frees @dir. */
void test_dir_remove (char *dir);

void test_write (const char *dir, const char *name, const void *data, gssize size);
/* JPEGImages/ID.jpg: noise keyed by the size. */
void test_write_image (const char *dir, const char *id, int width, int height);
/* Annotations/ID.xml with `size` and @objects (text of <object> elements). */
void test_write_xml (const char *dir, const char *id, int width, int height, const char *objects);
#define TEST_OBJECT(name, difficult, x1, y1, x2, y2)                                                      \
  "<object><name>" name "</name><difficult>" difficult "</difficult><bndbox><xmin>" x1 "</xmin><ymin>" y1 \
  "</ymin><xmax>" x2 "</xmax><ymax>" y2 "</ymax></bndbox></object>"

/* A training pipeline into 128 x 96 with flips, and one for tests. */
extern const char test_train_pipeline[];
extern const char test_test_pipeline[];

/* The data set of @yaml, flow text of one map; its paths are relative to @dir. */
RnDataset *test_dataset (const char *dir, const char *yaml, const RnDatasetOptions *options, GError **error);
/* A VOCDataset on ImageSets/Main/train.txt of @dir with classes "a", "b", "c". */
RnDataset *test_voc (const char *dir, gboolean test_mode, RnOnError on_error, GError **error);

/* RetinaNet's. */
RnTargetSpec test_targets (int num_classes);

/* FNV-1a. */
guint64 test_hash (guint64 hash, gconstpointer data, gsize size);
#define TEST_HASH_START G_GUINT64_CONSTANT (0xcbf29ce484222325)

#endif
