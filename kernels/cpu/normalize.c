/*
 * normalize.c: the bytes of a batch become the model's input, row by row. A value is looked up in the type of
 * the output, so it is rounded once a table and not once a pixel.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <string.h>

/* The bits of what a byte of each channel stands for. */
typedef union
{
  guint32 singles[3][256];
  guint16 halves[3][256];
} Table;

static void
fill_table (RnDType t, const float *values, Table *table)
{
  if (t == RN_F32)
    memcpy (table->singles, values, sizeof table->singles);
  else
    rn_floats_to (t, values, 3 * 256, table->halves);
}

/* Channel @c of a row of @w cells that lie @step elements apart; the first @n of them are of the image. */
#define FILL_CHANNEL(values, row, out)          \
  G_STMT_START                                  \
  {                                             \
    for (int64_t x = 0; x < n; x++)             \
      (out)[x * step] = (values)[(row)[3 * x]]; \
    for (int64_t x = n; x < w; x++)             \
      (out)[x * step] = 0;                      \
  }                                             \
  G_STMT_END

static void
fill_channel (RnDType t, const Table *table, int64_t c, const guint8 *row, int64_t n, int64_t w, void *out,
              int64_t at, int64_t step)
{
  if (t == RN_F32)
    FILL_CHANNEL (table->singles[c], row + c, (guint32 *) out + at);
  else
    FILL_CHANNEL (table->halves[c], row + c, (guint16 *) out + at);
}

static RnStatus
normalize (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  const RnTensorDesc *d = &call->out[0];
  const guint8 *pixels = in[RN_NORMALIZE_PIXELS];
  const int32_t (*sizes)[2] = in[RN_NORMALIZE_SIZES];
  const float *values = in[RN_NORMALIZE_TABLE];
  const int64_t images = d->dims[0], h = d->dims[2], w = d->dims[3];

#pragma omp parallel
  {
    Table table;
    int64_t table_of = -1;
#pragma omp for schedule(static)
    for (int64_t line = 0; line < images * h; line++)
      {
        const int64_t image = line / h, y = line % h;
        const int64_t n = y < sizes[image][0] ? CLAMP (sizes[image][1], 0, w) : 0;
        if (image != table_of)
          fill_table (d->dtype, values + image * 3 * 256, &table);
        table_of = image;
        for (int64_t c = 0; c < rn_desc_stored_channels (d); c++)
          fill_channel (d->dtype, &table, MIN (c, 2), pixels + line * w * 3, c < 3 ? n : 0, w, out[0],
                        rn_desc_index (d, image, c, y, 0), d->cblk);
      }
  }
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_normalize = {
  .op = RN_OP_NORMALIZE, .name = "cpu:normalize:openmp", .priority = RN_PRIORITY_OPENMP, .run = normalize
};
