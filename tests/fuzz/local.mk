check_PROGRAMS += tests/fuzz/test-mutations tests/fuzz/test-programs

tests_fuzz_harnesses = \
  tests/fuzz/check.c \
  tests/fuzz/fuzz-cache.c \
  tests/fuzz/fuzz-config.c \
  tests/fuzz/fuzz-exif.c \
  tests/fuzz/fuzz-image.c \
  tests/fuzz/fuzz-list.c \
  tests/fuzz/fuzz-log.c \
  tests/fuzz/fuzz-pickle.c \
  tests/fuzz/fuzz-record.c \
  tests/fuzz/fuzz-safetensors.c \
  tests/fuzz/fuzz-weights.c \
  tests/fuzz/fuzz-xml.c \
  tests/fuzz/fuzz.h \
  tests/fuzz/mutate.c \
  tests/fuzz/readers.c \
  tests/fuzz/readers.h

EXTRA_DIST += \
  tests/fuzz/corpus/cache/names-cut-off \
  tests/fuzz/corpus/config/base-of-an-open-file \
  tests/fuzz/corpus/config/letters-of-webp \
  tests/fuzz/corpus/config/reference-over-lines \
  tests/fuzz/corpus/log/names-that-act \
  tests/fuzz/seeds/detector-old.pth \
  tests/fuzz/seeds/detector.pkl \
  tests/fuzz/seeds/detector.pth \
  tests/fuzz/seeds/make-seeds.py \
  tests/fuzz/seeds/plain-old.pth \
  tests/fuzz/seeds/plain.pkl \
  tests/fuzz/seeds/plain.pth \
  tests/fuzz/seeds/values-2.pkl \
  tests/fuzz/seeds/values-4.pkl \
  tests/fuzz/seeds/values-5.pkl

tests_fuzz_test_mutations_SOURCES = tests/fuzz/test-mutations.c $(tests_fuzz_harnesses)
tests_fuzz_test_mutations_LDADD = $(TEST_LIBS)
tests_fuzz_test_programs_SOURCES = tests/fuzz/test-programs.c tests/fuzz/bad-files.c tests/fuzz/bad-files.h \
  $(tests_program)
tests_fuzz_test_programs_LDADD = $(TEST_LIBS)

# Driven by libFuzzer; only `make fuzz` builds it, with Clang and in a build of its own.
EXTRA_PROGRAMS += tests/fuzz/fuzz
tests_fuzz_fuzz_SOURCES = tests/fuzz/fuzz.c $(tests_fuzz_harnesses)
tests_fuzz_fuzz_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_LDADD = $(TEST_LIBS)

# Each reader for FUZZ_SECONDS; what it finds is left in fuzz-build/found/.
FUZZ_SECONDS = 60
FUZZ_READERS = xml jpeg png exif config override list cache safetensors record weights pickle log
FUZZ_FLAGS = -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=5 -max_len=16384 -print_final_stats=1
fuzz:
	$(MKDIR_P) fuzz-build/found
	cd fuzz-build && { test -f Makefile || CC=clang '$(abs_srcdir)/configure' -q \
	  --enable-sanitizers=fuzzer-no-link,address,undefined CFLAGS='-g -O1'; }
	cd fuzz-build && $(MAKE) $(AM_MAKEFLAGS) tests/fuzz/fuzz
	cd fuzz-build && for reader in $(FUZZ_READERS); do \
	  $(MKDIR_P) corpus/$$reader && cp '$(abs_srcdir)'/tests/fuzz/corpus/$$reader/* corpus/$$reader/ 2> /dev/null; \
	  G_TEST_SRCDIR='$(abs_srcdir)' tests/fuzz/fuzz --reader=$$reader --seeds=corpus/$$reader $(FUZZ_FLAGS) \
	    -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=found/$$reader- corpus/$$reader || exit 1; \
	done
.PHONY: fuzz
