FAKE_TASK = tests/runner/fake-task.c tests/runner/fake-task.h
SMALL_DETECTOR = tests/runner/small-detector.c tests/runner/small-detector.h tests/tree.c tests/tree.h
CHROME_TRACE = tests/runner/chrome-trace.c tests/runner/chrome-trace.h

check_PROGRAMS += \
  tests/runner/test-activations \
  tests/runner/test-auto-scale-lr \
  tests/runner/test-batches \
  tests/runner/test-browse \
  tests/runner/test-budget \
  tests/runner/test-checkpoints \
  tests/runner/test-ema \
  tests/runner/test-fp16 \
  tests/runner/test-hook-calls \
  tests/runner/test-hostile-states \
  tests/runner/test-late-losses \
  tests/runner/test-log-buffer \
  tests/runner/test-non-finite \
  tests/runner/test-optimizer \
  tests/runner/test-record \
  tests/runner/test-report \
  tests/runner/test-resume \
  tests/runner/test-resume-config \
  tests/runner/test-resume-matrix \
  tests/runner/test-run-history \
  tests/runner/test-runner \
  tests/runner/test-safetensors \
  tests/runner/test-save-faults \
  tests/runner/test-schedule-preview \
  tests/runner/test-step-order \
  tests/runner/test-strategies \
  tests/runner/test-strategy-pairs \
  tests/runner/test-training \
  tests/runner/test-task-tensors \
  tests/runner/test-update \
  tests/runner/test-update-in-backward \
  tests/runner/test-val-loss \
  tests/runner/test-workflow

tests_runner_test_activations_SOURCES = tests/runner/test-activations.c tests/batch-image.h $(SMALL_DETECTOR) \
  tests/graph/interpreter.c tests/graph/interpreter.h tests/models/fixture.c tests/models/fixture.h
tests_runner_test_activations_LDADD = $(TEST_LIBS)
tests_runner_test_auto_scale_lr_SOURCES = tests/runner/test-auto-scale-lr.c $(SMALL_DETECTOR)
tests_runner_test_auto_scale_lr_LDADD = $(TEST_LIBS)
tests_runner_test_batches_SOURCES = tests/runner/test-batches.c $(FAKE_TASK)
tests_runner_test_batches_LDADD = $(TEST_LIBS)
tests_runner_test_browse_SOURCES = tests/runner/test-browse.c tests/tree.c tests/tree.h
tests_runner_test_browse_LDADD = $(TEST_LIBS)
tests_runner_test_budget_SOURCES = tests/runner/test-budget.c tests/small-model.h
tests_runner_test_budget_LDADD = $(TEST_LIBS)
tests_runner_test_checkpoints_SOURCES = tests/runner/test-checkpoints.c $(FAKE_TASK)
tests_runner_test_checkpoints_LDADD = $(TEST_LIBS)
tests_runner_test_ema_SOURCES = tests/runner/test-ema.c $(FAKE_TASK) $(SMALL_DETECTOR)
tests_runner_test_ema_LDADD = $(TEST_LIBS)
tests_runner_test_fp16_SOURCES = tests/runner/test-fp16.c $(FAKE_TASK) $(SMALL_DETECTOR)
tests_runner_test_fp16_LDADD = $(TEST_LIBS)
tests_runner_test_hook_calls_SOURCES = tests/runner/test-hook-calls.c $(FAKE_TASK)
tests_runner_test_hook_calls_LDADD = $(TEST_LIBS)
tests_runner_test_hostile_states_SOURCES = tests/runner/test-hostile-states.c $(FAKE_TASK)
tests_runner_test_hostile_states_LDADD = $(TEST_LIBS)
tests_runner_test_late_losses_SOURCES = tests/runner/test-late-losses.c $(FAKE_TASK)
tests_runner_test_late_losses_LDADD = $(TEST_LIBS)
tests_runner_test_log_buffer_SOURCES = tests/runner/test-log-buffer.c
tests_runner_test_log_buffer_LDADD = $(TEST_LIBS)
tests_runner_test_non_finite_SOURCES = tests/runner/test-non-finite.c tests/small-model.h tests/tree.c tests/tree.h $(CHROME_TRACE)
tests_runner_test_non_finite_LDADD = $(TEST_LIBS)
tests_runner_test_optimizer_SOURCES = tests/runner/test-optimizer.c
tests_runner_test_optimizer_LDADD = $(TEST_LIBS)
tests_runner_test_record_SOURCES = tests/runner/test-record.c
tests_runner_test_record_LDADD = $(TEST_LIBS)
tests_runner_test_report_SOURCES = tests/runner/test-report.c tests/tree.c tests/tree.h
tests_runner_test_report_LDADD = $(TEST_LIBS)
tests_runner_test_resume_config_SOURCES = tests/runner/test-resume-config.c $(FAKE_TASK)
tests_runner_test_resume_config_LDADD = $(TEST_LIBS)
tests_runner_test_resume_SOURCES = tests/runner/test-resume.c $(FAKE_TASK)
tests_runner_test_resume_LDADD = $(TEST_LIBS)
tests_runner_test_run_history_SOURCES = tests/runner/test-run-history.c $(FAKE_TASK)
tests_runner_test_run_history_LDADD = $(TEST_LIBS)
tests_runner_test_resume_matrix_SOURCES = tests/runner/test-resume-matrix.c $(FAKE_TASK) $(SMALL_DETECTOR)
tests_runner_test_resume_matrix_LDADD = $(TEST_LIBS)
tests_runner_test_runner_SOURCES = tests/runner/test-runner.c $(FAKE_TASK)
tests_runner_test_runner_LDADD = $(TEST_LIBS)
tests_runner_test_safetensors_SOURCES = tests/runner/test-safetensors.c
tests_runner_test_safetensors_LDADD = $(TEST_LIBS)
tests_runner_test_save_faults_SOURCES = tests/runner/test-save-faults.c $(FAKE_TASK)
tests_runner_test_save_faults_LDADD = $(TEST_LIBS)
tests_runner_test_schedule_preview_SOURCES = tests/runner/test-schedule-preview.c \
  tests/hooks/golden-schedules.h
