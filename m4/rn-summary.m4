# RN_SUMMARY: collects in rn_summary what was configured, for the end of configure and, as RN_BUILD_SUMMARY,
# for `runner --version`.
AC_DEFUN([RN_SUMMARY], [
  rn_compiler=`$CC --version 2>/dev/null | sed -e 's/[[\\"]]//g' -e 1q`
  rn_glib=`$PKG_CONFIG --modversion glib-2.0`
  rn_summary="runner $PACKAGE_VERSION
  compiler    $rn_compiler
  GLib        $rn_glib
  oneDNN      $rn_onednn
  CUDA        $rn_cuda
  sanitizers  $enable_sanitizers"
  rn_summary_c=`AS_ECHO(["$rn_summary"]) | $AWK '{ printf "%s\\\\n", $[]0 }'`
  AC_DEFINE_UNQUOTED([RN_BUILD_SUMMARY], ["$rn_summary_c"], [What was configured, one line each.])
])
