/* sim-device.c: tests run on the simulated device. */
#include "config.h"

#include "tests/gpu/test-device.h"

void
test_device_begin (void)
{
}

RnDevice *
test_device_open (const SimConfig *config, const RnCudaOptions *options)
{
  g_autoptr (GError) error = NULL;

  sim_reset (config);
  RnDevice *device = rn_cuda_module ()->open (options, &error);
  g_assert_no_error (error);
  return device;
}

RnDevice *
new_device (gboolean descending)
{
  const SimConfig config = { .model = "a100",
                             .n_devices = 1,
                             .driver_version = CUDART_VERSION,
                             .schedule = SIM_LATE,
                             .descending = descending };

  return test_device_open (&config, &(RnCudaOptions){ .deterministic = TRUE });
}

unsigned long
test_device_n_allocations (void)
{
  return sim_n_allocations ();
}
