/*
 * browse.h: samples as the training sees them: after all transforms, with their boxes and the anchors that
 * each box is matched to.
 */
#ifndef RUNNER_BROWSE_H
#define RUNNER_BROWSE_H

#include "runner/job.h"

G_BEGIN_DECLS

/* One ground-truth box of a sample. */
typedef struct
{
  int label;
  float box[4];  /* x1 y1 x2 y2, pixels of the transformed image */
  int n_anchors; /* that are trained on it */
  float iou;     /* the best of all anchors */
  gboolean low;  /* no anchor reaches pos_iou_thr: at most the best one was taken, out of pity */
} RnBrowseBox;

/* One sample. */
typedef struct
{
  const char *id;    /* lent by the data set */
  int width, height; /* of the transformed image, before padding */
  int n_difficult;
  int64_t n_anchors; /* trained on any box */
  GArray *boxes;     /* of RnBrowseBox */
} RnBrowseSample;

typedef struct
{
  guint64 epoch;
  gboolean anchors; /* draw those that are matched */
} RnBrowseOptions;

typedef struct _RnBrowse RnBrowse;

/*
 * @job, with its data set of @split and its model, is lent. Errors: RN_DEVICE_ERROR_MEMORY,
 * RN_CONFIG_ERROR_VALUE for anchors that do not fit the model.
 */
RnBrowse *rn_browse_new (RnJob *job, RnSplit split, const RnBrowseOptions *options, GError **error);
void rn_browse_free (RnBrowse *browse);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnBrowse, rn_browse_free)

/*
 * Loads sample @index, matches its anchors, and draws it to the PNG file @path (NULL: no picture). Lent until
 * the next call; NULL with @error for an image that cannot be read or a picture that cannot be written.
 */
const RnBrowseSample *rn_browse_sample (RnBrowse *browse, int64_t index, const char *path, GError **error);

G_END_DECLS

#endif
