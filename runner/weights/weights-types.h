/* weights-types.h: the element types of weight files, by the names that each format has for them. */
#ifndef RUNNER_WEIGHTS_WEIGHTS_TYPES_H
#define RUNNER_WEIGHTS_WEIGHTS_TYPES_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  const char *name;    /* safetensors' */
  gsize bytes;         /* of an element */
  const char *storage; /* torch's typed storage, NULL if it has none: such tensors lie in an UntypedStorage */
  const char *dtype;   /* torch's */
} RnWeightType;

/* NULL if unknown. */
const RnWeightType *rn_weight_type_by_name (const char *name);
const RnWeightType *rn_weight_type_by_storage (
    const char *storage);                                        /* "FloatStorage", "UntypedStorage" (U8) */
const RnWeightType *rn_weight_type_by_dtype (const char *dtype); /* "float32" */

/* @n little-endian elements from @src to floats, to the nearest; FALSE for a type that has no conversion.
 * @src may be unaligned, and may not overlap @dst. */
gboolean rn_weight_type_to_f32 (const RnWeightType *type, const void *src, gsize n, float *dst);

G_END_DECLS

#endif
