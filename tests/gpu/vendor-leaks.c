/*
 * vendor-leaks.c: for tests that link the real cuDNN, in builds with a sanitizer. The library keeps what it
 * allocates in libraries that it has unloaded by the end, so that no suppression can name them. What our own
 * code does not free shows on the simulated cuDNN, which counts descriptors.
 */
#include "config.h"

/* Asked by LeakSanitizer; nothing to others. */
int __lsan_is_turned_off (void); /* NOLINT(bugprone-reserved-identifier): its name */

int
__lsan_is_turned_off (void) /* NOLINT(bugprone-reserved-identifier) */
{
  return 1;
}
