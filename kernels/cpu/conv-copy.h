/*
 * conv-copy.h: between an activation as it is stored and the copy of a piece of it that a convolution works
 * on: other elements (F32 or BF16), perhaps another layout, rows outside of the image as zeros.
 */
#ifndef KERNELS_CPU_CONV_COPY_H
#define KERNELS_CPU_CONV_COPY_H

#include <runner/tensor.h>

G_BEGIN_DECLS

typedef struct
{
  RnTensorDesc tensor;
  /* dims[0] images and dims[2] rows of a piece. Its channel block is that of the tensor, or all channels. Its
   * elements are those of the tensor, or F32, or BF16 made of F32. */
  RnTensorDesc piece;
  RnDType compute; /* F32 elements are rounded to it on the way in */
  /* The piece has every so manieth row and column of the tensor, from the first; mostly 1, 1. */
  int step[2];
} RnConvCopy;

/* Whether a copy may have all channels in one block: FALSE where the blocks of the tensor are too large. */
gboolean rn_conv_copy_can_gather (const RnTensorDesc *tensor);

/* Fills the copy with images from @image on, rows from @row on (of those that pieces have), which may lie
 * outside. */
void rn_conv_copy_in (const RnConvCopy *copy, const void *tensor, int64_t image, int64_t row, void *piece);
/* The way back: those rows that the image has. What is not in a piece, rows and columns between, and channels
 * that only fill up a block, becomes zero. */
void rn_conv_copy_out (const RnConvCopy *copy, const void *piece, int64_t image, int64_t row, void *tensor);

G_END_DECLS

#endif
