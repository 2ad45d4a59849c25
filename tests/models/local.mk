check_PROGRAMS += tests/models/test-retinanet tests/models/test-parts

tests_models_test_retinanet_SOURCES = tests/models/test-retinanet.c tests/models/fixture.c tests/models/fixture.h
tests_models_test_retinanet_LDADD = $(TEST_LIBS)
tests_models_test_parts_SOURCES = tests/models/test-parts.c tests/models/fixture.c tests/models/fixture.h
tests_models_test_parts_LDADD = $(TEST_LIBS)
