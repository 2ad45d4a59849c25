/* cmd-config.c: `runner config`: the configuration as the other commands see it, and where each value comes
 * from. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/check.h"
#include "runner/cli/common.h"
#include "runner/config/config.h"
#include "runner/runner.h"

/* `fp16:` and the optimizer hook are read together. */
static void
print_precision (const RnRunConfig *config)
{
  const RnNode *hook = rn_optimizer_hook_config (config);

  if (config->fp16.level == RN_AMP_O0 && config->composed == NULL)
    return;
  g_print ("# precision: %s\n", rn_fp16_describe (&config->fp16));
  if (hook == NULL)
    return;
  g_autofree char *text = rn_config_dump_line (hook);
  g_print ("# optimizer hook: %s\n", text);
}

int
rn_cmd_config (int argc, char **argv)
{
  gboolean plain = FALSE;
  const GOptionEntry entries[] = {
    { "plain", 0, 0, G_OPTION_ARG_NONE, &plain, "Leave out where each value comes from", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG",
    .summary = "Prints a configuration with its bases, references and changes resolved, then checks what can "
               "be checked without the data. The output is a configuration itself.",
    .examples = "  runner config configs/retinanet_voc.yaml\n"
                "  runner config configs/retinanet_voc.yaml --set optimizer.lr=0.0025 lr_config.step.-1=4\n"
                "  runner config configs/retinanet_voc.yaml --plain > mine.yaml\n",
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };

  GError *error = NULL;
  g_auto (RnOptions) options = { 0 };
  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);

  RnNode *root = rn_options_load (&options, &error);
  if (root == NULL)
    return rn_cli_fail (error);
  /* What is wrong is said after the values, which show where it comes from. */
  g_autofree char *text = rn_config_dump (root, !plain);
  g_print ("%s", text);
  g_autoptr (RnJob) job = rn_job_new_for_plan (root, &error);
  if (job == NULL || !rn_job_check (job, &error))
    return rn_cli_fail (error);
  print_precision (&job->config);
  rn_cli_note_weights (job->root);
  return 0;
}
