#!/bin/sh
# The programs for real devices where there is none, or where none may be seen: one line that says so, nothing
# else, and 3. They must not pass, and they must not skip.
set -u
build=${G_TEST_BUILDDIR:-.}
programs='check-kernels check-values check-training bench-kernels'
export RN_CUDA_MODULE="$build/.libs/runner-cuda-1.so" CUDA_VISIBLE_DEVICES=

if PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -q 'libcuda\.so\.1'; then
  want='CUDA: there is no device, or CUDA_VISIBLE_DEVICES= hides it'
else
  want='CUDA: no NVIDIA driver is installed'
fi

echo 1..4
n=0
for program in $programs; do
  n=$((n + 1))
  said=$("$build/tests/gpu/$program" 2>&1)
  code=$?
  if [ "$code" -eq 3 ] && [ "$said" = "$want" ]; then
    echo "ok $n $program"
  else
    echo "# exit code $code, 3 expected; it said: $said"
    echo "not ok $n $program"
  fi
done
