/*
 * weights-map.c: weights between plain and packed form, in tiles whose packed side (a few blocks of the
 * layout) stays in the first cache.
 */
#include "config.h"

#include "kernels/cpu/weights-map.h"
#include "kernels/half.h"

#include <string.h>

#define TILE_ROWS 16
#define TILE_WEIGHTS 256

/* Where index 0, 1, 2, ... of dimension @dim lies, the other indices being 0. */
static int32_t *
offsets_of (const RnOnednnBlocking *b, int dim)
{
  int32_t *at = g_new (int32_t, b->dims[dim]);
  for (int64_t i = 0; i < b->dims[dim]; i++)
    {
      int64_t rest = i, place = 0, size = 1; /* size: of the inner blocks seen so far, from the innermost */
      for (int k = b->n_inner - 1; k >= 0; k--)
        {
          if (b->inner_index[k] == dim)
            {
              place += rest % b->inner_size[k] * size;
              rest /= b->inner_size[k];
            }
          size *= b->inner_size[k];
        }
      at[i] = (int32_t) (place + rest * b->strides[dim]);
    }
  return at;
}

/* All sums of an entry of @a and one of @b, @b running faster. */
static int32_t *
outer_sum (const int32_t *a, int64_t n_a, const int32_t *b, int64_t n_b)
{
  int32_t *sum = g_new (int32_t, n_a * n_b);
  for (int64_t i = 0; i < n_a; i++)
    for (int64_t j = 0; j < n_b; j++)
      sum[i * n_b + j] = a[i] + b[j];
  return sum;
}

static void
reverse (int32_t *values, int64_t n)
{
  for (int64_t i = 0; i < n / 2; i++)
    {
      int32_t value = values[i];
      values[i] = values[n - 1 - i];
      values[n - 1 - i] = value;
    }
}

gboolean
rn_weights_map_init (RnWeightsMap *map, RnOnednnDescRef desc, RnDType dtype, gboolean turned)
{
  RnOnednnBlocking b;
  memset (map, 0, sizeof *map);
  map->dtype = dtype;
  map->bytes = dnnl_memory_desc_get_size (desc);
  if (!rn_onednn_blocking (desc, &b) || b.rank < 4 || map->bytes / rn_dtype_size (dtype) > G_MAXINT32)
    return FALSE;

  /* Groups, where there are any, come first. o and i as in the plain weights. */
  const int o = b.rank - (turned ? 3 : 4), i = b.rank - (turned ? 4 : 3), u = b.rank - 2, v = b.rank - 1;
  g_autofree int32_t *o_at = offsets_of (&b, o), *i_at = offsets_of (&b, i);
  g_autofree int32_t *u_at = offsets_of (&b, u), *v_at = offsets_of (&b, v);
  g_autofree int32_t *g_at = b.rank == 5 ? offsets_of (&b, 0) : g_new0 (int32_t, 1);
  if (turned)
    {
      reverse (u_at, b.dims[u]);
      reverse (v_at, b.dims[v]);
    }
  g_autofree int32_t *uv_at = outer_sum (u_at, b.dims[u], v_at, b.dims[v]);
  const int64_t groups = b.rank == 5 ? b.dims[0] : 1;

  map->n_rows = groups * b.dims[o];
  map->row_size = b.dims[i] * b.dims[u] * b.dims[v];
  map->row_at = outer_sum (g_at, groups, o_at, b.dims[o]);
  map->weight_at = outer_sum (i_at, b.dims[i], uv_at, b.dims[u] * b.dims[v]);
  for (int d = 0; d < b.rank; d++)
    map->padded |= b.padded_dims[d] != b.dims[d];
  return TRUE;
}

void
rn_weights_map_clear (RnWeightsMap *map)
{
  g_free (map->row_at);
  g_free (map->weight_at);
  memset (map, 0, sizeof *map);
}

/* Weights @start .. @start + @n - 1 of output channel @o, n at most TILE_WEIGHTS. */
static void
pack_tile (const RnWeightsMap *map, const float *plain, float a, RnDType compute, int64_t o, int64_t start,
           int64_t n, void *packed)
{
  const float *row = plain + o * map->row_size + start;
  const int32_t *at = map->weight_at + start;
  float scaled[TILE_WEIGHTS];
  guint16 half[TILE_WEIGHTS];

  for (int64_t j = 0; j < n; j++)
    scaled[j] = a * row[j];
  if (map->dtype == RN_BF16)
    {
      guint16 *block = (guint16 *) packed + map->row_at[o];
      rn_floats_to (RN_BF16, scaled, n, half);
      for (int64_t j = 0; j < n; j++)
        block[at[j]] = half[j];
      return;
    }
  float *block = (float *) packed + map->row_at[o];
  rn_floats_round (compute, scaled, n);
  for (int64_t j = 0; j < n; j++)
    block[at[j]] = scaled[j];
}

void
rn_weights_pack (const RnWeightsMap *map, const float *plain, const float *scale, RnDType compute,
                 void *packed)
{
  const int64_t size = map->row_size;

  if (map->padded)
    memset (packed, 0, map->bytes);
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < map->n_rows; first += TILE_ROWS)
    for (int64_t start = 0; start < size; start += TILE_WEIGHTS)
      for (int64_t o = first; o < MIN (first + TILE_ROWS, map->n_rows); o++)
        pack_tile (map, plain, scale != NULL ? scale[o] : 1, compute, o, start,
                   MIN (TILE_WEIGHTS, size - start), packed);
}

void
rn_weights_unpack_add (const RnWeightsMap *map, const float *packed, const float *scale, float *plain)
{
  const int64_t size = map->row_size;

#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < map->n_rows; first += TILE_ROWS)
    for (int64_t start = 0; start < size; start += TILE_WEIGHTS)
      for (int64_t o = first; o < MIN (first + TILE_ROWS, map->n_rows); o++)
        {
          const float a = scale != NULL ? scale[o] : 1;
          const float *block = packed + map->row_at[o];
          float *row = plain + o * size;
          for (int64_t j = start; j < MIN (start + TILE_WEIGHTS, size); j++)
            row[j] += a * block[map->weight_at[j]];
        }
}

void
rn_weights_dot (const RnWeightsMap *map, const float *packed, const float *plain, double *dot)
{
  const int64_t size = map->row_size;

#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < map->n_rows; first += TILE_ROWS)
    for (int64_t start = 0; start < size; start += TILE_WEIGHTS)
      for (int64_t o = first; o < MIN (first + TILE_ROWS, map->n_rows); o++)
        {
          const float *row = plain + o * size, *block = packed + map->row_at[o];
          double sum = start == 0 ? 0 : dot[o];
          for (int64_t j = start; j < MIN (start + TILE_WEIGHTS, size); j++)
            sum += (double) row[j] * block[map->weight_at[j]];
          dot[o] = sum;
        }
}
