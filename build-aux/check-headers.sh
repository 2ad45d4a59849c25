#!/bin/sh
# Compiles each public header alone, as pedantic C11 and as C++17, as a TAP test.
# `make check` sets RN_TEST_HEADERS (the list), RN_TEST_CC and RN_TEST_CPPFLAGS.
#
# GLib's headers count as system headers: their pedantry is not ours.
flags=$(printf '%s' "$RN_TEST_CPPFLAGS" | sed 's|-I *\(/usr/[^ ]*\)|-isystem \1|g')
n=0
status=0

compile () { # DESCRIPTION COMMAND...
  description=$1
  shift
  n=$((n + 1))
  # shellcheck disable=SC2086 # flags are several words
  if output=$(printf '#include <%s>\nextern int not_empty;\n' "$header" \
      | "$@" $flags -fsyntax-only -Wall -Wextra -Wpedantic -Werror - 2>&1); then
    echo "ok $n - <$header> as $description"
  else
    printf '%s\n' "$output" | sed 's/^/# /'
    echo "not ok $n - <$header> as $description"
    status=1
  fi
}

# shellcheck disable=SC2086 # a list
set -- $RN_TEST_HEADERS
echo "1..$(($# * 2))"
for header; do
  # shellcheck disable=SC2086 # CC may hold options
  compile C11 ${RN_TEST_CC:-cc} -x c -std=c11
  if ${CXX:-c++} --version > /dev/null 2>&1; then
    # shellcheck disable=SC2086
    compile C++17 ${CXX:-c++} -x c++ -std=c++17
  else
    n=$((n + 1))
    echo "ok $n - <$header> as C++17 # SKIP no C++ compiler"
  fi
done
exit $status
