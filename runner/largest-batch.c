/* largest-batch.c: doubling, then halving. More images never need less. */
#include "config.h"

#include "runner/largest-batch.h"

#define MAX_BATCH 4096 /* of data.samples_per_gpu */

typedef struct
{
  RnPredictor *predictor;
  const GPtrArray *sets;
  const RnRoom *room;
} Trial;

/*
 * Does a batch fit with one of @sets of lines? *@prediction: of what fits, else of what comes nearest. What
 * cannot be planned at all, being too large for a tensor, does not fit.
 */
static gboolean
fits (const Trial *trial, int batch, RnPrediction *prediction, char ***lines)
{
  guint64 least = G_MAXUINT64;
  char **nearest = NULL;

  for (guint i = 0; i < trial->sets->len; i++)
    {
      char **set = trial->sets->pdata[i];
      RnPrediction now;
      if (!rn_predict (trial->predictor, (const char *const *) set, batch, RN_PREDICT_BOUND, &now, NULL))
        continue;
      guint64 bound = rn_room_needed (trial->room, &now.memory);
      if (bound < least)
        {
          least = bound;
          nearest = set;
          *prediction = now;
        }
      if (bound > trial->room->bytes
          || !rn_predict (trial->predictor, (const char *const *) set, batch, RN_PREDICT_ALL, &now, NULL)
          || rn_room_needed (trial->room, &now.memory) > trial->room->bytes)
        continue;
      *prediction = now;
      if (lines != NULL)
        {
          g_strfreev (*lines);
          *lines = g_strdupv (set);
        }
      return TRUE;
    }
  if (nearest != NULL)
    rn_predict (trial->predictor, (const char *const *) nearest, batch, RN_PREDICT_ALL, prediction, NULL);
  return FALSE;
}

void
rn_largest_batch (RnPredictor *predictor, const GPtrArray *sets, const RnRoom *room, RnLargestBatch *largest)
{
  const Trial trial = { predictor, sets, room };
  RnPrediction now;
  int low = 0, high = rn_predictor_largest (predictor).n; /* low fits, high does not */

  largest->room = *room;
  while (high <= MAX_BATCH && fits (&trial, high, &now, &largest->lines))
    {
      largest->fits = now;
      low = high;
      high *= 2;
    }
  high = MIN (high, MAX_BATCH + 1);
  while (high - low > 1)
    {
      int middle = low + (high - low) / 2;
      if (fits (&trial, middle, &now, &largest->lines))
        {
          largest->fits = now;
          low = middle;
        }
      else
        high = middle;
    }
  largest->batch = low;
  fits (&trial, low + 1, &largest->too_much, NULL);
}

void
rn_largest_batch_clear (RnLargestBatch *largest)
{
  g_clear_pointer (&largest->lines, g_strfreev);
}
