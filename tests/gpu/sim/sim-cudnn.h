/*
 * sim-cudnn.h: what tests ask of the simulated cuDNN.
 *
 * It answers as the real one does (tests/gpu/cudnn-cases.h), and reports what the real one lets pass until
 * it breaks: descriptors of the wrong kind, defaults for what was never set, identifiers that are missing or
 * used twice, pointers that are not of the device, misaligned or in each other's way.
 *
 * Its engines, best first as the heuristics of mode A list them. Those that the notes condemn come first, and
 * those that only a comparison can find look fastest.
 */
#ifndef TESTS_GPU_SIM_SIM_CUDNN_H
#define TESTS_GPU_SIM_SIM_CUDNN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

  /* Global indices. */
  enum
  {
    SIM_ENGINE_GENERIC = 0,      /* no workspace, slow, any alignment */
    SIM_ENGINE_NORMAL = 11,      /* with workspace; twice, with other knobs: another order of sums */
    SIM_ENGINE_RANDOM_ORDER = 2, /* NONDETERMINISTIC: adds in an order that changes */
    SIM_ENGINE_TENSOR_CORE = 23, /* TENSOR_CORE: rounds inputs in F32 to 10 bits of mantissa */
    SIM_ENGINE_COMPILED = 4,     /* RUNTIME_COMPILATION: no plan can be made of it */
    SIM_ENGINE_HUGE = 5,         /* more workspace than any device has memory */
    SIM_ENGINE_WRONG = 36,       /* leaves out an eighth of the terms, and no note says so */
    SIM_ENGINE_REDUCED = 7,      /* REDUCED_PRECISION_REDUCTION: rounds sums to half precision */
    SIM_ENGINE_DOWN_CONVERT = 8, /* DOWN_CONVERT_INPUTS: F32 by way of F16 */
    SIM_ENGINE_NAN = 39,         /* half precision: the last element is a NaN, and no note says so */
    SIM_ENGINE_EARLY = 42,       /* writes the output before it reads the residual, and no note says so */
  };

  /* Executions of the engine that ran since sim_cudnn_forget. */
  unsigned long sim_cudnn_n_executions (int64_t engine);
  void sim_cudnn_forget (void);
  /* From now on the engine takes @factor times the time, so that a measurement chooses another; 1: as before.
   */
  void sim_cudnn_slow_down (int64_t engine, double factor);
  /* From now on no heuristics propose the engine; -1: all are proposed. */
  void sim_cudnn_leave_out (int64_t engine);
  /* The @n-th time from now on that heuristics are asked they fail; 0: never. */
  void sim_cudnn_fail_heuristics (unsigned n);
  /* Handles and descriptors that are not destroyed yet. */
  unsigned long sim_cudnn_n_live (void);

#ifdef __cplusplus
}
#endif

#endif