tests_runner_test_schedule_preview_LDADD = $(TEST_LIBS)
tests_runner_test_strategies_SOURCES = tests/runner/test-strategies.c $(SMALL_DETECTOR)
tests_runner_test_strategies_LDADD = $(TEST_LIBS)
tests_runner_test_strategy_pairs_SOURCES = tests/runner/test-strategy-pairs.c $(SMALL_DETECTOR)
tests_runner_test_strategy_pairs_LDADD = $(TEST_LIBS)
tests_runner_test_training_SOURCES = tests/runner/test-training.c tests/small-model.h tests/tree.c tests/tree.h $(FAKE_TASK)
tests_runner_test_training_LDADD = $(TEST_LIBS)
tests_runner_test_task_tensors_SOURCES = tests/runner/test-task-tensors.c tests/runner/stepper.c tests/runner/stepper.h \
  $(SMALL_DETECTOR)
tests_runner_test_task_tensors_LDADD = $(TEST_LIBS)
tests_runner_test_step_order_SOURCES = tests/runner/test-step-order.c tests/models/fixture.c tests/models/fixture.h
tests_runner_test_step_order_LDADD = $(TEST_LIBS)
tests_runner_test_update_in_backward_SOURCES = tests/runner/test-update-in-backward.c \
  tests/runner/stepper.c tests/runner/stepper.h $(SMALL_DETECTOR)
tests_runner_test_update_in_backward_LDADD = $(TEST_LIBS)
tests_runner_test_update_SOURCES = tests/runner/test-update.c tests/runner/stepper.c tests/runner/stepper.h \
  $(SMALL_DETECTOR)
tests_runner_test_update_LDADD = $(TEST_LIBS)
tests_runner_test_val_loss_SOURCES = tests/runner/test-val-loss.c tests/small-model.h tests/tree.c tests/tree.h
tests_runner_test_val_loss_LDADD = $(TEST_LIBS)
tests_runner_test_workflow_SOURCES = tests/runner/test-workflow.c $(FAKE_TASK)
tests_runner_test_workflow_LDADD = $(TEST_LIBS)

# Built and run by `make bench` only.
EXTRA_PROGRAMS += tests/runner/bench-hooks
tests_runner_bench_hooks_SOURCES = tests/runner/bench-hooks.c tests/tree.c tests/tree.h $(FAKE_TASK)
tests_runner_bench_hooks_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/runner/test-host-memory
tests_runner_test_host_memory_SOURCES = tests/runner/test-host-memory.c tests/models/fixture.c tests/models/fixture.h
tests_runner_test_host_memory_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/runner/test-momentum
tests_runner_test_momentum_SOURCES = tests/runner/test-momentum.c tests/runner/stepper.c tests/runner/stepper.h \
  $(SMALL_DETECTOR)
tests_runner_test_momentum_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/runner/test-device-profile
tests_runner_test_device_profile_SOURCES = tests/runner/test-device-profile.c tests/tree.c tests/tree.h
tests_runner_test_device_profile_LDADD = $(TEST_LIBS)
