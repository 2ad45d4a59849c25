/*
 * arena.h: one big block of memory whose size is known from the start. It never grows: offsets inside it are
 * the planner's business.
 */
#ifndef RUNNER_BASE_ARENA_H
#define RUNNER_BASE_ARENA_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct _RnArena RnArena;

/**
 * rn_arena_new:
 * @name: what it is for, for messages ("plan", "params")
 * @size: bytes; 0 is allowed and takes one page
 *
 * Anonymous pages, zeroed, aligned to a page (so to 64 bytes and more), huge pages where the system grants
 * them.
 *
 * Returns: (transfer full): the arena, or NULL with RN_DEVICE_ERROR_MEMORY
 */
RnArena *rn_arena_new (const char *name, gsize size, GError **error);
void rn_arena_free (RnArena *arena);

void *rn_arena_data (const RnArena *arena); /* lent */
gsize rn_arena_size (const RnArena *arena); /* as asked for */

/*
 * Makes every page resident now, contents kept: a system that is short of memory fails here and not in the
 * middle of a run.
 */
void rn_arena_touch (RnArena *arena);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnArena, rn_arena_free)

G_END_DECLS

#endif
