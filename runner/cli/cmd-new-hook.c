/* cmd-new-hook.c: `runner new-hook`: a folder with a hook that compiles, runs and has a test. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/cli/common.h"
#include "runner/new-hook.h"

int
rn_cmd_new_hook (int argc, char **argv)
{
  const RnUsage usage = {
    .arguments = "NAME [DIR]",
    .summary = "Writes the beginnings of a hook in C: source, Makefile, test and README, in a new folder.",
    .examples = "  runner new-hook my_hook\n"
                "  make -C my_hook check\n"
                "  runner train configs/retinanet_shapes.yaml --set 'plugins=[./my_hook]' "
                "'custom_hooks+={type: MyHook}'\n",
    .n_min = 1,
    .n_max = 2,
  };
  GError *error = NULL;
  g_auto (RnOptions) options = { 0 };
  g_auto (RnNewHookNames) names = { 0 };

  if (!rn_options_parse (&usage, argc, argv, &options, &error)
      || !rn_new_hook_names (options.arguments[0], &names, &error))
    return rn_cli_fail (error);
  const char *dir = options.arguments[1] != NULL ? options.arguments[1] : names.name;
  if (!rn_new_hook_write (&names, dir, &error))
    return rn_cli_fail (error);
  g_print ("%s/%s.c: the hook %s. Next:\n"
           "  make -C %s check\n"
           "  runner train CONFIG --set 'plugins=[%s%s/%s.so]' 'custom_hooks+={type: %s}'\n",
           dir, names.name, names.type, dir, g_path_is_absolute (dir) ? "" : "./", dir, names.name,
           names.type);
  return 0;
}
