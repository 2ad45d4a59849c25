# The simulated device, for tests only: the sources of the module, its kernels compiled as C++, and the entry points
# of the CUDA runtime and of cuDNN that they call.
CUDA_SIM_SOURCES = tests/gpu/sim/sim.h tests/gpu/sim/internal.h tests/gpu/sim/kernel-sim.h \
  tests/gpu/sim/math-sim.h tests/gpu/sim/fibers.h tests/gpu/sim/fibers.cc tests/gpu/sim/shared.cc tests/gpu/sim/sync.cc \
  tests/gpu/sim/config.c tests/gpu/sim/events.c \
  tests/gpu/sim/memory.c tests/gpu/sim/ranges.c tests/gpu/sim/runtime.c tests/gpu/sim/streams.c \
  tests/gpu/sim/sim-cudnn.h tests/gpu/sim/cudnn-internal.h tests/gpu/sim/cudnn-attributes.c \
  tests/gpu/sim/cudnn-compute.c \
  tests/gpu/sim/cudnn-descriptors.c tests/gpu/sim/cudnn-engines.c tests/gpu/sim/cudnn-execute.c \
  tests/gpu/sim/cudnn-graph.c tests/gpu/sim/cudnn-json.h tests/gpu/sim/cudnn-json.c tests/gpu/sim/cudnn-plans.c \
  tests/gpu/sim/cudnn-profiles.c

# Tests of the device, on the simulation or with the real library and no GPU.
CUDA_TESTS = tests/gpu/test-kernels tests/gpu/test-sim-failures tests/gpu/test-sim-kernels \
  tests/gpu/test-sim-mistakes tests/gpu/test-sim-runtime tests/gpu/test-sim-streams tests/gpu/test-values

EXTRA_DIST += $(CUDA_SIM_SOURCES) tests/gpu/no-cuda.sh

check_PROGRAMS += tests/gpu/test-plan-store
tests_gpu_test_plan_store_SOURCES = tests/gpu/test-plan-store.c tests/tree.c tests/tree.h kernels/cuda/plan-store.c
tests_gpu_test_plan_store_LDADD = $(TEST_LIBS)

check_SCRIPTS += tests/gpu/check-linkage.sh

if HAVE_CUDA
check_LTLIBRARIES = tests/gpu/libcuda-sim.la tests/gpu/libcuda-conv.la
check_PROGRAMS += $(CUDA_TESTS) tests/gpu/test-half-convs tests/gpu/test-training tests/gpu/test-training-faults \
  tests/gpu/test-guarded-steps tests/gpu/test-training-waits \
  tests/gpu/test-conv-library tests/gpu/test-plans \
  tests/gpu/test-conv-measure tests/gpu/test-conv-stored tests/gpu/test-cudnn-cases \
  tests/gpu/test-cudnn-cases-sim tests/gpu/test-sim-cudnn tests/gpu/test-sim-engines tests/gpu/test-startup \
  tests/gpu/test-run-device tests/gpu/test-run-engines tests/gpu/test-command-line

# Convolutions with the real cuDNN: it answers for devices that are not there, and needs no driver for that.
tests_gpu_libcuda_conv_la_SOURCES = $(CUDA_CONV_SOURCES)
tests_gpu_libcuda_conv_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
PROFILE_LIBRARY = tests/gpu/profile-library.h tests/gpu/profile-library.c tests/gpu/vendor-leaks.c
tests_gpu_test_conv_library_SOURCES = tests/gpu/test-conv-library.c $(PROFILE_LIBRARY)
tests_gpu_test_conv_library_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_conv_library_LDFLAGS = $(AM_LDFLAGS) $(CUDA_RPATH)
tests_gpu_test_conv_library_LDADD = tests/gpu/libcuda-conv.la $(TEST_LIBS) $(CUDA_LIBS)
tests_gpu_test_plans_SOURCES = tests/gpu/test-plans.c tests/gpu/conv-problems.c tests/gpu/conv-problems.h \
  $(PROFILE_LIBRARY)
