/* onednn.c: the differences between the C interfaces of oneDNN 2.6 and 3.x. */
#include "config.h"

#include "kernels/cpu/onednn.h"

#include <string.h>

gboolean
rn_onednn_map_init (RnOnednnMap *map, const RnTensorDesc *desc)
{
  if (desc->rank != 4 || (desc->dtype != RN_F32 && desc->dtype != RN_BF16))
    return FALSE;
  map->dtype = desc->dtype;
  memcpy (map->dims, desc->dims, sizeof map->dims);
  if (desc->cblk == 1)
    map->tag = dnnl_nchw;
  else if (desc->cblk == 8)
    map->tag = dnnl_nChw8c;
  else if (desc->cblk == 16)
    map->tag = dnnl_nChw16c;
  else if (desc->cblk == desc->dims[1])
    map->tag = dnnl_nhwc;
  else
    return FALSE;
  return TRUE;
}

#if DNNL_VERSION_MAJOR >= 3

  #define desc_init_by_tag dnnl_memory_desc_create_with_tag

static void
desc_clear (dnnl_memory_desc_t *desc)
{
  if (*desc != NULL)
    dnnl_memory_desc_destroy (*desc);
}

#else

  #define desc_init_by_tag dnnl_memory_desc_init_by_tag

static void
desc_clear (dnnl_memory_desc_t *desc)
{
}

#endif

static dnnl_status_t
desc_init (dnnl_memory_desc_t *desc, int rank, const int64_t *sizes, RnDType dtype, dnnl_format_tag_t tag)
{
  dnnl_dims_t dims = { 0 };
  memcpy (dims, sizes, (gsize) rank * sizeof *sizes);
  return desc_init_by_tag (desc, rank, dims, dtype == RN_BF16 ? dnnl_bf16 : dnnl_f32, tag);
}

typedef struct
{
  dnnl_memory_desc_t src, weights, bias, dst;
} ConvDescs;

/* @hint: as the forward convolution that those backward ask for, all in the type of the operands. */
static dnnl_status_t
conv_descs_init (ConvDescs *d, const RnOnednnConv *conv, gboolean hint)
{
  RnDType operands = conv->operands;
  RnDType weights = !hint && conv->direction == RN_ONEDNN_BWD_WEIGHTS ? RN_F32 : operands;
  int64_t oc = conv->dst.dims[1], ic = conv->src.dims[1], g = conv->groups;
  int64_t grouped[5] = { g, oc / g, ic / g, conv->kernel[0], conv->kernel[1] };
  dnnl_status_t status =
      desc_init (&d->src, 4, conv->src.dims, hint ? operands : conv->src.dtype, conv->src.tag);

  if (status == dnnl_success)
    status = desc_init (&d->dst, 4, conv->dst.dims, hint ? operands : conv->dst.dtype, conv->dst.tag);
  if (status == dnnl_success)
    status = g == 1 ? desc_init (&d->weights, 4, grouped + 1, weights, dnnl_format_tag_any)
                    : desc_init (&d->weights, 5, grouped, weights, dnnl_format_tag_any);
  if (status == dnnl_success && conv->bias)
    status = desc_init (&d->bias, 1, &oc, RN_F32, dnnl_a);
  return status;
}

static void
conv_descs_clear (ConvDescs *d)
{
  desc_clear (&d->src);
  desc_clear (&d->weights);
  desc_clear (&d->bias);
  desc_clear (&d->dst);
}

static dnnl_status_t
post_ops_init (dnnl_post_ops_t ops, const RnOnednnConv *conv)
{
  dnnl_status_t status = dnnl_success;
#if DNNL_VERSION_MAJOR >= 3
  if (conv->sum)
    status = dnnl_post_ops_append_sum (ops, 1, 0, dnnl_data_type_undef);
  if (status == dnnl_success && conv->relu)
    status = dnnl_post_ops_append_eltwise (ops, dnnl_eltwise_relu, 0, 0);
#else
  if (conv->sum)
    status = dnnl_post_ops_append_sum (ops, 1);
  if (status == dnnl_success && conv->relu)
    status = dnnl_post_ops_append_eltwise (ops, 1, dnnl_eltwise_relu, 0, 0);
#endif
  return status;
}

