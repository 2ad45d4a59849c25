/*
 * plan.h: the memory plan of one graph: kernels chosen, and a fixed offset for every value and every
 * workspace in one arena of the device; values of RN_SPACE_HOST have an arena of their own.
 *
 * A buffer is a set of values that share storage (in-place chains). Its life runs from the op that first
 * writes it to the op that last reads it. Inputs are alive from op 0; outputs to the end, kept values to the
 * first backward op. Forward and backward are planned as one list, so what backward needs stays.
 */
#ifndef GRAPH_PLAN_H
#define GRAPH_PLAN_H

#include "graph/graph.h"
#include "graph/passes.h"

G_BEGIN_DECLS

#define RN_ARENA_ALIGNMENT 64

typedef struct
{
  gsize bytes;
  int first, last; /* ops, inclusive */
  gsize offset;
  RnValueId value; /* the first value that lives here; RN_NO_VALUE for a workspace */
  int op;          /* of a workspace, else -1 */
  RnSpace space;   /* whose arena; a workspace is of the device */
} RnBuffer;

/* What a checked run saw of one op. */
typedef struct
{
  gsize planned_bytes, written_bytes; /* of its outputs and workspace: all, and up to the last byte written */
  double seconds;
} RnOpMeasure;

typedef struct
{
  RnGraph *graph;       /* owned */
  RnDevice *device;     /* lent */
  RnOpCall *calls;      /* [ops] */
  RnPrepared *prepared; /* [ops] */
  RnBuffer *buffers;    /* those of the device, then those of the host */
  int n_buffers, n_device_buffers;
  int *buffer_of;         /* [values], -1 for parameters and their gradients */
  int *workspace_of;      /* [ops], -1 for none */
  gsize arena_bytes;      /* highest end of a buffer */
  gsize live_bound_bytes; /* largest sum of live buffers at one op: no placement can need less */
  gsize workspace_bytes;  /* largest workspace of one op */
  gboolean is_bound; /* some workspaces are bounds: a plan that is made when the kernels have measured has
                      * smaller ones */
  int peak_op;       /* an op at which live_bound_bytes is reached */
  gsize host_arena_bytes, host_live_bound_bytes; /* the same of the host's arena */
  gint64 macs;                  /* convolution multiply-adds of the forward ops, for the whole batch */
  gboolean finalized, measured; /* done once */
  RnOpMeasure *measures;        /* [ops] by the last checked run (executor.h); NULL: there was none */
} RnPlan;

/*
 * rn_plan_new:
 * @graph: (transfer full) after the passes
 *
 * Chooses kernels (describing only: fast), in-place storage if @inplace, lives and offsets. Nothing is
 * allocated on the device. Errors: RN_DEVICE_ERROR_KERNEL.
 */
RnPlan *rn_plan_new (RnGraph *graph, RnDevice *device, gboolean inplace, GError **error);
/* The same without offsets, to compare many plans: arenas are as large as the live bounds. It cannot run. */
RnPlan *rn_plan_new_bounds (RnGraph *graph, RnDevice *device, gboolean inplace, GError **error);
void rn_plan_free (RnPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPlan, rn_plan_free)

/* Creates the kernels' compiled code. Idempotent. */
gboolean rn_plan_finalize (RnPlan *plan, GError **error);

/* No two buffers that are alive at the same op overlap, every read comes after a write of the same buffer's
 * value. NULL or the fault. */
char *rn_plan_check (const RnPlan *plan);

/* Bytes of the device's arena that are alive at op @i. */
gsize rn_plan_live_bytes (const RnPlan *plan, int i);
gsize rn_plan_host_live_bytes (const RnPlan *plan, int i);

/*
 * Offsets for buffers with lives, first in placement.c: @buffers[i].offset is set; returns the arena's size.
 * Tries several orders (largest first, ...) and keeps the best; exact only by luck, so callers compare with
 * the live bound.
 */
gsize rn_place_buffers (RnBuffer *buffers, int n);

G_END_DECLS

#endif
