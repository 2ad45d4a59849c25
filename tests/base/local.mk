check_PROGRAMS += tests/base/test-atomic-file tests/base/test-base tests/base/test-open-file \
  tests/base/test-process tests/base/test-rng tests/base/test-trace

tests_base_test_atomic_file_SOURCES = tests/base/test-atomic-file.c
tests_base_test_atomic_file_LDADD = $(TEST_LIBS)
tests_base_test_base_SOURCES = tests/base/test-base.c
tests_base_test_base_LDADD = $(TEST_LIBS)
tests_base_test_open_file_SOURCES = tests/base/test-open-file.c
tests_base_test_open_file_LDADD = $(TEST_LIBS)
tests_base_test_process_SOURCES = tests/base/test-process.c
tests_base_test_process_LDADD = $(TEST_LIBS)
tests_base_test_rng_SOURCES = tests/base/test-rng.c
tests_base_test_rng_LDADD = $(TEST_LIBS)
tests_base_test_trace_SOURCES = tests/base/test-trace.c $(CHROME_TRACE)
tests_base_test_trace_LDADD = $(TEST_LIBS)
