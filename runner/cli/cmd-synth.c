/* cmd-synth.c: `runner synth`: makes a small data set, for first contact and for trying a configuration. */
#include "config.h"

#include "runner/cli/commands.h"

#include "datasets/synth.h"
#include "runner/base/error.h"
#include "runner/cli/common.h"

#include <string.h>

#define NOT_GIVEN G_MININT

/* What is made if nothing else is said; sides in pixels. */
typedef struct
{
  const char *name;
  RnSynthLayout layout;
  int n_train, n_val, n_test, width, height;
  const char *next; /* what to run then, up to the folder */
} Layout;

static const Layout layouts[] = {
  { "plain", RN_SYNTH_PLAIN, 400, 60, 60, 160, 128,
    "runner train configs/retinanet_shapes.yaml --set data_root=" },
  { "voc0712", RN_SYNTH_VOC0712, 40, 10, 20, 320, 240,
    "runner plan configs/retinanet_voc.yaml --set data_root=" },
};

static const Layout *
find_layout (const char *name, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (layouts); i++)
    if (strcmp (layouts[i].name, name) == 0)
      return &layouts[i];
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--layout: \"%s\" is not plain or voc0712",
               name);
  return NULL;
}

int
rn_cmd_synth (int argc, char **argv)
{
  g_autofree char *name = NULL;
  int n_train = NOT_GIVEN, n_val = NOT_GIVEN, n_test = NOT_GIVEN, width = NOT_GIVEN, height = NOT_GIVEN;
  gint64 seed = 0;
  gboolean force = FALSE;
  const GOptionEntry entries[] = {
    { "layout", 0, 0, G_OPTION_ARG_STRING, &name,
      "plain: 3 classes in one folder (default); voc0712: 20 classes in VOC2007 and VOC2012", "LAYOUT" },
    { "train", 0, 0, G_OPTION_ARG_INT, &n_train, "Images to train on (of each year)", "N" },
    { "val", 0, 0, G_OPTION_ARG_INT, &n_val, "Images to validate on (of each year)", "N" },
    { "test", 0, 0, G_OPTION_ARG_INT, &n_test, "Images to test on", "N" },
    { "width", 0, 0, G_OPTION_ARG_INT, &width, "Width of a landscape image, in pixels", "W" },
    { "height", 0, 0, G_OPTION_ARG_INT, &height, "Its height", "H" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &seed, "Equal seeds give equal files (default 0)", "SEED" },
    { "force", 0, 0, G_OPTION_ARG_NONE, &force, "Write into a folder that is not empty", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "DIR",
    .summary = "Draws a small data set in Pascal VOC's layout: shapes on noise, with their boxes.",
    .examples = "  runner synth data/shapes\n"
                "  runner synth data/shapes --train 1000 --seed 1 --force\n"
                "  runner synth data/VOCdevkit --layout voc0712 --width 500 --height 375\n",
    .n_min = 1,
    .n_max = 1,
    .entries = entries,
  };

  GError *error = NULL;
  g_auto (RnOptions) options;
  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  const Layout *layout = find_layout (name != NULL ? name : "plain", &error);
  if (layout == NULL)
    return rn_cli_fail (error);

  const char *dir = options.arguments[0];
  const RnSynthOptions synth = {
    .layout = layout->layout,
    .n_train = n_train != NOT_GIVEN ? n_train : layout->n_train,
    .n_val = n_val != NOT_GIVEN ? n_val : layout->n_val,
    .n_test = n_test != NOT_GIVEN ? n_test : layout->n_test,
    .width = width != NOT_GIVEN ? width : layout->width,
    .height = height != NOT_GIVEN ? height : layout->height,
    .seed = (guint64) seed,
    .force = force,
  };
  if (!rn_synth_write (dir, &synth, &error))
    return rn_cli_fail (error);

  g_print ("%s: written. Next: %s%s\n", dir, layout->next, dir);
  return 0;
}
