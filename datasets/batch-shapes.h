/* batch-shapes.h: shared by batch-shapes.c (what can be) and batch-buckets.c (what is planned for). */
#ifndef RUNNER_DATASETS_BATCH_SHAPES_H
#define RUNNER_DATASETS_BATCH_SHAPES_H

#include "datasets/sampler-private.h"

G_BEGIN_DECLS

/* Where sizes are drawn, batches are rounded up to one of at most so many shapes: as many as plans are kept.
 */
#define RN_MAX_RANDOM_SHAPES 8

/* Sorts @sides (of int) and leaves each once. */
void rn_sides_make_distinct (GArray *sides);

/*
 * @shapes (of RnBatchShape) holds every batch already. Adds those that save the most padding, up to
 * RN_MAX_RANDOM_SHAPES in all, judged by batches that are drawn as the run will draw them. The result depends
 * on the data set, its pipeline and the batch size, not on the seed of the run.
 */
void rn_add_buckets (const RnSampler *sampler, const RnDataset *dataset, GArray *shapes);

G_END_DECLS

#endif
