# Sources of this folder.
check_PROGRAMS += tests/graph/test-plan
tests_graph_test_plan_SOURCES = tests/graph/test-plan.c
tests_graph_test_plan_LDADD = $(TEST_LIBS)
