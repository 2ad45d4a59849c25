#!/bin/sh
# Program and library need no CUDA library, and the module shows one symbol, as a TAP test.
build=${G_TEST_BUILDDIR:-.}
status=0
if ! readelf -d "$build/.libs/librunner-1.so" > /dev/null 2>&1; then
  echo "1..0 # SKIP no readelf, or no shared library"
  exit 0
fi
for file in runner/.libs/runner .libs/librunner-1.so; do
  needed=$(readelf -d "$build/$file" | grep NEEDED | grep -i -E 'cud|nv')
  if [ -z "$needed" ]; then echo "ok - $file needs no CUDA library"; else
    printf '%s\n' "$needed" | sed 's/^/# /'
    echo "not ok - $file needs a CUDA library"
    status=1
  fi
done
if [ -f "$build/.libs/runner-cuda-1.so" ]; then
  shown=$(nm -D --defined-only "$build/.libs/runner-cuda-1.so" | awk '{ print $3 }')
  if [ "$shown" = rn_cuda_module ]; then echo "ok - the module shows rn_cuda_module alone"; else
    echo "# $shown" | tr '\n' ' '
    echo
    echo "not ok - the module shows rn_cuda_module alone"
    status=1
  fi
else
  echo "ok - the module shows rn_cuda_module alone # SKIP it was not built"
fi
echo "1..3"
exit $status
