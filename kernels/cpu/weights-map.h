/*
 * weights-map.h: between weights as parameters are kept (plain OIHW) and as a oneDNN primitive wants them, with the scale of a folded batch
 * norm applied on the way.
 *
 * Every blocked layout is a sum of one table per dimension: the place of weight (g, o, i, k) is g_at[g] + o_at[o] + i_at[i] + k_at[k].
 */
#ifndef KERNELS_CPU_WEIGHTS_MAP_H
#define KERNELS_CPU_WEIGHTS_MAP_H

#include "kernels/cpu/onednn.h"

G_BEGIN_DECLS

typedef struct
{
  int64_t g, o, i, k; /* groups, output and input channels of a group, kernel cells */
  int64_t *g_at, *o_at, *i_at, *k_at;
  gboolean padded;    /* the packed form has more channels than there are; they must be zero */
  gsize bytes;        /* of the packed form */
} RnWeightsMap;

/* FALSE when the layout is not made of blocks. */
gboolean rn_weights_map_init (RnWeightsMap *map, RnOnednnDescRef desc);
void rn_weights_map_clear (RnWeightsMap *map);

/* packed = scale? [o] * plain. */
void rn_weights_pack (const RnWeightsMap *map, const float *plain, const float *scale, float *packed);
/* plain += scale? [o] * packed. */
void rn_weights_unpack_add (const RnWeightsMap *map, const float *packed, const float *scale, float *plain);
/* dot[o] = sum of plain * packed over the weights of output channel o, for all groups. */
void rn_weights_dot (const RnWeightsMap *map, const float *packed, const float *plain, double *dot);

G_END_DECLS

#endif
