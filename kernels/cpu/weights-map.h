/*
 * weights-map.h: between weights as parameters are kept (plain OIHW) and as a oneDNN primitive wants them,
 * with the scale of a folded batch norm applied on the way, and rounded to half precision where asked for.
 *
 * Every blocked layout is a sum of one table per dimension. Two tables are enough: weight j = (i * KH + u) *
 * KW + v of output channel o lies at row_at[o] + weight_at[j].
 */
#ifndef KERNELS_CPU_WEIGHTS_MAP_H
#define KERNELS_CPU_WEIGHTS_MAP_H

#include "kernels/cpu/onednn.h"

G_BEGIN_DECLS

typedef struct
{
  int64_t n_rows, row_size; /* output channels over all groups; weights of one of them */
  int32_t *row_at,
      *weight_at;  /* elements; there is a map per convolution of a plan, so they are kept small */
  gboolean padded; /* the packed form has more channels than there are; they must be zero */
  RnDType dtype;   /* of the packed form: F32 or BF16 */
  gsize bytes;     /* of the packed form */
} RnWeightsMap;

/*
 * @dtype: of @desc. @turned: @desc are the weights of the convolution that takes gradients back where stride
 * is 1: input and output channels are exchanged, rows and columns run backwards. FALSE when the layout is not
 * made of blocks or has 2^31 elements.
 */
gboolean rn_weights_map_init (RnWeightsMap *map, RnOnednnDescRef desc, RnDType dtype, gboolean turned);
void rn_weights_map_clear (RnWeightsMap *map);

/* packed = scale? [o] * plain, rounded to @compute. */
void rn_weights_pack (const RnWeightsMap *map, const float *plain, const float *scale, RnDType compute,
                      void *packed);
/* Of F32 maps. plain += scale? [o] * packed. */
void rn_weights_unpack_add (const RnWeightsMap *map, const float *packed, const float *scale, float *plain);
/* dot[o] = sum of plain * packed over the weights of output channel o. */
void rn_weights_dot (const RnWeightsMap *map, const float *packed, const float *plain, double *dot);

G_END_DECLS

#endif
