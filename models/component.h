/*
 * component.h: what each family of a model's parts must do.
 *
 * A part is a descriptor and an instance, the struct that its keys filled. `setup` checks the keys against
 * each other and against the parts before it. `write` adds ops to a graph and may be called for any number of
 * graphs; wrong shapes are reported by the graph (graph.h), so it returns no error.
 */
#ifndef MODELS_COMPONENT_H
#define MODELS_COMPONENT_H

#include <glib.h>
#include <runner/node.h>
#include "boxes/anchors.h"
#include "boxes/coder.h"
#include "graph/graph.h"
#include "models/part-memory.h"
#include "runner/base/registry.h"

G_BEGIN_DECLS

/* The head of the descriptors of backbones, necks, heads, losses and detectors. */
typedef struct
{
  RnComponent component;
  void (*clear) (gpointer self); /* frees what setup made; may be NULL */
  gsize memory_offset;           /* of an RnPartMemory in the struct of the keys; 0: none */
} RnPartDesc;

typedef struct
{
  const RnPartDesc *desc;
  gpointer self;
} RnPart;

/* @map may be NULL if there is a @deflt_type. On failure @part is empty. */
gboolean rn_part_new (RnPart *part, const char *family, const RnNode *map, const char *deflt_type,
                      GError **error);
void rn_part_clear (RnPart *part);

/* Feature maps that one part hands to the next: height and width are ceil (input / stride). */
typedef struct
{
  int channels, stride;
} RnFeature;

typedef struct
{
  int n;
  RnFeature level[RN_MAX_LEVELS];
} RnFeatures;

typedef struct
{
  RnPartDesc part;
  gboolean (*setup) (gpointer self, const RnNode *config, RnFeatures *out, RnCpOptions *cp, GError **error);
  void (*write) (gconstpointer self, RnGraph *graph, RnValueId image, RnValueId *out);
  gboolean (*has_frozen_stages) (gconstpointer self);
  const char *(*pretrained) (gconstpointer self); /* see rn_model_pretrained */
} RnBackboneDesc;

typedef struct
{
  RnPartDesc part;
  gboolean (*setup) (gpointer self, const RnNode *config, const RnFeatures *in, RnFeatures *out,
                     GError **error);
  void (*write) (gconstpointer self, RnGraph *graph, const RnValueId *in, RnValueId *out);
} RnNeckDesc;

/* Inputs of a graph with losses, see model.h. */
typedef struct
{
  RnValueId labels, positives, n_positives, avg_factor, grad_scale;
} RnLossInputs;

/* What a dense head says of its outputs. */
typedef struct
{
  int num_classes;
  RnAnchorGenerator anchors;
  RnBoxCoder coder;
} RnHeadOutputs;

typedef struct
{
  RnPartDesc part;
  /* @num_classes: of the data set, or 0 */
  gboolean (*setup) (gpointer self, const RnNode *config, const RnFeatures *in, int num_classes,
                     RnHeadOutputs *out, RnCpOptions *cp, GError **error);
  /* With losses: @sizes are the levels' heights and widths. */
  void (*write_losses) (gconstpointer self, RnGraph *graph, const RnValueId *in, const int (*sizes)[2],
                        const RnLossInputs *inputs);
  /* @nms_pre: anchors kept per level; below 1 all */
  void (*write_selection) (gconstpointer self, RnGraph *graph, const RnValueId *in, const int (*sizes)[2],
                           int nms_pre);
} RnHeadDesc;

/* The anchors of one level. */
typedef struct
{
  int num_classes, anchors_per_cell;
  int64_t anchor_offset; /* of the level's first anchor */
} RnLossLevel;

/* A loss is for classes or for boxes; the other function is NULL. Both return the value F32[1]. */
typedef struct
{
  RnPartDesc part;
  RnValueId (*write_class) (gconstpointer self, RnGraph *graph, RnValueId logits, const RnLossInputs *inputs,
                            const RnLossLevel *level);
  RnValueId (*write_box) (gconstpointer self, RnGraph *graph, RnValueId deltas, const RnLossInputs *inputs,
                          const RnLossLevel *level);
} RnLossDesc;

/*
 * A component that is nothing but numbers: `make` turns its keys into a struct that depends on the family.
 *   "norm" RnNormConfig, "init" char *, "anchor_generator" RnAnchorGenerator, "bbox_coder" RnBoxCoder,
 * "assigner" RnMaxIoUAssigner, "nms" float (IoU threshold)
 */
typedef struct
{
  RnComponent component;
  gboolean (*make) (gconstpointer self, const RnNode *config, gpointer out, GError **error);
} RnMakerDesc;

/* Looks up, parses and makes in one go. @map may be NULL if there is a @deflt_type. */
gboolean rn_make (const char *family, const RnNode *map, const char *deflt_type, gpointer out,
                  GError **error);

/* Whom to blame for @key: its node, or @map where it was left out. Lent. */
const RnNode *rn_node_blame (const RnNode *map, const char *key);

G_END_DECLS

#endif
