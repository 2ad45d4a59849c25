check_PROGRAMS += tests/models/test-retinanet tests/models/test-parts tests/models/parity/test-parity

models_fixture = tests/models/fixture.c tests/models/fixture.h
tests_models_test_retinanet_SOURCES = tests/models/test-retinanet.c $(models_fixture)
tests_models_test_retinanet_LDADD = $(TEST_LIBS)
tests_models_test_parts_SOURCES = tests/models/test-parts.c $(models_fixture)
tests_models_test_parts_LDADD = $(TEST_LIBS)

tests_models_parity_test_parity_SOURCES = \
  tests/models/parity/test-parity.c \
  tests/models/parity/fixture-file.c tests/models/parity/fixture-file.h \
  tests/models/parity/hash.c tests/models/parity/hash.h \
  tests/models/parity/scene.c tests/models/parity/scene.h \
  $(models_fixture)
tests_models_parity_test_parity_LDADD = $(TEST_LIBS)
# For check-photographs.py, by hand: made only when asked for.
EXTRA_PROGRAMS += tests/models/parity/dump-outputs
tests_models_parity_dump_outputs_SOURCES = tests/models/parity/dump-outputs.c tests/batch-image.h
tests_models_parity_dump_outputs_LDADD = $(TEST_LIBS)
EXTRA_DIST += \
  tests/models/parity/check-photographs.py \
  tests/models/parity/frozen.txt \
  tests/models/parity/make_fixtures.py \
  tests/models/parity/training.txt
