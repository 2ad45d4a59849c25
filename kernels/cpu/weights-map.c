/* weights-map.c: weights between plain and packed form. Output channels are walked in tiles, so that both sides stay in cache lines. */
#include "config.h"

#include "kernels/cpu/weights-map.h"

#include <string.h>

#define TILE 16

/* Where index 0, 1, 2, ... of dimension @dim lies, the other indices being 0. */
static int64_t *
offsets_of (const RnOnednnBlocking *b, int dim)
{
  int64_t *at = g_new (int64_t, b->dims[dim]);
  for (int64_t i = 0; i < b->dims[dim]; i++)
    {
      int64_t rest = i, place = 0, size = 1; /* size of what is inside of the inner blocks seen so far, from the innermost */
      for (int k = b->n_inner - 1; k >= 0; k--)
        {
          if (b->inner_index[k] == dim)
            {
              place += rest % b->inner_size[k] * size;
              rest /= b->inner_size[k];
            }
          size *= b->inner_size[k];
        }
      at[i] = place + rest * b->strides[dim];
    }
  return at;
}

gboolean
rn_weights_map_init (RnWeightsMap *map, RnOnednnDescRef desc)
{
  RnOnednnBlocking b;
  memset (map, 0, sizeof *map);
  if (!rn_onednn_blocking (desc, &b) || b.rank < 4)
    return FALSE;

  int o = b.rank - 4; /* dimension of the output channels: after the groups where there are any */
  map->g = b.rank == 5 ? b.dims[0] : 1;
  map->o = b.dims[o];
  map->i = b.dims[o + 1];
  map->k = b.dims[o + 2] * b.dims[o + 3];
  map->bytes = dnnl_memory_desc_get_size (desc);
  for (int d = 0; d < b.rank; d++)
    map->padded |= b.padded_dims[d] != b.dims[d];

  map->g_at = b.rank == 5 ? offsets_of (&b, 0) : g_new0 (int64_t, 1);
  map->o_at = offsets_of (&b, o);
  map->i_at = offsets_of (&b, o + 1);
  map->k_at = g_new (int64_t, map->k);
  g_autofree int64_t *row_at = offsets_of (&b, o + 2), *column_at = offsets_of (&b, o + 3);
  for (int64_t k = 0; k < map->k; k++)
    map->k_at[k] = row_at[k / b.dims[o + 3]] + column_at[k % b.dims[o + 3]];
  return TRUE;
}

void
rn_weights_map_clear (RnWeightsMap *map)
{
  g_free (map->g_at);
  g_free (map->o_at);
  g_free (map->i_at);
  g_free (map->k_at);
  memset (map, 0, sizeof *map);
}

/* Tiles of output channels: the unit of work of a thread. */
static int64_t
n_tiles (const RnWeightsMap *map)
{
  return map->g * ((map->o + TILE - 1) / TILE);
}

typedef struct
{
  int64_t g, first, end; /* output channels of group g */
  int64_t channel;       /* first, over all groups */
} Tile;

static Tile
tile_at (const RnWeightsMap *map, int64_t t)
{
  int64_t per_group = (map->o + TILE - 1) / TILE;
  Tile tile = { .g = t / per_group, .first = t % per_group * TILE };
  tile.end = MIN (tile.first + TILE, map->o);
  tile.channel = tile.g * map->o + tile.first;
  return tile;
}

void
rn_weights_pack (const RnWeightsMap *map, const float *plain, const float *scale, float *packed)
{
  int64_t row = map->i * map->k; /* plain weights of one output channel */

  if (map->padded)
    memset (packed, 0, map->bytes);
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < n_tiles (map); t++)
    {
      const Tile tile = tile_at (map, t);
      const float *src = plain + tile.channel * row;
      for (int64_t i = 0; i < map->i; i++)
        for (int64_t k = 0; k < map->k; k++)
          {
            float *dst = packed + map->g_at[tile.g] + map->i_at[i] + map->k_at[k];
            for (int64_t o = tile.first; o < tile.end; o++)
              {
                float w = src[(o - tile.first) * row + i * map->k + k];
                dst[map->o_at[o]] = scale != NULL ? scale[tile.g * map->o + o] * w : w;
              }
          }
    }
}

void
rn_weights_unpack_add (const RnWeightsMap *map, const float *packed, const float *scale, float *plain)
{
  int64_t row = map->i * map->k;

#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < n_tiles (map); t++)
    {
      const Tile tile = tile_at (map, t);
      float *dst = plain + tile.channel * row;
      for (int64_t i = 0; i < map->i; i++)
        for (int64_t k = 0; k < map->k; k++)
          {
            const float *src = packed + map->g_at[tile.g] + map->i_at[i] + map->k_at[k];
            for (int64_t o = tile.first; o < tile.end; o++)
              {
                float w = src[map->o_at[o]];
                dst[(o - tile.first) * row + i * map->k + k] += scale != NULL ? scale[tile.g * map->o + o] * w : w;
              }
          }
    }
}

void
rn_weights_dot (const RnWeightsMap *map, const float *packed, const float *plain, double *dot)
{
  int64_t row = map->i * map->k;

#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < n_tiles (map); t++)
    {
      const Tile tile = tile_at (map, t);
      const float *weights = plain + tile.channel * row;
      double sum[TILE] = { 0 };
      for (int64_t i = 0; i < map->i; i++)
        for (int64_t k = 0; k < map->k; k++)
          {
            const float *src = packed + map->g_at[tile.g] + map->i_at[i] + map->k_at[k];
            for (int64_t o = tile.first; o < tile.end; o++)
              sum[o - tile.first] += (double) src[map->o_at[o]] * weights[(o - tile.first) * row + i * map->k + k];
          }
      for (int64_t o = tile.first; o < tile.end; o++)
        dot[tile.g * map->o + o] = sum[o - tile.first];
    }
}
