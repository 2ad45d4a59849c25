/*
 * recompute.h: what pass-recompute.c (the rewriting), recompute-segments.c (which ops belong together) and
 * recompute-search.c (the lengths of segments for RN_CP_SQRT) share.
 *
 * A segment is a range of forward ops that are run again together. Positions are those of the list before
 * the pass.
 */
#ifndef GRAPH_RECOMPUTE_H
#define GRAPH_RECOMPUTE_H

#include "graph/passes.h"

G_BEGIN_DECLS

/* Which of the options asks for it. */
typedef enum
{
  RN_PART_BACKBONE,
  RN_PART_HEAD,
  RN_PART_BN_RELU,
  RN_PART_FROZEN,
  RN_PART_COUNT
} RnRecomputePart;

typedef struct
{
  RnRecomputePart part;
  int first, end;        /* ops [first, end); of RN_PART_FROZEN only those that of_op says */
  gsize larger_than;     /* outputs up to this many bytes are kept */
  gboolean with_outputs; /* drop also what forward ops behind the segment read */
} RnSegment;

/* Who uses each value. */
typedef struct
{
  int n_values;      /* of the graph before anything was copied */
  int *writer;       /* [n_values]: the forward op, or -1 */
  int *last_forward; /* [n_values]: the last forward op that reads it, or -1 */
} RnForwardUses;

typedef struct
{
  const RnGraph *graph;
  RnForwardUses uses;
  GArray *segments;          /* of RnSegment; their ranges are apart, but for the one of RN_PART_FROZEN */
  int *of_op;                /* [turn]: index of the op's segment, or -1 */
  int *dropped_by;           /* [values]: index of the segment that makes it again, or -1 */
  gboolean has_norms_inside; /* bn_relu drops something inside a segment of another part */
} RnSegments;

/* A graph after rn_pass_gradient. Errors are noted as faults of @graph. */
RnSegments *rn_segments_new (RnGraph *graph, const RnRecomputeOptions *options);
/* An option of which nothing came is a fault of @graph. @is_used: [RN_PART_COUNT]. */
void rn_segments_check_use (const RnSegments *segments, RnGraph *graph, const RnRecomputeOptions *options,
                            const gboolean *is_used);
void rn_segments_free (RnSegments *segments);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSegments, rn_segments_free)

/* Can a segment with these bounds drop @v, an output of one of its ops? */
gboolean rn_segment_may_drop (const RnGraph *graph, const RnForwardUses *uses, const RnSegment *segment,
                              RnValueId v);

/* ---- the search ---- */

/* Forward ops that stay together: a residual block, or a convolution of the head with what follows it. */
typedef struct
{
  int first, end;
} RnElement;

/* Segments of the same length in all of @chains, GArrays of RnElement: the blocks of a stage, or the
 * convolutions of every branch of the head. */
typedef struct
{
  RnRecomputePart part;
  GPtrArray *chains; /* lent */
  int length;        /* (out) elements per segment; 0: all is kept */
} RnSegmentLength;

/*
 * Sets the lengths with which the sum of living bytes has the smallest peak, and of those the ones with the
 * least work. @fixed: the segments that are chosen already.
 */
void rn_recompute_search (const RnGraph *graph, const RnForwardUses *uses, RnHeadOrder order,
                          const GArray *fixed, RnSegmentLength *lengths, int n_lengths);

G_END_DECLS

#endif
