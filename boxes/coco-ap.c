#include <config.h>

#include "boxes/coco-ap.h"

#include <float.h>
#include <math.h>

#define N_THRS 10
#define THR_50 0
#define THR_75 5
#define N_RECALLS 101
#define MAX_DETS 100

typedef enum
{
  AREA_ALL,
  AREA_SMALL,
  AREA_MEDIUM,
  AREA_LARGE,
  N_AREAS,
} Area;

/* In square pixels, both ends inclusive. */
static const double area_ranges[N_AREAS][2] = {
  [AREA_ALL] = { 0, 1e5 * 1e5 },
  [AREA_SMALL] = { 0, 32 * 32 },
  [AREA_MEDIUM] = { 32 * 32, 96 * 96 },
  [AREA_LARGE] = { 96 * 96, 1e5 * 1e5 },
};

/* What remains of a detection when its image is done. Bit t of a mask stands for the overlap t. */
typedef struct
{
  float score;
  guint8 rank;              /* in its image and class, from 0 */
  guint16 hits[N_AREAS];    /* found an object that counts */
  guint16 ignored[N_AREAS]; /* counts neither way */
} Found;

typedef struct
{
  int64_t n_gts[N_AREAS];
  GArray *found; /* of Found, in the order of images, each by descending score */
} Class;

/* Boxes of one image and class. */
typedef struct
{
  GArray *detections; /* of RnDetection */
  GArray *order;      /* of int: the best MAX_DETS detections, by descending score */
  GArray *gts;        /* of RnBox: normal ones, then difficult ones */
  int n_normal;
  GArray *overlaps;   /* of double [order, gts] */
  GArray *ranked_gts; /* of int: those that count first, for one area */
  guint n_counting;
  GArray *is_taken; /* of guint8 */
} Scratch;

struct _RnCocoEval
{
  int num_classes;
  Class *classes;
  Scratch scratch;
};

/* As np.linspace (0.5, 0.95, 10) has it. */
static double
iou_thr (int t)
{
  return t == N_THRS - 1 ? 0.95 : 0.5 + t * ((0.95 - 0.5) / (N_THRS - 1));
}

RnCocoEval *
rn_coco_eval_new (int num_classes)
{
  RnCocoEval *eval = g_new0 (RnCocoEval, 1);
  Scratch *s = &eval->scratch;

  eval->num_classes = num_classes;
  eval->classes = g_new0 (Class, num_classes);
  for (int c = 0; c < num_classes; c++)
    eval->classes[c].found = g_array_new (FALSE, FALSE, sizeof (Found));
  s->detections = g_array_new (FALSE, FALSE, sizeof (RnDetection));
  s->order = g_array_new (FALSE, FALSE, sizeof (int));
  s->gts = g_array_new (FALSE, FALSE, sizeof (RnBox));
  s->overlaps = g_array_new (FALSE, FALSE, sizeof (double));
  s->ranked_gts = g_array_new (FALSE, FALSE, sizeof (int));
  s->is_taken = g_array_new (FALSE, TRUE, sizeof (guint8));
  return eval;
}

void
rn_coco_eval_free (RnCocoEval *eval)
{
  if (eval == NULL)
    return;
  Scratch *s = &eval->scratch;
  for (int c = 0; c < eval->num_classes; c++)
    g_array_unref (eval->classes[c].found);
  g_free (eval->classes);
  g_array_unref (s->detections);
  g_array_unref (s->order);
  g_array_unref (s->gts);
  g_array_unref (s->overlaps);
  g_array_unref (s->ranked_gts);
  g_array_unref (s->is_taken);
  g_free (eval);
}

/* ---- One image ---- */

static int
compare_detections (const void *pa, const void *pb, gpointer user_data)
{
  const RnDetection *detections = user_data;
  int a = *(const int *) pa, b = *(const int *) pb;
  float score_a = detections[a].score, score_b = detections[b].score;
  return score_a != score_b ? (score_a < score_b ? 1 : -1) : (a > b) - (a < b);
}

static double
area (RnBox box)
{
  return ((double) box.x2 - (double) box.x1) * ((double) box.y2 - (double) box.y1);
}

/* In double, from widths, as pycocotools' C code does, so that the bits are the same. */
static double
overlap (RnBox a, RnBox b)
{
  double ax = (double) a.x1, ay = (double) a.y1, aw = (double) a.x2 - ax, ah = (double) a.y2 - ay;
  double bx = (double) b.x1, by = (double) b.y1, bw = (double) b.x2 - bx, bh = (double) b.y2 - by;
  double w = fmin (aw + ax, bw + bx) - fmax (ax, bx), h = fmin (ah + ay, bh + by) - fmax (ay, by);

  if (!(w > 0 && h > 0))
    return 0;
  double iou = w * h / (aw * ah + bw * bh - w * h);
  return isfinite (iou) ? iou : 0;
}

