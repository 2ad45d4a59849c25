#include "config.h"

#include "runner/weights/names.h"

#include <string.h>

#define MAX_INDEX 999 /* of a module list, in a name that is believed */

/* Modules that stand alone, and lists of modules. */
static const struct
{
  const char *torchvision, *mmdet;
} predictors[] = {
  { RN_TORCHVISION_CLASS_PREDICTOR, RN_MMDET_CLASS_PREDICTOR },
  { RN_TORCHVISION_BOX_PREDICTOR, RN_MMDET_BOX_PREDICTOR },
};

static const struct
{
  const char *torchvision, *mmdet;
  int old_step; /* distance of two convolutions in the list of older releases, which held the ReLUs too */
} lists[] = {
  { "backbone.fpn.inner_blocks.", "neck.lateral_convs.", 1 },
  { "backbone.fpn.layer_blocks.", "neck.fpn_convs.", 1 },
  { "head.classification_head.conv.", "bbox_head.cls_convs.", 2 },
  { "head.regression_head.conv.", "bbox_head.reg_convs.", 2 },
};

#define LATERALS 0 /* places in the table above */
#define OUTPUTS 1

static const char *const extra_convs[] = { "backbone.fpn.extra_blocks.p6.", "backbone.fpn.extra_blocks.p7." };

/* "PREFIX12.REST" -> 12 and REST, or -1. */
static int
read_index (const char *name, const char *prefix, const char **rest)
{
  if (!g_str_has_prefix (name, prefix))
    return -1;
  const char *digits = name + strlen (prefix), *p = digits;
  int index = 0;
  while (g_ascii_isdigit (*p) && index <= MAX_INDEX)
    index = index * 10 + (*p++ - '0');
  if (p == digits || *p != '.' || index > MAX_INDEX)
    return -1;
  *rest = p + 1;
  return index;
}

static gboolean
is_convolution (const char *rest)
{
  return strcmp (rest, "weight") == 0 || strcmp (rest, "bias") == 0;
}

static gboolean
has_prefix (const char *const *names, const char *prefix)
{
  for (; *names != NULL; names++)
    if (g_str_has_prefix (*names, prefix))
      return TRUE;
  return FALSE;
}

RnNames
rn_names_detect (const char *const *names)
{
  RnNames found = { .style = RN_NAMES_MMDET };
  gboolean is_detector =
      has_prefix (names, "backbone.") || has_prefix (names, "neck.") || has_prefix (names, "bbox_head.");

  if (has_prefix (names, "backbone.body.") || has_prefix (names, "head.classification_head."))
    found.style = RN_NAMES_TORCHVISION;
  else if (!is_detector && (has_prefix (names, "layer1.") || has_prefix (names, "conv1.")))
    found.style = RN_NAMES_RESNET;

  const char *laterals =
      found.style == RN_NAMES_TORCHVISION ? lists[LATERALS].torchvision : lists[LATERALS].mmdet;
  for (const char *rest; *names != NULL; names++)
    found.n_laterals = MAX (found.n_laterals, read_index (*names, laterals, &rest) + 1);
  return found;
}

/* What a backbone that was trained alone has on top. */
static gboolean
is_classifier (const char *name)
{
  return g_str_has_prefix (name, "fc.");
}

/* ---- to MMDetection's ---- */

static char *
detector_to_mmdet (const RnNames *names, const char *name)
{
  const char *rest;

  if (g_str_has_prefix (name, "backbone.body."))
    return g_strconcat ("backbone.", name + strlen ("backbone.body."), NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (predictors); i++)
    if (g_str_has_prefix (name, predictors[i].torchvision))
      return g_strconcat (predictors[i].mmdet, name + strlen (predictors[i].torchvision), NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (extra_convs); i++)
    if (g_str_has_prefix (name, extra_convs[i]))
      return g_strdup_printf ("%s%d.conv.%s", lists[OUTPUTS].mmdet, names->n_laterals + (int) i,
                              name + strlen (extra_convs[i]));
  for (gsize i = 0; i < G_N_ELEMENTS (lists); i++)
    {
      int index = read_index (name, lists[i].torchvision, &rest), step = 1;
      if (index < 0)
        continue;
      if (g_str_has_prefix (rest, "0.")) /* the convolution of a Conv2dNormActivation */
        rest += strlen ("0.");
      else
        step = lists[i].old_step;
      if (is_convolution (rest) && index % step == 0)
        return g_strdup_printf ("%s%d.conv.%s", lists[i].mmdet, index / step, rest);
    }
  return g_strdup (name);
}

char *
rn_names_to_mmdet (const RnNames *names, const char *name)
{
  switch (names->style)
    {
    case RN_NAMES_RESNET:
      return is_classifier (name) ? g_strdup (name) : g_strconcat ("backbone.", name, NULL);
    case RN_NAMES_TORCHVISION:
      return detector_to_mmdet (names, name);
    case RN_NAMES_MMDET:
      break;
    }
  return g_strdup (name);
}

/* ---- to torchvision's ---- */

/* A deep stem, which torchvision's ResNets never have. */
static gboolean
is_stem (const char *backbone_name)
{
  return g_str_has_prefix (backbone_name, "stem.");
}

static char *
list_to_torchvision (const RnNames *names, gsize list, int index, const char *rest)
{
  if (!g_str_has_prefix (rest, "conv.") || !is_convolution (rest + strlen ("conv.")))
    return NULL;
  rest += strlen ("conv.");
  if (list != OUTPUTS || index < names->n_laterals)
    return g_strdup_printf ("%s%d.0.%s", lists[list].torchvision, index, rest);
  index -= names->n_laterals;
  return index < (int) G_N_ELEMENTS (extra_convs) ? g_strconcat (extra_convs[index], rest, NULL) : NULL;
}

char *
rn_names_to_torchvision (const RnNames *names, RnNamesStyle style, const char *name)
{
  const char *rest;

  if (g_str_has_prefix (name, "backbone."))
    {
      rest = name + strlen ("backbone.");
      if (is_stem (rest))
        return NULL;
      return style == RN_NAMES_RESNET ? g_strdup (rest) : g_strconcat ("backbone.body.", rest, NULL);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (predictors); i++)
    if (g_str_has_prefix (name, predictors[i].mmdet))
      return g_strconcat (predictors[i].torchvision, name + strlen (predictors[i].mmdet), NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (lists); i++)
    {
      int index = read_index (name, lists[i].mmdet, &rest);
      if (index >= 0)
        return list_to_torchvision (names, i, index, rest);
    }
  return NULL;
}

gboolean
rn_names_is_dispensable (const char *name)
{
  return is_classifier (name) || g_str_has_suffix (name, ".num_batches_tracked");
}
