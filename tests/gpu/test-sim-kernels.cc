/* test-sim-kernels.cc: kernels on the simulated device compute what CUDA defines, in both orders of threads.
 */
#include "tests/gpu/kernel-fixture.h"
#include "kernels/half.h"

/* ---- what is right ---- */

/* Everything that a thread knows of its place. */
static __global__ void RN_BOUNDS (256) places (unsigned *seen)
{
  const unsigned n = blockDim.x * blockDim.y * blockDim.z;
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  seen[block * n + thread] = thread << 16 | block;
}

/* Blocks and threads that run before the first thread of the first block. */
static __global__ void RN_BOUNDS (64) order (int *counter, int *position)
{
  position[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd (counter, 1);
}

static void
test_places (void)
{
  const dim3 blocks (3, 2, 2), threads (5, 4, 3);
  const int n = 12 * 60;
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      unsigned *seen = device_memory<unsigned> (n), found[n];
      OK (RN_LAUNCH (places, blocks, threads, 0, stream, seen));
      read_back (seen, n, found);
      for (int i = 0; i < n; i++)
        g_assert_cmpuint (found[i], ==, i % 60 << 16 | i / 60);

      const int zero = 0;
      int *counter = upload (&zero, 1), *positions = device_memory<int> (128), position[128];
      OK (RN_LAUNCH (order, 2, 64, 0, stream, counter, positions));
      read_back (positions, 128, position);
      for (int i = 0; i < 128; i++)
        g_assert_cmpint (position[i], ==, descending ? 127 - i : i);
    }
}

struct Plain
{
  int a;
  double b;
  short c;
};

static __global__ void RN_BOUNDS (32) arguments (Plain plain, int64_t number, float factor, double *result)
{
  if (threadIdx.x == 0)
    *result = plain.a + plain.b + plain.c + (double) number * factor;
}

/* They are copied at the launch, and converted to the kernel's types. */
static void
test_arguments (void)
{
  start (false);
  double *result = device_memory<double> (1), value;
  Plain plain = { 1, 0.5, 3 };
  int number = 7;
  float factor = 2;
  OK (RN_LAUNCH (arguments, 1, 32, 0, stream, plain, number, factor, result));
  plain.a = 100;
  number = factor = 0;
  read_back (result, 1, &value);
  g_assert_cmpfloat (value, ==, 18.5);
}

template <typename T> static __global__ void RN_BOUNDS (1024) block_sums (int64_t n, const T *src, T *sums)
{
  RN_SHARED (T, shared, [32]);
  T sum = 0;
  RN_FOR_EACH (i, n)
    sum += src[i];
  const T all = rn_block_sum (sum, shared);
  const T most = rn_block_max (sum, shared, T (-1));
  if (threadIdx.x == 0)
    {
      sums[2 * blockIdx.x] = all;
      sums[2 * blockIdx.x + 1] = most;
    }
}

/* Small integers: the sum is exact whatever the order, and equal in both. */
template <typename T>
static void
check_block_sums (int threads)
{
  const int n = 5000, blocks = 3;
  T src[n], expected[2 * blocks], found[2 * blocks];
  g_autofree T *of_thread = g_new0 (T, blocks * threads);
  for (int i = 0; i < n; i++)
    {
      src[i] = T (i % 37);
      of_thread[i % (blocks * threads)] += src[i];
    }
  for (int b = 0; b < blocks; b++)
    {
      expected[2 * b] = 0;
      expected[2 * b + 1] = 0;
      for (int t = 0; t < threads; t++)
        {
          expected[2 * b] += of_thread[b * threads + t];
          expected[2 * b + 1] = MAX (expected[2 * b + 1], of_thread[b * threads + t]);
        }
    }
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      T *device = upload (src, n), *sums = device_memory<T> (2 * blocks);
      OK (RN_LAUNCH ((block_sums<T>), blocks, threads, 0, stream, n, device, sums));
      read_back (sums, 2 * blocks, found);
      for (int i = 0; i < 2 * blocks; i++)
        g_assert_true (found[i] == expected[i]);
    }
}

static void
test_block_sums (void)
{
  const int threads[] = { 32, 96, 256, 1024 };
  for (int t : threads)
    {
      check_block_sums<float> (t);
      check_block_sums<double> (t);
      check_block_sums<int> (t);
    }
}

/* Bits that do depend on the order of additions are equal in both orders of threads. */
static void
test_block_sum_order (void)
{
  const int n = 4096;
  float src[n], found[2][2];
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  for (float &value : src)
    value = (float) g_rand_double (rand);
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      float *device = upload (src, n), *sums = device_memory<float> (2);
      OK (RN_LAUNCH ((block_sums<float>), 1, 512, 0, stream, n, device, sums));
      read_back (sums, 2, found[descending]);
    }
  g_assert_cmpmem (found[0], sizeof found[0], found[1], sizeof found[1]);
}

