/* convert.h: weight files from one format, naming or precision to another. */
#ifndef RUNNER_WEIGHTS_CONVERT_H
#define RUNNER_WEIGHTS_CONVERT_H

#include "runner/weights/names-map.h"

G_BEGIN_DECLS

typedef struct
{
  RnNamesTarget names;
  gboolean is_half; /* floating types become F16; a tensor with a value that F16 cannot hold stays as it is */
} RnConvertOptions;

/**
 * rn_weights_convert:
 * @path: *.safetensors, *.pth or *.pt; not the file that @weights reads
 *
 * Writes the tensors of a model, and its class names where they are known. What belongs to the training, such
 * as the optimizer, is left out. Of the tensors, one at a time is held in memory. Logs what was left out.
 *
 * Returns: a line on what was written, or NULL with an error: RN_CONFIG_ERROR_USAGE for @path,
 * RN_CHECKPOINT_ERROR else. (transfer full)
 */
char *rn_weights_convert (RnWeights *weights, const char *path, const RnConvertOptions *options,
                          GError **error);

/* Name, type and shape of each tensor, a line each, and a line of sums. (transfer full) */
char *rn_weights_list (const RnWeights *weights);

/* To the nearest half-precision number, ties to even; infinity from 65520 on. */
guint16 rn_half_from_float (float value);

G_END_DECLS

#endif
