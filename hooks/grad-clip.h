/* grad-clip.h: the key `grad_clip` of the optimizer hooks. */
#ifndef HOOKS_GRAD_CLIP_H
#define HOOKS_GRAD_CLIP_H

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct
{
  int type; /* index into the names of the key */
  double max_norm, clip_value;
  const RnNode *norm_type;
  double p; /* norm_type as a number; INFINITY: the largest element */
} RnGradClip;

extern const RnKeySpec rn_grad_clip_keys[];

/* Checks that the keys agree. @config: the map. */
gboolean rn_grad_clip_check (RnGradClip *clip, const RnNode *config, GError **error);
/*
 * Before the step: by norm, takes *@multiplier of the gradients down and logs grad_norm, the norm before; by
 * value, sets *@clip_value for rn_runner_step.
 */
gboolean rn_grad_clip_apply (const RnGradClip *clip, RnRunner *runner, double *multiplier, double *clip_value,
                             GError **error);

G_END_DECLS

#endif
