/* program.c: the program is one call into the library, which plugins are linked with too. */
#include "config.h"

#include "runner/cli/commands.h"

int
main (int argc, char **argv)
{
  return rn_cli_main (argc, argv);
}

#ifdef __SANITIZE_ADDRESS__
/* LeakSanitizer asks the program for this before it asks the library, whose suppression it is about:
 * draw/surface.c. */
__attribute__ ((visibility ("default"))) const char *__lsan_default_options (void);

const char *
__lsan_default_options (void)
{
  return "print_suppressions=0";
}
#endif
