/* hook-wants.h: what the hooks of a run want its programs to keep. Asked for before the model is built, so
 * that it is planned and counted like everything else. */
#ifndef RUNNER_HOOK_WANTS_H
#define RUNNER_HOOK_WANTS_H

#include <runner/hook.h>

G_BEGIN_DECLS

typedef struct
{
  char *module;     /* "backbone.layer4" */
  const char *hook; /* type of the first hook that asked; lent */
} RnWantedActivation;

struct _RnWants
{
  guint needs;                /* RN_NEEDS_* bits of all hooks */
  const char *gradients_hook; /* (nullable) type of the first hook beside the optimizer's own that needs
                                 gradients or is called before the step; lent */
  GArray *activations;        /* of RnWantedActivation, each module once */
  const RnHookDesc *hook;     /* whose prepare is running */
  char *fault;                /* the first wrong request, or NULL */
};

RnWants *rn_wants_new (void);
void rn_wants_free (RnWants *wants);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnWants, rn_wants_free)

/* The modules, NULL-ended, in the order of the requests. (transfer container) of lent names */
const char **rn_wants_modules (const RnWants *wants);

G_END_DECLS

#endif
