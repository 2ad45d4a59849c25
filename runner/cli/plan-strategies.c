/* plan-strategies.c: what each strategy would save and cost here, and the largest batch: by planning each. */
#include "config.h"

#include "runner/cli/plan-report.h"

#include "runner/config/config.h"

/* ---- one at a time ---- */

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

/* ---- the largest batch ---- */

#define MAX_BATCH 4096 /* of data.samples_per_gpu */

typedef struct
{
  RnPredictor *predictor;
  GPtrArray *sets; /* of char **: lines to try, the fastest first */
  const RnRoom *room;
} Trial;

/*
 * Does a batch fit with one of @sets of lines? *@prediction: of what fits, else of what comes nearest. What
 * cannot be planned at all, being too large for a tensor, does not fit.
 */
static gboolean
fits (const Trial *trial, int batch, RnPrediction *prediction, char ***lines)
{
  guint64 least = G_MAXUINT64;
  char **nearest = NULL;

  for (guint i = 0; i < trial->sets->len; i++)
    {
      char **set = trial->sets->pdata[i];
      RnPrediction now;
      if (!rn_predict (trial->predictor, (const char *const *) set, batch, RN_PREDICT_BOUND, &now, NULL))
        continue;
      guint64 bound = rn_room_needed (trial->room, &now.memory);
      if (bound < least)
        {
          least = bound;
          nearest = set;
          *prediction = now;
        }
      if (bound > trial->room->bytes
          || !rn_predict (trial->predictor, (const char *const *) set, batch, RN_PREDICT_ALL, &now, NULL)
          || rn_room_needed (trial->room, &now.memory) > trial->room->bytes)
        continue;
      *prediction = now;
      if (lines != NULL)
        {
          g_strfreev (*lines);
          *lines = g_strdupv (set);
        }
      return TRUE;
    }
  if (nearest != NULL)
    rn_predict (trial->predictor, (const char *const *) nearest, batch, RN_PREDICT_ALL, prediction, NULL);
  return FALSE;
}

void
rn_largest_batch (RnPredictor *predictor, const RnBudget *budget, const RnRoom *room, RnLargestBatch *largest)
{
  static char *no_lines[] = { NULL };
  g_autoptr (GPtrArray) sets = budget != NULL ? rn_budget_front (budget) : g_ptr_array_new ();
  const Trial trial = { predictor, sets, room };
  RnPrediction now;
  int low = 0, high = rn_predictor_largest (predictor).n; /* low fits, high does not */

  if (sets->len == 0)
    g_ptr_array_add (sets, no_lines);
  largest->room = *room;
  while (high <= MAX_BATCH && fits (&trial, high, &now, &largest->lines))
    {
      largest->fits = now;
      low = high;
      high *= 2;
    }
  high = MIN (high, MAX_BATCH + 1);
  while (high - low > 1)
    {
      int middle = low + (high - low) / 2;
      if (fits (&trial, middle, &now, &largest->lines))
        {
          largest->fits = now;
          low = middle;
        }
      else
        high = middle;
    }
  largest->batch = low;
  fits (&trial, low + 1, &largest->too_much, NULL);
}

void
rn_largest_batch_clear (RnLargestBatch *largest)
{
  g_clear_pointer (&largest->lines, g_strfreev);
}
