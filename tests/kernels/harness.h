/* harness.h: runs one kernel on one call, with guard bytes around every buffer. */
#ifndef TESTS_KERNELS_HARNESS_H
#define TESTS_KERNELS_HARNESS_H

#include "kernels/device.h"

/* Buffers of one call. Storage of an output may be an input's. */
typedef struct
{
  const RnOpCall *call;
  void *in[RN_OP_MAX_IN], *out[RN_OP_MAX_OUT];
  /* With the guards; NULL where absent or shared. */
  guint8 *in_block[RN_OP_MAX_IN], *out_block[RN_OP_MAX_OUT];
} Buffers;

/*
 * Inputs get values that depend on @seed, slot and position only. Outputs that are overwritten are filled
 * with NaN, those that are updated with values. @alias_out, @alias_in: the output that shares the storage of
 * an input, or -1, -1.
 */
void buffers_init (Buffers *b, const RnOpCall *call, guint seed, int alias_out, int alias_in);
/* Fails the test when a byte outside of a buffer was written. */
void buffers_check_guards (const Buffers *b);
void buffers_clear (Buffers *b);

/* Runs @kernel; FALSE when its prepare refuses the call. The workspace is guarded and starts out as NaN. */
gboolean run_kernel (RnDevice *device, const RnKernel *kernel, const RnOpCall *call, Buffers *b);
/* The same for the first kernel of @device that takes the call. */
void run_call (RnDevice *device, const RnOpCall *call, Buffers *b);

/* Gives @call an input or an output. */
void set_in (RnOpCall *call, int slot, RnTensorDesc d);
void set_out (RnOpCall *call, int slot, RnTensorDesc d);

/* Whether stored element @i belongs to a channel that only fills up the last block. */
gboolean is_padding (const RnTensorDesc *d, int64_t i);
/* Uniform in -1 .. 1, a function of its arguments. */
float value_at (guint seed, int slot, int64_t i);

#endif