tests_gpu_test_plans_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_plans_LDFLAGS = $(AM_LDFLAGS) $(CUDA_RPATH)
tests_gpu_test_plans_LDADD = tests/gpu/libcuda-conv.la $(TEST_LIBS) $(CUDA_LIBS)
# With the simulated one.
tests_gpu_test_conv_measure_SOURCES = tests/gpu/test-conv-measure.c tests/gpu/conv-case.c tests/gpu/conv-case.h
tests_gpu_test_conv_measure_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_conv_measure_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_conv_stored_SOURCES = tests/gpu/test-conv-stored.c tests/gpu/conv-case.c tests/gpu/conv-case.h \
  tests/tree.c tests/tree.h
tests_gpu_test_conv_stored_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_conv_stored_LDADD = $(CUDA_SIM_LIBS)

kernels/cuda/tests_gpu_libcuda_sim_la-module.lo: kernels/module-number.h
tests_gpu_libcuda_sim_la_SOURCES = $(CUDA_SOURCES) $(CUDA_SIM_SOURCES)
nodist_tests_gpu_libcuda_sim_la_SOURCES = $(CUDA_KERNELS:.cu=.sim.cc)
tests_gpu_libcuda_sim_la_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM -DRN_CUDA_ARCH='"75,80,90,ptx90"' $(CUDA_CFLAGS)
tests_gpu_libcuda_sim_la_CXXFLAGS = $(SIM_CXXFLAGS)
tests_gpu_libcuda_sim_la_LIBADD = -lstdc++
# Programs that use it: libcuda-sim first, it calls what the others define.
CUDA_SIM_LIBS = tests/gpu/libcuda-sim.la $(TEST_LIBS) -lstdc++

# The simulated device as the module that the program opens: RN_CUDA_MODULE=tests/gpu/.libs/runner-cuda-sim.so
check_LTLIBRARIES += tests/gpu/runner-cuda-sim.la
tests_gpu_runner_cuda_sim_la_SOURCES =
tests_gpu_runner_cuda_sim_la_LIBADD = tests/gpu/libcuda-sim.la kernels/libcuda-shared.la $(RN_LIBS) -lstdc++
tests_gpu_runner_cuda_sim_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath $(abs_top_builddir)/tests/gpu \
  -Wl,--version-script=$(srcdir)/kernels/cuda/module.map
tests_gpu_test_command_line_SOURCES = tests/gpu/test-command-line.c tests/small-model.h tests/cli/program.c \
  tests/cli/program.h tests/tree.c tests/tree.h

# One table of cases, for the real cuDNN and for the simulated one.
CUDNN_CASES = tests/gpu/test-cudnn-cases.c tests/gpu/cudnn-cases.h tests/gpu/cudnn-cases.c \
  tests/gpu/cudnn-tensor-cases.c tests/gpu/cudnn-graph-cases.c tests/gpu/cudnn-plan-cases.c \
  tests/gpu/cudnn-build.h tests/gpu/cudnn-build.c
tests_gpu_test_cudnn_cases_SOURCES = $(CUDNN_CASES) tests/gpu/vendor-leaks.c
tests_gpu_test_cudnn_cases_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_cudnn_cases_LDFLAGS = $(AM_LDFLAGS) $(CUDA_RPATH)
tests_gpu_test_cudnn_cases_LDADD = $(TEST_LIBS) $(CUDA_LIBS)
tests_gpu_test_cudnn_cases_sim_SOURCES = $(CUDNN_CASES)
tests_gpu_test_cudnn_cases_sim_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_cudnn_cases_sim_LDADD = $(CUDA_SIM_LIBS)

CUDNN_SETUP = tests/gpu/cudnn-setup.h tests/gpu/cudnn-setup.c tests/gpu/cudnn-build.h tests/gpu/cudnn-build.c \
  tests/gpu/sim-fixture.h tests/gpu/sim-fixture.c
