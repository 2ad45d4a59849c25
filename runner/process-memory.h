/* process-memory.h: what the system says about memory. */
#ifndef RUNNER_PROCESS_MEMORY_H
#define RUNNER_PROCESS_MEMORY_H

#include <glib.h>

G_BEGIN_DECLS

/* Resident bytes of this process, now and at its peak; 0 where the system does not say. */
void rn_process_memory (guint64 *current, guint64 *peak);
/*
 * Bytes that this process may still take: the system's, or what its control group leaves; G_MAXUINT64 where
 * nobody says. RN_FREE_MEMORY in the environment, a size, stands in their place: what would happen on a
 * smaller machine.
 */
guint64 rn_available_memory (void);

G_END_DECLS

#endif
