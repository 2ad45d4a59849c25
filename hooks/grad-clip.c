#include "config.h"

#include "hooks/grad-clip.h"

#include <string.h>

enum
{
  BY_NORM,
  BY_VALUE,
};

static const char *const type_names[] = { "norm", "value", NULL };

const RnKeySpec rn_grad_clip_keys[] = {
  RN_KEY (RnGradClip, type, RN_KEY_ENUM, "norm",
          "norm: all gradients are scaled down together; value: each element is cut on its own",
          .names = type_names),
  RN_KEY (RnGradClip, max_norm, RN_KEY_FLOAT, "null", "type norm: the largest norm over all gradients",
          .min = 1e-12, .max = 1e12, .flags = RN_KEY_NULLABLE),
  RN_KEY (RnGradClip, norm_type, RN_KEY_NODE, "2",
          "type norm: which norm, a number from 1, or inf for the largest element"),
  RN_KEY (RnGradClip, clip_value, RN_KEY_FLOAT, "null",
          "type value: elements are cut to [-clip_value, clip_value]", .min = 1e-12, .max = 1e12,
          .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
read_norm_type (const RnNode *node, double *p, GError **error)
{
  RnNodeKind kind = rn_node_kind (node);

  *p = NAN;
  if (kind == RN_NODE_INT || kind == RN_NODE_FLOAT)
    *p = rn_node_as_float (node);
  else if (kind == RN_NODE_STRING && strcmp (rn_node_as_string (node), "inf") == 0)
    *p = INFINITY;
  if (*p >= 1)
    return TRUE;
  return rn_node_error (node, error, "must be a number from 1, or inf for the largest element");
}

static gboolean
check_value_for (const RnNode *config, int type, const char *wanted, const char *other, GError **error)
{
  if (!rn_node_is_null (rn_node_get (config, other)))
    return rn_node_error (rn_node_get (config, other), error, "type: %s takes %s instead", type_names[type],
                          wanted);
  if (rn_node_is_null (rn_node_get (config, wanted)))
    return rn_node_error (config, error, "type: %s needs %s", type_names[type], wanted);
  return TRUE;
}

gboolean
rn_grad_clip_check (RnGradClip *clip, const RnNode *config, GError **error)
{
  return read_norm_type (clip->norm_type, &clip->p, error)
         && (clip->type == BY_NORM ? check_value_for (config, BY_NORM, "max_norm", "clip_value", error)
                                   : check_value_for (config, BY_VALUE, "clip_value", "max_norm", error));
}

void
rn_grad_clip_set (const RnGradClip *clip, RnGuardedStep *step)
{
  if (clip->type == BY_VALUE)
    {
      step->clip_value = clip->clip_value;
      return;
    }
  step->max_norm = clip->max_norm;
  step->norm_type = clip->p;
}