static dnnl_status_t
attr_init (dnnl_primitive_attr_t attr, const RnOnednnConv *conv)
{
  dnnl_post_ops_t ops = NULL;
  dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode (attr, dnnl_scratchpad_mode_user);

  if (status == dnnl_success)
    status = dnnl_post_ops_create (&ops);
  if (status == dnnl_success)
    status = post_ops_init (ops, conv);
  if (status == dnnl_success)
    status = dnnl_primitive_attr_set_post_ops (attr, ops);
  if (ops != NULL)
    dnnl_post_ops_destroy (ops);
  return status;
}

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t
conv_pd_create (dnnl_engine_t engine, const RnOnednnConv *conv, const ConvDescs *d,
                RnOnednnDirection direction, const_dnnl_primitive_desc_t hint,
                const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd)
{
  const dnnl_dims_t stride = { conv->stride[0], conv->stride[1] }, pad = { conv->pad[0], conv->pad[1] },
                    end = { conv->pad_end[0], conv->pad_end[1] };
  /* oneDNN counts dilation from 0. */
  const dnnl_dims_t gap = { conv->dilation[0] - 1, conv->dilation[1] - 1 };

  if (conv->winograd) /* version 3 has it for other processors only */
    return dnnl_unimplemented;
  switch (direction)
    {
    case RN_ONEDNN_FWD:
      return dnnl_convolution_forward_primitive_desc_create (pd, engine, dnnl_forward_training,
                                                             dnnl_convolution_direct, d->src, d->weights,
                                                             d->bias, d->dst, stride, gap, pad, end, attr);
    case RN_ONEDNN_BWD_DATA:
      return dnnl_convolution_backward_data_primitive_desc_create (
          pd, engine, dnnl_convolution_direct, d->src, d->weights, d->dst, stride, gap, pad, end, hint, attr);
    case RN_ONEDNN_BWD_WEIGHTS:
      return dnnl_convolution_backward_weights_primitive_desc_create (pd, engine, dnnl_convolution_direct,
                                                                      d->src, d->weights, d->bias, d->dst,
                                                                      stride, gap, pad, end, hint, attr);
    }
  return dnnl_invalid_arguments;
}

#else

static dnnl_status_t
conv_pd_create (dnnl_engine_t engine, const RnOnednnConv *conv, const ConvDescs *d,
                RnOnednnDirection direction, const_dnnl_primitive_desc_t hint,
                const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd)
{
  const dnnl_dims_t stride = { conv->stride[0], conv->stride[1] }, pad = { conv->pad[0], conv->pad[1] },
                    end = { conv->pad_end[0], conv->pad_end[1] };
  /* oneDNN counts dilation from 0. */
  const dnnl_dims_t gap = { conv->dilation[0] - 1, conv->dilation[1] - 1 };
  const dnnl_memory_desc_t *bias = conv->bias ? &d->bias : NULL;
  dnnl_alg_kind_t algorithm = conv->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
  dnnl_convolution_desc_t desc;
  dnnl_status_t status = dnnl_invalid_arguments;

  switch (direction)
    {
    case RN_ONEDNN_FWD:
      status = dnnl_dilated_convolution_forward_desc_init (&desc, dnnl_forward_training, algorithm, &d->src,
                                                           &d->weights, bias, &d->dst, stride, gap, pad, end);
      break;
    case RN_ONEDNN_BWD_DATA:
      status = dnnl_dilated_convolution_backward_data_desc_init (&desc, algorithm, &d->src, &d->weights,
                                                                 &d->dst, stride, gap, pad, end);
      break;
    case RN_ONEDNN_BWD_WEIGHTS:
      status = dnnl_dilated_convolution_backward_weights_desc_init (&desc, algorithm, &d->src, &d->weights,
                                                                    bias, &d->dst, stride, gap, pad, end);
      break;
    }
  return status == dnnl_success ? dnnl_primitive_desc_create (pd, &desc, attr, engine, hint) : status;
}

#endif

dnnl_status_t
rn_onednn_conv_desc_new (dnnl_engine_t engine, const RnOnednnConv *conv, dnnl_primitive_desc_t *pd)
{
  ConvDescs descs, hint_descs;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t hint = NULL;

  memset (&descs, 0, sizeof descs);
  memset (&hint_descs, 0, sizeof hint_descs);
  dnnl_status_t status = conv_descs_init (&descs, conv, FALSE);
  if (status == dnnl_success)
    status = dnnl_primitive_attr_create (&attr);
  if (status == dnnl_success)
    status = attr_init (attr, conv);
  if (status == dnnl_success && conv->direction != RN_ONEDNN_FWD)
    {
      status = conv_descs_init (&hint_descs, conv, TRUE);
      if (status == dnnl_success)
        status = conv_pd_create (engine, conv, &hint_descs, RN_ONEDNN_FWD, NULL, NULL, &hint);
    }
  if (status == dnnl_success)
    status = conv_pd_create (engine, conv, &descs, conv->direction, hint, attr, pd);

  if (hint != NULL)
    dnnl_primitive_desc_destroy (hint);
  if (attr != NULL)
    dnnl_primitive_attr_destroy (attr);
  conv_descs_clear (&descs);
  conv_descs_clear (&hint_descs);
  return status;
}

