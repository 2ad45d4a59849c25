#!/bin/sh
# Compares what librunner-1 exports with tests/abi/symbols.txt, as a TAP test: a function of the list must stay,
# and a new one of <runner/hook.h> and the headers it includes must be added to the list (and RN_HOOK_ABI_MINOR
# counted up after a release). Functions of <runner/engine.h> may come and go.
src=${G_TEST_SRCDIR:-.}
list=$src/tests/abi/symbols.txt
library=${G_TEST_BUILDDIR:-.}/.libs/librunner-1.so

if ! nm -D "$library" > /dev/null 2>&1; then
  echo "1..0 # SKIP no nm, or no shared library"
  exit 0
fi

exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TRDB]/ { print $3 }' | grep '^rn_' | LC_ALL=C sort -u)
status=0

result () # NUMBER DESCRIPTION NAMES: the test passes when there are no names
{
  if [ -z "$3" ]; then
    echo "ok $1 - $2"
  else
    for name in $3; do echo "# $name"; done
    echo "not ok $1 - $2"
    status=1
  fi
}

missing=
while read -r name; do
  printf '%s\n' "$exported" | grep -qx "$name" || missing="$missing $name"
done < "$list"

new=
for name in $exported; do
  grep -qx "$name" "$list" || grep -q "[ *]$name (" "$src/runner/engine.h" || [ "$name" = rn_cli_main ] \
    || new="$new $name"
done

undocumented=
while read -r name; do
  grep -q "\`$name\`" "$src/docs/hooks.md" || undocumented="$undocumented $name"
done < "$list"

echo "1..3"
result 1 "nothing of tests/abi/symbols.txt is gone" "$missing"
result 2 "nothing is exported that is not in tests/abi/symbols.txt or engine.h" "$new"
result 3 "docs/hooks.md has every function" "$undocumented"
exit $status
