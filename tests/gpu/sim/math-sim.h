/* math-sim.h: functions that CUDA has in its kernels and not on the host: those that kernels and their tests
 * call. Included by kernel-sim.h. */
#ifndef TESTS_GPU_SIM_MATH_SIM_H
#define TESTS_GPU_SIM_MATH_SIM_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

template <typename To, typename From>
static inline To
sim_bits (From value)
{
  static_assert (sizeof (To) == sizeof (From), "the same bits");
  To result;
  memcpy (&result, &value, sizeof result);
  return result;
}

/* Of floats, a number wins over a NaN, as with fminf. */
template <typename A, typename B>
static inline std::common_type_t<A, B>
min (A a, B b)
{
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return T (a) < T (b) || isnan (T (b)) ? T (a) : T (b);
  else
    return T (b) < T (a) ? T (b) : T (a);
}

template <typename A, typename B>
static inline std::common_type_t<A, B>
max (A a, B b)
{
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return T (a) > T (b) || isnan (T (b)) ? T (a) : T (b);
  else
    return T (b) > T (a) ? T (b) : T (a);
}

#define SIM_FUNCTION(type, name, parameters, expression) \
  static inline type name parameters                     \
  {                                                      \
    return expression;                                   \
  }

/* Stores. */
static inline void
__stwb (uint4 *p, uint4 value)
{
  memcpy (p, &value, sizeof value);
}

/* Bits. */
SIM_FUNCTION (int, __float_as_int, (float x), sim_bits<int> (x))
SIM_FUNCTION (unsigned, __float_as_uint, (float x), sim_bits<unsigned> (x))
SIM_FUNCTION (float, __int_as_float, (int x), sim_bits<float> (x))
SIM_FUNCTION (float, __uint_as_float, (unsigned x), sim_bits<float> (x))
SIM_FUNCTION (int, __popc, (unsigned x), __builtin_popcount (x))
SIM_FUNCTION (int, __clz, (int x), x != 0 ? __builtin_clz ((unsigned) x) : 32)
SIM_FUNCTION (int, __clzll, (long long x), x != 0 ? __builtin_clzll ((unsigned long long) x) : 64)
SIM_FUNCTION (int, __ffs, (int x), __builtin_ffs (x))
SIM_FUNCTION (unsigned, __umulhi, (unsigned a, unsigned b), (unsigned) ((uint64_t) a *b >> 32))
SIM_FUNCTION (int, __mulhi, (int a, int b), (int) ((int64_t) a *b >> 32))

static inline unsigned
__brev (unsigned x)
{
  unsigned result = 0;
  for (int i = 0; i < 32; i++)
    result |= (x >> i & 1) << (31 - i);
  return result;
}

/* One operation, one rounding to nearest: -ffp-contract=off keeps them apart. */
SIM_FUNCTION (float, __fadd_rn, (float a, float b), a + b)
SIM_FUNCTION (float, __fsub_rn, (float a, float b), a - b)
SIM_FUNCTION (float, __fmul_rn, (float a, float b), a *b)
SIM_FUNCTION (float, __fdiv_rn, (float a, float b), a / b)
SIM_FUNCTION (float, __frcp_rn, (float x), 1 / x)
SIM_FUNCTION (float, __fsqrt_rn, (float x), sqrtf (x))
SIM_FUNCTION (float, __fmaf_rn, (float a, float b, float c), fmaf (a, b, c))
SIM_FUNCTION (double, __dsub_rn, (double a, double b), a - b)
SIM_FUNCTION (double, __dmul_rn, (double a, double b), a *b)

/* The device's has an error of 2 units in the last place, this of one. */
SIM_FUNCTION (float, rsqrtf, (float x), (float) (1 / sqrt ((double) x)))

/* Numbers to integers: nearest even (rn), to zero (rz), down (rd), up (ru); what does not fit becomes the
 * nearest that does, a NaN 0. */
static inline int
sim_to_int (double x)
{
  return isnan (x) ? 0 : x >= 0x1p31 ? INT32_MAX : x < -0x1p31 ? INT32_MIN : (int) x;
}

static inline unsigned
sim_to_uint (double x)
{
  return isnan (x) || x < 0 ? 0 : x >= 0x1p32 ? UINT32_MAX : (unsigned) x;
}

SIM_FUNCTION (int, __float2int_rn, (float x), sim_to_int (rint (x)))
SIM_FUNCTION (int, __float2int_rz, (float x), sim_to_int (trunc (x)))
SIM_FUNCTION (int, __float2int_rd, (float x), sim_to_int (floor (x)))
SIM_FUNCTION (int, __float2int_ru, (float x), sim_to_int (ceil (x)))
SIM_FUNCTION (unsigned, __float2uint_rz, (float x), sim_to_uint (trunc (x)))
SIM_FUNCTION (float, __saturatef, (float x), x > 0 ? (x < 1 ? x : 1) : 0)

#undef SIM_FUNCTION

#endif
