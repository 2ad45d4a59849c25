#!/bin/sh
# Checks, as a TAP test, that what the documents at the top name is there: `file`, `file:function` and links.
cd "${1:-${G_TEST_SRCDIR:-.}}" || exit 1

{
  # shellcheck disable=SC2016 # backquotes of Markdown
  grep -ohE '`[a-z]+/[a-z0-9_/-]+\.[a-z]+(:[a-z0-9_]+)?`' README.md CONTRIBUTING.md | tr -d '`'
  grep -ohE '\]\([^)#:]+\)' README.md CONTRIBUTING.md | sed 's/^](\(.*\))$/\1/'
} | LC_ALL=C sort -u | {
  n=0
  status=0
  while IFS=: read -r file function; do
    n=$((n + 1))
    if [ -e "$file" ] && { [ -z "$function" ] || grep -q "^$function (" "$file"; }; then
      echo "ok $n - $file${function:+:$function}"
    else
      echo "not ok $n - $file${function:+:$function} is not there"
      status=1
    fi
  done
  echo "1..$n"
  exit $status
}
