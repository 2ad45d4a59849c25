/* training-run.h: trainings of the small detector (SMALL_RESNET) on the device of test-device.h, or on the
 * CPU. */
#ifndef TESTS_GPU_TRAINING_RUN_H
#define TESTS_GPU_TRAINING_RUN_H

#include "kernels/cuda/device-cuda.h"
#include "runner/strategies.h"
#include "tests/gpu/test-device.h"
#include "tests/runner/small-detector.h"

#define MAX_ITERS 20
#define TF32 "device={type: cuda, tf32: true}"

/* How a run is made. */
typedef struct
{
  gboolean on_cpu;
  SimConfig sim;     /* what the simulation is then */
  gboolean measured; /* engines are chosen by time */
  RnCudaLayout layout;
  RnDType dtype; /* F32, or half precision */
  int strategy;  /* RnStrategyId, or -1 */
  int n_iters;
  const char *more[6]; /* lines for --set, NULL-ended */
  void (*plant) (RnDevice *device);
} Run;

/* What it gave. */
typedef struct
{
  int n_iters;
  double losses[MAX_ITERS];
  unsigned long allocations[MAX_ITERS]; /* so far */
  GArray *params;                       /* of float, at the end */
} Outcome;

void outcome_clear (Outcome *outcome);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Outcome, outcome_clear)

extern const SimConfig t4, a100;
extern Outcome *watched; /* of the run that is under way; what its iterations gave is noted here */

/* RN_TEST_LONG=1 */
extern gboolean is_long;

/* Once, in front of the tests; and the end of it. */
void training_runs_begin (void);
void training_runs_end (void);
/* From here on what is logged is kept, in @run_messages. */
void keep_messages (void);
extern GString *run_messages;
guint count_messages (const char *part);
/* The folder of their data set. */
const char *training_data (void);

GArray *read_params (RnRunner *runner); /* (transfer full) of float */
/* What --set has to say. (transfer full) */
GPtrArray *changes_of (const Run *run);
RnJob *open_job (const Run *run, const char *dir);
/* In @dir, ready to run. Weights stay random. */
RnTraining *open_run (const Run *run, const char *dir);
/* The whole of it. */
void run_training (const Run *run, Outcome *outcome);
/* Four iterations of @run at once; and two, then two more from the checkpoint of the second. */
void run_interrupted (Run run, Outcome *straight, Outcome *resumed);

/* One whose device is that of the configuration, by @device, not one that the test opens, and that saves each
 * iteration. */
Run configured_run (SimConfig sim, const char *device);
/* All of it in @dir; @is_resumed: from its `resume_from`, or else the last checkpoint in @dir. */
void run_configured (const Run *run, const char *dir, gboolean is_resumed, Outcome *outcome);

/* How far, relatively, losses may be from those of the CPU when activations are of @dtype. */
double loss_tolerance (RnDType dtype);
/* @relative: of the loss */
void assert_close (const Outcome *a, const Outcome *b, double relative);
/* Losses and parameters, bit by bit. */
void assert_same (const Outcome *a, const Outcome *b);

#endif