tests_gpu_test_sim_cudnn_SOURCES = tests/gpu/test-sim-cudnn.c $(CUDNN_SETUP)
tests_gpu_test_sim_cudnn_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_sim_cudnn_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_sim_engines_SOURCES = tests/gpu/test-sim-engines.c $(CUDNN_SETUP)
tests_gpu_test_sim_engines_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_sim_engines_LDADD = $(CUDA_SIM_LIBS)
# The wrapped function notes which kernels are launched.
KERNEL_TESTS = tests/gpu/test-kernels.c tests/gpu/device-cases.h tests/gpu/device-cases.c \
  tests/gpu/device-run.h tests/gpu/device-run.c tests/gpu/test-device.h \
  $(CASES) tests/kernels/compare.h tests/kernels/compare.c \
  tests/kernels/harness.h tests/kernels/harness.c
tests_gpu_test_kernels_SOURCES = $(KERNEL_TESTS) tests/gpu/sim-device.c tests/gpu/launched-kernels.c \
  tests/gpu/weight-kernels.h tests/gpu/weight-kernels.c
tests_gpu_test_kernels_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_kernels_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap,sim_check_launch
tests_gpu_test_kernels_LDADD = $(CUDA_SIM_LIBS)
VALUE_TESTS = tests/gpu/test-values.c tests/gpu/device-run.h tests/gpu/device-run.c tests/gpu/test-device.h \
  tests/kernels/cases.h tests/kernels/compare.h tests/kernels/compare.c tests/kernels/harness.h tests/kernels/harness.c
tests_gpu_test_values_SOURCES = $(VALUE_TESTS) tests/gpu/sim-device.c
tests_gpu_test_values_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_values_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_half_convs_SOURCES = tests/gpu/test-half-convs.c tests/gpu/device-run.h tests/gpu/device-run.c \
  $(CASES) tests/kernels/harness.h tests/kernels/harness.c
tests_gpu_test_half_convs_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_half_convs_LDADD = $(CUDA_SIM_LIBS)
# Whole trainings.
TRAINING_RUN = tests/gpu/test-device.h tests/gpu/training-run.h tests/gpu/training-run.c tests/runner/small-detector.h \
  tests/runner/small-detector.c tests/tree.h tests/tree.c
tests_gpu_test_training_SOURCES = tests/gpu/test-training.c tests/gpu/sim-device.c $(TRAINING_RUN) \
  runner/cli/bench-run.c runner/cli/json.c runner/cli/shape.c
tests_gpu_test_training_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_training_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_training_faults_SOURCES = tests/gpu/test-training-faults.c tests/gpu/sim-device.c $(TRAINING_RUN)
tests_gpu_test_training_faults_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_training_faults_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_guarded_steps_SOURCES = tests/gpu/test-guarded-steps.c tests/gpu/sim-device.c $(TRAINING_RUN)
tests_gpu_test_guarded_steps_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_guarded_steps_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_training_waits_SOURCES = tests/gpu/test-training-waits.c tests/gpu/sim-device.c $(TRAINING_RUN)
tests_gpu_test_training_waits_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_training_waits_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_run_device_SOURCES = tests/gpu/test-run-device.c tests/gpu/sim-device.c $(TRAINING_RUN)
tests_gpu_test_run_device_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_run_device_LDADD = $(CUDA_SIM_LIBS)
# In both, the wrapped function gives the version of cuDNN.
tests_gpu_test_run_engines_SOURCES = tests/gpu/test-run-engines.c tests/gpu/sim-device.c $(TRAINING_RUN)
tests_gpu_test_run_engines_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_run_engines_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap,cudnnGetVersion
tests_gpu_test_run_engines_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_startup_SOURCES = tests/gpu/test-startup.c
tests_gpu_test_startup_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_startup_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap,cudnnGetVersion
tests_gpu_test_startup_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_sim_failures_SOURCES = tests/gpu/test-sim-failures.c tests/gpu/sim-fixture.h tests/gpu/sim-fixture.c
tests_gpu_test_sim_failures_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_sim_failures_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_sim_kernels_SOURCES = tests/gpu/test-sim-kernels.cc tests/gpu/kernel-fixture.h
tests_gpu_test_sim_kernels_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_sim_kernels_CXXFLAGS = $(SIM_CXXFLAGS)
tests_gpu_test_sim_kernels_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_sim_mistakes_SOURCES = tests/gpu/test-sim-mistakes.cc tests/gpu/kernel-fixture.h
tests_gpu_test_sim_mistakes_CPPFLAGS = $(AM_CPPFLAGS) -DRN_SIM $(CUDA_CFLAGS)
tests_gpu_test_sim_mistakes_CXXFLAGS = $(SIM_CXXFLAGS)
tests_gpu_test_sim_mistakes_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_sim_runtime_SOURCES = tests/gpu/test-sim-runtime.c tests/gpu/sim-fixture.h tests/gpu/sim-fixture.c
tests_gpu_test_sim_runtime_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_sim_runtime_LDADD = $(CUDA_SIM_LIBS)
tests_gpu_test_sim_streams_SOURCES = tests/gpu/test-sim-streams.c tests/gpu/sim-fixture.h tests/gpu/sim-fixture.c
tests_gpu_test_sim_streams_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_test_sim_streams_LDADD = $(CUDA_SIM_LIBS)

