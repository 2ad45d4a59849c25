/*
 * topk-key.h: the order of test-time selection as one integer, so that every kernel breaks ties and places
 * NaN alike.
 */
#ifndef KERNELS_TOPK_KEY_H
#define KERNELS_TOPK_KEY_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

/*
 * Larger key = selected earlier: larger score, then lower index. NaN comes after everything, -0 equals 0.
 * Keys of different anchors differ. IEEE 754 floats order like sign-magnitude integers.
 */
static inline guint64
rn_topk_key (float score, int64_t index)
{
  guint32 bits = 0;
  if (score == score)
    {
      score += 0.0f; /* -0 becomes 0 */
      memcpy (&bits, &score, sizeof bits);
      bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    }
  return (guint64) bits << 32 | (0xffffffffu - (guint32) index);
}

static inline int64_t
rn_topk_key_index (guint64 key)
{
  return (int64_t) (0xffffffffu - (guint32) key);
}

#endif
