#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/place.h"

#include <string.h>

static const RnWorkflowItem *
item_at (const RnRunner *runner, gint64 i)
{
  return &g_array_index (runner->workflow, RnWorkflowItem, (guint) i);
}

const RnWorkflowItem *
rn_place_item (const RnRunner *runner)
{
  return item_at (runner, runner->now.item);
}

gboolean
rn_place_is_start (const RnRunner *runner)
{
  return runner->now.item == 0 && runner->now.item_done == 0;
}

void
rn_place_leave (RnRunner *runner)
{
  runner->now.item = (runner->now.item + 1) % runner->workflow->len;
  runner->now.item_done = 0;
}

void
rn_place_advance (RnRunner *runner, gint64 n)
{
  runner->now.item_done += n;
  if (runner->now.item_done >= rn_place_item (runner)->n)
    rn_place_leave (runner);
}

void
rn_place_save (const RnRunner *runner, RnRecord *record)
{
  g_autofree char *workflow = rn_workflow_describe (runner->workflow, runner->is_by_epoch);

  rn_record_set_string (record, "workflow", workflow);
  rn_record_set_int (record, "workflow_item", runner->now.item);
  rn_record_set_int (record, "workflow_item_done", runner->now.item_done);
  rn_record_set_int (record, "val_batch", runner->now.val_batch);
}

static gint64
first_train_item (const RnRunner *runner)
{
  gint64 i = 0;
  while (item_at (runner, i)->is_val)
    i++;
  return i;
}

/* Only between two passes may a run counted in epochs validate. */
static gboolean
is_possible (const RnRunner *runner, const RnCounters *counters)
{
  if (counters->item < 0 || counters->item >= (gint64) runner->workflow->len || counters->item_done < 0
      || counters->item_done >= item_at (runner, counters->item)->n || counters->val_batch < 0)
    return FALSE;
  return !runner->is_by_epoch || counters->inner_iter == 0 || !item_at (runner, counters->item)->is_val;
}

gboolean
rn_place_load (const RnRunner *runner, const RnRecord *record, RnCounters *counters)
{
  g_autofree char *workflow = rn_workflow_describe (runner->workflow, runner->is_by_epoch);
  const char *was = rn_record_string (record, "workflow");

  counters->item = first_train_item (runner);
  counters->item_done = counters->val_batch = 0;
  if (was == NULL) /* a file of before there were workflows */
    return TRUE;
  if (strcmp (was, workflow) != 0)
    {
      g_message ("resume: workflow: %s was %s: the run goes on with training", workflow, was);
      return TRUE;
    }
  counters->item = rn_record_int (record, "workflow_item", -1);
  counters->item_done = rn_record_int (record, "workflow_item_done", -1);
  counters->val_batch = rn_record_int (record, "val_batch", -1);
  if (!is_possible (runner, counters))
    return FALSE;
  if (counters->val_batch >= runner->task->val_length) /* the validation set is another one */
    counters->val_batch = 0;
  return TRUE;
}