# For a machine with a device, where they open the module: make check-gpu, make bench-gpu.
CUDA_CHECKS = tests/gpu/check-kernels tests/gpu/check-values tests/gpu/check-training
EXTRA_PROGRAMS += $(CUDA_CHECKS) tests/gpu/bench-kernels
tests_gpu_check_kernels_SOURCES = $(KERNEL_TESTS) tests/gpu/real-device.c
tests_gpu_check_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_check_kernels_LDADD = $(TEST_LIBS)
tests_gpu_check_values_SOURCES = $(VALUE_TESTS) tests/gpu/real-device.c
tests_gpu_check_values_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_check_values_LDADD = $(TEST_LIBS)
tests_gpu_check_training_SOURCES = tests/gpu/check-training.c tests/gpu/real-device.c $(TRAINING_RUN)
tests_gpu_check_training_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_check_training_LDADD = $(TEST_LIBS)
tests_gpu_bench_kernels_SOURCES = tests/gpu/bench-kernels.c
tests_gpu_bench_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
tests_gpu_bench_kernels_LDADD = $(TEST_LIBS)

GPU_ENVIRONMENT = RN_CUDA_MODULE='$(abs_top_builddir)/.libs/runner-cuda-1.so' OMP_WAIT_POLICY=passive
check-gpu: $(CUDA_CHECKS) runner-cuda-1.la
	@for program in $(CUDA_CHECKS); do \
	  echo "$$program" && env $(GPU_ENVIRONMENT) $$program || exit 1; done
# Rates of kernels against the one of copies; then what the memory strategies make of a step.
bench-gpu: tests/gpu/bench-kernels$(EXEEXT) runner-cuda-1.la runner/runner$(EXEEXT)
	env $(GPU_ENVIRONMENT) tests/gpu/bench-kernels
	env $(GPU_ENVIRONMENT) runner/runner bench $(srcdir)/configs/retinanet_voc.yaml --device cuda --shape 608x1024

# They say what is missing where there is no device, and never pass then.
EXTRA_DIST += tests/gpu/without-device.sh
check_SCRIPTS += tests/gpu/without-device.sh
tests/gpu/without-device.log: $(CUDA_CHECKS) tests/gpu/bench-kernels$(EXEEXT) runner-cuda-1.la runner/runner$(EXEEXT)

# As the C compiler rounds: nothing is fused. Kernels read elements as packs, which nvcc allows.
SIM_CXXFLAGS = -std=gnu++17 -O1 -g -ffp-contract=off -fno-strict-aliasing -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter \
  -Wno-unknown-pragmas $(SANITIZE_CFLAGS)

# A kernel as C++: automake compiles no .cu file.
CLEANFILES += $(CUDA_KERNELS:.cu=.sim.cc)
.cu.sim.cc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '#include "$<"' > $@
else
check_SCRIPTS += tests/gpu/no-cuda.sh
check-gpu bench-gpu:
	@echo '$@: this build has no CUDA device module ($(CUDA_SUMMARY)); what makes it: configure with --with-cuda' >&2; exit 1
endif
.PHONY: check-gpu bench-gpu
