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
/* What @step does to its gradients: by norm, max_norm and norm_type; by value, clip_value. */
void rn_grad_clip_set (const RnGradClip *clip, RnGuardedStep *step);

G_END_DECLS

#endif
