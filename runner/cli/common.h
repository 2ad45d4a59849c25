/* common.h: what the subcommands share: options, loading the configuration, one way to end with an error. */
#ifndef RUNNER_CLI_COMMON_H
#define RUNNER_CLI_COMMON_H

#include <glib.h>
#include <runner/keys.h>
#include <runner/node.h>

G_BEGIN_DECLS

/* Of commands that use a trained model. */
#define RN_NO_EMA_HELP \
  "Of a checkpoint with a running mean of the weights (EMAHook), take the weights themselves"

typedef enum
{
  RN_OPTIONS_CONFIG = 1 << 0, /* CONFIG is the first argument, with --set, --plugin-path */
  RN_OPTIONS_RUN = 1 << 1,    /* --work-dir, --device, --threads, --seed, --deterministic; with CONFIG */
  RN_OPTIONS_RESUME = 1 << 2, /* --resume, --resume-from; with CONFIG */
} RnOptionGroups;

/* Values of the shared options; zero where not given. */
typedef struct
{
  char *config_path;
  char **overrides;   /* what stood after --set, in order; NULL-ended, or NULL */
  char **plugin_path; /* folders; NULL-ended, or NULL */
  char *work_dir, *device;
  int threads; /* 0: not given */
  gint64 seed; /* RN_NULL_INT: not given */
  gboolean deterministic;
  gboolean resume; /* from the newest checkpoint of the work dir */
  char *resume_from;
  char **arguments; /* that follow CONFIG; NULL-ended */
} RnOptions;

void rn_options_clear (RnOptions *options);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnOptions, rn_options_clear)

/* What a command is, for its --help. */
typedef struct
{
  const char *arguments; /* "CONFIG CHECKPOINT"; with CONFIG first if the groups hold it */
  const char *summary;   /* one line */
  const char *examples;  /* lines, each indented by two spaces */
  int n_min, n_max;      /* arguments after CONFIG; n_max -1: any number */
  RnOptionGroups groups;
  const GOptionEntry *entries; /* the command's own options; may be NULL */
} RnUsage;

/**
 * rn_options_parse:
 * @argv: the command's own, from its name on
 *
 * --help prints and leaves the program with 0, as GOption does. Several values may follow one --set, as with
 * MMDetection's --cfg-options: those that contain "=" or begin with "~", up to the next option. Errors:
 * RN_CONFIG_ERROR_USAGE.
 */
gboolean rn_options_parse (const RnUsage *usage, int argc, char **argv, RnOptions *options, GError **error);

/*
 * Loads CONFIG with its overrides and puts the values of the other options into the tree: what is on the
 * command line wins. The tree always has a work_dir. (transfer full)
 */
RnNode *rn_options_load (const RnOptions *options, GError **error);
/* The same with memory.budget set to @budget, if it is not NULL: what --budget says. */
RnNode *rn_options_load_with_budget (const RnOptions *options, const char *budget, GError **error);

/* For commands that need no weights: says why training would stop for want of them. */
void rn_cli_note_weights (const RnNode *root);

/* Prints "runner COMMAND: message" to stderr and returns the exit code for @error, which it frees. */
int rn_cli_fail (GError *error);

G_END_DECLS

#endif
