/*
 * late-device.h: a device with queues, in memory of the process: what it is given is done when it is waited
 * for, by the reference kernels, in an order that queues and events allow.
 */
#ifndef TESTS_GRAPH_LATE_DEVICE_H
#define TESTS_GRAPH_LATE_DEVICE_H

#include "kernels/device.h"

typedef enum
{
  LATE_COMPUTE_FIRST, /* the other queues lag as far as they may */
  LATE_COPIES_FIRST,
  LATE_RANDOM,
} LateOrder;

/* @deaf: waits are forgotten. */
RnDevice *late_device_new (LateOrder order, guint32 seed, gboolean deaf);
/* Ops that were done in a queue since the device was made. */
guint late_device_n_done (RnDevice *device, RnQueue queue);

#endif