/* ---- warps ---- */

enum
{
  SHUFFLE,
  SHUFFLE_WIDTH,
  UP,
  DOWN,
  XOR,
  XOR_WIDTH,
  HALF,
  LONG,
  BALLOT,
  PART_BALLOT,
  ANY,
  ALL,
  COUNT,
  OR,
  AND,
  N_RESULTS
};

static __global__ void RN_BOUNDS (64) warp_ops (int *results)
{
  const int lane = threadIdx.x % 32, all = 0xffffffff;
  int *r = results + threadIdx.x * N_RESULTS;
  const int value = 100 + (int) threadIdx.x;

  r[SHUFFLE] = __shfl_sync (all, value, lane + 33); /* modulo 32 */
  r[SHUFFLE_WIDTH] = __shfl_sync (all, value, 1, 8);
  r[UP] = __shfl_up_sync (all, value, 3);
  r[DOWN] = __shfl_down_sync (all, value, 5, 16);
  r[XOR] = __shfl_xor_sync (all, value, 16);
  r[XOR_WIDTH] = __shfl_xor_sync (all, value, 4, 4);
  r[HALF] = (int) __half2float (__shfl_sync (all, __float2half ((float) value), 2));
  r[LONG] = (int) (__shfl_sync (all, (long long) value << 40, 4) >> 40);
  r[BALLOT] = (int) __ballot_sync (all, threadIdx.x % 3 == 0);
  r[PART_BALLOT] = lane < 8 ? (int) __ballot_sync (0xff, lane != 2) : -1;
  __syncwarp ();
  r[ANY] = __any_sync (all, threadIdx.x == 40);
  r[ALL] = __all_sync (all, threadIdx.x < 40);
  r[COUNT] = __syncthreads_count (threadIdx.x < 40);
  r[OR] = __syncthreads_or (threadIdx.x == 63) + 2 * __syncthreads_or (0);
  r[AND] = __syncthreads_and (threadIdx.x < 64) + 2 * __syncthreads_and (threadIdx.x > 0);
}

static void
test_warp_ops (void)
{
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      int *device = device_memory<int> (64 * N_RESULTS), found[64 * N_RESULTS];
      OK (RN_LAUNCH (warp_ops, 1, 64, 0, stream, device));
      read_back (device, 64 * N_RESULTS, found);
      for (int t = 0; t < 64; t++)
        {
          const int *r = found + t * N_RESULTS, lane = t % 32, first = t - lane + 100, own = 100 + t;
          g_assert_cmpint (r[SHUFFLE], ==, first + (lane + 1) % 32);
          g_assert_cmpint (r[SHUFFLE_WIDTH], ==, first + lane / 8 * 8 + 1);
          g_assert_cmpint (r[UP], ==, lane < 3 ? own : own - 3);
          g_assert_cmpint (r[DOWN], ==, lane % 16 + 5 > 15 ? own : own + 5);
          g_assert_cmpint (r[XOR], ==, first + (lane ^ 16));
          /* the upper group may read the lower one, not the other way round */
          g_assert_cmpint (r[XOR_WIDTH], ==, lane & 4 ? own - 4 : own);
          g_assert_cmpint (r[HALF], ==, first + 2);
          g_assert_cmpint (r[LONG], ==, first + 4);
          int ballot = 0;
          for (int i = 0; i < 32; i++)
            ballot |= (int) ((unsigned) ((t - lane + i) % 3 == 0) << i);
          g_assert_cmpint (r[BALLOT], ==, ballot);
          g_assert_cmpint (r[PART_BALLOT], ==, lane < 8 ? 0xfb : -1);
          g_assert_cmpint (r[ANY], ==, t >= 32);
          g_assert_cmpint (r[ALL], ==, t < 32);
          g_assert_cmpint (r[COUNT], ==, 40);
          g_assert_cmpint (r[OR], ==, 1);
          g_assert_cmpint (r[AND], ==, 1);
        }
    }
}

static __global__ void RN_BOUNDS (64) integer_atomics (unsigned *u, int *i, unsigned long long *l)
{
  const int t = (int) threadIdx.x;
  atomicAdd (&u[0], 3u);
  atomicOr (&u[1], 1u << (t % 32));
  atomicAnd (&u[2], ~(1u << (t % 7)));
  atomicXor (&u[3], 1u << (t % 32));
  atomicMin (&i[0], -t);
  atomicMax (&i[1], t);
  atomicAdd (&i[2], -1);
  if (atomicCAS (&i[3], t, t + 1) == t)
    atomicExch (&i[4], t);
  atomicAdd (l, 1ull << 32);
}

