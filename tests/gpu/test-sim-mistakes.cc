/* test-sim-mistakes.cc: mistakes in kernels and launches are reported, with the line where they were made. */
#include "tests/gpu/kernel-fixture.h"
#include "kernels/cuda/pack.cuh"

/* Lines of this file that faults must name. */
static int line_a, line_b;
#define HERE(line) (line) = __LINE__

/* What was launched ends in a fault that holds @what and (nullable) a line of this file, which the kernel has
 * noted. */
static void
assert_fault (const char *what, const int *line)
{
  cudaStreamSynchronize (stream);
  const char *fault = sim_first_fault ();
  g_assert_nonnull (fault);
  g_assert_nonnull (strstr (fault, what));
  if (line)
    {
      g_assert_cmpint (*line, >, 0);
      g_autofree char *place = g_strdup_printf ("test-sim-mistakes.cc:%d", *line);
      g_assert_nonnull (strstr (fault, place));
    }
  sim_expect_faults (false);
}

/* ---- barriers and warps ---- */

static __global__ void RN_BOUNDS (64) barrier_in_branch (int limit)
{
  if ((int) threadIdx.x < limit)
    HERE (line_a), __syncthreads ();
}

static __global__ void RN_BOUNDS (64) barriers_at_two_lines (int limit)
{
  if ((int) threadIdx.x < limit)
    HERE (line_a), __syncthreads ();
  else
    HERE (line_b), __syncthreads ();
}

static __global__ void RN_BOUNDS (64) reductions_at_two_lines (float *result)
{
  RN_SHARED (float, shared, [32]);
  if (threadIdx.x < 32)
    HERE (line_a), result[0] = rn_block_sum (1.0f, shared);
  else
    HERE (line_b), result[1] = rn_block_sum (1.0f, shared);
}

static __global__ void RN_BOUNDS (64) shuffle_with_ended_lanes (int *result)
{
  if (threadIdx.x % 32 >= 16)
    return;
  HERE (line_a), *result = __shfl_xor_sync (0xffffffff, (int) threadIdx.x, 1);
}

static __global__ void RN_BOUNDS (64) lane_outside_its_mask (int *result)
{
  HERE (line_a), *result = __shfl_sync (0xffff, (int) threadIdx.x, 0);
}

static __global__ void RN_BOUNDS (64) reads_lane_outside_mask (int *result)
{
  if (threadIdx.x < 8)
    HERE (line_a), *result = __shfl_sync (0xff, (int) threadIdx.x, 9);
}

static __global__ void RN_BOUNDS (64) warp_ops_at_two_lines (int *result)
{
  if (threadIdx.x % 2)
    HERE (line_a), result[0] = __any_sync (0xffffffff, 1);
  else
    HERE (line_b), result[1] = __any_sync (0xffffffff, 1);
}

static __global__ void RN_BOUNDS (64) mask_of_absent_lanes (int *result)
{
  HERE (line_a), *result = __any_sync (0xffffffff, 1);
}

static __global__ void RN_BOUNDS (64) odd_width (int *result)
{
  HERE (line_a), *result = __shfl_sync (0xffffffff, 1, 0, 12);
}

static __global__ void RN_BOUNDS (64) misaligned_pack (const float *src, float *dst)
{
  float values[4];
  rn_read<4> (src + 1, values);
  rn_write<4> (dst, values);
}

static __global__ void RN_BOUNDS (32) too_much_shared (float *result)
{
  RN_SHARED (float, one, [8192]);
  line_a = __LINE__ + 1;
  RN_SHARED (float, two, [8192]);
  *result = one[0] + two[0];
}

static __global__ void RN_BOUNDS (256) ones (float *result)
{
  RN_SHARED (float, shared, [32]);
  *result = rn_block_sum (1.0f, shared);
}

