/* sample-view.h: single samples as the loader makes them, but as pixels to look at. */
#ifndef RUNNER_DATASETS_SAMPLE_VIEW_H
#define RUNNER_DATASETS_SAMPLE_VIEW_H

#include "datasets/sample.h"

G_BEGIN_DECLS

typedef struct _RnSampleView RnSampleView;

/*
 * Allocates for the largest image of @dataset, which is lent. @seed: of the augmentations, as of a loader.
 * Errors: RN_DEVICE_ERROR_MEMORY.
 */
RnSampleView *rn_sample_view_new (const RnDataset *dataset, guint64 seed, GError **error);
void rn_sample_view_free (RnSampleView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSampleView, rn_sample_view_free)

/*
 * Sample @index of @epoch after all transforms but those on the values of pixels: ->pixels is RGB of
 * ->width x ->height, ->gt and ->difficult hold its boxes (of the annotation where a test pipeline loads
 * none), ->meta the rest. Lent until the next call. Errors name the image file.
 */
const RnSample *rn_sample_view_load (RnSampleView *view, int64_t index, guint64 epoch, GError **error);

G_END_DECLS

#endif
