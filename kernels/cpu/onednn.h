/*
 * onednn.h: the part of oneDNN that we use, in one form for 2.6 (descriptors are structs, each primitive has
 * a *_desc_init) and 3.x (descriptors are handles, primitive descriptors are made at once). Only onednn.c
 * looks at the version.
 */
#ifndef KERNELS_CPU_ONEDNN_H
#define KERNELS_CPU_ONEDNN_H

#include <dnnl.h>
#include <dnnl_debug.h>
#include <glib.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t RnOnednnDescRef; /* a lent descriptor */
#else
typedef const dnnl_memory_desc_t *RnOnednnDescRef;
#endif

/* An activation in our layout, as oneDNN sees it. */
typedef struct
{
  int64_t dims[4];
  dnnl_format_tag_t tag;
  RnDType dtype; /* F32 or BF16 */
} RnOnednnMap;

/*
 * FALSE when oneDNN has no name for the layout: it knows blocks of 8 and 16, NCHW and NHWC; or no such
 * elements.
 */
gboolean rn_onednn_map_init (RnOnednnMap *map, const RnTensorDesc *desc);

typedef enum
{
  RN_ONEDNN_FWD,
  RN_ONEDNN_BWD_DATA,
  RN_ONEDNN_BWD_WEIGHTS,
} RnOnednnDirection;

/*
 * A convolution; src, dst and the weights are named as in the forward direction. The layout of the weights is
 * the library's choice. @operands: the type of what is multiplied, F32 or BF16; gradients of weights are F32.
 */
typedef struct
{
  RnOnednnDirection direction;
  RnOnednnMap src, dst;
  int groups;
  RnDType operands;
  int kernel[2], stride[2], dilation[2]; /* dilation 1 = dense */
  int pad[2], pad_end[2];                /* above and left, below and right */
  gboolean bias;                         /* its gradient, for BWD_WEIGHTS */
  gboolean sum, relu;                    /* FWD: dst = relu? (conv + dst?) */
  gboolean winograd;                     /* by Winograd's algorithm, or not at all */
} RnOnednnConv;

/* The fastest implementation, with a scratchpad that the caller supplies. */
dnnl_status_t rn_onednn_conv_desc_new (dnnl_engine_t engine, const RnOnednnConv *conv,
                                       dnnl_primitive_desc_t *pd);

/*
 * How the library stores weights: plain strides over blocks, and inside a block dimensions inner_index[] of
 * sizes inner_size[].
 */
typedef struct
{
  int rank; /* 4: OIHW, 5: GOIHW */
  int64_t dims[5], padded_dims[5];
  int64_t strides[5];
  int n_inner;
  int inner_index[DNNL_MAX_NDIMS];
  int64_t inner_size[DNNL_MAX_NDIMS];
} RnOnednnBlocking;

/* Whether the library would choose instructions for tiles of BF16 (AMX). */
gboolean rn_onednn_has_tiles (void);

/* FALSE for layouts that are not made of blocks (Winograd). */
gboolean rn_onednn_blocking (RnOnednnDescRef desc, RnOnednnBlocking *blocking);

/*
 * Channel block of activations that the library picks by itself for a common convolution; @fallback when it
 * has no opinion.
 */
int64_t rn_onednn_preferred_block (dnnl_engine_t engine, int64_t fallback);

G_END_DECLS

#endif
