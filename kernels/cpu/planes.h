/*
 * planes.h: a blocked activation as kernels walk it: planes of h rows of w cells of b channels that lie side
 * by side.
 */
#ifndef KERNELS_CPU_PLANES_H
#define KERNELS_CPU_PLANES_H

#include <runner/tensor.h>

typedef struct
{
  int64_t n, blocks; /* images, channel blocks; plane (i, k) is number i * blocks + k */
  int64_t h, w, b;
} RnPlanes;

static inline RnPlanes
rn_planes (const RnTensorDesc *d)
{
  RnPlanes p = { d->dims[0], rn_desc_stored_channels (d) / d->cblk, d->dims[2], d->dims[3], d->cblk };
  return p;
}

/* Start, in elements, of row @y of plane @plane. */
static inline int64_t
rn_planes_row (const RnPlanes *p, int64_t plane, int64_t y)
{
  return (plane * p->h + y) * p->w * p->b;
}

#endif
