/* record.h: the part of RnRecord (hook.h) that hooks do not need: states in checkpoints. */
#ifndef RUNNER_RECORD_H
#define RUNNER_RECORD_H

#include <runner/hook.h>

G_BEGIN_DECLS

/*
 * From a JSON object of numbers, strings, null (NaN) and lists of numbers; other values are
 * RN_CHECKPOINT_ERROR_DAMAGED, as is what is no JSON. Floats come back with all bits that were written.
 * (transfer full)
 */
RnRecord *rn_record_parse (const char *json, GError **error);

/* JSON that rn_record_parse gives the same record for, infinities and all bits; for checkpoints. NULL with
 * RN_CHECKPOINT_ERROR_WRITE when it is more than can be read back. (transfer full) */
char *rn_record_to_state (const RnRecord *record, GError **error);

G_END_DECLS

#endif
