# RN_ONEDNN: --with-onednn=check|yes|no.
#
# Debian 12's oneDNN (2.6) has no .pc file, so the header and the library decide. Sets the conditional and the
# define HAVE_ONEDNN, ONEDNN_CFLAGS, ONEDNN_LIBS and, for the summary, rn_onednn.
AC_DEFUN([RN_ONEDNN], [
  AC_ARG_WITH([onednn],
    [AS_HELP_STRING([--with-onednn@<:@=check|yes|no@:>@],
      [fast CPU kernels; without them only the plain C ones are built @<:@check@:>@])],
    [], [with_onednn=check])
  rn_onednn=no
  AS_IF([test "x$with_onednn" != xno], [
    PKG_CHECK_MODULES([ONEDNN], [dnnl], [rn_onednn=yes], [
      AC_CHECK_HEADER([dnnl.h],
        [AC_CHECK_LIB([dnnl], [dnnl_primitive_create], [rn_onednn=yes ONEDNN_LIBS=-ldnnl])])])
    AS_IF([test $rn_onednn = yes], [
      AC_MSG_CHECKING([the version of oneDNN])
      rn_save_CPPFLAGS=$CPPFLAGS
      CPPFLAGS="$CPPFLAGS $ONEDNN_CFLAGS"
      AC_COMPUTE_INT([rn_onednn_major], [DNNL_VERSION_MAJOR], [[#include <dnnl.h>]], [rn_onednn_major=0])
      AC_COMPUTE_INT([rn_onednn_minor], [DNNL_VERSION_MINOR], [[#include <dnnl.h>]], [rn_onednn_minor=0])
      CPPFLAGS=$rn_save_CPPFLAGS
      AC_MSG_RESULT([$rn_onednn_major.$rn_onednn_minor])
      AS_IF([test $rn_onednn_major -eq 2 && test $rn_onednn_minor -ge 6 || test $rn_onednn_major -eq 3],
        [AC_DEFINE([HAVE_ONEDNN], [1], [Define to 1 to build the oneDNN kernels.])
         rn_onednn=$rn_onednn_major.$rn_onednn_minor],
        [rn_onednn=no])])
    AS_IF([test "x$with_onednn" = xyes && test $rn_onednn = no],
      [AC_MSG_ERROR([--with-onednn: no oneDNN 2.6 to 3.x (dnnl.h, libdnnl) found])])
  ])
  AC_SUBST([ONEDNN_CFLAGS])
  AC_SUBST([ONEDNN_LIBS])
  AM_CONDITIONAL([HAVE_ONEDNN], [test $rn_onednn != no])
])
