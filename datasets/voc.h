/* voc.h: indexes one split of a folder in the layout of Pascal VOC. */
#ifndef RUNNER_DATASETS_VOC_H
#define RUNNER_DATASETS_VOC_H

#include "datasets/dataset.h"
#include "datasets/index.h"

G_BEGIN_DECLS

/* aeroplane ... tvmonitor, NULL-ended. */
extern const char *const rn_voc_class_names[];

/*
 * Reads the split @ann_file (a list, or a folder of XML files), and for each of its names the header of
 * PREFIX/JPEGImages/ID.{jpg,jpeg,png} and PREFIX/Annotations/ID.xml, in threads. Exchanged corners are put
 * right, boxes are clipped to their image, those of no area or wholly outside are dropped; all that is named
 * and counted. The labels index the index's names.
 */
RnIndex *rn_voc_index (const char *ann_file, const char *prefix, const RnDatasetOptions *options,
                       GError **error);

G_END_DECLS

#endif
