# RN_SANITIZERS: --enable-sanitizers=address,... sets SANITIZE_CFLAGS and the conditional SANITIZERS.
#
# UBSan only reports by default; here a report ends the program, so that a test fails.
AC_DEFUN([RN_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST],
      [build with -fsanitize=LIST, such as address,undefined @<:@no@:>@])],
    [], [enable_sanitizers=no])
  AS_IF([test "x$enable_sanitizers" = xyes], [enable_sanitizers=address,undefined])
  SANITIZE_CFLAGS=
  AS_IF([test "x$enable_sanitizers" != xno], [
    SANITIZE_CFLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
    RN_COMPILES_WITH([$SANITIZE_CFLAGS], [],
      [AC_MSG_ERROR([$CC cannot build with -fsanitize=$enable_sanitizers])])])
  AC_SUBST([SANITIZE_CFLAGS])
  AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" != xno])
])
