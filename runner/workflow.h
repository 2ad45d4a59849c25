/* workflow.h: `workflow:`, what a run does in turn: so many epochs or iterations of training, then of
 * validation loss. */
#ifndef RUNNER_WORKFLOW_H
#define RUNNER_WORKFLOW_H

#include <runner/node.h>

G_BEGIN_DECLS

typedef struct
{
  gboolean is_val; /* else training */
  gint64 n;        /* epochs, or iterations of an IterBasedRunner; at least 1 */
} RnWorkflowItem;

/*
 * Reads the list `workflow:` of [mode, n]; @node NULL: [[train, 1]]. MMCV's tuples, which YAML takes for
 * texts with a bracket in them, are read too: [('train', 1), ('val', 1)].
 *
 * Errors: RN_CONFIG_ERROR. (transfer full): of RnWorkflowItem, at least one of them training.
 */
GArray *rn_workflow_parse (const RnNode *node, GError **error);
gboolean rn_workflow_has_val (const GArray *workflow);
/* "[[train, 2], [val, 1]] epochs" (transfer full) */
char *rn_workflow_describe (const GArray *workflow, gboolean is_by_epoch);

G_END_DECLS

#endif
