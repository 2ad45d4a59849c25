#include "config.h"

#include "runner/cli/common.h"

#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/config/config.h"
#include "runner/plugin.h"
#include "runner/weights/load-start.h"

#include <string.h>

void
rn_options_clear (RnOptions *options)
{
  g_free (options->config_path);
  g_strfreev (options->overrides);
  g_strfreev (options->plugin_path);
  g_free (options->work_dir);
  g_free (options->device);
  g_free (options->resume_from);
  g_strfreev (options->arguments);
  memset (options, 0, sizeof *options);
}

/* "--set", or "--set=VALUE" with *value set. */
static gboolean
is_set_option (const char *arg, const char **value)
{
  static const char *const names[] = { "--set", "--cfg-options" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_str_has_prefix (arg, names[i]))
      {
        const char *rest = arg + strlen (names[i]);
        *value = *rest == '=' ? rest + 1 : NULL;
        return *rest == '=' || *rest == '\0';
      }
  return FALSE;
}

/*
 * GOption takes one value per option and cannot tell `--resume CONFIG` from `--resume PATH`, so these two are
 * brought into a form it knows:
 * --set a=1 b=2  ->  --set=a=1 --set=b=2      --resume=PATH  ->  --resume-from=PATH
 */
static char **
normalise_arguments (int argc, char **argv)
{
  g_autoptr (GStrvBuilder) out = g_strv_builder_new ();
  gboolean options_ended = FALSE;

  for (int i = 0; i < argc; i++)
    {
      const char *value;
      options_ended = options_ended || g_str_equal (argv[i], "--");
      if (!options_ended && is_set_option (argv[i], &value) && (value != NULL || i + 1 < argc))
        {
          g_autofree char *first = g_strconcat ("--set=", value != NULL ? value : argv[++i], NULL);
          g_strv_builder_add (out, first);
          for (; i + 1 < argc && argv[i + 1][0] != '-'
                 && (strchr (argv[i + 1], '=') != NULL || argv[i + 1][0] == '~');
               i++)
            {
              g_autofree char *next = g_strconcat ("--set=", argv[i + 1], NULL);
              g_strv_builder_add (out, next);
            }
        }
      else if (!options_ended && g_str_has_prefix (argv[i], "--resume="))
        {
          g_autofree char *from = g_strconcat ("--resume-from=", argv[i] + strlen ("--resume="), NULL);
          g_strv_builder_add (out, from);
        }
      else
        g_strv_builder_add (out, argv[i]);
    }
  return g_strv_builder_end (out);
}

static GOptionContext *
new_context (const RnUsage *usage, RnOptions *options)
{
  const GOptionEntry config_entries[] = {
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->overrides,
      "Change the file: a.b=1, a.0=x, a+=x, ~a.b (deletes), +a.b=1 (new); alias --cfg-options",
      "KEY=VALUE..." },
    { "cfg-options", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, &options->overrides, NULL, NULL },
    { "plugin-path", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->plugin_path,
      "A folder to look for `plugins:` in, before RN_PLUGIN_PATH; again for more", "DIR" },
    { NULL },
  };
  const GOptionEntry run_entries[] = {
    { "work-dir", 0, 0, G_OPTION_ARG_FILENAME, &options->work_dir,
      "Where the run writes (work_dirs/ and the name of CONFIG)", "DIR" },
    { "device", 0, 0, G_OPTION_ARG_STRING, &options->device, "Where to compute (cpu)", "cpu|cuda|cuda:N" },
    { "threads", 0, 0, G_OPTION_ARG_INT, &options->threads, "Threads of the kernels (one per processor)",
      "N" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &options->seed, "Seed of every random choice (0)", "N" },
    { "deterministic", 0, 0, G_OPTION_ARG_NONE, &options->deterministic,
      "Same bits on every run; on the CPU they always are, a CUDA device may take slower engines for it",
      NULL },
    { NULL },
  };
  const GOptionEntry resume_entries[] = {
    { "resume", 0, 0, G_OPTION_ARG_NONE, &options->resume,
      "Go on from the newest checkpoint of the work dir, or from =PATH", NULL },
    { "resume-from", 0, 0, G_OPTION_ARG_FILENAME, &options->resume_from, "Go on from this checkpoint",
      "PATH" },
    { NULL },
  };

  GOptionContext *context = g_option_context_new (usage->arguments);
  g_option_context_set_summary (context, usage->summary);
  g_autofree char *examples = g_strdup_printf ("Examples:\n%s", usage->examples);
  g_option_context_set_description (context, examples);
  if (usage->entries != NULL)
    g_option_context_add_main_entries (context, usage->entries, NULL);
  if (usage->groups & RN_OPTIONS_CONFIG)
    g_option_context_add_main_entries (context, config_entries, NULL);
  if (usage->groups & RN_OPTIONS_RUN)
    g_option_context_add_main_entries (context, run_entries, NULL);
  if (usage->groups & RN_OPTIONS_RESUME)
    g_option_context_add_main_entries (context, resume_entries, NULL);
  return context;
}

