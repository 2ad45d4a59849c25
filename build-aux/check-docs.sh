#!/bin/sh
# Checks, as a TAP test, that what the documents name is there: `file`, `file:function`, links, and the commands
# of the program. In the guide, files of the reader's own ("mine", and folders that the tree has not) are left out.
cd "${1:-${G_TEST_SRCDIR:-.}}" || exit 1

top="README.md CONTRIBUTING.md"
all="$top $(find docs -name '*.md' | LC_ALL=C sort)"

names () # FILE...: `folder/file.c` and `folder/file.c:function` of their texts
{
  # shellcheck disable=SC2016 # backquotes of Markdown
  grep -ohE '`[a-z]+/[a-z0-9_/-]+\.[a-z]+(:[a-z0-9_]+)?`' "$@" | tr -d '`'
}

links () # FILE: the paths of its links, from here
{
  grep -ohE '\]\([^)#:]+\)' "$1" | sed "s|^](\(.*\))\$|$(dirname "$1")/\1|; s|^\./||"
}

commands () # FILE...: "runner train" wherever a text or a block of code has it
{
  # shellcheck disable=SC2016
  grep -ohE '(^|`)runner [a-z][a-z-]*' "$@" | tr -d '`'
}

{
  # shellcheck disable=SC2086 # lists of names without spaces
  {
    names $top
    names docs/*.md docs/guide/*.md | grep -v mine | while IFS=/ read -r folder rest; do
      [ ! -d "$folder" ] || echo "$folder/$rest"
    done
    for file in $all; do links "$file"; done
    commands $all
    for folder in examples/*/; do echo "${folder}Makefile"; done # and in a fresh clone too
  }
} | LC_ALL=C sort -u | {
  n=0
  status=0
  while IFS=: read -r file function; do
    n=$((n + 1))
    case $file in
      "runner "*) grep -q "^  { \"${file#runner }\"," runner/cli/main.c ;;
      *) [ -e "$file" ] && { [ -z "$function" ] || grep -q "^$function (" "$file"; } ;;
    esac
    # shellcheck disable=SC2181 # of either branch
    if [ $? -eq 0 ]; then
      echo "ok $n - $file${function:+:$function}"
    else
      echo "not ok $n - $file${function:+:$function} is not there"
      status=1
    fi
  done
  echo "1..$n"
  exit $status
}
