# RN_CUDA: --with-cuda=check|yes|no|DIR, --with-cuda-arch=LIST.
#
# Looks for what the module of the CUDA device needs: nvcc 12.2, the CUDA runtime, cuDNN 9.8, and a C++
# compiler. Sets the conditional HAVE_CUDA, NVCC, CUDA_CFLAGS, CUDA_LIBS, CUDA_RPATH, CUDA_ARCH (as
# --with-cuda-arch takes it), CUDA_GENCODE and NVCC_SEED (for nvcc), CUDA_CONFIGURE (for a build
# like this one), CUDA_SUMMARY and rn_cuda (for the summary).
#
# The program itself needs none of it: RN_CUDA defines nothing in config.h.
AC_DEFUN([RN_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=check|yes|no|DIR@:>@],
      [build the module of the CUDA device (DIR: where the toolkit is installed) @<:@check@:>@])],
    [], [with_cuda=check])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
      [compute capabilities that the kernels are compiled for, such as 75,90; ptx90 adds code that later
       devices translate @<:@75,80,90,100,120,ptx90@:>@])],
    [], [with_cuda_arch=default])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags, such as -ccbin g++-12])
  rn_cuda=no
  rn_have_cuda=no
  CUDA_CFLAGS= CUDA_LIBS= CUDA_RPATH= CUDA_ARCH= CUDA_GENCODE= NVCC_SEED=
  AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda],
      [check|yes], [rn_cuda_dir=${CUDA_HOME:-/usr/local/cuda}],
      [rn_cuda_dir=$with_cuda])
    AS_CASE([$with_cuda],
      [check|yes], [],
      [AS_IF([test ! -d "$with_cuda"],
         [AC_MSG_ERROR([--with-cuda=$with_cuda: there is no such folder; what works: --with-cuda, or the folder of the toolkit])])])
    rn_cuda_missing=
    AC_PATH_PROG([NVCC], [nvcc], [], [$rn_cuda_dir/bin:$PATH])
    AS_IF([test -n "$NVCC"], [_RN_CUDA_NVCC_VERSION], [rn_cuda_missing="$rn_cuda_missing nvcc"])
    _RN_CUDA_LIBRARIES
    AC_LANG_PUSH([C++])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[template <typename T> T twice (T x) { return x + x; }]],
                                       [[return twice (0);]])],
      [], [rn_cuda_missing="$rn_cuda_missing, a C++ compiler"])
    AC_LANG_POP([C++])
    rn_cuda_missing=`AS_ECHO(["$rn_cuda_missing"]) | sed -e 's/^,* *//'`
    AS_IF([test -z "$rn_cuda_missing"], [_RN_CUDA_GENCODE
        rn_have_cuda=yes
        rn_cuda="nvcc $rn_nvcc_version, cuDNN $rn_cudnn_version, for $CUDA_ARCH"],
      [test "x$with_cuda" != xcheck],
      [AC_MSG_ERROR([--with-cuda: missing: $rn_cuda_missing (looked in $rn_cuda_dir; CPPFLAGS and LDFLAGS name other folders)])],
      [rn_cuda="no (missing: $rn_cuda_missing)"])
  ])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([CUDA_RPATH])
  AC_SUBST([CUDA_ARCH])
  AC_SUBST([CUDA_GENCODE])
  AC_SUBST([NVCC_SEED])
  AS_IF([test $rn_have_cuda = yes],
    [CUDA_CONFIGURE="--with-cuda=$rn_cuda_dir --with-cuda-arch=$CUDA_ARCH"], [CUDA_CONFIGURE=--without-cuda])
  AC_SUBST([CUDA_CONFIGURE])
  AC_SUBST([CUDA_SUMMARY], [$rn_cuda])
  AM_CONDITIONAL([HAVE_CUDA], [test $rn_have_cuda = yes])
])

# 12.2 is the first with what the kernels use, and with what cuDNN 9 is made for. What the C compiler goes
# through for its cache is good for nvcc too.
AC_DEFUN([_RN_CUDA_NVCC_VERSION], [
  AC_MSG_CHECKING([the version of nvcc])
  rn_nvcc_version=`$NVCC --version 2> /dev/null | sed -n 's/.*release \([[0-9]]*\.[[0-9]]*\).*/\1/p'`
  AC_MSG_RESULT([${rn_nvcc_version:-unknown}])
  AS_VERSION_COMPARE([${rn_nvcc_version:-0}], [12.2],
    [rn_cuda_missing="$rn_cuda_missing, nvcc 12.2 (found ${rn_nvcc_version:-none that works})"])
  # The names that it makes up are of a seed; older ones leave that to the host compiler.
  AS_IF([$NVCC --help 2> /dev/null | grep -e --frandom-seed > /dev/null],
    [NVCC_SEED=-frandom-seed=], [NVCC_SEED=--compiler-options=-frandom-seed=])
  AS_CASE([$CC], [ccache\ *|*/ccache\ *], [AS_CASE([$NVCC], [*ccache*], [], [NVCC="${CC%% *} $NVCC"])])
])

