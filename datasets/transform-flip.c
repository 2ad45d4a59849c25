/* transform-flip.c: RandomFlip, horizontal, vertical or both at once. */
#include "config.h"

#include "datasets/transform.h"

#include <string.h>

#define MAX_DIRECTIONS 3

typedef struct
{
  GArray *flip_ratio; /* of double; NULL: never */
  char **direction;
  int n;
  int flips[MAX_DIRECTIONS];    /* bits of RnFlip */
  double below[MAX_DIRECTIONS]; /* a number drawn below it, and not below the one before, flips so */
} RandomFlip;

static const RnKeySpec random_flip_keys[] = {
  RN_KEY (RandomFlip, flip_ratio, RN_KEY_FLOAT_LIST, "null",
          "probability of a flip, shared by the directions; or one for each; null: never", .min = 0, .max = 1,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RandomFlip, direction, RN_KEY_STRING_LIST, "horizontal",
          "horizontal, vertical or diagonal (both); or a list of these"),
  RN_KEY_END,
};

static gboolean
parse_directions (RandomFlip *settings, const RnNode *node, GError **error)
{
  static const char *const names[] = { "horizontal", "vertical", "diagonal", NULL };
  static const int flips[] = { RN_FLIP_HORIZONTAL, RN_FLIP_VERTICAL, RN_FLIP_HORIZONTAL | RN_FLIP_VERTICAL };

  settings->n = (int) g_strv_length (settings->direction);
  if (settings->n < 1 || settings->n > MAX_DIRECTIONS)
    return rn_node_error (node, error, "direction is one to three of horizontal, vertical, diagonal");
  for (int i = 0; i < settings->n; i++)
    {
      const char *nearest = rn_suggest (settings->direction[i], names);

      for (int k = 0; names[k] != NULL; k++)
        if (strcmp (settings->direction[i], names[k]) == 0)
          settings->flips[i] = flips[k];
      if (settings->flips[i] == 0)
        return rn_node_error (node, error, "direction: \"%s\" is not %s", settings->direction[i],
                              nearest != NULL ? nearest : "horizontal, vertical or diagonal");
    }
  return TRUE;
}

static gboolean
random_flip_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  RandomFlip *settings = self;
  double sum = 0;

  if (!parse_directions (settings, node, error))
    return FALSE;
  if (settings->flip_ratio == NULL)
    return TRUE;
  if (settings->flip_ratio->len != 1 && (int) settings->flip_ratio->len != settings->n)
    return rn_node_error (node, error, "flip_ratio is one number, or one for each direction");
  for (int i = 0; i < settings->n; i++)
    {
      sum += settings->flip_ratio->len == 1 ? g_array_index (settings->flip_ratio, double, 0) / settings->n
                                            : g_array_index (settings->flip_ratio, double, i);
      settings->below[i] = sum;
    }
  if (sum > 1 + 1e-9)
    return rn_node_error (node, error, "flip_ratio: the numbers add up to %g, more than 1", sum);
  if (test_mode && sum > 0)
    return rn_node_error (node, error, "a test pipeline cannot flip at random; leave flip_ratio out");
  return TRUE;
}

static void
random_flip_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  const RandomFlip *settings = self;
  double drawn = rn_rng_uniform (rng);
  int flip = 0;

  for (int i = settings->n - 1; i >= 0 && settings->flip_ratio != NULL; i--)
    if (drawn < settings->below[i])
      flip = settings->flips[i];
  sample->meta->flip = flip;
  decision->active = flip != 0;
  rn_sample_flip_boxes (sample, (flip & RN_FLIP_HORIZONTAL) != 0, (flip & RN_FLIP_VERTICAL) != 0);
}

static void
flip_row (guint8 *row, int width)
{
  for (guint8 *a = row, *b = row + 3 * (width - 1); a < b; a += 3, b -= 3)
    for (int c = 0; c < 3; c++)
      {
        guint8 byte = a[c];

        a[c] = b[c];
        b[c] = byte;
      }
}

static void
swap_rows (guint8 *restrict a, guint8 *restrict b, gsize n)
{
  for (gsize i = 0; i < n; i++)
    {
      guint8 byte = a[i];

      a[i] = b[i];
      b[i] = byte;
    }
}

static gboolean
random_flip_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  gsize pitch = (gsize) sample->width * 3;
  int height = sample->height;

  if (sample->meta->flip & RN_FLIP_HORIZONTAL)
    for (int y = 0; y < height; y++)
      flip_row (sample->pixels + y * pitch, sample->width);
  if (sample->meta->flip & RN_FLIP_VERTICAL)
    for (int y = 0; y < height / 2; y++)
      swap_rows (sample->pixels + y * pitch, sample->pixels + (height - 1 - y) * pitch, pitch);
  return TRUE;
}

const RnTransformDesc rn_transform_random_flip = {
  .component = { "RandomFlip", "mirrors the image and its boxes with a probability", sizeof (RandomFlip),
                 random_flip_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_FLIP,
  .moves_only = TRUE,
  .setup = random_flip_setup,
  .plan = random_flip_plan,
  .run = random_flip_run,
};
