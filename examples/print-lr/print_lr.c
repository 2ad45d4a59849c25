/* print_lr.c: a line with the learning rate and the momentum, every few iterations. */
#include <runner/hook.h>

typedef struct
{
  RnHook hook;
  gint64 interval;
} PrintLr;

static const RnKeySpec keys[] = {
  RN_KEY (PrintLr, interval, RN_KEY_INT, "50", "iterations between two lines", .min = 1, .max = 1e9),
  RN_KEY_END,
};

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_every_n_iters (runner, ((PrintLr *) hook)->interval))
    g_message ("iteration %d: learning rate %g, momentum %g", (int) rn_runner_iter (runner) + 1,
               rn_runner_lr (runner), rn_runner_momentum (runner));
  return TRUE;
}

RN_HOOK_DEFINE (print_lr, PrintLr, .name = "PrintLrHook", .version = "1.0", .license = "MIT",
                .summary = "prints the learning rate", .keys = keys, .after_train_iter = after_train_iter);
