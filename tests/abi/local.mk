check_PROGRAMS += tests/abi/test-abi
check_SCRIPTS += build-aux/check-abi.sh

tests_abi_test_abi_SOURCES = tests/abi/test-abi.c $(plugins_program)
EXTRA_DIST += tests/abi/plugin-1.0.c tests/abi/symbols.txt
