# Sources of this folder.
check_PROGRAMS += tests/graph/test-plan
tests_graph_test_plan_SOURCES = tests/graph/test-plan.c
tests_graph_test_plan_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/graph/test-build tests/graph/test-gradient tests/graph/test-params tests/graph/test-passes
tests_graph_test_build_SOURCES = tests/graph/test-build.c tests/graph/nets.c tests/graph/nets.h
tests_graph_test_build_LDADD = $(TEST_LIBS)
tests_graph_test_gradient_SOURCES = tests/graph/test-gradient.c tests/graph/interpreter.c tests/graph/interpreter.h \
  tests/graph/nets.c tests/graph/nets.h
tests_graph_test_gradient_LDADD = $(TEST_LIBS)
tests_graph_test_params_SOURCES = tests/graph/test-params.c
tests_graph_test_params_LDADD = $(TEST_LIBS)
PASS_FIXTURE = tests/graph/pass-fixture.c tests/graph/pass-fixture.h tests/graph/nets.c tests/graph/nets.h
tests_graph_test_passes_SOURCES = tests/graph/test-passes.c $(PASS_FIXTURE)
tests_graph_test_passes_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/graph/test-mask-sums
tests_graph_test_mask_sums_SOURCES = tests/graph/test-mask-sums.c $(PASS_FIXTURE)
tests_graph_test_mask_sums_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/graph/test-cost
tests_graph_test_cost_SOURCES = tests/graph/test-cost.c tests/graph/nets.c tests/graph/nets.h
tests_graph_test_cost_LDADD = $(TEST_LIBS)

# Times every op against its prediction; run by hand.
EXTRA_PROGRAMS += tests/graph/bench-cost
tests_graph_bench_cost_SOURCES = tests/graph/bench-cost.c
tests_graph_bench_cost_LDADD = $(TEST_LIBS)

PLANNED_STEP = tests/graph/planned-step.c tests/graph/planned-step.h tests/graph/nets.c tests/graph/nets.h
check_PROGRAMS += tests/graph/test-depth-first tests/graph/test-pass-update
tests_graph_test_depth_first_SOURCES = tests/graph/test-depth-first.c $(PLANNED_STEP)
tests_graph_test_depth_first_LDADD = $(TEST_LIBS)
tests_graph_test_pass_update_SOURCES = tests/graph/test-pass-update.c $(PLANNED_STEP)
tests_graph_test_pass_update_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/graph/test-offload
tests_graph_test_offload_SOURCES = tests/graph/test-offload.c $(PLANNED_STEP)
tests_graph_test_offload_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/graph/test-layout
tests_graph_test_layout_SOURCES = tests/graph/test-layout.c $(PLANNED_STEP)
tests_graph_test_layout_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/graph/test-queues
tests_graph_test_queues_SOURCES = tests/graph/test-queues.c tests/graph/late-device.c tests/graph/late-device.h \
  $(PLANNED_STEP)
tests_graph_test_queues_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/graph/test-amp
tests_graph_test_amp_SOURCES = tests/graph/test-amp.c tests/graph/interpreter.c tests/graph/interpreter.h \
  $(PLANNED_STEP)
tests_graph_test_amp_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/graph/test-recompute
tests_graph_test_recompute_SOURCES = tests/graph/test-recompute.c tests/graph/nets.c tests/graph/nets.h \
  tests/models/fixture.c tests/models/fixture.h
tests_graph_test_recompute_LDADD = $(TEST_LIBS)
EXTRA_PROGRAMS += tests/graph/bench-placement
tests_graph_bench_placement_SOURCES = tests/graph/bench-placement.c
tests_graph_bench_placement_LDADD = $(TEST_LIBS)
