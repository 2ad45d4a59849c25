/* pipeline.h: the transforms of one data set, in order. Does not change once it is made: threads share it. */
#ifndef RUNNER_DATASETS_PIPELINE_H
#define RUNNER_DATASETS_PIPELINE_H

#include "datasets/transform.h"

G_BEGIN_DECLS

typedef struct _RnPipeline RnPipeline;

/* From a list of maps with `type:`. Errors: RN_CONFIG_ERROR with file:line. */
RnPipeline *rn_pipeline_new (const RnNode *list, gboolean test_mode, GError **error);
void rn_pipeline_free (RnPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPipeline, rn_pipeline_free)

/*
 * From ori_width, ori_height and index of the meta, truth, seed and epoch of @sample to its sizes, scales,
 * flip, boxes and decisions. Equal input gives equal output.
 */
void rn_pipeline_plan (const RnPipeline *pipeline, RnSample *sample);
/* Plans, then runs all steps. Errors name the image file. */
gboolean rn_pipeline_run (const RnPipeline *pipeline, RnSample *sample, GError **error);

/*
 * Adds to @ranges (of RnSizeRange) all padded sizes that an image of @width x @height can come to; one exact
 * size where nothing is drawn. Gives the largest area, in pixels, that the image has on its way.
 */
gsize rn_pipeline_bound (const RnPipeline *pipeline, int width, int height, GArray *ranges);

G_END_DECLS

#endif