static void
test_sync_mistakes (void)
{
  for (int descending = 0; descending < 2; descending++)
    {
      int *result;
      auto begin = [&] {
        start (descending);
        result = device_memory<int> (2);
        sim_expect_faults (true);
        line_a = line_b = 0;
      };
      begin ();
      OK (RN_LAUNCH (barrier_in_branch, 2, 64, 0, stream, 16));
      assert_fault (descending ? "block (1,0,0)" : "block (0,0,0)", &line_a);
      g_assert_nonnull (strstr (sim_first_fault (), "thread (16,0,0) has ended"));
      g_assert_nonnull (strstr (sim_first_fault (), "barrier_in_branch"));
      begin ();
      OK (RN_LAUNCH (barriers_at_two_lines, 1, 64, 0, stream, 33));
      assert_fault ("thread (33,0,0) waits in __syncthreads", &line_a);
      assert_fault ("thread (0,0,0) waits in __syncthreads", &line_b);
      begin ();
      OK (RN_LAUNCH (reductions_at_two_lines, 1, 64, 0, stream, (float *) result));
      assert_fault ("reductions_at_two_lines", &line_a);
      assert_fault ("thread (32,0,0) waits in __syncthreads", &line_b);
      begin ();
      OK (RN_LAUNCH (shuffle_with_ended_lanes, 1, 64, 0, stream, result));
      assert_fault ("has ended", &line_a);
      begin ();
      OK (RN_LAUNCH (lane_outside_its_mask, 1, 64, 0, stream, result));
      assert_fault ("not in its own mask 0xffff", &line_a);
      begin ();
      OK (RN_LAUNCH (reads_lane_outside_mask, 1, 64, 0, stream, result));
      assert_fault ("reads lane 9, which is not in the mask", &line_a);
      begin ();
      OK (RN_LAUNCH (warp_ops_at_two_lines, 1, 64, 0, stream, result));
      assert_fault ("warp_ops_at_two_lines", &line_a);
      assert_fault ("waits in __any_sync", &line_b);
      begin ();
      OK (RN_LAUNCH (mask_of_absent_lanes, 1, 48, 0, stream, result));
      assert_fault ("which the block has not", &line_a);
      begin ();
      OK (RN_LAUNCH (odd_width, 1, 64, 0, stream, result));
      assert_fault ("a width of 12", &line_a);
      begin ();
      float *floats = device_memory<float> (16);
      OK (RN_LAUNCH (misaligned_pack, 1, 32, 0, stream, floats, floats));
      assert_fault ("pack.cuh", NULL);
      g_assert_nonnull (strstr (sim_first_fault (), "misaligned_pack"));
      begin ();
      OK (RN_LAUNCH (too_much_shared, 1, 32, 0, stream, (float *) result));
      assert_fault ("65536 bytes of shared variables", &line_a);

      /* Threads that were left waiting harm nobody. */
      start (descending);
      float *sum = device_memory<float> (1), value;
      OK (RN_LAUNCH (ones, 1, 256, 0, stream, sum));
      read_back (sum, 1, &value);
      g_assert_cmpfloat (value, ==, 256);
    }
}

/* ---- shared memory ---- */

/* Writes nothing in block 0 that block 1 could find. */
template <typename T> static __global__ void RN_BOUNDS (32) reads_unwritten (bool writes, T *result)
{
  RN_SHARED (T, variable, [32]);
  RN_DYNAMIC_SHARED (T, dynamic);
  const int t = (int) threadIdx.x;
  result[(blockIdx.x * 32 + t) * 2] = variable[t];
  result[(blockIdx.x * 32 + t) * 2 + 1] = dynamic[t];
  if (writes)
    variable[t] = dynamic[t] = 1;
}

static void
test_unwritten (void)
{
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      float *result = device_memory<float> (128), found[128];
      OK (RN_LAUNCH ((reads_unwritten<float>), 2, 32, 32 * sizeof (float), stream, true, result));
      read_back (result, 128, found);
      for (float value : found)
        g_assert_true (isnan (value));
    }
}

/* Thread t reads what the thread beside it wrote, without a barrier. */
static __global__ void RN_BOUNDS (64) missing_barrier (float *result)
{
  RN_SHARED (float, values, [65]);
  values[threadIdx.x] = 1;
  if (threadIdx.x == 0)
    values[64] = 1;
  result[threadIdx.x] = values[threadIdx.x + 1];
}

static void
test_missing_barrier (void)
{
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      float *result = device_memory<float> (64), found[64];
      OK (RN_LAUNCH (missing_barrier, 1, 64, 0, stream, result));
      read_back (result, 64, found);
      int n = 0;
      for (float value : found)
        n += isnan (value);
      /* Ascending, each but the last reads too early; descending, that last one alone. */
      g_assert_cmpint (n, ==, descending ? 1 : 63);
    }
}

static __global__ void RN_BOUNDS (32) dynamic_access (int index, bool writes, float *result)
{
  RN_DYNAMIC_SHARED (float, dynamic);
  if (threadIdx.x == 3 && writes)
    dynamic[index] = 1;
  else if (threadIdx.x == 3)
    *result = dynamic[index];
}

static __global__ void RN_BOUNDS (32) variable_access (int index, float *result)
{
  line_a = __LINE__ + 1;
  RN_SHARED (float, first, [10]);
  RN_SHARED (float, second, [10]);
  float *pointer = first;
  if (threadIdx.x == 3)
    pointer[index] = 1;
  else
    second[threadIdx.x % 10] = 1;
  *result = second[0];
}

#ifdef __SANITIZE_ADDRESS__
  #define HAVE_ASAN 1
#else
  #define HAVE_ASAN 0
#endif

