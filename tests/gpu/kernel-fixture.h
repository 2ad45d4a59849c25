/* kernel-fixture.h: what tests of kernels on the simulated device share: a device, a stream, memory. */
#ifndef TESTS_GPU_KERNEL_FIXTURE_H
#define TESTS_GPU_KERNEL_FIXTURE_H

#include "kernels/cuda/kernel.cuh"
#include <glib.h>
#include "tests/gpu/sim/sim.h"

#define OK(call) g_assert_cmpint ((call), ==, cudaSuccess)

static cudaStream_t stream;

static void
start (bool descending)
{
  SimConfig config = {};
  config.model = "t4";
  config.n_devices = 1;
  config.driver_version = CUDART_VERSION;
  config.descending = descending;
  sim_reset (&config);
  OK (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
}

template <typename T>
static T *
device_memory (size_t n)
{
  void *memory;
  OK (cudaMalloc (&memory, n * sizeof (T)));
  return static_cast<T *> (memory);
}

/* Contents of device memory after all work. */
template <typename T>
static void
read_back (const T *device, size_t n, T *host)
{
  void *pinned;
  OK (cudaHostAlloc (&pinned, n * sizeof (T), cudaHostAllocDefault));
  OK (cudaMemcpyAsync (pinned, device, n * sizeof (T), cudaMemcpyDeviceToHost, stream));
  OK (cudaStreamSynchronize (stream));
  memcpy (host, pinned, n * sizeof (T));
  OK (cudaFreeHost (pinned));
}

template <typename T>
static T *
upload (const T *host, size_t n)
{
  T *device = device_memory<T> (n);
  void *pinned;
  OK (cudaHostAlloc (&pinned, n * sizeof (T), cudaHostAllocDefault));
  memcpy (pinned, host, n * sizeof (T));
  OK (cudaMemcpyAsync (device, pinned, n * sizeof (T), cudaMemcpyHostToDevice, stream));
  OK (cudaStreamSynchronize (stream));
  OK (cudaFreeHost (pinned));
  return device;
}

#endif
