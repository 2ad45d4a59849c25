/*
 * check-invalid-loss.c: MMDetection's CheckInvalidLossHook: a loss that is not finite ends the run, with what
 * helps to find out why.
 *
 * It comes before the optimizer hook, so that the weights are still those that gave the loss.
 */
#include "config.h"

#include <runner/engine.h>

#include <math.h>

typedef struct
{
  RnHook hook;
  gint64 interval;
} CheckInvalidLoss;

static const RnKeySpec keys[] = {
  RN_KEY (CheckInvalidLoss, interval, RN_KEY_INT, "50", "iterations between two checks; 1 checks each",
          .min = 1, .max = 1e9),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  if (hook->priority < RN_PRIORITY_ABOVE_NORMAL)
    return TRUE;
  const RnNode *node = hook->config != NULL ? rn_node_get (hook->config, "priority") : NULL;
  const char *text = "must be below 40: after the optimizer hook (ABOVE_NORMAL) the weights are not those of "
                     "the loss any more; what works: HIGH, or no priority";
  return node != NULL ? rn_node_error (node, error, "%s", text) : rn_hook_error (error, "priority %s", text);
}

/* "ID (PATH), ..." */
static char *
describe_images (const RnBatch *batch)
{
  GString *text = g_string_new (NULL);

  for (int i = 0; batch != NULL && batch->metas != NULL && i < batch->n; i++)
    g_string_append_printf (text, "%s%s (%s)", i > 0 ? ", " : "",
                            batch->metas[i].id != NULL ? batch->metas[i].id : "?",
                            batch->metas[i].path != NULL ? batch->metas[i].path : "?");
  return g_string_free (text, FALSE);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  const CheckInvalidLoss *self = (const CheckInvalidLoss *) hook;
  g_autofree char *where = NULL;

  if (!rn_runner_every_n_iters (runner, self->interval))
    return TRUE;
  double loss = rn_runner_loss (runner, "loss"), factor = rn_runner_grad_factor (runner);
  if (isfinite (loss))
    return TRUE;
  g_autofree char *images = describe_images (rn_runner_batch (runner));
  if (!rn_runner_find_non_finite (runner, &where, error))
    return FALSE;
  return rn_hook_error (
      error,
      "the loss of iteration %" G_GINT64_FORMAT " is %s; first in %s; images: %s; lr %g, gradients times %g. "
      "What usually helps: a smaller optimizer.lr, lr_config.warmup: linear, optimizer_config.grad_clip: "
      "{max_norm: 35}; and a look at these images and their boxes (`runner browse`)",
      rn_runner_iter (runner) + 1, isnan (loss) ? "NaN" : "infinite",
      where != NULL ? where : "no op: it was not to be seen again", images, rn_runner_lr (runner), factor);
}

RN_HOOK_DEFINE (check_invalid_loss, CheckInvalidLoss, .name = "CheckInvalidLossHook",
                .summary = "ends the run when the loss is not finite, and names the first layer that gave it",
                .priority = RN_PRIORITY_HIGH, .needs = RN_NEEDS_LOSS, .keys = keys, .init = init,
                .after_train_iter = after_train_iter);