static void
select_boxes (GArray *selected, const RnBox *boxes, const int32_t *labels, int n, int32_t label)
{
  for (int i = 0; i < n; i++)
    if (labels[i] == label)
      g_array_append_val (selected, boxes[i]);
}

static void
select_class (Scratch *s, const RnApImage *image, int32_t label)
{
  g_array_set_size (s->gts, 0);
  select_boxes (s->gts, image->gts, image->gt_labels, image->n_gts, label);
  s->n_normal = (int) s->gts->len;
  select_boxes (s->gts, image->difficults, image->difficult_labels, image->n_difficults, label);

  g_array_set_size (s->detections, 0);
  g_array_set_size (s->order, 0);
  for (int i = 0; i < image->n_detections; i++)
    if (image->detections[i].label == label)
      {
        int index = (int) s->detections->len;
        g_array_append_val (s->detections, image->detections[i]);
        g_array_append_val (s->order, index);
      }
  g_array_sort_with_data (s->order, compare_detections, s->detections->data);
  g_array_set_size (s->order, MIN (s->order->len, MAX_DETS));

  g_array_set_size (s->overlaps, 0);
  for (guint d = 0; d < s->order->len; d++)
    for (guint g = 0; g < s->gts->len; g++)
      {
        int index = g_array_index (s->order, int, d);
        double iou =
            overlap (g_array_index (s->detections, RnDetection, index).box, g_array_index (s->gts, RnBox, g));
        g_array_append_val (s->overlaps, iou);
      }
}

/* A box that is not finite is a false alarm of every size. */
static gboolean
is_inside (Area range, double size)
{
  return !isfinite (size) || (size >= area_ranges[range][0] && size <= area_ranges[range][1]);
}

/* Boxes that count in this range first, both parts in their old order. */
static void
rank_gts (Scratch *s, Area range)
{
  g_array_set_size (s->ranked_gts, 0);
  for (int pass = 0; pass < 2; pass++)
    {
      for (int g = 0; g < (int) s->gts->len; g++)
        if ((g < s->n_normal && is_inside (range, area (g_array_index (s->gts, RnBox, g)))) == (pass == 0))
          g_array_append_val (s->ranked_gts, g);
      if (pass == 0)
        s->n_counting = s->ranked_gts->len;
    }
}

/*
 * The free box that detection @d overlaps most, at least by @thr; the last one on ties. One that is to be
 * ignored is taken only if there is none that counts. -1: there is no such box, else its place in ranked_gts.
 */
static int
best_gt (const Scratch *s, guint d, double thr)
{
  const double *overlaps = (const double *) (gconstpointer) s->overlaps->data + (gsize) d * s->gts->len;
  double best_iou = thr;
  int best = -1;

  for (guint k = 0; k < s->ranked_gts->len; k++)
    {
      int g = g_array_index (s->ranked_gts, int, k);
      if (g_array_index (s->is_taken, guint8, k))
        continue;
      if (k >= s->n_counting && best >= 0 && (guint) best < s->n_counting)
        break;
      if (overlaps[g] >= best_iou)
        {
          best_iou = overlaps[g];
          best = (int) k;
        }
    }
  return best;
}

static void
match (Scratch *s, Area range, int t, Found *found)
{
  g_array_set_size (s->is_taken, 0);
  g_array_set_size (s->is_taken, s->ranked_gts->len); /* zeroes */
  for (guint d = 0; d < s->order->len; d++)
    {
      RnBox box = g_array_index (s->detections, RnDetection, g_array_index (s->order, int, d)).box;
      int best = best_gt (s, d, iou_thr (t));
      guint16 bit = (guint16) (1U << t);

      if (best >= 0)
        g_array_index (s->is_taken, guint8, best) = 1;
      if (best >= 0 && (guint) best < s->n_counting)
        found[d].hits[range] |= bit;
      else if (best >= 0 || !is_inside (range, area (box)))
        found[d].ignored[range] |= bit;
    }
}

static void
add_class (Scratch *s, Class *class)
{
  guint first = class->found->len;

  for (guint d = 0; d < s->order->len; d++)
    {
      int index = g_array_index (s->order, int, d);
      Found found = { .score = g_array_index (s->detections, RnDetection, index).score, .rank = (guint8) d };
      g_array_append_val (class->found, found);
    }
  for (int range = 0; range < N_AREAS; range++)
    {
      rank_gts (s, (Area) range);
      class->n_gts[range] += s->n_counting;
      for (int t = 0; t < N_THRS; t++)
        match (s, (Area) range, t, (Found *) (gpointer) class->found->data + first);
    }
}

