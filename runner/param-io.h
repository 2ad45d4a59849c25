/* param-io.h: parameters of a model to checkpoint files, and momentum back; weights are read by
 * weights/load.h. */
#ifndef RUNNER_PARAM_IO_H
#define RUNNER_PARAM_IO_H

#include "graph/params.h"
#include "runner/safetensors.h"

G_BEGIN_DECLS

/* Adds all parameters and buffers under their names, and momentum under "momentum/NAME" if @with_momentum.
 * @params and @device are lent. */
void rn_params_add_to (RnParamSet *params, RnDevice *device, gboolean with_momentum,
                       RnSafetensorsWriter *writer);

/* The momentum of all trainable parameters. *@found is FALSE, and nothing is changed, when the file has none.
 */
gboolean rn_params_load_momentum (RnParamSet *params, RnDevice *device, const RnSafetensors *file,
                                  gboolean *found, GError **error);

G_END_DECLS

#endif
