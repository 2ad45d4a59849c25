/* case-list.h: what the files that write the table of cases share. */
#ifndef TESTS_KERNELS_CASE_LIST_H
#define TESTS_KERNELS_CASE_LIST_H

#include "tests/kernels/cases.h"

/* Channel blocks, one a round of cases; one more round is NHWC. */
static const int64_t case_blocks[] = { 1, 8, 16 };
#define N_CASE_ROUNDS (G_N_ELEMENTS (case_blocks) + 1)

/* The channel block of tensors of @channels in round @round. */
static inline int64_t
block_of_round (guint round, int64_t channels)
{
  return round < G_N_ELEMENTS (case_blocks) ? case_blocks[round] : channels;
}

static inline RnTensorDesc
vec (int64_t n)
{
  return rn_desc_vector (RN_F32, n);
}

/* @call must pass rn_op_check. */
void add_case (GArray *cases, const RnOpCall *call, double tolerance);

/* ---- map-cases.c ---- */

/* In all layouts. */
void add_conv_cases (GArray *cases);
/* Norms, elementwise ops, pooling, moves, pixels. */
void add_map_cases (GArray *cases, guint round);

#endif
