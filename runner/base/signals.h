/*
 * signals.h: a polite end. SIGINT and SIGTERM set a flag that the loop looks at; the second one of a kind
 * kills, as it would by default.
 */
#ifndef RUNNER_BASE_SIGNALS_H
#define RUNNER_BASE_SIGNALS_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * Catches SIGINT and SIGTERM from now on and forgets what came before. A signal that the parent ignores
 * (nohup, background jobs) stays ignored.
 */
void rn_signals_install (void);
/* The number of the first signal that came since, or 0. Any thread. */
int rn_signals_pending (void);
/* Gives both signals their default action back and forgets what came. */
void rn_signals_remove (void);

G_END_DECLS

#endif
