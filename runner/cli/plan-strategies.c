/* plan-strategies.c: what each strategy would save and cost here, by planning each. */
#include "config.h"

#include "runner/cli/plan-report.h"

#include "runner/config/config.h"

static void
clear_row (gpointer data)
{
  g_free (((RnStrategyRow *) data)->refusal);
}

void
rn_strategy_table_free (RnStrategyTable *table)
{
  if (table == NULL)
    return;
  g_array_unref (table->rows);
  g_free (table);
}

static RnStrategyRow
switch_strategy (RnPredictor *predictor, const RnStrategy *strategy, const RnNode *root)
{
  RnStrategyRow row = { .strategy = strategy, .is_on = rn_strategy_is_on (strategy, root) };
  g_autoptr (RnNode) changed = rn_node_copy (root);
  g_autoptr (GError) error = NULL;
  gboolean done = row.is_on ? rn_strategy_remove (strategy, changed, &error)
                            : rn_strategy_apply (strategy, changed, &error);

  if (!done
      || !rn_predict_root (predictor, g_steal_pointer (&changed), 0, RN_PREDICT_LARGEST, &row.prediction,
                           &error))
    row.refusal = g_strdup (error->message);
  return row;
}

RnStrategyTable *
rn_strategy_table_new (RnPredictor *predictor, const RnNode *root, GError **error)
{
  g_autoptr (RnStrategyTable) table = g_new0 (RnStrategyTable, 1);

  table->rows = g_array_new (FALSE, TRUE, sizeof (RnStrategyRow));
  g_array_set_clear_func (table->rows, clear_row);
  if (!rn_predict_root (predictor, rn_node_copy (root), 0, RN_PREDICT_LARGEST, &table->base, error))
    return NULL;
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    {
      const RnStrategy *strategy = rn_strategy_get ((RnStrategyId) id);
      if (!strategy->is_planned || id == RN_STRATEGY_BUDGET) /* a budget chooses among the others */
        continue;
      RnStrategyRow row = switch_strategy (predictor, strategy, root);
      g_array_append_val (table->rows, row);
    }
  return g_steal_pointer (&table);
}
