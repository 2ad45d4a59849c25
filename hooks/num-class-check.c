/* num-class-check.c: MMDetection's NumClassCheckHook: the head and the data set must agree before anything is
 * trained. */
#include "config.h"

#include <runner/engine.h>

typedef struct
{
  RnHook hook;
} NumClassCheck;

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  int n_data = (int) g_strv_length ((char **) rn_runner_class_names (runner)),
      n_head = rn_runner_num_classes (runner);

  if (n_data == n_head)
    return TRUE;
  return rn_hook_error (error, "the head has %d classes (model.bbox_head.num_classes), the data set %d",
                        n_head, n_data);
}

RN_HOOK_DEFINE (num_class_check, NumClassCheck, .name = "NumClassCheckHook",
                .summary = "stops a run whose head and data set differ in their number of classes",
                .before_run = before_run);
