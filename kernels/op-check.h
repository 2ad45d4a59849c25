/*
 * op-check.h: what the files that check calls share. op-check.c has what all ops have in common, and the ops
 * of losses, selection and update; op-check-maps.c those of feature maps.
 */
#ifndef KERNELS_OP_CHECK_H
#define KERNELS_OP_CHECK_H

#include "kernels/half.h"
#include "kernels/op.h"

G_BEGIN_DECLS

typedef const char *RnReason; /* why a call is wrong, static; NULL: it is not */

#define RN_TRY_CHECK(check)        \
  G_STMT_START                     \
  {                                \
    const char *reason_ = (check); \
    if (reason_ != NULL)           \
      return reason_;              \
  }                                \
  G_STMT_END

#define BIT(slot) (1u << (slot))

static inline gboolean
is_vector (const RnTensorDesc *d, RnDType dtype, int64_t n)
{
  return d->dtype == dtype && d->rank == 1 && d->dims[0] == n;
}

/* An activation or the gradient of one. */
static inline gboolean
is_activation (const RnTensorDesc *d)
{
  return rn_dtype_is_float (d->dtype) && d->rank == 4;
}

/* ---- op-check-maps.c: the slots that must be present are, and each tensor makes sense by itself ---- */

RnReason rn_op_check_conv_fwd (const RnOpCall *call);
RnReason rn_op_check_conv_bwd_data (const RnOpCall *call);
RnReason rn_op_check_conv_bwd_weights (const RnOpCall *call);
RnReason rn_op_check_norm_fwd (const RnOpCall *call);
RnReason rn_op_check_norm_bwd (const RnOpCall *call);
RnReason rn_op_check_elementwise (const RnOpCall *call);
RnReason rn_op_check_relu_bwd (const RnOpCall *call);
RnReason rn_op_check_max_pool_fwd (const RnOpCall *call);
RnReason rn_op_check_max_pool_bwd (const RnOpCall *call);
RnReason rn_op_check_avg_pool_fwd (const RnOpCall *call);
RnReason rn_op_check_avg_pool_bwd (const RnOpCall *call);
RnReason rn_op_check_upsample (const RnOpCall *call);
RnReason rn_op_check_reorder (const RnOpCall *call);
RnReason rn_op_check_copy (const RnOpCall *call);
RnReason rn_op_check_zero (const RnOpCall *call);
RnReason rn_op_check_normalize (const RnOpCall *call);

G_END_DECLS

#endif