static void
test_shared_bounds (void)
{
  /* 40 bytes end 8 before the guard page: an access there is seen when the block has ended, or at once by the
   * sanitizer, which ends the program. */
  for (int index = -2; index < 14; index++)
    for (int writes = 0; writes < 2; writes++)
      {
        if (HAVE_ASAN && (index < 0 || index >= 10))
          continue;
        start (false);
        float *result = device_memory<float> (1);
        sim_expect_faults (true);
        OK (RN_LAUNCH (dynamic_access, 1, 32, 40, stream, index, writes, result));
        OK (cudaStreamSynchronize (stream));
        if (index < 0 && writes)
          assert_fault ("a thread wrote before the dynamic shared memory", NULL);
        else if (index < 10 || (index < 12 && !writes))
          g_assert_null (sim_first_fault ());
        else if (index < 12)
          assert_fault ("kernel 'dynamic_access', block (0,0,0): a thread wrote past the end of 40 bytes",
                        NULL);
        else
          assert_fault ("kernel 'dynamic_access', block (0,0,0), thread (3,0,0): an access", NULL);
      }
  for (int index : { -1, 0, 9, 10 })
    {
      if (HAVE_ASAN && (index < 0 || index >= 10))
        continue;
      start (false);
      float *result = device_memory<float> (1);
      sim_expect_faults (true);
      OK (RN_LAUNCH (variable_access, 1, 32, 0, stream, index, result));
      OK (cudaStreamSynchronize (stream));
      if (index == 10)
        assert_fault ("past the end of the shared variable", &line_a);
      else if (index < 0)
        assert_fault ("before the shared variable", &line_a);
      else
        g_assert_null (sim_first_fault ());
    }
}

/* A stray access to device memory names the thread. */
static __global__ void RN_BOUNDS (32) global_access (float *memory, int64_t index)
{
  if (threadIdx.x == 5)
    memory[index] = 1;
}

static void
test_global_bounds (void)
{
  start (false);
  float *memory = device_memory<float> (16);
  sim_expect_faults (true);
  OK (RN_LAUNCH (global_access, 1, 32, 0, stream, memory, 100)); /* in the guard page */
  cudaStreamSynchronize (stream);
  assert_fault ("kernel 'global_access', block (0,0,0), thread (5,0,0)", NULL);
}

/* ---- launches ---- */

static __global__ void RN_BOUNDS (128) small (int *result)
{
  *result = 1;
}

static __global__ void
unbounded (int *result)
{
  for (int i = 0; i < 100; i++)
    result[i] = i * i + result[i + 1];
}

static void
test_launch_errors (void)
{
  static const struct
  {
    dim3 grid, block;
    size_t shared_bytes;
    cudaError_t expected;
  } cases[] = {
    { 1, 128, 49152, cudaSuccess },
    { 0, 32, 0, cudaErrorInvalidConfiguration },
    { dim3 (1, 0), 32, 0, cudaErrorInvalidConfiguration },
    { dim3 (1, 65536), 32, 0, cudaErrorInvalidConfiguration },
    { dim3 (1, 1, 65536), 32, 0, cudaErrorInvalidConfiguration },
    { 0x80000000, 32, 0, cudaErrorInvalidConfiguration },
    { 1, 0, 0, cudaErrorInvalidConfiguration },
    { 1, 1025, 0, cudaErrorInvalidConfiguration },
    { 1, dim3 (1, 1, 65), 0, cudaErrorInvalidConfiguration },
    { 1, dim3 (32, 33), 0, cudaErrorInvalidConfiguration },
    { 1, 129, 0, cudaErrorInvalidConfiguration }, /* above its bounds */
    { 1, 128, 49153, cudaErrorInvalidValue },
  };
  start (false);
  int *result = device_memory<int> (128);
  for (const auto &c : cases)
    {
      g_assert_cmpint (RN_LAUNCH (small, c.grid, c.block, c.shared_bytes, stream, result), ==, c.expected);
      OK (cudaGetLastError ());
    }
  OK (cudaStreamSynchronize (stream));

  sim_fail_call (1, cudaErrorLaunchFailure);
  g_assert_cmpint (RN_LAUNCH (small, 1, 32, 0, stream, result), ==, cudaErrorLaunchFailure);

  start (false);
  result = device_memory<int> (128);
  sim_expect_faults (true);
  g_assert_cmpint (RN_LAUNCH (unbounded, 1, 32, 0, stream, result), !=, cudaSuccess);
  assert_fault ("kernel 'unbounded' has no RN_BOUNDS", NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gpu/mistakes/sync-mistakes", test_sync_mistakes);
  g_test_add_func ("/gpu/mistakes/unwritten", test_unwritten);
  g_test_add_func ("/gpu/mistakes/missing-barrier", test_missing_barrier);
  g_test_add_func ("/gpu/mistakes/shared-bounds", test_shared_bounds);
  g_test_add_func ("/gpu/mistakes/global-bounds", test_global_bounds);
  g_test_add_func ("/gpu/mistakes/launch-errors", test_launch_errors);
  return g_test_run ();
}
