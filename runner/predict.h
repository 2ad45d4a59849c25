/*
 * predict.h: what a run would take with other lines in its configuration: memory, and the time of a step as a
 * ratio. All of it by planning; nothing runs.
 */
#ifndef RUNNER_PREDICT_H
#define RUNNER_PREDICT_H

#include "graph/cost.h"
#include "runner/job.h"

G_BEGIN_DECLS

/* Stages of the backbone that train, first to last. */
typedef struct
{
  int n, blocks[RN_CP_MAX_STAGES];
} RnTrainedStages;

typedef struct
{
  RnMemory memory;
  double seconds;  /* of one step of the largest training shape: a model, see graph/cost.h */
  RnPlanWork work; /* of the same */
  RnTrainedStages stages;
} RnPrediction;

/* What a run has to fit into. */
typedef struct
{
  guint64 bytes;
  gboolean is_budget;   /* `memory.budget` is a size; else it is what is free */
  gboolean counts_host; /* host memory comes out of the same bytes */
} RnRoom;

/* What the device has free, all of it for one of a profile; where its memory is the process's own, what the
 * system has. 0 for a plan of a device that nobody knows. */
RnRoom rn_room_free (const RnJob *job);
/* By `memory.budget`: that size; else what the device has free, less a tenth. @what asks for it.
 * RN_DEVICE_ERROR_MISSING where that is not known. */
gboolean rn_room_of (const RnJob *job, const char *what, RnRoom *room, GError **error);
/* What a run takes of it. */
guint64 rn_room_needed (const RnRoom *room, const RnMemory *memory);

/* Seconds of a step of @plan, one of @programs, with the update that follows it: see graph/cost.h. */
double rn_predict_step (RnPrograms *programs, const RnPlan *plan);

typedef struct _RnPredictor RnPredictor;

/* @job: lent, with its model and the data that its shapes come from. @shapes: of RnShape, those of the run.
 */
RnPredictor *rn_predictor_new (const RnJob *job, const GArray *shapes);
void rn_predictor_free (RnPredictor *predictor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPredictor, rn_predictor_free)

/* The first training shape with the most pixels. */
RnShape rn_predictor_largest (const RnPredictor *predictor);

typedef enum
{
  RN_PREDICT_BOUND,   /* as LARGEST, but without offsets: the least that it can need; fast */
  RN_PREDICT_LARGEST, /* of each mode the shape with the most pixels: a run of more shapes needs no less */
  RN_PREDICT_ALL,     /* exactly, over all shapes */
} RnPredictScope;

/*
 * rn_predict:
 * @lines: (nullable): NULL-ended, each as after --set; NULL: as the configuration is
 * @batch: images per training batch; 0: as the shapes are
 *
 * Errors: what the configuration is refused for; a line that would have no effect is one.
 */
gboolean rn_predict (RnPredictor *predictor, const char *const *lines, int batch, RnPredictScope scope,
                     RnPrediction *prediction, GError **error);
/* The same for a changed copy of the configuration. @root: (transfer full). */
gboolean rn_predict_root (RnPredictor *predictor, RnNode *root, int batch, RnPredictScope scope,
                          RnPrediction *prediction, GError **error);

G_END_DECLS

#endif
