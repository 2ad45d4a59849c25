/*
 * topk-key.h: the order of test-time selection as one integer, so that every kernel, of any device, breaks
 * ties and places NaN alike.
 */
#ifndef KERNELS_TOPK_KEY_H
#define KERNELS_TOPK_KEY_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
  #define RN_TOPK_KEY static inline __host__ __device__
#else
  #define RN_TOPK_KEY static inline
#endif

/*
 * Larger rank = larger score. NaN comes after everything, -0 equals 0. IEEE 754 floats order like
 * sign-magnitude integers.
 */
RN_TOPK_KEY uint32_t
rn_topk_rank (float score)
{
  uint32_t bits = 0;
  if (score == score)
    {
      score += 0.0f; /* -0 becomes 0 */
      memcpy (&bits, &score, sizeof bits);
      bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    }
  return bits;
}

/* Larger key = selected earlier: larger score, then lower index. Keys of different anchors differ. */
RN_TOPK_KEY uint64_t
rn_topk_key_of_rank (uint32_t rank, int64_t index)
{
  return (uint64_t) rank << 32 | (0xffffffffu - (uint32_t) index);
}

RN_TOPK_KEY uint64_t
rn_topk_key (float score, int64_t index)
{
  return rn_topk_key_of_rank (rn_topk_rank (score), index);
}

RN_TOPK_KEY int64_t
rn_topk_key_index (uint64_t key)
{
  return (int64_t) (0xffffffffu - (uint32_t) key);
}

#endif
