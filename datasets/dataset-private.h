/* dataset-private.h: what a data set consists of, for the sources of this folder. */
#ifndef RUNNER_DATASETS_DATASET_PRIVATE_H
#define RUNNER_DATASETS_DATASET_PRIVATE_H

#include "datasets/dataset.h"
#include "datasets/index.h"
#include "datasets/pipeline.h"

G_BEGIN_DECLS

#define RN_DATASET_MAX_DEPTH 8 /* of data sets in data sets */

/* Pixels; training leaves out images with a shorter side, as MMDetection does. */
#define RN_DATASET_MIN_SIDE 32

/* A view (parts is set) or a base (index is set). */
struct _RnDataset
{
  int64_t size;
  gboolean test_mode;
  char **classes; /* of the whole and of every base */
  int n_classes;

  GPtrArray *parts; /* RnDataset, owned; a view is these, one after the other, and that @times times */
  int64_t times;
  GPtrArray *bases; /* RnDataset, lent; of the whole only */

  char *ann_file; /* the list or folder that the images come from */
  char *prefix;
  RnIndex *index;
  RnPipeline *pipeline;
  gboolean filter_empty_gt;
  int min_size;                         /* pixels; smaller objects count as difficult. 0: none */
  const RnNode *classes_node;           /* while the set is made */
  int64_t n_read, n_too_small, n_empty; /* images read, and filtered out for two reasons */
};

/*
 * Sizes, boxes and choices of a sample, of which seed, epoch and room for the meta's gt_boxes and gt_labels
 * are the caller's; nothing is decoded.
 */
void rn_dataset_plan (const RnDataset *dataset, int64_t index, RnSample *sample);
/* The same and the pixels; room for these is the caller's too. */
gboolean rn_dataset_load (const RnDataset *dataset, int64_t index, RnSample *sample, GError **error);

/* Adds to @ranges (of RnSizeRange) all sizes that the image can come to, its own padding included. */
void rn_dataset_bound (const RnDataset *dataset, int64_t index, GArray *ranges);

/* The largest of what one image needs, over the whole set. */
typedef struct
{
  gsize pixels; /* at any step of its pipeline */
  guint objects;
} RnDatasetMaxima;

RnDatasetMaxima rn_dataset_maxima (const RnDataset *dataset);

/*
 * Settles the class names of @bases and turns the labels of their indices into classes; objects of other
 * names go. @names_out is NULL-ended (transfer full). Errors: RN_CONFIG_ERROR, RN_DATA_ERROR_EMPTY.
 */
gboolean rn_dataset_settle_classes (GPtrArray *bases, const RnDatasetOptions *options, char ***names_out,
                                    GError **error);

/*
 * The names that `classes:` gives: a list, a file with a name per line, or VOC's where there is nothing; each
 * once, and printable.
 * "auto", for which data are needed, is up to the caller. Errors: RN_CONFIG_ERROR, RN_DATA_ERROR. (transfer
 * full)
 */
char **rn_class_names_read (const RnNode *node, const char *data_root, GError **error);

/* @path under @root, if it is relative and there is a root. (transfer full) */
char *rn_dataset_resolve_path (const char *root, const char *path);

G_END_DECLS

#endif
