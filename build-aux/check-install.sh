#!/bin/sh
# The smoke test of an installed tree, run by `make installcheck` and so by `make distcheck`: the program draws a
# data set, trains two iterations, evaluates, a program links against the installed headers and library, and a hook
# is written, compiled, tested and installed where the program finds it by name.
#
#   check-install.sh BINDIR LIBDIR DATADIR       (CC from the environment)
set -eu
runner=$1/runner libdir=$2 config=$3/configs/retinanet_shapes.yaml
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$runner" --version
"$runner" synth "$tmp/shapes" --train 4 --val 2 --test 2

echo "data_root: $tmp/shapes/" > "$tmp/tiny.yaml"
cat >> "$tmp/tiny.yaml" << TEXT
_base_: $config
data: {samples_per_gpu: 2}
runner: {_delete_: true, type: IterBasedRunner, max_iters: 2}
TEXT
"$runner" plan "$tmp/tiny.yaml" > /dev/null
"$runner" train "$tmp/tiny.yaml" --work-dir "$tmp/run" --threads 1
"$runner" eval "$tmp/tiny.yaml" "$tmp/run/latest.safetensors" --threads 1

cat > "$tmp/user.c" << TEXT
#include <runner/hook.h>
#include <runner/version.h>
int
main (void)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  rn_record_set_int (record, "major", RN_VERSION_MAJOR);
  return rn_record_int (record, "major", -1) != RN_VERSION_MAJOR;
}
TEXT
PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are several words
${CC:-cc} "$tmp/user.c" -o "$tmp/user" $(pkg-config --cflags --libs runner-1) -Wl,-rpath,"$libdir"
"$tmp/user"

cd "$tmp"
"$runner" new-hook my_hook
make -C my_hook check CC="${CC:-cc}"
"$runner" hooks my_hook/my_hook.so
# By name, from the folder that only the installation knows.
plugindir=$(pkg-config --variable=plugindir runner-1)
case $plugindir in
  "$libdir"/*) # not with DESTDIR
    mkdir -p "$plugindir"
    cp my_hook/my_hook.so "$plugindir/check_install.so"
    found=yes
    "$runner" hooks MyHook --plugin check_install || found=no
    rm "$plugindir/check_install.so"
    rmdir "$plugindir" "${plugindir%/*}" 2> /dev/null || true # unless somebody has plugins there
    [ $found = yes ]
    ;;
esac
