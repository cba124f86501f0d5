#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What was installed: the library's name, the public headers, the documents that they name, programs that start, their man pages.
# Usage: files.sh STAGE LIBDIR PROGRAM...
set -eu
stage=$1 lib=$1/$2
shift 2
status=0
complain() {
  echo "$*"
  status=1
}

soname=$(readelf -d "$lib/libsrd.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[[ $soname == libsrd.so.0 ]] || complain "soname is '$soname', not libsrd.so.0"

for header in srd.h srd.hpp asio.hpp driver.hpp; do
  [[ -f $stage/include/srd/$header ]] || complain "include/srd/$header is not installed"
done
for document in API.md TUNING.md DRIVERS.md; do
  [[ -f $stage/share/doc/srd/$document ]] || complain "share/doc/srd/$document is not installed"
done
for package in libsrd0 libsrd-dev srd-tools; do
  grep -q "Apache License" "$stage/share/doc/$package/copyright" || complain "no licence of $package is installed"
done
for program in "$@"; do
  "$stage/bin/$program" --version || complain "$program --version failed"
  [[ -f $stage/share/man/man1/$program.1 ]] || complain "no man page of $program"
done
exit $status
