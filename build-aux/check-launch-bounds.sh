#!/bin/sh
# Every kernel of the CUDA device says how many threads a block of it has at most, as a TAP test: without
# RN_BOUNDS the compiler may take so many registers that a launch fails on some device. (nvcc's own warning does
# not see the bounds of templates.)
#
#   check-launch-bounds.sh [TOP]      (TOP: the source tree, default $G_TEST_SRCDIR, then .)
cd "${1:-${G_TEST_SRCDIR:-.}}" || exit 1
files=$(find kernels/cuda -name '*.cu' -o -name '*.cuh' | LC_ALL=C sort)

# Prints FILE:LINE of each kernel without, then the number of all kernels.
list () {
  awk '
    # Comments, of one line or more, become spaces.
    FNR == 1 { in_comment = 0; waiting = "" }
    {
      line = $0
      text = ""
      while (line != "") {
        if (in_comment) {
          end = index (line, "*/")
          if (!end) break
          line = substr (line, end + 2)
          in_comment = 0
        } else {
          start = index (line, "/*")
          text = text " " (start ? substr (line, 1, start - 1) : line)
          line = start ? substr (line, start + 2) : ""
          in_comment = start > 0
        }
      }
      sub (/\/\/.*/, "", text)
      n = split (text, words, /[ \t]+/)
      for (i = 1; i <= n; i++) {
        if (words[i] == "") continue
        if (waiting != "" && words[i] == "void") continue
        if (waiting != "" && words[i] !~ /^RN_BOUNDS/) print waiting
        waiting = ""
        if (words[i] ~ /__global__/) {
          kernels++
          waiting = FILENAME ":" FNR
        }
      }
    }
    END { print kernels + 0 }' "$@"
}

echo 1..2
# shellcheck disable=SC2086 # file names have no spaces
found=$(list $files)
n=$(printf '%s\n' "$found" | tail -n 1)
if [ "$found" = "$n" ] && [ "$n" -gt 0 ]; then echo "ok 1 - $n kernels have launch bounds"; else
  printf '%s\n' "$found" | sed '$d; s/$/: a kernel without RN_BOUNDS/; s/^/# /'
  echo "not ok 1 - kernels have launch bounds"
fi

planted=$(printf '%s\n' '/* __global__ void in_a_comment' ' */ __global__ void RN_BOUNDS (64) a ();' \
  'template <typename T>' '__global__ void' 'without (T *x);' \
  'static __global__ void' '  RN_BOUNDS (32) b ();' | list | tr '\n' ' ')
if printf '%s' "$planted" | grep -q '^[^ ]*:4 3 $'; then echo "ok 2 - one without is found"; else
  echo "# found: $planted"
  echo "not ok 2 - one without is found"
fi
