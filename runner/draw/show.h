/*
 * show.h: detections, and ground truth beside them, on the photographs that they were made from.
 */
#ifndef RUNNER_DRAW_SHOW_H
#define RUNNER_DRAW_SHOW_H

#include <runner/batch.h>
#include "boxes/box.h"
#include "datasets/dataset.h"

G_BEGIN_DECLS

#define RN_SHOW_SCORE_THR 0.3 /* what is worth drawing, where nobody says otherwise; MMDetection's */

/* One picture; everything is lent. */
typedef struct
{
  const char *path;           /* of the photograph */
  int width, height;          /* as decoded */
  const GArray *detections;   /* of RnDetection, in pixels of the photograph, best first */
  double score_thr;           /* those at or below it are not drawn */
  const RnGroundTruth *truth; /* drawn dashed, difficult objects thin; NULL: there is none */
  const char *const *names;   /* of the classes, one for each label, NULL-ended */
} RnShowImage;

/*
 * Decodes the photograph once more, draws, and writes @png_path. Errors: RN_DATA_ERROR for the photograph,
 * G_FILE_ERROR for the picture.
 */
gboolean rn_show_write (const RnShowImage *image, const char *png_path, GError **error);

/*
 * A file name for the picture of @id, which may be a path in pieces: "a/b" gives "a_b.png", or "a_b-2.png"
 * when
 * @taken (of owned char *; it gets the name, and values of its own) has that. (transfer full)
 */
char *rn_show_file_name (GHashTable *taken, const char *id);

/* ---- The first images of a data set ---- */

typedef struct _RnShow RnShow;

/*
 * Makes the folder @dir, which must not be that of the images. @dataset is lent. @n_images: how many are
 * drawn. G_FILE_ERROR.
 */
RnShow *rn_show_new (const char *dir, const RnDataset *dataset, int64_t n_images, double score_thr,
                     GError **error);
void rn_show_free (RnShow *show);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnShow, rn_show_free)
/* Draws detections (of RnDetection) and ground truth to DIR/ID.png; nothing once @n_images are done. */
gboolean rn_show_add (RnShow *show, const RnSampleMeta *meta, const GArray *detections, GError **error);

G_END_DECLS

#endif
