/* real-device.c: tests run on the first device of the machine, or on number RN_TEST_GPU, through the module
 * as the program opens it. */
#include "config.h"

#include "kernels/cuda-module.h"
#include "tests/gpu/test-device.h"

#include <stdio.h>
#include <stdlib.h>

static RnCudaInfo info;

static int
ordinal (void)
{
  const char *text = g_getenv ("RN_TEST_GPU");
  return text != NULL ? atoi (text) : 0;
}

void
test_device_begin (void)
{
  g_autoptr (GError) error = NULL;
  const RnCudaModule *module = rn_cuda_module_get (&error);

  if (module == NULL || !module->describe (ordinal (), &info, &error))
    {
      fprintf (stderr, "%s\n", error->message);
      exit (3);
    }
  printf ("# %s, compute capability %d.%d, CUDA %s, driver %s, cuDNN %s\n", info.name, info.capability[0],
          info.capability[1], info.runtime, info.driver, info.cudnn);
}

RnDevice *
test_device_open (const SimConfig *config, const RnCudaOptions *options)
{
  RnCudaOptions own = *options;
  g_autoptr (GError) error = NULL;

  own.ordinal = ordinal ();
  const RnCudaModule *module = rn_cuda_module_get (&error);
  RnDevice *device = module != NULL ? module->open (&own, &error) : NULL;
  g_assert_no_error (error);
  return device;
}

RnDevice *
new_device (gboolean descending)
{
  return test_device_open (NULL, &(RnCudaOptions){ .deterministic = TRUE });
}

int
test_device_capability (void)
{
  return 10 * info.capability[0] + info.capability[1];
}

unsigned long
test_device_n_allocations (void)
{
  return 0;
}

void
add_tests_of_simulation (const guint *n_kernels_tested)
{
}
