/* commands.h: the subcommands of the program, one function each. They return the exit code of the program. */
#ifndef RUNNER_CLI_COMMANDS_H
#define RUNNER_CLI_COMMANDS_H

#include <runner/export.h>

/* 0 done, 1 failed, 2 usage or configuration, 3 no such device or it would not fit, 128 + n stopped by signal
 * n. */
typedef int (*RnCommandFunc) (int argc, char **argv); /* argv[0] is the command's name */

/* The whole program: finds the command and runs it. Returns the exit code. */
RN_API int rn_cli_main (int argc, char **argv);

int rn_cmd_bench (int argc, char **argv);
int rn_cmd_browse (int argc, char **argv);
int rn_cmd_config (int argc, char **argv);
int rn_cmd_convert (int argc, char **argv);
int rn_cmd_devices (int argc, char **argv);
int rn_cmd_hooks (int argc, char **argv);
int rn_cmd_models (int argc, char **argv);
int rn_cmd_ops (int argc, char **argv);
int rn_cmd_eval (int argc, char **argv);
int rn_cmd_infer (int argc, char **argv);
int rn_cmd_new_hook (int argc, char **argv);
int rn_cmd_plan (int argc, char **argv);
int rn_cmd_report (int argc, char **argv);
int rn_cmd_schedule (int argc, char **argv);
int rn_cmd_strategies (int argc, char **argv);
int rn_cmd_synth (int argc, char **argv);
int rn_cmd_train (int argc, char **argv);

#endif
