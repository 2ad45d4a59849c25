/* synth.h: writes a small data set of drawn shapes in VOC's layout, for first contact and for tests. */
#ifndef RUNNER_DATASETS_SYNTH_H
#define RUNNER_DATASETS_SYNTH_H

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  RN_SYNTH_PLAIN, /* one folder, 3 classes (circle, square, triangle), classes.txt; learnable from scratch in
                     minutes */
  RN_SYNTH_VOC0712, /* VOC2007 and VOC2012 with the 20 VOC names, as in VOC's own VOCdevkit */
} RnSynthLayout;

typedef struct
{
  RnSynthLayout layout;
  int n_train, n_val, n_test; /* images per split; voc0712: of each year (VOC2012 has no test split) */
  int width, height; /* pixels, 64..2048; of landscape images (portrait ones swap them, square ones use the
                        height) */
  guint64 seed;
  gboolean force; /* write into a folder that is not empty */
} RnSynthOptions;

/*
 * The same options give the same bytes. Errors: G_FILE_ERROR, RN_CONFIG_ERROR_USAGE for options out of range.
 */
gboolean rn_synth_write (const char *dir, const RnSynthOptions *options, GError **error);

G_END_DECLS

#endif
