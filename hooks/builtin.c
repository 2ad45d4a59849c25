#include "config.h"

#include "hooks/builtin.h"

/* A table, not constructors: those are dropped from a static library without a word. */
#define HOOKS(X)       \
  X (checkpoint)       \
  X (eval)             \
  X (fixed_lr_updater) \
  X (iter_timer)       \
  X (num_class_check)  \
  X (optimizer)        \
  X (step_lr_updater)  \
  X (text_logger)

#define DECLARE(ident) extern const RnHookDesc rn_hook_desc_##ident;
HOOKS (DECLARE)

#define ENTRY(ident) &rn_hook_desc_##ident,
const RnHookDesc *const rn_builtin_hooks[] = { HOOKS (ENTRY) NULL };
