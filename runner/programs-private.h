/* programs-private.h: shared by programs.c (planning, memory) and programs-run.c (running). */
#ifndef RUNNER_PROGRAMS_PRIVATE_H
#define RUNNER_PROGRAMS_PRIVATE_H

#include "runner/programs.h"

G_BEGIN_DECLS

#define RN_MAX_LOSSES 4

/* The plan of one shape, with the values that the host writes and reads. */
typedef struct
{
  RnShape shape;
  RnPlan *plan;
  RnExecutor *executor; /* NULL until it is first run */
  guint64 last_use;
  RnValueId pixels, sizes, table, labels, positives, n_positives, avg_factor, grad_scale,
      hyper; /* RN_NO_VALUE where the mode has none */
  int n_levels;
  RnValueId losses[RN_MAX_LOSSES][RN_MAX_LEVELS];
  RnValueId topk[RN_MAX_LEVELS][RN_TOPK_OUT_COUNT];
} RnProgram;

struct _RnPrograms
{
  RnModel *model;   /* lent */
  RnDevice *device; /* lent */
  RnProgramsOptions options;
  RnShape *shapes;
  int n_shapes;

  RnParamSet *params;
  RnParamMultipliers *multipliers; /* [params] */
  GArray *lr_mults;                /* of double, of the groups; empty before planning */
  GPtrArray *cache;                /* of RnProgram */
  guint64 clock;
  RnUpdateSpec update_spec; /* from planning on */
  RnPlan *update_plan;      /* NULL where nothing is updated, or all of it in backward */
  RnUpdateParts update_parts;
  RnExecutor *update;

  gboolean planned, reserved;
  gboolean is_bound; /* of some plan: see plan.h */
  RnMemory memory;
  RnArenas arenas;

  RnProgram *current;                               /* of the last forward */
  float level_losses[RN_MAX_LOSSES][RN_MAX_LEVELS]; /* of the last forward */
  int n_loss_levels;
  gboolean has_due_losses;          /* they may still be on their way */
  RnStatus losses_status;           /* of their copies */
  float grad_stats[RN_STATS_COUNT]; /* of the last guarded step, likewise */
  gboolean has_due_stats;
  RnStatus stats_status;
  gsize highest_byte, highest_host_byte;
};

/* Arrays that the optimizer keeps. */
int rn_programs_n_states (const RnPrograms *programs);

/* Forgets the plans and makes them again, with what kernels have chosen meanwhile; programs are new. */
gboolean rn_programs_plan_again (RnPrograms *programs, GError **error);
/* The program of a shape with its executor, from the cache or new. The arena must be reserved. */
RnProgram *rn_programs_prepare (RnPrograms *programs, RnShape shape, GError **error);

/* The batch's pixels and targets to the values that the host writes. */
gboolean rn_programs_copy_batch (RnPrograms *programs, const RnProgram *program, const RnBatch *batch,
                                 float grad_scale, GError **error);
/* The losses of @program, which has run forward, to level_losses: queued where the device can do that. */
gboolean rn_programs_queue_losses (RnPrograms *programs, const RnProgram *program, GError **error);
/* Likewise to grad_stats, of the update program, which has run its part for them. */
gboolean rn_programs_queue_stats (RnPrograms *programs, GError **error);
/* Waits for both, whatever became of them. */
void rn_programs_settle_all (RnPrograms *programs);

G_END_DECLS

#endif
