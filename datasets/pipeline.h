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

/* From ori_width and ori_height of @meta to its other sizes and scales. */
void rn_pipeline_plan (const RnPipeline *pipeline, RnSampleMeta *meta);
/* Plans, then runs all steps. Errors name the image file. */
gboolean rn_pipeline_run (const RnPipeline *pipeline, RnSample *sample, GError **error);

G_END_DECLS

#endif
