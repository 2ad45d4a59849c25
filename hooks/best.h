/* best.h: which of two scores is better, and the best files of a run. */
#ifndef HOOKS_BEST_H
#define HOOKS_BEST_H

#include <runner/engine.h>

G_BEGIN_DECLS

typedef enum
{
  RN_RULE_GREATER,
  RN_RULE_LESS,
} RnScoreRule;

/* The keys of a hook that decide; NULL: not given. */
typedef struct
{
  const char *rule;                                   /* "greater", "less" */
  const char *const *greater_keys, *const *less_keys; /* in place of MMCV's lists */
} RnRuleKeys;

/**
 * rn_score_rule_choose:
 * @score: name of a score
 * @config: the map with the keys, for errors
 *
 * MMCV's way: the rule if it is given; else a name that is in one of the lists; else one that contains a name
 * of a list, the greater ones first; upper and lower case are the same.
 */
gboolean rn_score_rule_choose (const char *score, const RnRuleKeys *keys, const RnNode *config,
                               RnScoreRule *rule, GError **error);

/* Is @a better than @b? NaN never is. */
gboolean rn_score_is_better (RnScoreRule rule, double a, double b);

/* The best files, the best one first. Of equal scores the earlier one is the better. */
typedef struct _RnBestList RnBestList;

/* "greater" or "less". */
const char *rn_score_rule_name (RnScoreRule rule);

RnBestList *rn_best_list_new (RnScoreRule rule);
void rn_best_list_free (RnBestList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnBestList, rn_best_list_free)

RnScoreRule rn_best_list_rule (const RnBestList *list);
guint rn_best_list_size (const RnBestList *list);
const char *rn_best_list_name (const RnBestList *list, guint i); /* lent */
double rn_best_list_score (const RnBestList *list, guint i);

/*
 * Takes the file @name if its score is finite and among the @max best. *@dropped: (out) (nullable)
 * (transfer full): the worst file, which it pushes out; more than that one, left from a larger @max, are
 * forgotten. A name that is there already gets the new score. Gives its place, from 0, or -1.
 */
int rn_best_list_offer (RnBestList *list, const char *name, double score, guint max, char **dropped);

/* As "best_names", a name a line, and "best_scores". */
void rn_best_list_save (const RnBestList *list, RnRecord *state);
/* Takes files that are there in @dir: a run that was killed may have deleted one for a better one that is not
 * in this state. Names begin with "best_" and name no folder; others are not ours to delete. */
void rn_best_list_load (RnBestList *list, const RnRecord *state, const char *dir);

G_END_DECLS

#endif
