/*
 * executor.h: runs the ops of a plan in its arenas. Nothing is chosen or allocated here.
 */
#ifndef GRAPH_EXECUTOR_H
#define GRAPH_EXECUTOR_H

#include "graph/plan.h"

G_BEGIN_DECLS

typedef struct _RnExecutor RnExecutor;

/* The memory that executors share: one runs at a time. By RnSpace. */
typedef struct
{
  void *memory[RN_N_SPACES];
  gsize bytes[RN_N_SPACES];
} RnArenas;

/* @arenas: of at least plan->arena_bytes and plan->host_arena_bytes; copied, the memory is lent. Finalizes
 * the plan; what lies in the arenas is lost. */
RnExecutor *rn_executor_new_in (RnPlan *plan, const RnArenas *arenas, GError **error);
/* The same for a plan that has nothing in host memory. */
RnExecutor *rn_executor_new (RnPlan *plan, void *arena, gsize arena_bytes, GError **error);
void rn_executor_free (RnExecutor *executor); /* not the plan */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnExecutor, rn_executor_free)

/* Address of a value: in its arena, or in the parameter set. */
void *rn_executor_address (const RnExecutor *executor, RnValueId value);
/* The host has written the input @value after op 0: the checking mode takes note of it. */
gboolean rn_executor_host_wrote (RnExecutor *executor, RnValueId value, GError **error);
/* Runs ops [first, end), or queues them on a device that works later. Errors: RN_DEVICE_ERROR_KERNEL with op,
 * scope and shapes. */
gboolean rn_executor_run (RnExecutor *executor, int first, int end, GError **error);

/*
 * The checking mode: before every op each arena is compared with a copy; after it, every changed byte must
 * lie in a planned output or workspace of that op, and every byte of each planned output must have been
 * written. Keeps the highest byte that was written, and plan->measures. Slow: twice the arena is read per op,
 * and a copy of the arena is kept on the host; of a device with memory of its own a second one, and the arena
 * travels for each op.
 */
gboolean rn_executor_enable_check (RnExecutor *executor, GError **error);
gsize rn_executor_highest_byte (const RnExecutor *executor);      /* offset after it; checking mode only */
gsize rn_executor_highest_host_byte (const RnExecutor *executor); /* likewise, of the host's arena */

G_END_DECLS

#endif