static void
test_atomics (void)
{
  for (int descending = 0; descending < 2; descending++)
    {
      start (descending);
      unsigned u[4] = { 1, 0, 0xffffffff, 0xf0 };
      int i[5] = { 5, -5, 0, 0, -1 };
      unsigned long long l = 1;
      unsigned *du = upload (u, 4);
      int *di = upload (i, 5);
      unsigned long long *dl = upload (&l, 1);
      OK (RN_LAUNCH (integer_atomics, 1, 64, 0, stream, du, di, dl));
      read_back (du, 4, u);
      read_back (di, 5, i);
      read_back (dl, 1, &l);
      g_assert_cmpuint (u[0], ==, 1 + 3 * 64);
      g_assert_cmpuint (u[1], ==, 0xffffffff);
      g_assert_cmpuint (u[2], ==, 0xffffff80);
      g_assert_cmpuint (u[3], ==, 0xf0); /* each bit twice */
      g_assert_cmpint (i[0], ==, -63);
      g_assert_cmpint (i[1], ==, 63);
      g_assert_cmpint (i[2], ==, -64);
      g_assert_cmpint (i[3], ==, descending ? 1 : 64);
      g_assert_cmpint (i[4], ==, descending ? 0 : 63);
      g_assert_cmpuint (l, ==, (64ull << 32) + 1);
    }
}

/* ---- floats ---- */

template <typename T> static __global__ void RN_BOUNDS (256) to_floats (int64_t n, const T *src, float *dst)
{
  RN_FOR_EACH (i, n)
    dst[i] = rn_load (src, i);
}

template <typename T> static __global__ void RN_BOUNDS (256) from_floats (int64_t n, const float *src, T *dst)
{
  RN_FOR_EACH (i, n)
    rn_store (dst, i, src[i]);
}

/* All bit patterns of a half to F32, and all of those back, with what lies beside them. */
template <typename T>
static void
check_halves (RnDType dtype)
{
  const int n = 65536;
  g_autofree guint16 *bits = g_new (guint16, n);
  g_autofree float *expected = g_new (float, n), *floats = g_new (float, n);
  for (int i = 0; i < n; i++)
    bits[i] = (guint16) i;
  rn_floats_from (dtype, bits, n, expected);

  start (false);
  T *halves = reinterpret_cast<T *> (upload (bits, n));
  float *device = device_memory<float> (n);
  OK (RN_LAUNCH ((to_floats<T>), 4, 256, 0, stream, n, halves, device));
  read_back (device, n, floats);
  g_assert_cmpmem (floats, n * sizeof (float), expected, n * sizeof (float));

  /* Ties lie in the middle of two halves; each with its neighbours. Then every 1009th of all floats: a prime,
   * so that upper and lower bits change. */
  GArray *values = g_array_new (FALSE, FALSE, sizeof (float));
  for (int i = 0; i < n; i++)
    {
      guint32 word, next;
      memcpy (&word, &expected[i], sizeof word);
      memcpy (&next, &expected[(i + 1) % n], sizeof next);
      const guint32 tie = word + (next - word) / 2;
      for (guint32 w : { word, tie - 1, tie, tie + 1 })
        g_array_append_val (values, w);
    }
  for (guint64 w = 0; w < G_GUINT64_CONSTANT (1) << 32; w += 1009)
    {
      const guint32 word = (guint32) w;
      g_array_append_val (values, word);
    }
  const guint32 special[] = { 0x00000000, 0x80000000, 0x00000001, 0x7f800000, 0xff800000, 0x7f800001,
                              0xffc00000, 0x7fffffff, 0x477fefff, 0x477ff000, 0x7f7f7fff, 0x7f7f8000,
                              0x33000000, 0x33000001, 0x387fe000, 0x387fffff, 0x38800000 };
  g_array_append_vals (values, special, G_N_ELEMENTS (special));

  g_autofree guint16 *found = g_new (guint16, values->len), *rounded = g_new (guint16, values->len);
  rn_floats_to (dtype, (const float *) (void *) values->data, values->len, rounded);
  float *src = upload ((const float *) (void *) values->data, values->len);
  guint16 *dst = device_memory<guint16> (values->len);
  OK (RN_LAUNCH ((from_floats<T>), 4, 256, 0, stream, values->len, src, reinterpret_cast<T *> (dst)));
  read_back (dst, values->len, found);
  for (guint i = 0; i < values->len; i++)
    g_assert_cmphex (found[i], ==, rounded[i]);
  g_array_unref (values);
}

static void
test_halves (void)
{
  check_halves<__half> (RN_F16);
  check_halves<__nv_bfloat16> (RN_BF16);
}

