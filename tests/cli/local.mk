tests_program = tests/cli/program.c tests/cli/program.h tests/tree.c tests/tree.h

check_PROGRAMS += \
  tests/cli/test-bench tests/cli/test-browse tests/cli/test-configs tests/cli/test-cuda tests/cli/test-eval tests/cli/test-infer tests/cli/test-kill tests/cli/test-messages tests/cli/test-pipeline tests/cli/test-plan tests/cli/test-program tests/cli/test-run-config \
  tests/cli/test-schedule tests/cli/test-soak \
  tests/cli/test-strategies \
  tests/cli/test-weights

tests_cli_test_bench_SOURCES = tests/cli/test-bench.c tests/small-model.h $(tests_program)
tests_cli_test_browse_SOURCES = tests/cli/test-browse.c $(tests_program)
tests_cli_test_configs_SOURCES = tests/cli/test-configs.c
tests/cli/test-cuda.o: kernels/module-number.h
tests_cli_test_cuda_SOURCES = tests/cli/test-cuda.c $(tests_program) tests/plugins/build.c tests/plugins/build.h
tests_cli_test_eval_SOURCES = tests/cli/test-eval.c $(tests_program)
tests_cli_test_infer_SOURCES = tests/cli/test-infer.c $(tests_program)
tests_cli_test_kill_SOURCES = tests/cli/test-kill.c tests/small-model.h $(tests_program)
tests_cli_test_messages_SOURCES = tests/cli/test-messages.c $(tests_program)
tests_cli_test_pipeline_SOURCES = tests/cli/test-pipeline.c $(tests_program)
tests_cli_test_plan_SOURCES = tests/cli/test-plan.c tests/small-model.h $(tests_program)
tests_cli_test_program_SOURCES = tests/cli/test-program.c $(tests_program)
tests_cli_test_run_config_SOURCES = tests/cli/test-run-config.c
tests_cli_test_schedule_SOURCES = tests/cli/test-schedule.c $(tests_program)
tests_cli_test_soak_SOURCES = tests/cli/test-soak.c tests/small-model.h $(tests_program)
tests_cli_test_strategies_SOURCES = tests/cli/test-strategies.c $(tests_program)
tests_cli_test_weights_SOURCES = tests/cli/test-weights.c $(tests_program)
