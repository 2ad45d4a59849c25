/* arena-check.h: compares what each op really writes with what the plan says it writes. Used by the
 * executor's checking mode. */
#ifndef GRAPH_ARENA_CHECK_H
#define GRAPH_ARENA_CHECK_H

#include "graph/plan.h"

G_BEGIN_DECLS

typedef struct _RnArenaCheck RnArenaCheck;

/* @arena must be host memory. Errors: RN_DEVICE_ERROR_MEMORY for the copy of the arena. */
RnArenaCheck *rn_arena_check_new (const RnPlan *plan, guint8 *arena, GError **error);
void rn_arena_check_free (RnArenaCheck *check);

void rn_arena_check_start (RnArenaCheck *check); /* before op 0, after the host has written the inputs */
void rn_arena_check_before (RnArenaCheck *check, int op);
gboolean rn_arena_check_after (RnArenaCheck *check, int op, GError **error);
gsize rn_arena_check_highest_byte (const RnArenaCheck *check);

G_END_DECLS

#endif
