/* closure.c: MMCV's ClosureHook: one function of a plugin at one stage, for what needs no keys and no state.
 */
#include "config.h"

#include <runner/engine.h>

#include <string.h>

typedef struct
{
  RnHook hook;
  char *stage, *fn_name; /* one of them; the second is MMCV's name of the first */
  char *fn;
  RnClosureFunc function;
} Closure;

static const RnKeySpec keys[] = {
  RN_KEY (Closure, stage, RN_KEY_STRING, "null",
          "when it is called: after_train_epoch, before_run, ...; after_epoch: of training and validation",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (Closure, fn_name, RN_KEY_STRING, "null", "MMCV's name of the key stage", .flags = RN_KEY_NULLABLE),
  RN_KEY (Closure, fn, RN_KEY_STRING, NULL,
          "what is called: a function that a plugin of `plugins:` defines with RN_CLOSURE_DEFINE",
          .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

/* MMCV's names for a stage of training and that of validation. */
static const struct
{
  const char *name;
  guint stages; /* bits 1 << RnStage */
} both[] = {
  { "before_epoch", 1u << RN_STAGE_BEFORE_TRAIN_EPOCH | 1u << RN_STAGE_BEFORE_VAL_EPOCH },
  { "before_iter", 1u << RN_STAGE_BEFORE_TRAIN_ITER | 1u << RN_STAGE_BEFORE_VAL_ITER },
  { "after_iter", 1u << RN_STAGE_AFTER_TRAIN_ITER | 1u << RN_STAGE_AFTER_VAL_ITER },
  { "after_epoch", 1u << RN_STAGE_AFTER_TRAIN_EPOCH | 1u << RN_STAGE_AFTER_VAL_EPOCH },
};

/* Bits 1 << RnStage; 0: there is no such stage. */
static guint
stages_of (const char *name)
{
  RnStage stage = rn_stage_find (name);

  for (gsize i = 0; i < G_N_ELEMENTS (both); i++)
    if (strcmp (both[i].name, name) == 0)
      return both[i].stages;
  return stage != RN_STAGE_COUNT ? 1u << stage : 0;
}

static gboolean
find_stages (Closure *self, guint *stages, GError **error)
{
  const char *key = self->stage != NULL ? "stage" : "fn_name",
             *name = self->stage != NULL ? self->stage : self->fn_name;

  if (name == NULL || (self->stage != NULL && self->fn_name != NULL))
    return rn_node_error (self->hook.config, error, "needs one of the keys stage and fn_name");
  *stages = stages_of (name);
  if (*stages != 0)
    return TRUE;
  g_autofree char *all = g_strjoinv (", ", (char **) rn_stage_names ());
  return rn_node_error (rn_node_get (self->hook.config, key), error,
                        "no stage \"%s\"; there are: %s; and before_epoch, before_iter, after_iter, "
                        "after_epoch, of training and validation",
                        name, all);
}

static gboolean
prepare (RnHook *hook, RnWants *wants, GError **error)
{
  Closure *self = (Closure *) hook;
  guint stages;

  if (!find_stages (self, &stages, error))
    return FALSE;
  self->function = rn_find_closure (self->fn);
  if (self->function == NULL)
    return rn_node_error (rn_node_get (hook->config, "fn"), error,
                          "no plugin of `plugins:` has RN_CLOSURE_DEFINE (%s)", self->fn);
  rn_hook_keep_stages (hook, stages);
  return TRUE;
}

static gboolean
call (RnHook *hook, RnRunner *runner, GError **error)
{
  return ((Closure *) hook)->function (runner, error);
}

RN_HOOK_DEFINE (closure, Closure, .name = "ClosureHook",
                .summary = "calls a function of a plugin at one stage of the run", .keys = keys,
                .prepare = prepare, .before_run = call, .before_train_epoch = call, .before_train_iter = call,
                .before_step = call, .after_train_iter = call, .after_train_epoch = call,
                .before_val_epoch = call, .before_val_iter = call, .after_val_iter = call,
                .after_val_epoch = call, .after_run = call);
