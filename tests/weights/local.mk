WEIGHTS_FIXTURE = tests/weights/golden.h tests/weights/weights-fixture.c tests/weights/weights-fixture.h

check_PROGRAMS += \
  tests/weights/test-ema-weights \
  tests/weights/test-pickle \
  tests/weights/test-torch-files \
  tests/weights/test-torch-writer \
  tests/weights/test-weights

tests_weights_test_ema_weights_SOURCES = tests/weights/test-ema-weights.c $(WEIGHTS_FIXTURE)
tests_weights_test_ema_weights_LDADD = $(TEST_LIBS)
tests_weights_test_pickle_SOURCES = tests/weights/test-pickle.c $(WEIGHTS_FIXTURE)
tests_weights_test_pickle_LDADD = $(TEST_LIBS)
tests_weights_test_torch_files_SOURCES = tests/weights/test-torch-files.c $(WEIGHTS_FIXTURE)
tests_weights_test_torch_files_LDADD = $(TEST_LIBS)
tests_weights_test_torch_writer_SOURCES = tests/weights/test-torch-writer.c $(WEIGHTS_FIXTURE)
tests_weights_test_torch_writer_LDADD = $(TEST_LIBS)
tests_weights_test_weights_SOURCES = tests/weights/test-weights.c $(WEIGHTS_FIXTURE)
tests_weights_test_weights_LDADD = $(TEST_LIBS)

EXTRA_DIST += tests/weights/check-full-size.py tests/weights/check-torch.py tests/weights/make-fixtures.py
EXTRA_DIST += \
  tests/weights/fixtures/detector-1.13-legacy.pth \
  tests/weights/fixtures/detector-1.13.pth \
  tests/weights/fixtures/detector-2.15-legacy.pth \
  tests/weights/fixtures/detector-2.15.pth \
  tests/weights/fixtures/half-1.13-legacy.pth \
  tests/weights/fixtures/half-1.13.pth \
  tests/weights/fixtures/half-2.15-legacy.pth \
  tests/weights/fixtures/half-2.15.pth \
  tests/weights/fixtures/model-1.13-legacy.pth \
  tests/weights/fixtures/model-1.13.pth \
  tests/weights/fixtures/model-2.15-legacy.pth \
  tests/weights/fixtures/model-2.15.pth \
  tests/weights/fixtures/ours.pth \
  tests/weights/fixtures/plain-1.13-legacy.pth \
  tests/weights/fixtures/plain-1.13.pth \
  tests/weights/fixtures/plain-2.15-legacy.pth \
  tests/weights/fixtures/plain-2.15.pth \
  tests/weights/fixtures/types-1.13-legacy.pth \
  tests/weights/fixtures/types-1.13.pth \
  tests/weights/fixtures/types-2.15-legacy.pth \
  tests/weights/fixtures/types-2.15.pth

check_PROGRAMS += tests/weights/test-convert tests/weights/test-load tests/weights/test-names

tests_weights_test_convert_SOURCES = tests/weights/test-convert.c $(tests_program)
tests_weights_test_load_SOURCES = tests/weights/test-load.c $(tests_program)
tests_weights_test_names_SOURCES = tests/weights/test-names.c
EXTRA_DIST += tests/weights/make-names.py tests/weights/names-torchvision.txt
