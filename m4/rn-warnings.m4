# RN_WARNINGS: sets WARN_CFLAGS to the warnings that the compiler knows; --enable-werror makes them errors.
AC_DEFUN([RN_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat warnings as errors @<:@no@:>@])], [], [enable_werror=no])
  WARN_CFLAGS=
  for rn_flag in -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
      -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef -Wformat=2 -Wno-unused-parameter; do
    RN_COMPILES_WITH([$rn_flag], [WARN_CFLAGS="$WARN_CFLAGS $rn_flag"])
  done
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
])

# RN_COMPILES_WITH(FLAG, IF-YES, IF-NO)
AC_DEFUN([RN_COMPILES_WITH], [
  AC_MSG_CHECKING([whether $CC takes $1])
  rn_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[int main (void) { return 0; }]])],
    [CFLAGS=$rn_save_CFLAGS; AC_MSG_RESULT([yes]); $2],
    [CFLAGS=$rn_save_CFLAGS; AC_MSG_RESULT([no]); $3])
])
