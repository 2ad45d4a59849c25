# RN_CUDA: --with-cuda=check|yes|no|DIR.
#
# Looks for what the CUDA device module needs: nvcc, the CUDA runtime and cuDNN. This release has no such
# module, so the outcome is only reported. Sets rn_cuda for the summary.
AC_DEFUN([RN_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=check|yes|no|DIR@:>@],
      [look for the CUDA toolkit (DIR: where it is installed) @<:@check@:>@])],
    [], [with_cuda=check])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  rn_cuda=no
  AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda],
      [check|yes], [rn_cuda_dir=${CUDA_HOME:-/usr/local/cuda}],
      [rn_cuda_dir=$with_cuda])
    AC_PATH_PROG([NVCC], [nvcc], [], [$rn_cuda_dir/bin:$PATH])
    rn_save_CPPFLAGS=$CPPFLAGS
    rn_save_LDFLAGS=$LDFLAGS
    AS_IF([test -d "$rn_cuda_dir/include"], [CPPFLAGS="$CPPFLAGS -I$rn_cuda_dir/include"])
    AS_IF([test -d "$rn_cuda_dir/lib64"], [LDFLAGS="$LDFLAGS -L$rn_cuda_dir/lib64"])
    rn_cuda_missing=
    AS_IF([test -z "$NVCC"], [rn_cuda_missing="$rn_cuda_missing nvcc"])
    AC_CHECK_HEADER([cuda_runtime_api.h], [], [rn_cuda_missing="$rn_cuda_missing cuda_runtime_api.h"])
    AC_CHECK_LIB([cudart], [cudaGetDeviceCount], [:], [rn_cuda_missing="$rn_cuda_missing libcudart"])
    AC_CHECK_HEADER([cudnn.h], [], [rn_cuda_missing="$rn_cuda_missing cudnn.h"])
    CPPFLAGS=$rn_save_CPPFLAGS
    LDFLAGS=$rn_save_LDFLAGS
    AS_IF([test -z "$rn_cuda_missing"],
      [rn_cuda="toolkit found; this release has no CUDA device module"],
      [test "x$with_cuda" != xcheck],
      [AC_MSG_ERROR([--with-cuda: not found:$rn_cuda_missing (looked in $rn_cuda_dir)])],
      [rn_cuda="no (missing:$rn_cuda_missing)"])
  ])
])
