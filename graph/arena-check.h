/* arena-check.h: compares what each op really writes with what the plan says it writes. Used by the
 * executor's checking mode. */
#ifndef GRAPH_ARENA_CHECK_H
#define GRAPH_ARENA_CHECK_H

#include "graph/plan.h"

G_BEGIN_DECLS

typedef struct _RnArenaCheck RnArenaCheck;

/* @arenas: by RnSpace; that of the host is NULL where the plan has none. Errors: RN_DEVICE_ERROR_MEMORY for
 * the copies of the arenas; below RN_DEVICE_ERROR_KERNEL, for what an op did, and for copies that failed. */
RnArenaCheck *rn_arena_check_new (const RnPlan *plan, void *const arenas[RN_N_SPACES], GError **error);
void rn_arena_check_free (RnArenaCheck *check);

/* Before op 0, after the host has written the inputs. */
gboolean rn_arena_check_start (RnArenaCheck *check, GError **error);
/* It has written one later, which is in buffer @buffer. */
gboolean rn_arena_check_host_wrote (RnArenaCheck *check, int buffer, GError **error);
gboolean rn_arena_check_before (RnArenaCheck *check, int op, GError **error);
gboolean rn_arena_check_after (RnArenaCheck *check, int op, GError **error);
gsize rn_arena_check_highest_byte (const RnArenaCheck *check, RnSpace space);

G_END_DECLS

#endif
