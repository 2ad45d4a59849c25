#include "config.h"

#include "runner/hook-hints.h"

#include "runner/base/registry.h"

#include <string.h>

#define OTHER_LOGGER                                                                                     \
  "what there is: TensorboardLoggerHook, or the JSON lines of TextLoggerHook, or a logger of your own: " \
  "`runner new-hook`"
#define NEEDLESS "nothing here needs it: leave it out"
#define OTHER_DETECTOR "it belongs to a detector that is not in this release"

static const struct
{
  const char *name, *here;
} hints[] = {
  { "ClearMLLoggerHook", OTHER_LOGGER },
  { "DvcliveLoggerHook", OTHER_LOGGER },
  { "MMDetWandbHook", OTHER_LOGGER },
  { "MlflowLoggerHook", OTHER_LOGGER },
  { "NeptuneLoggerHook", OTHER_LOGGER },
  { "PaviLoggerHook", OTHER_LOGGER },
  { "SegmindLoggerHook", OTHER_LOGGER },
  { "WandbLoggerHook", OTHER_LOGGER },
  { "LoggerHook", "what it is here: TextLoggerHook, in log_config.hooks" },
  { "ExpMomentumEMAHook",
    "what it is here: {type: EMAHook, ema_type: ExpMomentumEMA}, and its total_iter is gamma" },
  { "LinearMomentumEMAHook", "what it is here: {type: EMAHook}" },
  { "DistOptimizerHook", "what it is here: OptimizerHook" },
  { "DistEvalHook", "what it is here: `evaluation:`, for one process" },
  { "ParamSchedulerHook", "what it is here: lr_config and momentum_config" },
  { "DetVisualizationHook", "what it is here: `evaluation: {draw: N}`" },
  { "RuntimeInfoHook", NEEDLESS },
  { "SetEpochInfoHook", NEEDLESS },
  { "SyncNormHook", NEEDLESS },
  { "MeanTeacherHook", OTHER_DETECTOR },
  { "SyncRandomSizeHook", OTHER_DETECTOR },
  { "YOLOXModeSwitchHook", OTHER_DETECTOR },
};

gboolean
rn_hook_explain_type (const RnNode *config, GError **error)
{
  const RnNode *type = config != NULL ? rn_node_get (config, "type") : NULL;

  if (type == NULL || rn_node_kind (type) != RN_NODE_STRING
      || rn_registry_lookup (rn_registry_family ("hook"), rn_node_as_string (type)) != NULL)
    return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (hints); i++)
    if (strcmp (hints[i].name, rn_node_as_string (type)) == 0)
      return rn_node_error (type, error, "no hook \"%s\"; %s", hints[i].name, hints[i].here);
  return TRUE;
}