#if DNNL_VERSION_MAJOR >= 3

static gboolean
query_dims (RnOnednnDescRef desc, dnnl_query_t what, int n, int64_t *values)
{
  const dnnl_dims_t *dims = NULL;
  if (dnnl_memory_desc_query (desc, what, &dims) != dnnl_success || dims == NULL)
    return FALSE;
  memcpy (values, *dims, (gsize) n * sizeof *values);
  return TRUE;
}

gboolean
rn_onednn_blocking (RnOnednnDescRef desc, RnOnednnBlocking *b)
{
  dnnl_format_kind_t kind;
  int64_t inner_index[DNNL_MAX_NDIMS];

  if (dnnl_memory_desc_query (desc, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked)
    return FALSE;
  if (dnnl_memory_desc_query (desc, dnnl_query_ndims_s32, &b->rank) != dnnl_success || b->rank > 5
      || dnnl_memory_desc_query (desc, dnnl_query_inner_nblks_s32, &b->n_inner) != dnnl_success)
    return FALSE;
  if (!query_dims (desc, dnnl_query_dims, b->rank, b->dims)
      || !query_dims (desc, dnnl_query_padded_dims, b->rank, b->padded_dims)
      || !query_dims (desc, dnnl_query_strides, b->rank, b->strides)
      || !query_dims (desc, dnnl_query_inner_blks, b->n_inner, b->inner_size)
      || !query_dims (desc, dnnl_query_inner_idxs, b->n_inner, inner_index))
    return FALSE;
  for (int i = 0; i < b->n_inner; i++)
    b->inner_index[i] = (int) inner_index[i];
  return TRUE;
}

#else

gboolean
rn_onednn_blocking (RnOnednnDescRef desc, RnOnednnBlocking *b)
{
  if (desc->format_kind != dnnl_blocked || desc->ndims > 5)
    return FALSE;
  b->rank = desc->ndims;
  b->n_inner = desc->format_desc.blocking.inner_nblks;
  for (int i = 0; i < b->rank; i++)
    {
      b->dims[i] = desc->dims[i];
      b->padded_dims[i] = desc->padded_dims[i];
      b->strides[i] = desc->format_desc.blocking.strides[i];
    }
  for (int i = 0; i < b->n_inner; i++)
    {
      b->inner_size[i] = desc->format_desc.blocking.inner_blks[i];
      b->inner_index[i] = (int) desc->format_desc.blocking.inner_idxs[i];
    }
  return TRUE;
}

#endif

gboolean
rn_onednn_has_tiles (void)
{
  return strstr (dnnl_cpu_isa2str (dnnl_get_effective_cpu_isa ()), "amx") != NULL;
}

int64_t
rn_onednn_preferred_block (dnnl_engine_t engine, int64_t fallback)
{
  RnOnednnConv conv = {
    .direction = RN_ONEDNN_FWD,
    .src = { { 1, 64, 32, 32 }, dnnl_format_tag_any, RN_F32 },
    .dst = { { 1, 64, 32, 32 }, dnnl_format_tag_any, RN_F32 },
    .groups = 1,
    .kernel = { 3, 3 },
    .stride = { 1, 1 },
    .pad = { 1, 1 },
    .pad_end = { 1, 1 },
    .dilation = { 1, 1 },
  };
  dnnl_primitive_desc_t pd = NULL;
  RnOnednnBlocking b;

  if (rn_onednn_conv_desc_new (engine, &conv, &pd) != dnnl_success)
    return fallback;
  gboolean known = rn_onednn_blocking (dnnl_primitive_desc_query_md (pd, dnnl_query_dst_md, 0), &b);
  dnnl_primitive_desc_destroy (pd);
  if (known && b.n_inner == 1 && b.inner_index[0] == 1 && (b.inner_size[0] == 8 || b.inner_size[0] == 16))
    return b.inner_size[0];
  return fallback;
}
