/* memory-config.h: `memory:`, the strategies that decide how much device memory a run takes. One line each.
 */
#ifndef RUNNER_MEMORY_CONFIG_H
#define RUNNER_MEMORY_CONFIG_H

#include <runner/keys.h>
#include "graph/memory-options.h"

G_BEGIN_DECLS

typedef enum
{
  RN_FOLD_FALSE,
  RN_FOLD_TRUE,
  RN_FOLD_AUTO, /* fold wherever the statistics are frozen */
} RnFold;

typedef enum
{
  RN_UPDATE_AFTER_BACKWARD,
  RN_UPDATE_IN_BACKWARD, /* each parameter as soon as its gradient is there */
} RnUpdateTime;

typedef enum
{
  RN_BUDGET_NONE,
  RN_BUDGET_SIZE, /* budget_bytes */
  RN_BUDGET_AUTO, /* what the device has free */
} RnBudgetForm;

typedef struct
{
  int fold_frozen_bn; /* RnFold */
  gboolean inplace;
  int head;                 /* RnHeadOrder */
  int update;               /* RnUpdateTime */
  int momentum;             /* RnMomentumForm */
  gboolean bn_relu, frozen; /* recompute */
  RnOffloadOptions offload; /* with pinned_limit */
  int budget;               /* RnBudgetForm */
  guint64 budget_bytes;
  gsize workspace_bytes; /* most scratch of one op; 0: no limit */
  gint64 plan_cache;     /* plans kept, one per batch shape */

  /* As they stand in the file; NULL: not there. */
  const RnNode *recompute_node, *offload_node, *budget_node, *pinned_node, *workspace_node;
} RnMemoryConfig;

extern const RnKeySpec rn_memory_keys[];

/* Reads the keys that are not plain; after rn_keys_parse. Errors: RN_CONFIG_ERROR. */
gboolean rn_memory_config_read (RnMemoryConfig *memory, GError **error);

G_END_DECLS

#endif