static gboolean usage_error (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
usage_error (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "%s; see %s --help", text, g_get_prgname ());
  return FALSE;
}

static gboolean
has_suffix_of (const char *path, const char *const *suffixes)
{
  for (; *suffixes != NULL; suffixes++)
    if (g_str_has_suffix (path, *suffixes))
      return TRUE;
  return FALSE;
}

static const char *const config_suffixes[] = { ".yaml", ".yml", ".json", ".py", NULL };
static const char *const checkpoint_suffixes[] = { ".safetensors", ".pth", ".pt", NULL };

/* Options of MMDetection's tools and of other programs. */
static const struct
{
  const char *name, *instead;
} foreign[] = {
  { "gpus", "--device cuda: a run is on one device" },
  { "gpu-id", "--device cuda:N" },
  { "gpu-ids", "--device cuda:N: a run is on one device" },
  { "launcher", "leave it out: a run is one process" },
  { "local_rank", "leave it out: a run is one process" },
  { "no-validate", "--set evaluation=null" },
  { "auto-resume", "--resume" },
  { "load-from", "--set load_from=FILE" },
  { "eval", "--set evaluation.metric=mAP" },
  { "config", "name the file without an option" },
  { "checkpoint", "name the file without an option" },
  { "lr", "--set optimizer.lr=0.01" },
  { "epochs", "--set runner.max_epochs=12" },
  { "batch-size", "--set data.samples_per_gpu=2" },
  { "amp", "--set fp16.loss_scale=dynamic" },
};

static const char *
nearest_option (const RnUsage *usage, const char *word)
{
  static const char *const config_names[] = { "set", "cfg-options", "plugin-path", NULL },
                           *const run_names[] = { "work-dir", "device",        "threads",
                                                  "seed",     "deterministic", NULL },
                           *const resume_names[] = { "resume", "resume-from", NULL };
  const char *const *const lists[] = { usage->groups & RN_OPTIONS_CONFIG ? config_names : NULL,
                                       usage->groups & RN_OPTIONS_RUN ? run_names : NULL,
                                       usage->groups & RN_OPTIONS_RESUME ? resume_names : NULL };
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (gsize i = 0; i < G_N_ELEMENTS (lists); i++)
    for (const char *const *name = lists[i]; name != NULL && *name != NULL; name++)
      g_ptr_array_add (names, (gpointer) *name);
  for (const GOptionEntry *entry = usage->entries; entry != NULL && entry->long_name != NULL; entry++)
    g_ptr_array_add (names, (gpointer) entry->long_name);
  g_ptr_array_add (names, NULL);
  return rn_suggest (word, (const char *const *) names->pdata);
}

/* GOption's message, and what to write instead of an option that there is not. */
static gboolean
option_error (const RnUsage *usage, const GError *cause, GError **error)
{
  static const char prefix[] = "Unknown option --";
  const char *word = cause->message + strlen (prefix);

  if (!g_error_matches (cause, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION)
      || !g_str_has_prefix (cause->message, prefix))
    return usage_error (error, "%s", cause->message);
  g_autofree char *name = g_strndup (word, strcspn (word, "="));
  const char *nearest = nearest_option (usage, name);
  for (gsize i = 0; i < G_N_ELEMENTS (foreign); i++)
    if (strcmp (foreign[i].name, name) == 0)
      return usage_error (error, "there is no option --%s; what works instead: %s", name, foreign[i].instead);
  if (nearest != NULL)
    return usage_error (error, "there is no option --%s; did you mean --%s?", name, nearest);
  return usage_error (error, "there is no option --%s", name);
}

/* What somebody may have meant who gave an argument too many. */
static gboolean
too_many (const RnUsage *usage, const RnOptions *options, const char *word, GError **error)
{
  if (strchr (word, '=') != NULL && usage->groups & RN_OPTIONS_CONFIG)
    return usage_error (error, "\"%s\" is one argument too many; a change of the configuration is --set %s",
                        word, word);
  if (options->resume)
    return usage_error (error, "\"%s\" is one argument too many; to go on from that file: --resume=%s", word,
                        word);
  if (usage->groups & RN_OPTIONS_RESUME && has_suffix_of (word, checkpoint_suffixes))
    return usage_error (
        error,
        "\"%s\" is one argument too many; to go on from that checkpoint: --resume=%s; to start from "
        "its weights: --set load_from=%s",
        word, word, word);
  return usage_error (error, "\"%s\" is one argument too many", word);
}

/* Each text of --set has a value: "--set a.b 1" would make 1 an argument. */
static gboolean
check_overrides (const RnOptions *options, GError **error)
{
  for (char **text = options->overrides; text != NULL && *text != NULL; text++)
    if (strchr (*text, '=') == NULL && **text != '~')
      return usage_error (error, "--set %s: the value is missing; write --set %s=VALUE, without spaces",
                          *text, *text);
  return TRUE;
}

