/*
 * dataset.h: an indexed data set: which images there are, how large they are, what is on them.
 *
 * The index of a VOC set holds every annotation in a few packed arrays; pixels are read by the loader only.
 * RepeatDataset and ConcatDataset are views. A data set does not change once it is made, so threads may share
 * it.
 */
#ifndef RUNNER_DATASETS_DATASET_H
#define RUNNER_DATASETS_DATASET_H

#include <glib.h>
#include <stdint.h>
#include <runner/node.h>
#include "boxes/average-precision.h"

G_BEGIN_DECLS

typedef struct _RnDataset RnDataset;

typedef enum
{
  RN_ON_ERROR_FAIL, /* the first unreadable image or XML ends the run */
  RN_ON_ERROR_SKIP, /* it is left out, named and counted */
} RnOnError;

/*
 * Called from the thread that makes the data set, only once the scan has taken two seconds. @what is a path.
 */
typedef void (*RnDatasetProgress) (const char *what, int64_t done, int64_t total, gpointer user_data);

typedef struct
{
  const char *data_root; /* put in front of relative paths; NULL: paths are relative to the current folder */
  const RnNode *classes; /* the file's own `classes:`, for sets that have none; NULL: the 20 VOC names */
  const RnDataset *class_source; /* what `classes: auto` copies; NULL: it means the names found */
  int num_classes;               /* of the model; 0: it follows the data set */
  gboolean test_mode;            /* no image is filtered out; the pipeline must be free of random choices */
  const RnNode *pipeline;        /* in the place of those of the configuration; NULL: theirs */
  RnOnError on_error;
  int n_threads;              /* of the scan; 0: one per processor, at most 8 */
  const char *cache_dir;      /* where the scan is kept for the next start; NULL: nowhere */
  RnDatasetProgress progress; /* may be NULL */
  gpointer user_data;
} RnDatasetOptions;

/*
 * Ground truth of one image in pixels of the image as decoded (0-based, as VOC minus 1), lent by the data
 * set.
 */
typedef struct
{
  int n;
  const float (*boxes)[4]; /* [n] x1 y1 x2 y2 */
  const int16_t *labels;   /* [n] 0..K-1 */
  const guint8 *difficult; /* [n] 1: neither counted nor punished by the evaluation, background in training */
} RnGroundTruth;

/* Registers the families "dataset" and "transform". May be called again. */
void rn_datasets_register (void);

/*
 * Makes the data set that @config describes (a map with `type:`) and indexes it: reads split lists, XML and
 * image headers, in threads. Errors: RN_CONFIG_ERROR with file:line for the configuration;
 * RN_DATA_ERROR_MISSING for files that are not there (the message says where they are expected);
 * RN_DATA_ERROR_FORMAT for files that cannot be read; RN_DATA_ERROR_EMPTY when nothing is left, or when no
 * object has a known class (the message lists the names seen).
 */
RnDataset *rn_dataset_new (const RnNode *config, const RnDatasetOptions *options, GError **error);
void rn_dataset_free (RnDataset *dataset);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnDataset, rn_dataset_free)

int64_t rn_dataset_size (const RnDataset *dataset);

int rn_dataset_n_classes (const RnDataset *dataset);
const char *rn_dataset_class_name (const RnDataset *dataset, int label);
const char *const *rn_dataset_class_names (const RnDataset *dataset); /* NULL-ended */

/* Aspect group: 1 if width / height > 1, else 0. */
int rn_dataset_group (const RnDataset *dataset, int64_t index);
const char *rn_dataset_id (const RnDataset *dataset, int64_t index);   /* stem of its files; lent */
const char *rn_dataset_path (const RnDataset *dataset, int64_t index); /* of the image file; lent */
void rn_dataset_image_size (const RnDataset *dataset, int64_t index, int *width,
                            int *height); /* as decoded */
/* Objects of known classes, difficult ones among them. */
void rn_dataset_ground_truth (const RnDataset *dataset, int64_t index, RnGroundTruth *truth);

/* The sets that lie under Repeat and Concat, each once: RepeatDataset of two VOC sets has two. Lent. */
guint rn_dataset_n_bases (const RnDataset *dataset);
const RnDataset *rn_dataset_base (const RnDataset *dataset, guint i);

/* 11 points if the prefix of the first base names VOC2007, else the area. */
RnApMode rn_dataset_default_ap_mode (const RnDataset *dataset);
/* One line: images, objects, classes, what was filtered out. (transfer full) */
char *rn_dataset_describe (const RnDataset *dataset);

G_END_DECLS

#endif
