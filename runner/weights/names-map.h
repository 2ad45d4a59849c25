/*
 * names-map.h: the tensors of a weight file under other names, and what has to change in them besides.
 *
 * torchvision's class predictor has a channel of the background before those of the classes, for each anchor.
 * It is left out on the way to MMDetection's names; on the way back one is put in that never fires.
 */
#ifndef RUNNER_WEIGHTS_NAMES_MAP_H
#define RUNNER_WEIGHTS_NAMES_MAP_H

#include <runner/node.h>
#include "runner/weights/names.h"
#include "runner/weights/weights.h"

G_BEGIN_DECLS

typedef enum
{
  RN_NAMES_TO_SAME, /* only the rules are applied */
  RN_NAMES_TO_MMDET,
  RN_NAMES_TO_TORCHVISION, /* of a detector, or where there is no more than a backbone, of a ResNet */
} RnNamesTarget;

typedef enum
{
  RN_ROWS_SAME,
  RN_ROWS_WITHOUT_FIRST, /* of each group */
  RN_ROWS_WITH_FIRST,
} RnRowsChange;

typedef struct
{
  char *name;  /* the new one */
  guint index; /* in the file */
  int64_t dims[RN_WEIGHTS_MAX_DIMS];
  int64_t n; /* elements */
  RnRowsChange rows;
  int64_t n_groups; /* that dims[0] of the file is cut into; 0 for RN_ROWS_SAME */
} RnMappedWeight;

typedef struct
{
  RnWeights *weights; /* lent */
  RnNames names;      /* of the file, as they were found */
  GPtrArray *tensors; /* of RnMappedWeight, in the order of the file */
} RnNameMap;

typedef struct
{
  const char *prefix;        /* (nullable): only names that begin with it, which is taken away */
  const RnNode *revise_keys; /* (nullable): list of [regular expression, replacement], applied in order */
} RnNameRules;

/* TRUE if @node has the form of revise_keys and its expressions are ones; else an error with its line. */
gboolean rn_name_rules_check (const RnNode *revise_keys, GError **error);

/**
 * rn_name_map_new:
 * @weights: lent for the life of the map
 * @rules: (nullable): applied first
 *
 * A leading "module." that all names have goes away in any case. Errors: RN_CHECKPOINT_ERROR_MISMATCH when
 * two tensors get the same name, or one has no name in torchvision. (transfer full)
 */
RnNameMap *rn_name_map_new (RnWeights *weights, const RnNameRules *rules, RnNamesTarget target,
                            GError **error);
void rn_name_map_free (RnNameMap *map);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnNameMap, rn_name_map_free)

const RnMappedWeight *rn_name_map_get (const RnNameMap *map, guint i);

/* As rn_weights_read and rn_weights_read_f32, with the rows changed. */
gboolean rn_mapped_read (const RnNameMap *map, const RnMappedWeight *tensor, void *dst, GError **error);
gboolean rn_mapped_read_f32 (const RnNameMap *map, const RnMappedWeight *tensor, float *dst, GError **error);

G_END_DECLS

#endif
