/* program.c: the program is one call into the library, which plugins are linked with too. */
#include "config.h"

#include "runner/cli/commands.h"

int
main (int argc, char **argv)
{
  return rn_cli_main (argc, argv);
}
