#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumers with the flags of srd.pc alone, shared and static.
# Usage: pkg_config.sh STAGE LIBDIR CC CXX OUTPUT_FOLDER
set -eu
stage=$1 libdir=$2 cc=$3 cxx=$4 out=$5
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v pkg-config >/dev/null; then
  echo "SKIP: pkg-config is not installed"
  exit 77
fi
export PKG_CONFIG_PATH=$stage/$libdir/pkgconfig
mkdir -p "$out"
read -r -a cflags <<<"$(pkg-config --cflags srd)"
read -r -a libs <<<"$(pkg-config --libs srd)"
read -r -a static_libs <<<"$(pkg-config --static --libs srd | sed 's/-lsrd\b/-l:libsrd.a/')"

"$cc" -std=c99 -pedantic -Wall -Werror "${cflags[@]}" "$here/consumer.c" -o "$out/shared_c" "${libs[@]}"
LD_LIBRARY_PATH=$stage/$libdir "$out/shared_c"
"$cc" -std=c99 "${cflags[@]}" "$here/consumer.c" -o "$out/static_c" "${static_libs[@]}"
"$out/static_c"
"$cxx" -std=c++20 -Wall "${cflags[@]}" "$here/consumer.cpp" -o "$out/shared_cpp" "${libs[@]}"
LD_LIBRARY_PATH=$stage/$libdir "$out/shared_cpp"
