#include "config.h"

#include "hooks/builtin.h"

/* A table, not constructors: those are dropped from a static library without a word. */
#define HOOKS(X)                         \
  X (check_invalid_loss)                 \
  X (checkpoint)                         \
  X (closure)                            \
  X (cosine_lr_updater)                  \
  X (cosine_momentum_updater)            \
  X (cosine_restart_lr_updater)          \
  X (cyclic_lr_updater)                  \
  X (cyclic_momentum_updater)            \
  X (dist_sampler_seed)                  \
  X (early_stopping)                     \
  X (ema)                                \
  X (empty_cache)                        \
  X (eval)                               \
  X (exp_lr_updater)                     \
  X (fixed_lr_updater)                   \
  X (flat_cosine_lr_updater)             \
  X (fp16_optimizer)                     \
  X (gradient_cumulative_fp16_optimizer) \
  X (gradient_cumulative_optimizer)      \
  X (inv_lr_updater)                     \
  X (iter_timer)                         \
  X (linear_lr_updater)                  \
  X (linear_momentum_updater)            \
  X (memory_profiler)                    \
  X (num_class_check)                    \
  X (one_cycle_lr_updater)               \
  X (one_cycle_momentum_updater)         \
  X (optimizer)                          \
  X (poly_lr_updater)                    \
  X (profiler)                           \
  X (step_lr_updater)                    \
  X (step_momentum_updater)              \
  X (sync_buffers)                       \
  X (tensorboard_logger)                 \
  X (text_logger)

#define DECLARE(ident) extern const RnHookDesc rn_hook_desc_##ident;
HOOKS (DECLARE)

#define ENTRY(ident) &rn_hook_desc_##ident,
const RnHookDesc *const rn_builtin_hooks[] = { HOOKS (ENTRY) NULL };
