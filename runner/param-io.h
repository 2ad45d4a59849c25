/* param-io.h: the arrays of a parameter set to checkpoint files, and back; weights are read by
 * weights/load.h. */
#ifndef RUNNER_PARAM_IO_H
#define RUNNER_PARAM_IO_H

#include "graph/params.h"
#include "runner/safetensors.h"

G_BEGIN_DECLS

typedef enum
{
  RN_ARRAY_VALUES, /* all parameters and buffers */
  RN_ARRAY_EMA,    /* likewise */
  RN_ARRAY_GRADS,  /* trainable parameters */
  RN_ARRAY_STATE,  /* likewise; this and the next ones: state 0, 1, ... of the optimizer */
} RnParamArray;

/* Adds the tensors of an array as @prefix and their names ("momentum/NAME"; @prefix may be empty). Nothing if
 * the set has no such array. @params and @device are lent. */
void rn_params_add_to (RnParamSet *params, RnDevice *device, RnParamArray array, const char *prefix,
                       RnSafetensorsWriter *writer);

/*
 * rn_params_load:
 * @first: of @n arrays
 * @prefixes: [n]
 *
 * Reads these arrays. *@found is FALSE, and nothing is changed, when the set lacks them or the file has no
 * tensor of one of them. An array that is there in part is an error: RN_CHECKPOINT_ERROR_MISMATCH.
 */
gboolean rn_params_load (RnParamSet *params, RnDevice *device, RnParamArray first, int n,
                         const char *const *prefixes, const RnSafetensors *file, gboolean *found,
                         GError **error);

G_END_DECLS

#endif
