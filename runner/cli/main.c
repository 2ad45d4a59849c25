/* main.c: finds the subcommand and hands over. What a command does is in its cmd-NAME.c. */
#include "config.h"

#include "runner/base/log.h"
#include "runner/base/registry.h"
#include "runner/cli/commands.h"

#include <glib.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  const char *name, *alias;
  const char *summary;
  RnCommandFunc run;
} Command;

static const Command commands[] = {
  { "train", NULL, "train a detector", rn_cmd_train },
  { "eval", "test", "mean average precision of a checkpoint", rn_cmd_eval },
  { "infer", NULL, "detections on photographs, as pictures and as JSON", rn_cmd_infer },
  { "browse", NULL, "pictures of what a training will see, with the anchors of each box", rn_cmd_browse },
  { "report", NULL, "losses, scores, time and memory of runs as a picture", rn_cmd_report },
  { "schedule", NULL, "learning rate and momentum of a run before it runs", rn_cmd_schedule },
  { "plan", NULL, "the memory of a run, to the byte, before it runs", rn_cmd_plan },
  { "bench", NULL, "what memory strategies cost and save, measured on random data", rn_cmd_bench },
  { "config", NULL, "the configuration with bases and changes resolved, and where each value comes from",
    rn_cmd_config },
  { "convert", NULL, "weights to and from PyTorch's files", rn_cmd_convert },
  { "devices", NULL, "list the CUDA devices that a run can compute on", rn_cmd_devices },
  { "hooks", NULL, "list the hooks, or explain one", rn_cmd_hooks },
  { "models", NULL, "list models, data sets, transforms and optimizers, or explain one", rn_cmd_models },
  { "new-hook", NULL, "write the beginnings of a hook of your own, in C", rn_cmd_new_hook },
  { "ops", NULL, "list the ops and their kernels, or explain one", rn_cmd_ops },
  { "strategies", NULL, "list the memory strategies and which of them go together, or explain one",
    rn_cmd_strategies },
  { "synth", NULL, "draw a small data set in VOC's layout", rn_cmd_synth },
  { NULL, NULL, NULL, NULL },
};

static const Command *
find_command (const char *name)
{
  for (const Command *c = commands; c->name != NULL; c++)
    if (strcmp (name, c->name) == 0 || g_strcmp0 (name, c->alias) == 0)
      return c;
  return NULL;
}

static void
print_help (void)
{
  g_print ("runner trains object detectors in little memory, from one YAML file.\n"
           "\n"
           "Usage:\n"
           "  runner COMMAND [OPTION...] [ARGUMENT...]\n"
           "\n"
           "Commands:\n");
  for (const Command *c = commands; c->name != NULL; c++)
    {
      g_autofree char *names =
          c->alias != NULL ? g_strdup_printf ("%s, %s", c->name, c->alias) : g_strdup (c->name);
      g_print ("  %-14s %s\n", names, c->summary);
    }
  g_print (
      "\n"
      "Each command explains itself: runner COMMAND --help. `runner --version` says what was built in.\n");
}

/* A file in the place of the command: somebody left the command out. */
static gboolean
is_config_name (const char *word)
{
  return g_str_has_suffix (word, ".yaml") || g_str_has_suffix (word, ".yml")
         || g_str_has_suffix (word, ".json") || g_str_has_suffix (word, ".py");
}

static int
unknown_command (const char *word)
{
  if (is_config_name (word))
    {
      g_printerr ("runner: the command comes first: runner train %s; `runner --help` lists them\n", word);
      return 2;
    }
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (const Command *c = commands; c->name != NULL; c++)
    {
      g_ptr_array_add (names, (gpointer) c->name);
      if (c->alias != NULL)
        g_ptr_array_add (names, (gpointer) c->alias);
    }
  g_ptr_array_add (names, NULL);
  const char *nearest = rn_suggest (word, (const char *const *) names->pdata);
  if (nearest != NULL)
    g_printerr ("runner: no command \"%s\"; did you mean \"%s\"?\n", word, nearest);
  else
    g_printerr ("runner: no command \"%s\"; `runner --help` lists them\n", word);
  return 2;
}

/*
 * Threads of kernels that wait must sleep: while they spin, loader threads and other programs stand still
 * (measured with two programs on two cores: up to seven times slower). OpenMP reads its environment before
 * main, so the program has to start once more. Where that is not possible, threads spin and nothing else is
 * different.
 */
static void
wait_passively (char **argv)
{
  if (g_getenv ("OMP_WAIT_POLICY") != NULL || g_getenv ("GOMP_SPINCOUNT") != NULL)
    return;
  g_autofree char *path = g_file_read_link ("/proc/self/exe", NULL);
  g_setenv ("OMP_WAIT_POLICY", "passive", TRUE);
  if (path != NULL)
    execv (path, argv);
}

/* What could not be written, to a full disk for one, must not pass for a result. */
static int
finish_output (int code)
{
  if (fflush (stdout) == 0 && !ferror (stdout))
    return code;
  g_printerr ("%s: the output could not be written\n", g_get_prgname ());
  return code != 0 ? code : 1;
}

int
rn_cli_main (int argc, char **argv)
{
  /* Only the character type: numbers are read and written with a point in every locale. */
  rn_log_init ();
  setlocale (LC_CTYPE, "");

  if (argc < 2)
    {
      g_printerr ("runner: which command? `runner --help` lists them\n");
      return 2;
    }
  gboolean is_help = strcmp (argv[1], "help") == 0;
  if (is_help && argc == 3 && find_command (argv[2]) != NULL) /* `help train` is `train --help` */
    {
      argv[1] = argv[2];
      argv[2] = (char *) "--help";
    }
  else if (is_help || strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0)
    {
      print_help ();
      return finish_output (0);
    }
  if (strcmp (argv[1], "--version") == 0 || strcmp (argv[1], "-V") == 0 || strcmp (argv[1], "version") == 0)
    {
      g_print ("%s", RN_BUILD_SUMMARY);
      return finish_output (0);
    }

  const Command *command = find_command (argv[1]);
  if (command == NULL)
    return unknown_command (argv[1]);

  wait_passively (argv);
  g_autofree char *program = g_strdup_printf ("runner %s", command->name);
  g_set_prgname (program);
  return finish_output (command->run (argc - 1, argv + 1));
}
