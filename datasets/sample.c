#include "config.h"

#include "datasets/sample.h"

#include <string.h>

static void
lists_of (RnSample *sample, RnBoxList *lists[2])
{
  lists[0] = &sample->gt;
  lists[1] = &sample->difficult;
}

void
rn_box_list_append (RnBoxList *list, const RnGroundTruth *truth, int i)
{
  memcpy (list->boxes[list->n], truth->boxes[i], sizeof list->boxes[0]);
  list->labels[list->n++] = truth->labels[i];
}

void
rn_sample_scale_boxes (RnSample *sample, float scale_w, float scale_h, int width, int height)
{
  RnBoxList *lists[2];

  lists_of (sample, lists);
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < lists[l]->n; i++)
      for (int c = 0; c < 4; c++)
        {
          gboolean horizontal = c % 2 == 0;
          float side = (float) (horizontal ? width : height);
          float *value = &lists[l]->boxes[i][c];

          *value = CLAMP (*value * (horizontal ? scale_w : scale_h), 0, side);
        }
}

void
rn_sample_move_boxes (RnSample *sample, float dx, float dy)
{
  RnBoxList *lists[2];

  lists_of (sample, lists);
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < lists[l]->n; i++)
      for (int c = 0; c < 4; c++)
        lists[l]->boxes[i][c] += c % 2 == 0 ? dx : dy;
}

static void
mirror (float *low, float *high, float side)
{
  float old = *low;

  *low = side - *high;
  *high = side - old;
}

void
rn_sample_flip_boxes (RnSample *sample, gboolean horizontal, gboolean vertical)
{
  RnBoxList *lists[2];

  lists_of (sample, lists);
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < lists[l]->n; i++)
      {
        float *box = lists[l]->boxes[i];

        if (horizontal)
          mirror (&box[0], &box[2], (float) sample->width);
        if (vertical)
          mirror (&box[1], &box[3], (float) sample->height);
      }
}

static void
copy_item (RnBoxList *list, int to, int from)
{
  if (to == from)
    return;
  memcpy (list->boxes[to], list->boxes[from], sizeof list->boxes[0]);
  list->labels[to] = list->labels[from];
}

/* Moves @box, clips it and says whether enough of it is left. */
static gboolean
clip (float box[4], float dx, float dy, int width, int height, float min_side)
{
  for (int c = 0; c < 4; c++)
    box[c] = CLAMP (box[c] + (c % 2 == 0 ? dx : dy), 0, (float) (c % 2 == 0 ? width : height));
  return box[2] - box[0] > min_side && box[3] - box[1] > min_side;
}

void
rn_sample_clip_boxes (RnSample *sample, int width, int height, float min_side)
{
  RnBoxList *lists[2];

  lists_of (sample, lists);
  for (int l = 0; l < 2; l++)
    {
      int kept = 0;

      for (int i = 0; i < lists[l]->n; i++)
        if (clip (lists[l]->boxes[i], 0, 0, width, height, min_side))
          copy_item (lists[l], kept++, i);
      lists[l]->n = kept;
    }
}

int
rn_box_list_count_inside (const RnBoxList *list, float dx, float dy, int width, int height, float min_side)
{
  int n = 0;

  for (int i = 0; i < list->n; i++)
    {
      float box[4];

      memcpy (box, list->boxes[i], sizeof box);
      n += clip (box, dx, dy, width, height, min_side);
    }
  return n;
}

gboolean
rn_box_is_centred (const float box[4], const int window[4])
{
  float x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;

  return x > (float) window[0] && y > (float) window[1] && x < (float) window[2] && y < (float) window[3];
}

void
rn_sample_keep_centred (RnSample *sample, const int window[4])
{
  RnBoxList *lists[2];

  lists_of (sample, lists);
  for (int l = 0; l < 2; l++)
    {
      int kept = 0;

      for (int i = 0; i < lists[l]->n; i++)
        if (rn_box_is_centred (lists[l]->boxes[i], window))
          copy_item (lists[l], kept++, i);
      lists[l]->n = kept;
    }
}

void
rn_sample_swap (RnSample *sample)
{
  guint8 *pixels = sample->pixels;

  sample->pixels = sample->spare;
  sample->spare = pixels;
}

void
rn_sample_set_output (RnSample *sample, RnBatch *batch, int i)
{
  sample->image = batch->pixels + (gsize) i * 3 * (gsize) batch->height * (gsize) batch->width;
  sample->size = batch->sizes[i];
  sample->values = batch->table[i];
  sample->out_width = batch->width;
  sample->out_height = batch->height;
}
