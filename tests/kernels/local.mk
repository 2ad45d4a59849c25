check_PROGRAMS += tests/kernels/test-op tests/kernels/test-kernels tests/kernels/test-gradients \
  tests/kernels/test-large-values tests/kernels/test-math tests/kernels/test-torch tests/kernels/test-update \
  tests/kernels/test-winograd tests/kernels/test-half-conv

tests_kernels_test_op_SOURCES = tests/kernels/test-op.c
tests_kernels_test_op_LDADD = $(TEST_LIBS)

CASES = tests/kernels/cases.h tests/kernels/cases.c tests/kernels/case-list.h tests/kernels/map-cases.c
tests_kernels_test_kernels_SOURCES = tests/kernels/test-kernels.c $(CASES) \
  tests/kernels/compare.h tests/kernels/compare.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_kernels_LDADD = $(TEST_LIBS)

tests_kernels_test_gradients_SOURCES = tests/kernels/test-gradients.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_gradients_LDADD = $(TEST_LIBS)

tests_kernels_test_large_values_SOURCES = tests/kernels/test-large-values.c tests/kernels/cases.h \
  tests/kernels/compare.h tests/kernels/compare.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_large_values_LDADD = $(TEST_LIBS)

tests_kernels_test_math_SOURCES = tests/kernels/test-math.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_math_LDADD = $(TEST_LIBS)

tests_kernels_test_torch_SOURCES = tests/kernels/test-torch.c tests/kernels/golden-torch.h tests/kernels/harness.h \
  tests/kernels/harness.c
tests_kernels_test_torch_LDADD = $(TEST_LIBS)

tests_kernels_test_update_SOURCES = tests/kernels/test-update.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_update_LDADD = $(TEST_LIBS)

tests_kernels_test_winograd_SOURCES = tests/kernels/test-winograd.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_winograd_LDADD = $(TEST_LIBS)

tests_kernels_test_half_conv_SOURCES = tests/kernels/test-half-conv.c tests/kernels/golden-half-conv.h \
  tests/kernels/compare.h tests/kernels/compare.c tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_half_conv_LDADD = $(TEST_LIBS)

# Built by hand: make tests/kernels/bench-half
EXTRA_PROGRAMS += tests/kernels/bench-half
tests_kernels_bench_half_SOURCES = tests/kernels/bench-half.c
tests_kernels_bench_half_LDADD = $(TEST_LIBS)

EXTRA_DIST += tests/kernels/golden-torch.py tests/kernels/golden-half-conv.py
