/* device-cpu.h: what the kernels of the CPU device know of it. */
#ifndef KERNELS_CPU_DEVICE_CPU_H
#define KERNELS_CPU_DEVICE_CPU_H

#include "kernels/device.h"

typedef struct
{
  RnDevice parent;
  struct dnnl_engine *engine; /* NULL without oneDNN */
  struct dnnl_stream *stream;
} RnCpuDevice;

#endif
