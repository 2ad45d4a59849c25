/* batch-image.h: the floats that a batch stands for. */
#ifndef TESTS_BATCH_IMAGE_H
#define TESTS_BATCH_IMAGE_H

#include <runner/batch.h>

/* [n, 3, height, width], as runner/batch.h says. (transfer full) */
static inline float *
batch_image (const RnBatch *batch)
{
  const gsize plane = (gsize) batch->height * (gsize) batch->width;
  float *image = g_new (float, (gsize) batch->n * 3 * plane), *next = image;

  for (int i = 0; i < batch->n; i++)
    for (int c = 0; c < 3; c++)
      for (int y = 0; y < batch->height; y++)
        for (int x = 0; x < batch->width; x++)
          {
            gsize at = (gsize) i * plane + (gsize) y * (gsize) batch->width + (gsize) x;
            gboolean is_padding = y >= batch->sizes[i][0] || x >= batch->sizes[i][1];
            *next++ = is_padding ? 0 : batch->table[i][c][batch->pixels[3 * at + (gsize) c]];
          }
  return image;
}

#endif