static gboolean
check_config_path (const RnUsage *usage, const char *path, const char *next, GError **error)
{
  if (!has_suffix_of (path, checkpoint_suffixes))
    return TRUE;
  if (next != NULL && has_suffix_of (next, config_suffixes))
    return usage_error (error, "CONFIG comes first: %s %s %s", g_get_prgname (), next, path);
  return usage_error (error, "%s is no CONFIG but a checkpoint; the arguments are %s", path,
                      usage->arguments);
}

static gboolean
take_arguments (const RnUsage *usage, char **args, RnOptions *options, GError **error)
{
  char **next = args + 1; /* args[0] is the command */
  if (usage->groups & RN_OPTIONS_CONFIG)
    {
      if (*next == NULL)
        return usage_error (error, "CONFIG is missing; the arguments are %s", usage->arguments);
      if (!check_config_path (usage, next[0], next[1], error))
        return FALSE;
      options->config_path = g_strdup (*next++);
    }
  int n = (int) g_strv_length (next);
  if (n < usage->n_min)
    return usage_error (error, "an argument is missing; the arguments are %s", usage->arguments);
  if (usage->n_max >= 0 && n > usage->n_max)
    return too_many (usage, options, next[usage->n_max], error);
  options->arguments = g_strdupv (next);
  return TRUE;
}

gboolean
rn_options_parse (const RnUsage *usage, int argc, char **argv, RnOptions *options, GError **error)
{
  memset (options, 0, sizeof *options);
  options->seed = RN_NULL_INT;

  g_auto (GStrv) args = normalise_arguments (argc, argv);
  g_autoptr (GOptionContext) context = new_context (usage, options);
  g_autoptr (GError) local = NULL;
  gboolean ok = g_option_context_parse_strv (context, &args, &local);
  if (!ok)
    option_error (usage, local, error);
  else
    ok = check_overrides (options, error) && take_arguments (usage, args, options, error);
  if (!ok)
    rn_options_clear (options);
  return ok;
}

/* "configs/retinanet_voc.yaml" -> "work_dirs/retinanet_voc" */
static char *
default_work_dir (const char *config_path)
{
  g_autofree char *base = g_path_get_basename (config_path);
  char *dot = strrchr (base, '.');
  if (dot != NULL && dot != base)
    *dot = '\0';
  return g_build_filename ("work_dirs", base, NULL);
}

/* What --device says: into `device:`, or into its type where that is a map. */
static gboolean
set_device (RnNode *root, const char *name, GError **error)
{
  const RnNode *device = rn_node_get (root, "device");
  gboolean is_map = device != NULL && rn_node_kind (device) == RN_NODE_MAP;

  return rn_config_set (root, is_map ? "device.type" : "device", rn_node_new_string (name, "--device"),
                        error);
}

RnNode *
rn_options_load (const RnOptions *options, GError **error)
{
  g_autoptr (RnNode) root =
      rn_config_load (options->config_path, (const char *const *) options->overrides, error);
  if (root == NULL)
    return NULL;
  rn_plugins_set_path ((const char *const *) options->plugin_path);

  if (options->work_dir != NULL
      && !rn_config_set (root, "work_dir", rn_node_new_string (options->work_dir, "--work-dir"), error))
    return NULL;
  if (options->device != NULL && !set_device (root, options->device, error))
    return NULL;
  if (options->threads != 0
      && !rn_config_set (root, "threads", rn_node_new_int (options->threads, "--threads"), error))
    return NULL;
  if (options->seed != RN_NULL_INT
      && !rn_config_set (root, "seed", rn_node_new_int (options->seed, "--seed"), error))
    return NULL;
  if (options->deterministic
      && !rn_config_set (root, "deterministic", rn_node_new_bool (TRUE, "--deterministic"), error))
    return NULL;
  if (options->resume_from != NULL
      && !rn_config_set (root, "resume_from", rn_node_new_string (options->resume_from, "--resume"), error))
    return NULL;

  if (rn_node_is_null (rn_node_get (root, "work_dir")))
    {
      g_autofree char *dir = default_work_dir (options->config_path);
      if (!rn_config_set (root, "work_dir", rn_node_new_string (dir, "default"), error))
        return NULL;
    }
  return g_steal_pointer (&root);
}

RnNode *
rn_options_load_with_budget (const RnOptions *options, const char *budget, GError **error)
{
  g_autoptr (RnNode) root = rn_options_load (options, error);

  if (root == NULL
      || (budget != NULL
          && !rn_config_set (root, "memory.budget", rn_node_new_string (budget, "--budget"), error)))
    return NULL;
  return g_steal_pointer (&root);
}

void
rn_cli_note_weights (const RnNode *root)
{
  g_autoptr (GError) error = NULL;

  if (rn_node_is_null (rn_node_get (root, "resume_from")) && !rn_start_weights_check (root, &error))
    g_message ("note: training would stop: %s", error->message);
}

int
rn_cli_fail (GError *error)
{
  int code = rn_error_exit_code (error);
  g_autofree char *line = rn_printable (error->message, TRUE);
  g_printerr ("%s: %s\n", g_get_prgname (), line);
  g_error_free (error);
  return code;
}
