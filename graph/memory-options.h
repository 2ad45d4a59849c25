/*
 * memory-options.h: what the passes that save memory are asked to do. Zeros are the plain step.
 */
#ifndef GRAPH_MEMORY_OPTIONS_H
#define GRAPH_MEMORY_OPTIONS_H

#include <glib.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

/* The key of the configuration that an option comes from, for what a pass says of it. */
typedef enum
{
  RN_OPTION_NONE,
  RN_OPTION_FOLD,
  RN_OPTION_BACKBONE_CP,
  RN_OPTION_HEAD_CP,
  RN_OPTION_RECOMPUTE,
  RN_OPTION_HEAD,
  RN_OPTION_OFFLOAD,
  RN_OPTION_COUNT
} RnMemoryOption;

/* ---- half precision ---- */

typedef enum
{
  RN_AMP_O0, /* single precision */
  RN_AMP_O1, /* convolutions and what is between them in half; what a loss reads is single */
  RN_AMP_O2, /* everything but the arithmetic of batch norms and losses */
} RnAmpLevel;

typedef struct
{
  RnAmpLevel level;
  RnDType dtype; /* RN_F16 or RN_BF16; means nothing with O0 */
  /* Modules ("bbox_head", "backbone.layer4"), NULL-ended, lent; NULL: none. The longest name that fits wins.
   */
  const char *const *single_modules; /* stay in single precision */
  const char *const *half_modules;   /* all in half, but the arithmetic of batch norms and losses */
} RnAmpOptions;

/* ---- order ---- */

typedef enum
{
  RN_HEAD_ALL_LEVELS,  /* the whole forward part, then the whole backward part */
  RN_HEAD_DEPTH_FIRST, /* forward, loss and backward of each branch at each level in turn */
} RnHeadOrder;

/* ---- recomputation ---- */

/* with_cp of the backbone and of the head: which ops make a segment, whose inner outputs backward computes
 * again. */
typedef enum
{
  RN_CP_NONE,
  RN_CP_BLOCKS,      /* each residual block; each branch of the head at each level */
  RN_CP_SEGMENTS,    /* n_segments, over the chain of blocks or of a tower's convolutions */
  RN_CP_STAGES,      /* lengths[]: blocks per segment, one number a stage that trains; 0 keeps the stage */
  RN_CP_SQRT,        /* segments whose lengths make the peak small, from the sizes of tensors */
  RN_CP_LARGER_THAN, /* as BLOCKS, but outputs up to this size are kept */
} RnCpForm;

#define RN_CP_MAX_STAGES 8

typedef struct
{
  RnCpForm form;
  int n_segments;
  int n_lengths, lengths[RN_CP_MAX_STAGES];
  gsize larger_than; /* bytes */
} RnCpOptions;

typedef struct
{
  RnCpOptions backbone, head;
  gboolean bn_relu; /* outputs of batch norms that learn: from the convolution's output again */
  gboolean frozen;  /* the output of the frozen stages: from the image again */
  /* The shape is not the largest of the run: forms that go by the sizes of tensors may find nothing. */
  gboolean may_be_idle;
  RnHeadOrder order; /* that a later pass makes; RN_CP_SQRT reckons with it */
} RnRecomputeOptions;

/* ---- host memory ---- */

typedef enum
{
  RN_OFFLOAD_NONE,
  RN_OFFLOAD_IDLE,          /* what no op touches for more than `idle` ops */
  RN_OFFLOAD_BLOCK_OUTPUTS, /* what the residual blocks give, while nobody needs it */
} RnOffloadForm;

typedef struct
{
  RnOffloadForm form;
  int idle;
  gsize pinned_limit; /* most bytes of the host arena; 0: no limit */
  /* Ops that a copy may take while others run: it starts right behind the last use and must be back so many
   * ops before the next one. 0: copies do not overlap, so they are done as late as possible. */
  int window;
} RnOffloadOptions;

/* How the states of the optimizer are stored. */
typedef enum
{
  RN_MOMENTUM_FP32,
  RN_MOMENTUM_BF16,
  RN_MOMENTUM_HOST, /* fp32 in host memory; one parameter's at a time comes to the device */
} RnMomentumForm;

G_END_DECLS

#endif
