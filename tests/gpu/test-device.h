/*
 * test-device.h: the device that tests of the module run on. A program is linked with one of two: the
 * simulation (sim-device.c; make check) or a real device (real-device.c; make check-gpu). The tests are the
 * same.
 */
#ifndef TESTS_GPU_TEST_DEVICE_H
#define TESTS_GPU_TEST_DEVICE_H

#include "kernels/cuda/module.h"
#include "tests/gpu/sim/sim.h"

/*
 * In front of the tests. Without a device that can be used, one line says what is missing, and the program
 * ends with 3: there is no skipping here. The simulation is always there.
 */
void test_device_begin (void);

/* @config: what the simulation is to be; a real device is what it is. A failure ends the test. (transfer
 * full) */
RnDevice *test_device_open (const SimConfig *config, const RnCudaOptions *options);

/* For tests of ops: threads of the simulation run in ascending or descending order; on a real device, just
 * once more. (transfer full) */
RnDevice *new_device (gboolean descending);

/* 10 * major + minor of its compute capability: 75, 90. Of a real device only. */
int test_device_capability (void);

/* Allocations so far; a real device does not count them: 0. */
unsigned long test_device_n_allocations (void);

/*
 * What only the simulation can test of kernels: those that no op stands for, and which were launched: of
 * all, if *@n_kernels_tested says that all ops were tested. On a real device, nothing.
 */
void add_tests_of_simulation (const guint *n_kernels_tested);

#endif
