/* sim-fixture.h: what tests of the simulated device share: a device of their own, and pieces of work. */
#ifndef TESTS_GPU_SIM_FIXTURE_H
#define TESTS_GPU_SIM_FIXTURE_H

#include <glib.h>
#include "tests/gpu/sim/sim.h"

#define N 1024
#define BYTES (N * sizeof (float))

#define OK(call) g_assert_cmpint ((call), ==, cudaSuccess)
/* The first fault is like that (glob). */
#define FAULT(pattern) assert_fault (pattern, __LINE__)
#define NO_FAULT() g_assert_cmpstr (sim_first_fault (), ==, NULL)

extern const SimSchedule schedules[3];

void assert_fault (const char *pattern, int line);

/* A T4 for what follows, on which faults are kept. */
void start (SimSchedule schedule, unsigned seed);

cudaStream_t new_stream (void);
cudaEvent_t new_event (void); /* without timing */
float *device_memory (size_t bytes);
float *pinned_memory (size_t bytes);

/* to[i] = from[i] + value, i < N, as a kernel "add" of @op that has declared its ranges. @from: (nullable),
 * 0. */
cudaError_t queue_add (cudaStream_t stream, const char *op, float *to, const float *from, float value);

/* Bytes from @from to before @to, counted from @address, are read or written; no sanitizer looks. */
void touch (void *address, gssize from, gssize to, gboolean is_read);
/* The same as a kernel, with the ranges that were declared. */
void queue_touch (cudaStream_t stream, void *address, gssize from, gssize to, gboolean is_read);

/* Touches nothing, and counts that it ran. */
void queue_note (cudaStream_t stream, int *counter);

#endif
