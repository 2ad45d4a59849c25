#!/bin/sh
# Installs what is missing for building and testing, on Debian 12 and 13. Says what it does; needs root or sudo
# only then.
set -eu

needed='autoconf automake libtool make gcc g++ libc6-dev pkg-config xz-utils
  libglib2.0-dev libyaml-dev libjson-glib-dev libxml2-dev libjpeg62-turbo-dev libpng-dev
  libcairo2-dev libzip-dev'
wanted='libdnnl-dev' # not on every architecture; without it the build has the plain C kernels only

if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
  echo "This is no Debian. If configure stops, install the counterparts of: $needed $wanted"
  exit 0
fi

missing () {
  for package; do
    dpkg-query -W -f '${Status}\n' "$package" 2> /dev/null | grep -q '^install ok installed$' || echo "$package"
  done
}

# shellcheck disable=SC2046,SC2086 # lists of words
set -- $(missing $needed $wanted)
[ $# -gt 0 ] || exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "Missing packages, and neither root nor sudo to install them: $*" >&2
    exit 1
  fi
  root=sudo
fi
echo "Installing with apt-get: $*"
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -q
# shellcheck disable=SC2046,SC2086
set -- $(missing $needed)
[ $# -eq 0 ] || $root apt-get install -q -y --no-install-recommends "$@"
# shellcheck disable=SC2046,SC2086
set -- $(missing $wanted)
[ $# -eq 0 ] || $root apt-get install -q -y --no-install-recommends "$@" \
  || echo "No $* here: convolutions will be slow."
