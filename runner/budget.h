/*
 * budget.h: which strategies bring a run under a number of bytes in the least time.
 *
 * The strategies that do not change results beyond the order of a sum are tried in a fixed sequence that
 * knows nothing of the budget; each of these candidates is a set of lines, planned as if it stood in the
 * file. The answer to a budget is the first of the fastest candidates that fit. So a larger budget never
 * gives a slower step, and what fits is what was planned. Lines that the file has stay as they are.
 */
#ifndef RUNNER_BUDGET_H
#define RUNNER_BUDGET_H

#include "runner/predict.h"

G_BEGIN_DECLS

struct _RnCandidate
{
  char **lines;            /* to add, each as after --set; NULL-ended, none for the file as it is */
  RnPrediction prediction; /* of the largest shapes, the least memory that there can be; once is_exact,
                              memory is that of all shapes, to the byte */
  gboolean is_exact;
  double seconds; /* of a step, at least that of the file as it is: nothing is chosen for being faster */
};

/* Tries all candidates; a second for a small model, some for a large one. @job, @shapes: see
 * rn_predictor_new. */
RnBudget *rn_budget_new (const RnJob *job, const GArray *shapes, RnProgress progress, gpointer user_data,
                         GError **error);
void rn_budget_free (RnBudget *budget);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnBudget, rn_budget_free)

/* With the configuration from before rn_budget_apply. Lent. */
RnPredictor *rn_budget_predictor (RnBudget *budget);
/* The file as it is. Lent. */
const RnCandidate *rn_budget_base (RnBudget *budget);
/* The fastest candidate that fits, or NULL: none does. Lent. */
const RnCandidate *rn_budget_find (RnBudget *budget, const RnRoom *room, GError **error);
/* The one that needs the least of such a room. Lent. */
const RnCandidate *rn_budget_smallest (RnBudget *budget, const RnRoom *room, GError **error);
/*
 * The lines of those candidates of which no other is both as fast and as small, the fastest first: of char
 * **, lent. (transfer container)
 */
GPtrArray *rn_budget_front (const RnBudget *budget);
/* For a command line: "--set A 'B C'", or "". (transfer full) */
char *rn_lines_to_arguments (char *const *lines);
/* How many were tried. */
guint rn_budget_count (const RnBudget *budget);

/*
 * Chooses for `memory.budget` of @job, says what, and sets it (rn_job_change). Errors:
 * RN_DEVICE_ERROR_MEMORY, with the smallest budget that works, when none fits.
 */
gboolean rn_budget_apply (RnJob *job, const GArray *shapes, GError **error);

G_END_DECLS

#endif
