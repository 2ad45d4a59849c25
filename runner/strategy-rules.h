/* strategy-rules.h: the rules of rn_strategies_check as texts, for the tables of `runner strategies`. */
#ifndef RUNNER_STRATEGY_RULES_H
#define RUNNER_STRATEGY_RULES_H

#include "runner/strategies.h"

G_BEGIN_DECLS

#define RN_STRATEGY_RULE_MAX_OTHERS 2

typedef struct
{
  RnStrategyId strategy;
  RnStrategyId
      others[RN_STRATEGY_RULE_MAX_OTHERS]; /* that it does not go with, as rn_strategy_apply sets them */
  int n_others;
  const char *setting;          /* what it does not go with, where that is not just the others; or NULL */
  const char *reason, *instead; /* "... because REASON; what works: INSTEAD" */
} RnStrategyRule;

int rn_strategy_rules_count (void);
const RnStrategyRule *rn_strategy_rule_get (int i);
/* The first rule against the pair, as rn_strategy_apply sets it, or -1. */
int rn_strategy_rule_of_pair (RnStrategyId a, RnStrategyId b);

G_END_DECLS

#endif
