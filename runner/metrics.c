/* metrics.c: the names of what an evaluation computes, and of the scores that come out. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include <runner/engine.h>

#include "runner/base/registry.h"

#include <math.h>
#include <string.h>

static const char *const metric_names[] = { "mAP", "bbox", NULL }; /* bits of RnMetrics */

/* The first six of RN_BBOX_N_STATS, which MMDetection reports. */
static const char *const bbox_names[] = { "bbox_mAP",   "bbox_mAP_50", "bbox_mAP_75",
                                          "bbox_mAP_s", "bbox_mAP_m",  "bbox_mAP_l" };

/* COCO has its own overlaps and its own mean. */
static void
say_unused (const RnNode *map)
{
  static const char *const keys[] = { "iou_thr", "mode" };

  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const RnNode *node = rn_node_get (map, keys[i]);
      if (node != NULL)
        g_message ("%s: %s is for the metric mAP and says nothing to bbox", rn_node_origin (node),
                   rn_node_dotted (node));
    }
}

gboolean
rn_metrics_parse (const char *const *names, const RnNode *map, guint *metrics, GError **error)
{
  const RnNode *node = map != NULL ? rn_node_get (map, "metric") : NULL;

  *metrics = 0;
  for (gsize i = 0; names[i] != NULL; i++)
    {
      int bit = 0;
      while (metric_names[bit] != NULL && strcmp (names[i], metric_names[bit]) != 0)
        bit++;
      if (metric_names[bit] != NULL)
        *metrics |= 1U << bit;
      else
        {
          const char *nearest = rn_suggest (names[i], metric_names);
          return rn_node_error (node, error, "no metric \"%s\"; there are mAP and bbox%s%s%s", names[i],
                                nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                                nearest != NULL ? "\"?" : "");
        }
    }
  if (*metrics == 0)
    return rn_node_error (node, error, "needs at least one of mAP and bbox");
  if (!(*metrics & RN_METRIC_MAP))
    say_unused (map);
  return TRUE;
}

/* "AP50" for 0.5: MMDetection's name. */
static char *
overlap_name (double iou_thr)
{
  return g_strdup_printf ("AP%02d", (int) (iou_thr * 100));
}

char **
rn_metrics_score_names (guint metrics, const double *iou_thrs, gsize n_iou_thrs)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  if (metrics & RN_METRIC_MAP)
    g_strv_builder_add (names, "mAP");
  for (gsize i = 0; metrics & RN_METRIC_MAP && i < n_iou_thrs; i++)
    {
      g_autofree char *name = overlap_name (iou_thrs[i]);
      g_strv_builder_add (names, name);
    }
  for (gsize i = 0; metrics & RN_METRIC_BBOX && i < G_N_ELEMENTS (bbox_names); i++)
    g_strv_builder_add (names, bbox_names[i]);
  return g_strv_builder_end (names);
}

void
rn_evaluation_put_scores (const RnEvaluation *evaluation, RnRecord *scores)
{
  for (guint i = 0; i < evaluation->scores->len; i++)
    {
      const RnIouScore *score = &g_array_index (evaluation->scores, RnIouScore, i);
      g_autofree char *name = overlap_name (score->iou_thr);
      rn_record_set_float (scores, name, round (score->map * 1000) / 1000);
    }
  if (evaluation->scores->len > 0)
    rn_record_set_float (scores, "mAP", evaluation->map);
  for (gsize i = 0; evaluation->bbox != NULL && i < G_N_ELEMENTS (bbox_names); i++)
    rn_record_set_float (scores, bbox_names[i], evaluation->bbox[i]);
}

void
rn_evaluation_clear (RnEvaluation *evaluation)
{
  g_clear_pointer (&evaluation->scores, g_array_unref);
  g_clear_pointer (&evaluation->bbox, g_free);
  g_clear_pointer (&evaluation->class_bbox, g_free);
  evaluation->map = 0;
  evaluation->n_images = 0;
}
