/*
 * part-memory.h: what a part of a model says of its memory: `with_cp` (recomputation instead of kept outputs)
 * and `fp16_enabled` (false: single precision, whatever `fp16:` says).
 */
#ifndef MODELS_PART_MEMORY_H
#define MODELS_PART_MEMORY_H

#include <runner/keys.h>
#include "graph/memory-options.h"

G_BEGIN_DECLS

/* In the struct of a part, as the member `memory`. */
typedef struct
{
  const RnNode *with_cp; /* NULL: not there; only used during setup */
  gboolean fp16_enabled;
} RnPartMemory;

/* The lines of a table of keys. */
#define RN_WITH_CP_KEY(Type, help_)                                                           \
  {                                                                                           \
    .name = "with_cp", .type = RN_KEY_NODE, .offset = G_STRUCT_OFFSET (Type, memory.with_cp), \
    .deflt = "null", .flags = RN_KEY_NULLABLE, .help = help_                                  \
  }
#define RN_FP16_ENABLED_KEY(Type)                                                                       \
  {                                                                                                     \
    .name = "fp16_enabled", .type = RN_KEY_BOOL, .offset = G_STRUCT_OFFSET (Type, memory.fp16_enabled), \
    .deflt = "true", .help = "false: this part stays in single precision under `fp16:`"                 \
  }

/*
 * rn_with_cp_read:
 * @node: (nullable): false, true, sqrt, {segments: N}, {stages: [N, ...]} or {larger_than: SIZE}
 * @n_stages: stages that train, the length that `stages` must have; 0: the part has no stages
 */
gboolean rn_with_cp_read (const RnNode *node, int n_stages, RnCpOptions *options, GError **error);

G_END_DECLS

#endif
