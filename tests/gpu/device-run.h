/* device-run.h: runs one kernel of a device on values of the host. */
#ifndef TESTS_GPU_DEVICE_RUN_H
#define TESTS_GPU_DEVICE_RUN_H

#include "tests/kernels/harness.h"

typedef struct
{
  gsize shift; /* bytes from an aligned address to each buffer, at most; as many as its elements allow */
  guint pinned_in, pinned_out; /* bit per slot: it lies in memory of the host that the device can use */
} RunOptions;

/*
 * Runs @kernel on buffers of @device with the values of @b, and puts its outputs into @b. FALSE when it
 * refuses the call. Fails the test when a byte outside of a buffer was written. An output of @b that is an
 * input is one on the device too.
 */
gboolean run_on_device (RnDevice *device, const RnKernel *kernel, const RnOpCall *call, Buffers *b,
                        const RunOptions *options);

/* Fails the test, with what @device says of it, unless @status is OK. */
void expect_ok (RnDevice *device, RnStatus status);

/* The kernel of @device for @op. */
const RnKernel *find_kernel (RnDevice *device, RnOp op);

#endif
