#!/bin/sh
# Checks who includes whom, as a TAP test. The tables below are the rule.
#
#   check-includes.sh [TOP]      (TOP: the source tree, default $G_TEST_SRCDIR, then .)
cd "${1:-${G_TEST_SRCDIR:-.}}" || exit 1

files=$(find runner hooks models kernels graph boxes datasets -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "1..0 # SKIP no sources here"; exit 0; }

# shellcheck disable=SC2086 # file names have no spaces
awk '
BEGIN {
  public_header = "^runner/(batch|engine|export|hook|keys|node|tensor)[.]h$"  # rninclude_HEADERS

  may["public"]   = "public"
  may["base"]     = "public base"
  may["config"]   = "public base config"
  may["boxes"]    = "public base boxes"
  may["kernels"]  = "public base kernels"
  may["graph"]    = "public base kernels graph"
  may["models"]   = "public base config boxes kernels graph models"
  may["datasets"] = "public base config boxes datasets"
  may["hooks"]    = "public hooks"
  may["runner"]   = "public base config boxes kernels graph models datasets hooks runner"
  may["cli"]      = may["runner"] " cli"

  # header prefix -> the only places for it, as starts of file names
  vendor["dnnl"] = vendor["oneapi/"] = "kernels/cpu/"
  vendor["omp.h"] = "kernels/"
  vendor["yaml.h"] = "runner/config/yaml.c"
  vendor["libxml/"] = vendor["jpeglib.h"] = vendor["png.h"] = "datasets/"
  vendor["cairo"] = "runner/draw/"
  vendor["zip.h"] = "runner/weights/"
  vendor["json-glib/"] = "runner/"
  vendor["gmodule.h"] = "runner/plugin.c kernels/cuda-module.c kernels/cuda/module.c"
  vendor["cuda"] = vendor["cudnn"] = vendor["cublas"] = "kernels/cuda/"
}

# The layer of a file of ours, given from the top of the tree.
function layer (path) {
  if (path ~ /^runner\/(base|config|cli)\//) { split (path, part, "/"); return part[2] }
  split (path, part, "/")
  return part[1]
}

# Does the name begin with one of the places?
function is_in (path, places,    place, n, i) {
  n = split (places, place, " ")
  for (i = 1; i <= n; i++)
    if (index (path, place[i]) == 1) return 1
  return 0
}

function fail (text) { print "# " FILENAME ":" FNR ": " text; bad[FILENAME] = 1 }

FNR == 1 {
  file[++n] = FILENAME
  from = FILENAME ~ public_header ? "public" : layer (FILENAME)
  first = 1
  folder = FILENAME; sub (/[^\/]*$/, "", folder)
}

/^#[ \t]*include/ {
  quoted = $0 ~ /"/
  name = $0; sub (/^[^"<]*["<]/, "", name); sub (/[">].*$/, "", name)

  if (FILENAME ~ /\.c$/ && first && name != "config.h") fail ("config.h must come first")
  first = 0
  if (name == "config.h") {
    if (FILENAME ~ /\.h$/) fail ("a header must not include config.h")
    # With quotes the compiler looks in the folder of the file first.
    if (quoted && (getline line < (folder "config.h")) >= 0)
      fail ("write <config.h>: there is another one in " folder)
    close (folder "config.h")
    next
  }

  to = ""
  if (quoted) {
    if (name !~ /\//) fail ("write \"" folder name "\", from the top of the tree")
    to = layer (name)
  } else if (name ~ /^runner\//) {
    if (name !~ /^runner\/[^\/]*\.h$/) fail ("<" name "> is no public header; use quotes")
    to = "public"
  }
  # Under RN_SIM the device tells the simulated one what an op touches.
  if (name == "tests/gpu/sim/sim.h" && FILENAME ~ /^kernels\/cuda\//) to = ""
  if (to != "" && index (" " may[from] " ", " " to " ") == 0)
    fail (from " must not include " to " (" name ")")
  if (from == "hooks" && to == "public" && name !~ /^runner\/(hook|engine)\.h$/)
    fail ("hooks include <runner/hook.h> and <runner/engine.h> only")

  for (prefix in vendor)
    if (!quoted && index (name, prefix) == 1 && !is_in (FILENAME, vendor[prefix]))
      fail ("<" name "> belongs into " vendor[prefix])
}

END {
  print "1.." n
  for (i = 1; i <= n; i++) {
    print (bad[file[i]] ? "not ok " : "ok ") i " - includes of " file[i]
    failed = failed || bad[file[i]]
  }
  exit failed
}' $files
