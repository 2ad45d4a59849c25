/* op-cost.c: what a call costs and how it is shown in messages. */
#include "config.h"

#include "kernels/half.h"
#include "kernels/op.h"

/* Multiply-adds of the convolution that the weights and the map of the output side belong to. */
static int64_t
conv_macs (const RnConvArgs *args, const RnTensorDesc *src, const RnTensorDesc *dst)
{
  return rn_desc_elements (dst) * (src->dims[1] / args->groups) * args->kernel[0] * args->kernel[1];
}

RnOpCost
rn_op_cost (const RnOpCall *call)
{
  RnOpCost cost = { 0, 0 };

  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i))
      cost.bytes += (int64_t) rn_desc_bytes (&call->in[i]);
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    if (RN_HAS_OUT (call, i))
      {
        int passes = (rn_op_update_mask (call->op) >> i) & 1 ? 2 : 1;
        cost.bytes += passes * (int64_t) rn_desc_bytes (&call->out[i]);
      }

  if (call->op == RN_OP_CONV2D_FWD)
    cost.macs = conv_macs (&call->args.conv, &call->in[RN_CONV_SRC], &call->out[RN_CONV_DST]);
  else if (call->op == RN_OP_CONV2D_BWD_DATA)
    cost.macs = conv_macs (&call->args.conv, &call->out[RN_CONV_BD_DIFF_SRC], &call->in[RN_CONV_BD_DIFF_DST]);
  else if (call->op == RN_OP_CONV2D_BWD_WEIGHTS)
    cost.macs = conv_macs (&call->args.conv, &call->in[RN_CONV_BW_SRC], &call->in[RN_CONV_BW_DIFF_DST]);
  return cost;
}

static void
append_shape (GString *text, const RnTensorDesc *d)
{
  if (d->rank == 0)
    g_string_append (text, "scalar");
  for (int i = 0; i < d->rank; i++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i > 0 ? "x" : "", d->dims[i]);
  if (d->cblk > 1)
    g_string_append_printf (text, "/%" G_GINT64_FORMAT, d->cblk);
  if (rn_dtype_is_half (d->dtype))
    g_string_append_printf (text, ":%s", rn_dtype_name (d->dtype));
}

static void
append_pair (GString *text, const char *name, const int value[2], int usual)
{
  if (value[0] == usual && value[1] == usual)
    return;
  if (value[0] == value[1])
    g_string_append_printf (text, " %s%d", name, value[0]);
  else
    g_string_append_printf (text, " %s%dx%d", name, value[0], value[1]);
}

char *
rn_op_describe (const RnOpCall *call)
{
  if ((guint) call->op >= RN_OP_COUNT)
    return g_strdup_printf ("op %d", (int) call->op);

  GString *text = g_string_new (rn_op_name (call->op));
  g_string_append_c (text, ' ');
  append_shape (text, &call->in[0]);
  g_string_append (text, " -> ");
  append_shape (text, &call->out[0]);

  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
    case RN_OP_CONV2D_BWD_DATA:
    case RN_OP_CONV2D_BWD_WEIGHTS:
      append_pair (text, "k", call->args.conv.kernel, 0);
      append_pair (text, "s", call->args.conv.stride, 0);
      append_pair (text, "p", call->args.conv.pad, 0);
      append_pair (text, "d", call->args.conv.dilation, 1);
      if (call->args.conv.groups != 1)
        g_string_append_printf (text, " g%d", call->args.conv.groups);
      break;
    case RN_OP_MAX_POOL_FWD:
    case RN_OP_MAX_POOL_BWD:
    case RN_OP_AVG_POOL_FWD:
    case RN_OP_AVG_POOL_BWD:
      append_pair (text, "k", call->args.pool.kernel, 0);
      append_pair (text, "s", call->args.pool.stride, 0);
      append_pair (text, "p", call->args.pool.pad, 0);
      break;
    case RN_OP_TOPK:
      g_string_append_printf (text, " k%" G_GINT64_FORMAT, call->args.topk.k);
      break;
    default:
      break;
    }

  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i) && ((rn_op_optional_in (call->op) >> i) & 1) != 0)
      g_string_append_printf (text, " +%s", rn_op_in_name (call->op, i));
  gboolean relu = (call->op == RN_OP_CONV2D_FWD && call->args.conv.relu)
                  || (call->op == RN_OP_BATCH_NORM_FWD && call->args.norm.relu)
                  || (call->op == RN_OP_ADD && call->args.add.relu);
  if (relu)
    g_string_append (text, " +relu");
  if (call->op == RN_OP_RELU_BWD && RN_HAS_OUT (call, RN_RELU_BWD_SUMS))
    g_string_append (text, " +sums");
  return g_string_free (text, FALSE);
}
