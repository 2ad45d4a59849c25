SCRIPT_RUNNER = tests/hooks/python.c tests/hooks/python.h

STEP_RUN = tests/hooks/step-run.c tests/hooks/step-run.h

check_PROGRAMS += \
  tests/hooks/test-early-stopping \
  tests/hooks/test-eval-hook \
  tests/hooks/test-check-invalid-loss \
  tests/hooks/test-eta \
  tests/hooks/test-memory-hooks \
  tests/hooks/test-profiler \
  tests/hooks/test-tensorboard-logger \
  tests/hooks/test-accumulation \
  tests/hooks/test-large-batch \
  tests/hooks/test-late-steps \
  tests/hooks/test-loss-scaler \
  tests/hooks/test-lr-policy \
  tests/hooks/test-lr-updater \
  tests/hooks/test-optimizer-hooks \
  tests/hooks/test-optimizer-resume \
  tests/hooks/test-text-logger

tests_hooks_test_accumulation_SOURCES = tests/hooks/test-accumulation.c tests/hooks/golden-accumulation.h \
  tests/hooks/run-length.h
tests_hooks_test_accumulation_LDADD = $(TEST_LIBS)
tests_hooks_test_large_batch_SOURCES = tests/hooks/test-large-batch.c $(SMALL_DETECTOR)
tests_hooks_test_large_batch_LDADD = $(TEST_LIBS)
tests_hooks_test_late_steps_SOURCES = tests/hooks/test-late-steps.c $(STEP_RUN) $(FAKE_TASK)
tests_hooks_test_late_steps_LDADD = $(TEST_LIBS)
tests_hooks_test_loss_scaler_SOURCES = tests/hooks/test-loss-scaler.c tests/hooks/golden-scalers.h \
  tests/hooks/run-length.h
tests_hooks_test_loss_scaler_LDADD = $(TEST_LIBS)
tests_hooks_test_eval_hook_SOURCES = tests/hooks/test-eval-hook.c $(FAKE_TASK)
tests_hooks_test_eval_hook_LDADD = $(TEST_LIBS)
tests_hooks_test_early_stopping_SOURCES = tests/hooks/test-early-stopping.c $(FAKE_TASK)
tests_hooks_test_early_stopping_LDADD = $(TEST_LIBS)
tests_hooks_test_lr_policy_SOURCES = tests/hooks/test-lr-policy.c
tests_hooks_test_lr_policy_LDADD = $(TEST_LIBS)
tests_hooks_test_lr_updater_SOURCES = tests/hooks/test-lr-updater.c tests/hooks/golden-schedules.h $(FAKE_TASK)
tests_hooks_test_lr_updater_LDADD = $(TEST_LIBS)
tests_hooks_test_optimizer_hooks_SOURCES = tests/hooks/test-optimizer-hooks.c $(STEP_RUN) $(FAKE_TASK)
tests_hooks_test_optimizer_hooks_LDADD = $(TEST_LIBS)
tests_hooks_test_optimizer_resume_SOURCES = tests/hooks/test-optimizer-resume.c $(STEP_RUN) $(FAKE_TASK)
tests_hooks_test_optimizer_resume_LDADD = $(TEST_LIBS)
tests_hooks_test_text_logger_SOURCES = tests/hooks/test-text-logger.c $(FAKE_TASK)
tests_hooks_test_text_logger_LDADD = $(TEST_LIBS)
tests_hooks_test_check_invalid_loss_SOURCES = tests/hooks/test-check-invalid-loss.c $(FAKE_TASK)
tests_hooks_test_check_invalid_loss_LDADD = $(TEST_LIBS)
tests_hooks_test_eta_SOURCES = tests/hooks/test-eta.c
tests_hooks_test_eta_LDADD = $(TEST_LIBS)
tests_hooks_test_memory_hooks_SOURCES = tests/hooks/test-memory-hooks.c $(FAKE_TASK)
tests_hooks_test_memory_hooks_LDADD = $(TEST_LIBS)
tests_hooks_test_profiler_SOURCES = tests/hooks/test-profiler.c $(SCRIPT_RUNNER) tests/tree.c tests/tree.h $(CHROME_TRACE) $(FAKE_TASK)
tests_hooks_test_profiler_LDADD = $(TEST_LIBS)
tests_hooks_test_tensorboard_logger_SOURCES = tests/hooks/test-tensorboard-logger.c $(SCRIPT_RUNNER) tests/tree.c tests/tree.h $(FAKE_TASK)
tests_hooks_test_tensorboard_logger_LDADD = $(TEST_LIBS)

EXTRA_DIST += tests/hooks/make-golden-schedules.py tests/hooks/make-golden-step.py
EXTRA_DIST += tests/hooks/check-tensorboard.py tests/hooks/check-trace.py
