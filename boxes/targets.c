#include <config.h>

#include "boxes/targets.h"

RnStatus
rn_target_scratch_reserve (RnTargetScratch *scratch, gsize n_anchors, gsize n_gt)
{
  if (n_anchors > scratch->n_anchors)
    {
      int32_t *assigned = g_try_realloc_n (scratch->assigned, n_anchors, sizeof *assigned);
      if (assigned == NULL)
        return RN_STATUS_MEMORY;
      scratch->assigned = assigned;
      scratch->n_anchors = n_anchors;
    }
  return rn_assign_scratch_reserve (&scratch->assign, n_anchors, n_gt);
}

void
rn_target_scratch_clear (RnTargetScratch *scratch)
{
  rn_assign_scratch_clear (&scratch->assign);
  g_free (scratch->assigned);
  *scratch = (RnTargetScratch) { 0 };
}

static gboolean
labels_fit (const RnTargetImage *image, int num_classes)
{
  if (num_classes < 1 || num_classes > G_MAXINT16)
    return FALSE;
  for (int g = 0; g < image->n_gt; g++)
    if (image->labels[g] < 0 || image->labels[g] >= num_classes)
      return FALSE;
  return TRUE;
}

RnStatus
rn_targets_build (const RnTargetRule *rule, const RnTargetImage *image, const int (*sizes)[2],
                  RnTargetScratch *scratch, int16_t *labels, RnPositive *positives, int64_t capacity,
                  int64_t *n_positives)
{
  const RnAnchorGenerator *gen = rule->anchors;
  int64_t n_anchors = rn_anchors_count (gen, sizes), n = 0;
  int valid[RN_MAX_LEVELS][2];

  *n_positives = 0;
  if (n_anchors < 0 || image->n_gt < 0 || !labels_fit (image, rule->num_classes))
    return RN_STATUS_SHAPE;
  RnStatus status = rn_target_scratch_reserve (scratch, (gsize) n_anchors, (gsize) image->n_gt);
  if (status != RN_STATUS_OK)
    return status;

  rn_anchors_valid (gen, sizes, image->pad_height, image->pad_width, valid);
  status = rn_assign (rule->assigner, gen, sizes, (const int (*)[2]) valid, image->gts, image->n_gt,
                      image->ignores, image->n_ignore, &scratch->assign, scratch->assigned);
  if (status != RN_STATUS_OK)
    return status;

  for (int64_t i = 0; i < n_anchors; i++)
    {
      int32_t assigned = scratch->assigned[i];
      RnPositive positive = { .image = image->index, .anchor = (int32_t) i };

      if (assigned == RN_ASSIGN_NEGATIVE)
        labels[i] = (int16_t) rule->num_classes;
      else if (assigned == RN_ASSIGN_IGNORED
               || !rn_coder_encode (rule->coder, rn_anchors_nth (gen, sizes, i), image->gts[assigned - 1],
                                    positive.target))
        labels[i] = -1;
      else if (n == capacity)
        return RN_STATUS_MEMORY;
      else
        {
          labels[i] = (int16_t) image->labels[assigned - 1];
          positives[n++] = positive;
        }
    }
  *n_positives = n;
  return RN_STATUS_OK;
}
