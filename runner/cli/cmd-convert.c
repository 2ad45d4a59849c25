/* cmd-convert.c: `runner convert`: weight files for other programs, and from them. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/cli/common.h"
#include "runner/weights/convert.h"
#include "runner/weights/load.h"

#include <string.h>

static const char *const targets[] = { "mmdet", "torchvision", NULL };

static gboolean
read_target (const char *name, RnNamesTarget *target, GError **error)
{
  static const RnNamesTarget values[] = { RN_NAMES_TO_MMDET, RN_NAMES_TO_TORCHVISION };

  *target = RN_NAMES_TO_SAME;
  if (name == NULL)
    return TRUE;
  for (gsize i = 0; targets[i] != NULL; i++)
    if (strcmp (name, targets[i]) == 0)
      {
        *target = values[i];
        return TRUE;
      }
  const char *nearest = rn_suggest (name, targets);
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--names: no \"%s\"; %s%s%s", name,
               nearest != NULL ? "did you mean \"" : "there are mmdet and torchvision",
               nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
  return FALSE;
}

static gboolean
run (const char *in, const char *out, const RnConvertOptions *options, gboolean is_list, gboolean use_ema,
     GError **error)
{
  g_autoptr (RnWeights) weights = rn_weights_open (in, error);

  if (weights == NULL)
    return FALSE;
  if (use_ema)
    rn_weights_use_ema (weights, RN_WEIGHTS_NO_EMA);
  g_autofree char *text =
      is_list ? rn_weights_list (weights) : rn_weights_convert (weights, out, options, error);
  if (text == NULL)
    return FALSE;
  g_print ("%s%s", text, is_list ? "" : "\n");
  return TRUE;
}

int
rn_cmd_convert (int argc, char **argv)
{
  g_autofree char *names = NULL;
  gboolean is_half = FALSE, is_list = FALSE, no_ema = FALSE;
  const GOptionEntry entries[] = {
    { "half", 0, 0, G_OPTION_ARG_NONE, &is_half, "Half precision: half the size, about three digits", NULL },
    { "names", 0, 0, G_OPTION_ARG_STRING, &names, "Whose names the tensors get (those that they have)",
      "mmdet|torchvision" },
    { "no-ema", 0, 0, G_OPTION_ARG_NONE, &no_ema, RN_NO_EMA_HELP, NULL },
    { "list", 0, 0, G_OPTION_ARG_NONE, &is_list, "Print names, types and shapes, and write nothing", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "IN [OUT]",
    .summary = "Writes the weights of IN to OUT, whose name says in which format: .safetensors or PyTorch's "
               ".pth. The optimizer is left out.",
    .examples = "  runner convert work_dirs/retinanet_shapes/latest.safetensors shapes.pth\n"
                "  runner convert latest.safetensors small.safetensors --half\n"
                "  runner convert retinanet_resnet50_fpn.pth mine.safetensors --names mmdet\n"
                "  runner convert resnet50.pth --list\n",
    .n_min = 1,
    .n_max = 2,
    .entries = entries,
  };
  g_auto (RnOptions) options = { 0 };
  RnConvertOptions convert = { 0 };
  GError *error = NULL;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  convert.is_half = is_half;
  const char *in = options.arguments[0], *out = options.arguments[1];
  if (out == NULL && !is_list)
    g_set_error (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                 "OUT is missing (or --list); see runner convert --help");
  else if (out != NULL && is_list)
    g_set_error (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                 "--list writes nothing; leave out --list or \"%s\"", out);
  if (error == NULL && read_target (names, &convert.names, &error)
      && run (in, out, &convert, is_list, !no_ema, &error))
    return 0;
  return rn_cli_fail (error);
}
