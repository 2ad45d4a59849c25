/* stepper.h: a training of the small detector that is not run, but driven step by step on one batch. */
#ifndef TESTS_RUNNER_STEPPER_H
#define TESTS_RUNNER_STEPPER_H

#include "runner/task.h"
#include "tests/runner/small-detector.h"

G_BEGIN_DECLS

typedef struct
{
  char *dir;
  RnTraining *training;
  RnTask *task;
  const RnBatch *batch;
} Stepper;

/* @data: small_detector_data. @changes: as after --set, NULL-ended. */
void stepper_open (Stepper *stepper, const char *data, const char *const *changes);
void stepper_close (Stepper *stepper);
RnPrograms *stepper_programs (const Stepper *stepper);

/* read_param or read_grad of the task. */
typedef gboolean (*StepperRead) (RnTask *task, guint param, float *values, GError **error);
gint64 stepper_n_elements (const Stepper *stepper, guint param);
float *stepper_read (const Stepper *stepper, StepperRead read, guint param); /* (transfer full) */
/* All parameters and buffers, one after the other. (transfer full) of float */
GArray *stepper_read_all (const Stepper *stepper, StepperRead read, gboolean trained_only);
/* Bit by bit. */
void stepper_assert_same (const GArray *a, const GArray *b);

void stepper_add_gradients (const Stepper *stepper);
void stepper_update (const Stepper *stepper, const RnTaskUpdate *step);
/* From zeroed gradients on, with fixed settings. @is_first: the optimizer has no state yet. */
void stepper_train (const Stepper *stepper, gboolean is_first);

G_END_DECLS

#endif
