check_PROGRAMS += tests/config/test-load tests/config/test-schema tests/config/test-yaml

tests_config_test_load_SOURCES = tests/config/test-load.c tests/config/config-fixture.h
tests_config_test_load_LDADD = $(TEST_LIBS)
tests_config_test_schema_SOURCES = tests/config/test-schema.c tests/config/config-fixture.h
tests_config_test_schema_LDADD = $(TEST_LIBS)
tests_config_test_yaml_SOURCES = tests/config/test-yaml.c tests/config/config-fixture.h
tests_config_test_yaml_LDADD = $(TEST_LIBS)