gboolean
rn_coco_eval_add (RnCocoEval *eval, const RnApImage *image, GError **error)
{
  if (!rn_ap_image_check (image, eval->num_classes, error))
    return FALSE;
  for (int c = 0; c < eval->num_classes; c++)
    {
      select_class (&eval->scratch, image, c);
      if (eval->scratch.order->len > 0 || eval->scratch.gts->len > 0)
        add_class (&eval->scratch, &eval->classes[c]);
    }
  return TRUE;
}

/* ---- All images ---- */

static int
compare_found (const void *pa, const void *pb)
{
  float a = ((const Found *) pa)->score, b = ((const Found *) pb)->score;
  return (a < b) - (a > b);
}

/* Sum over the 101 recalls of the best precision at that recall or a higher one. @points is scratch. */
static double
sum_precision (const Class *class, Area range, int t, GArray *points)
{
  typedef struct
  {
    double recall, precision;
  } Point;
  double sum = 0;
  int64_t n_true = 0, n_false = 0;

  g_array_set_size (points, 0);
  for (guint i = 0; i < class->found->len; i++)
    {
      const Found *found = &g_array_index (class->found, Found, i);
      if (found->ignored[range] >> t & 1)
        continue;
      gboolean is_hit = found->hits[range] >> t & 1;
      n_true += is_hit;
      n_false += !is_hit;
      Point point = { (double) n_true / (double) class->n_gts[range],
                      (double) n_true / ((double) (n_true + n_false) + DBL_EPSILON) };
      g_array_append_val (points, point);
    }
  Point *p = (Point *) (gpointer) points->data;
  for (guint i = points->len; i-- > 1;)
    p[i - 1].precision = MAX (p[i - 1].precision, p[i].precision);
  for (guint r = 0, i = 0; r < N_RECALLS; r++)
    {
      while (i < points->len && p[i].recall < r * 0.01)
        i++;
      if (i == points->len)
        break;
      sum += p[i].precision;
    }
  return sum;
}

static double
recall (const Class *class, Area range, int t, int max_dets)
{
  int64_t n = 0;

  for (guint i = 0; i < class->found->len; i++)
    {
      const Found *found = &g_array_index (class->found, Found, i);
      n += found->rank < max_dets && (found->hits[range] >> t & 1);
    }
  return (double) n / (double) class->n_gts[range];
}

/* A mean that grows. */
typedef struct
{
  double sum;
  int64_t n;
} Mean;

static void
mean_add (Mean *mean, double sum, int64_t n)
{
  mean->sum += sum;
  mean->n += n;
}

void
rn_coco_eval_finish (RnCocoEval *eval, double stats[RN_COCO_N_STATS], double *class_ap)
{
  static const RnCocoStat ap_of[N_AREAS] = { RN_COCO_AP, RN_COCO_AP_S, RN_COCO_AP_M, RN_COCO_AP_L };
  static const RnCocoStat ar_of[N_AREAS] = { RN_COCO_AR_100, RN_COCO_AR_S, RN_COCO_AR_M, RN_COCO_AR_L };
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, 2 * sizeof (double));
  Mean means[RN_COCO_N_STATS] = { { 0 } };

  for (int c = 0; c < eval->num_classes; c++)
    {
      const Class *class = &eval->classes[c];
      double ap = 0;

      g_array_sort (class->found, compare_found);
      for (int a = 0; a < N_AREAS; a++)
        for (int t = 0; class->n_gts[a] > 0 && t < N_THRS; t++)
          {
            double sum = sum_precision (class, (Area) a, t, points);
            mean_add (&means[ap_of[a]], sum, N_RECALLS);
            mean_add (&means[ar_of[a]], recall (class, (Area) a, t, MAX_DETS), 1);
            if (a != AREA_ALL)
              continue;
            ap += sum;
            if (t == THR_50 || t == THR_75)
              mean_add (&means[t == THR_50 ? RN_COCO_AP_50 : RN_COCO_AP_75], sum, N_RECALLS);
            mean_add (&means[RN_COCO_AR_1], recall (class, AREA_ALL, t, 1), 1);
            mean_add (&means[RN_COCO_AR_10], recall (class, AREA_ALL, t, 10), 1);
          }
      if (class_ap != NULL)
        class_ap[c] = class->n_gts[AREA_ALL] > 0 ? ap / (N_THRS * N_RECALLS) : -1;
    }
  for (int i = 0; i < RN_COCO_N_STATS; i++)
    stats[i] = means[i].n > 0 ? means[i].sum / (double) means[i].n : -1;
}
