#include "config.h"
#include "runner/base/signals.h"

#include <signal.h>

static const int caught[] = { SIGINT, SIGTERM };
static volatile int pending; /* the first signal; handlers run in any thread, so accessed atomically */

static void
handle (int number)
{
  int none = 0;
  __atomic_compare_exchange_n (&pending, &none, number, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void
rn_signals_install (void)
{
  g_atomic_int_set (&pending, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (caught); i++)
    {
      struct sigaction old, action = { .sa_handler = handle, .sa_flags = SA_RESTART | SA_RESETHAND };

      sigemptyset (&action.sa_mask);
      if (sigaction (caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction (caught[i], &action, NULL); /* RESETHAND: the second one finds the default action */
    }
}

int
rn_signals_pending (void)
{
  return g_atomic_int_get (&pending);
}

void
rn_signals_remove (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (caught); i++)
    {
      struct sigaction old;

      if (sigaction (caught[i], NULL, &old) == 0 && old.sa_handler == handle)
        signal (caught[i], SIG_DFL);
    }
  g_atomic_int_set (&pending, 0);
}
