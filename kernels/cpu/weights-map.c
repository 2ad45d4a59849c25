/*
 * weights-map.c: weights between plain and packed form, in tiles whose packed side (a few blocks of the
 * layout) stays in the first cache.
 */
#include "config.h"

#include "kernels/cpu/weights-map.h"

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

gboolean
rn_weights_map_init (RnWeightsMap *map, RnOnednnDescRef desc)
{
  RnOnednnBlocking b;
  memset (map, 0, sizeof *map);
  map->bytes = dnnl_memory_desc_get_size (desc);
  if (!rn_onednn_blocking (desc, &b) || b.rank < 4 || map->bytes / sizeof (float) > G_MAXINT32)
    return FALSE;

  const int o = b.rank - 4, i = o + 1, u = o + 2, v = o + 3; /* groups, where there are any, come first */
  g_autofree int32_t *o_at = offsets_of (&b, o), *i_at = offsets_of (&b, i);
  g_autofree int32_t *u_at = offsets_of (&b, u), *v_at = offsets_of (&b, v);
  g_autofree int32_t *g_at = b.rank == 5 ? offsets_of (&b, 0) : g_new0 (int32_t, 1);
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

void
rn_weights_pack (const RnWeightsMap *map, const float *plain, const float *scale, float *packed)
{
  const int64_t size = map->row_size;

  if (map->padded)
    memset (packed, 0, map->bytes);
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < map->n_rows; first += TILE_ROWS)
    for (int64_t start = 0; start < size; start += TILE_WEIGHTS)
      for (int64_t o = first; o < MIN (first + TILE_ROWS, map->n_rows); o++)
        {
          const float a = scale != NULL ? scale[o] : 1;
          const float *row = plain + o * size;
          float *block = packed + map->row_at[o];
          for (int64_t j = start; j < MIN (start + TILE_WEIGHTS, size); j++)
            block[map->weight_at[j]] = a * row[j];
        }
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
