/* safetensors-format.h: what reader and writer must agree on. */
#ifndef RUNNER_SAFETENSORS_FORMAT_H
#define RUNNER_SAFETENSORS_FORMAT_H

#include <glib.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

#define RN_SAFETENSORS_MAX_HEADER (100 << 20) /* bytes; the limit of the format's own library */

/* Our headers start so, which gives the checksum a fixed place. It is computed with
 * RN_SAFETENSORS_NO_CHECKSUM there. */
#define RN_SAFETENSORS_PREFIX "{\"__metadata__\":{\"checksum\":\""
#define RN_SAFETENSORS_NO_CHECKSUM "crc32c:00000000"
#define RN_SAFETENSORS_CHECKSUM_FORMAT "crc32c:%08x"

/* "F32" for RN_F32. */
const char *rn_safetensors_type_name (RnDType dtype);

G_END_DECLS

#endif
