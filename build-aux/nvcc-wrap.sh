#!/bin/sh
# nvcc for libtool: nvcc-wrap.sh NVCC ARGUMENT... gives -fPIC, which libtool adds, to the host
# compiler.
nvcc=$1 # "ccache nvcc" is two words
shift
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1
  shift
  case $argument in
    -fPIC) set -- "$@" -Xcompiler -fPIC ;;
    *) set -- "$@" "$argument" ;;
  esac
  n=$((n - 1))
done
# shellcheck disable=SC2086
exec $nvcc "$@"