static cudaError_t
launch_to_floats (RnDType dtype, int64_t n, const void *src, float *dst)
{
  RN_SWITCH_FLOAT (dtype, T,
                   return RN_LAUNCH ((to_floats<T>), rn_n_blocks (n, 256), 256, 0, stream, n,
                                     static_cast<const T *> (src), dst));
}

static void
test_switch (void)
{
  start (false);
  const guint16 bits[] = { 0x3c00, 0x3f80, 0x0000, 0x3f80 }; /* 1 in binary16, bfloat16, single precision */
  const guint16 *device = upload (bits, 4);
  float *result = device_memory<float> (1), value;
  const struct
  {
    RnDType dtype;
    int at;
  } cases[] = { { RN_F16, 0 }, { RN_BF16, 1 }, { RN_F32, 2 } };
  for (const auto &c : cases)
    {
      OK (launch_to_floats (c.dtype, 1, device + c.at, result));
      read_back (result, 1, &value);
      g_assert_cmpfloat (value, ==, 1);
    }
  g_assert_cmpint (launch_to_floats (RN_I32, 1, device, result), ==, cudaErrorInvalidValue);
  g_assert_cmpuint (rn_n_blocks (0, 256), ==, 1);
  g_assert_cmpuint (rn_n_blocks (257, 256), ==, 2);
  g_assert_cmpuint (rn_n_blocks (G_MAXINT64 / 2, 256), ==, 4096);
}

/* Functions that CUDA has and the host has not: what its manual says of each. */
static void
test_functions (void)
{
  g_assert_cmpint (min (-1, 2), ==, -1);
  g_assert_cmpuint (max (-1, 2u), ==, 0xffffffff); /* unsigned, as in CUDA */
  g_assert_cmpfloat (max (NAN, 2.0f), ==, 2);
  g_assert_cmpfloat (min (2.0f, NAN), ==, 2);
  g_assert_cmpint (__float_as_int (-1.0f), ==, (int) 0xbf800000);
  g_assert_cmpfloat (__int_as_float (0x3f800000), ==, 1);
  g_assert_cmpint (__popc (0xf00f), ==, 8);
  g_assert_cmpint (__clz (0), ==, 32);
  g_assert_cmpint (__clz (1), ==, 31);
  g_assert_cmpint (__clzll (-1), ==, 0);
  g_assert_cmpint (__ffs (0), ==, 0);
  g_assert_cmpint (__ffs (8), ==, 4);
  g_assert_cmphex (__brev (0x80000001), ==, 0x80000001);
  g_assert_cmphex (__brev (2), ==, 0x40000000);
  g_assert_cmpuint (__umulhi (0xffffffff, 0xffffffff), ==, 0xfffffffe);
  g_assert_cmpint (__mulhi (-1, 1), ==, -1);
  g_assert_cmpfloat (__frcp_rn (4), ==, 0.25f);
  g_assert_cmpfloat (rsqrtf (4), ==, 0.5f);
  g_assert_cmpint (__float2int_rn (2.5f), ==, 2);
  g_assert_cmpint (__float2int_rn (NAN), ==, 0);
  g_assert_cmpint (__float2int_rz (-2.5f), ==, -2);
  g_assert_cmpint (__float2int_rd (-2.5f), ==, -3);
  g_assert_cmpint (__float2int_ru (1e20f), ==, G_MAXINT32);
  g_assert_cmpuint (__float2uint_rz (-3), ==, 0);
  g_assert_cmpfloat (__saturatef (NAN), ==, 0);
  g_assert_cmpfloat (__saturatef (3), ==, 1);
  /* Two roundings: 1 + 2^-12 squared loses 2^-24, which a fused one keeps. */
  const float a = 1 + 0x1p-12f;
  g_assert_cmpfloat (__fadd_rn (__fmul_rn (a, a), -1), ==, 0x1p-11f);
  g_assert_cmpfloat (__fmaf_rn (a, a, -1), ==, 0x1p-11f + 0x1p-24f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gpu/kernels/places", test_places);
  g_test_add_func ("/gpu/kernels/arguments", test_arguments);
  g_test_add_func ("/gpu/kernels/block-sums", test_block_sums);
  g_test_add_func ("/gpu/kernels/block-sum-order", test_block_sum_order);
  g_test_add_func ("/gpu/kernels/warp-ops", test_warp_ops);
  g_test_add_func ("/gpu/kernels/atomics", test_atomics);
  g_test_add_func ("/gpu/kernels/halves", test_halves);
  g_test_add_func ("/gpu/kernels/switch", test_switch);
  g_test_add_func ("/gpu/kernels/functions", test_functions);
  return g_test_run ();
}
