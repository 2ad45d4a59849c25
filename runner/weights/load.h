/*
 * load.h: weights from a file of any kind into a model.
 *
 * Names of the file are brought to MMDetection's first (names.h), elements to F32. Every load says how many
 * tensors matched and names those that did not.
 */
#ifndef RUNNER_WEIGHTS_LOAD_H
#define RUNNER_WEIGHTS_LOAD_H

#include "graph/params.h"
#include "runner/job.h"
#include "runner/weights/names-map.h"
#include "runner/weights/weights.h"

G_BEGIN_DECLS

/* ---- For commands that use a trained model ---- */

/*
 * Whether the weights were trained on @names (NULL-ended), in this order: with others every detection would
 * get a wrong name. A file that does not say passes, see rn_weights_classes. RN_CHECKPOINT_ERROR_MISMATCH,
 * with the path.
 */
gboolean rn_weights_check_classes (const RnWeights *weights, const char *const *names, GError **error);

/*
 * Fills all parameters and buffers of @job's programs, which must be reserved, from @weights, which must have
 * each of them in its shape; what else there is, is named in a message. RN_CHECKPOINT_ERROR_MISMATCH with the
 * counts and the first names.
 */
gboolean rn_job_load_weights (RnJob *job, RnWeights *weights, GError **error);

/*
 * Warns of every key of @root in which it computes something else than what @weights were trained with, as
 * far as they say: names and shapes agree with other anchors, another image scale or another order of colours
 * too.
 */
void rn_weights_compare_config (const RnWeights *weights, const RnNode *root);

/*
 * Whether the pyramid of @root, a configuration, computes what a detector of torchvision was trained with:
 * its names and shapes do not tell. Passes for all other files. If not @is_strict, what differs is only
 * warned of.
 */
gboolean rn_load_check_torchvision (const RnNameMap *map, const RnNode *root, gboolean is_strict,
                                    GError **error);

/* ---- Loading, in general ---- */

typedef struct
{
  const char *what;   /* "the model", "the backbone", for messages */
  const char *prefix; /* only parameters whose names begin with it; NULL: all */
  gboolean is_strict; /* all of them must be in the file */
  /* Of GRegex, (nullable): names of parameters that may have another shape in the file. NULL: all of them
   * may, unless the load is strict. */
  const GPtrArray *may_misfit;
} RnLoadOptions;

/* What became of the parameters and the file's tensors. The texts are names, with both shapes where these
 * differ. */
typedef struct
{
  guint n_wanted, n_matched;
  GPtrArray *missing, *misshapen; /* of char *: parameters that keep their values */
  GPtrArray *misfits;             /* of char *: those of @misshapen that the options do not allow */
  GPtrArray *unexpected;          /* of char *: tensors that no parameter took */
  gboolean *is_loaded;            /* [number of parameters] */
} RnLoadReport;

void rn_load_report_clear (RnLoadReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnLoadReport, rn_load_report_clear)

/**
 * rn_load_params:
 * @map: the tensors of a file under MMDetection's names
 * @report: (out caller-allocates): filled on failure too
 *
 * Copies the tensors that agree with a parameter in name and shape and are of a floating type; then logs the
 * report. Values that are not finite are warned of.
 *
 * Errors, before anything is changed: RN_CHECKPOINT_ERROR_MISMATCH when not all match and the load is strict,
 * a shape differs that may not, or none matches. Others from reading the file.
 */
gboolean rn_load_params (const RnNameMap *map, RnParamSet *params, RnDevice *device,
                         const RnLoadOptions *options, RnLoadReport *report, GError **error);

G_END_DECLS

#endif