# Headers and libraries: those of the compiler's own folders and of CPPFLAGS and LDFLAGS, then of the toolkit.
# CUDA_RPATH lets the module find libraries that are outside of the folders that the loader looks in.
AC_DEFUN([_RN_CUDA_LIBRARIES], [
  rn_save_CPPFLAGS=$CPPFLAGS
  rn_save_LDFLAGS=$LDFLAGS
  AS_IF([test -f "$rn_cuda_dir/include/cuda_runtime_api.h"], [CUDA_CFLAGS="-isystem $rn_cuda_dir/include"])
  CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"
  AC_CHECK_HEADER([cuda_runtime_api.h], [], [rn_cuda_missing="$rn_cuda_missing, cuda_runtime_api.h"])
  for rn_dir in lib64 lib targets/x86_64-linux/lib; do
    AS_IF([test -f "$rn_cuda_dir/$rn_dir/libcudart.so"],
      [CUDA_LIBS="-L$rn_cuda_dir/$rn_dir" CUDA_RPATH="-Wl,--enable-new-dtags,-rpath,$rn_cuda_dir/$rn_dir"
       break])
  done
  LDFLAGS="$LDFLAGS $CUDA_LIBS"
  AC_CHECK_LIB([cudart], [cudaGetDeviceCount], [:], [rn_cuda_missing="$rn_cuda_missing, libcudart"])
  rn_cudnn_version=none
  AC_CHECK_HEADER([cudnn.h], [
    AC_MSG_CHECKING([the version of cuDNN])
    AC_COMPUTE_INT([rn_cudnn_major], [CUDNN_MAJOR], [[#include <cudnn.h>]], [rn_cudnn_major=0])
    AC_COMPUTE_INT([rn_cudnn_minor], [CUDNN_MINOR], [[#include <cudnn.h>]], [rn_cudnn_minor=0])
    rn_cudnn_version=$rn_cudnn_major.$rn_cudnn_minor
    AC_MSG_RESULT([$rn_cudnn_version])
    AS_VERSION_COMPARE([$rn_cudnn_version], [9.8],
      [rn_cuda_missing="$rn_cuda_missing, cuDNN 9.8 (cudnn.h is of $rn_cudnn_version)"])
  ], [rn_cuda_missing="$rn_cuda_missing, cudnn.h"])
  AC_CHECK_LIB([cudnn], [cudnnBackendCreateDescriptor], [:], [rn_cuda_missing="$rn_cuda_missing, libcudnn"])
  CUDA_LIBS="$CUDA_LIBS -lcudnn -lcudart"
  CPPFLAGS=$rn_save_CPPFLAGS
  LDFLAGS=$rn_save_LDFLAGS
])

# Code for an architecture runs on the later ones of the same generation, so that five are enough; compute_90
# is for what comes after them. What nvcc does not know is left out.
AC_DEFUN([_RN_CUDA_GENCODE], [
  AS_CASE([$with_cuda_arch],
    [default|yes], [rn_archs="75 80 90 100 120 ptx90"],
    [rn_archs=`AS_ECHO(["$with_cuda_arch"]) | tr ',' ' '`])
  rn_known=" "`$NVCC --list-gpu-code 2> /dev/null | tr '\n' ' '``$NVCC --list-gpu-arch 2> /dev/null | tr '\n' ' '`
  for rn_arch in $rn_archs; do
    rn_number=`AS_ECHO(["$rn_arch"]) | sed -e 's/^ptx//'`
    AS_CASE([$rn_number], [*@<:@!0-9@:>@*],
      [AC_MSG_ERROR([--with-cuda-arch: "$rn_arch" is no compute capability; what works: 75,80,90 or ptx90])])
    rn_virtual=compute_$rn_number
    AS_CASE([$rn_arch], [ptx*], [rn_code=$rn_virtual], [rn_code=sm_$rn_number])
    AS_CASE([$rn_known],
      [*" $rn_code "*], [
        CUDA_GENCODE="$CUDA_GENCODE -gencode arch=$rn_virtual,code=$rn_code"
        CUDA_ARCH="$CUDA_ARCH${CUDA_ARCH:+,}$rn_arch"],
      [AC_MSG_WARN([nvcc $rn_nvcc_version does not know $rn_code: left out])])
  done
  AS_IF([test -z "$CUDA_ARCH"],
    [AC_MSG_ERROR([--with-cuda-arch: nvcc $rn_nvcc_version knows none of $rn_archs])])
])
