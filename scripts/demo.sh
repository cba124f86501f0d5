#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds OpenSRD and shows what it is for: one flow over every path of a leaf-spine network, beside kernel
# TCP and MPTCP, healthy, with a path dying, and with loss. Everything runs in private namespaces of this
# process (tests/fabric) and is gone when it ends, also after Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh

usage() {
  cat <<'TEXT'
Usage: scripts/demo.sh [--yes] [--no-build]
Builds the tools into build/demo and shows them beside kernel TCP on a network of namespaces with four
paths of 1 Gb/s; takes under three minutes after the build. Where namespaces are refused (plain
containers) it shows loopback and the simulator instead.
  --yes       install missing Debian packages without asking (also when CI=true)
  --no-build  take the tools that are in build/demo
Exit code: 0 shown, 1 a step failed, 2 usage or missing packages.
TEXT
}

readonly build=build/demo
assume_yes=0
rebuild=1
[[ ${CI:-} != true ]] || assume_yes=1
while (($# > 0)); do
  case $1 in
    --yes) assume_yes=1 ;;
    --no-build) rebuild=0 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "unknown option '$1'; scripts/demo.sh --help lists them" >&2; exit 2 ;;
  esac
  shift
done

srd_ensure_packages "$assume_yes" "${SRD_DEMO_PACKAGES[@]}" || exit 2

if ((rebuild)); then
  echo "Building into $build (the first time takes a few minutes) ..."
  mkdir -p "$build"
  if ! { cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DSRD_BUILD_TESTS=OFF -DSRD_BUILD_PERF=OFF &&
    cmake --build "$build" --parallel "$(nproc)"; } >"$build/demo.log" 2>&1; then
    tail -n 30 "$build/demo.log" >&2
    echo "The build failed; $build/demo.log has all of it." >&2
    exit 1
  fi
fi
tools=$PWD/$build/apps
export SRD_PERF=$tools/srd-perf SRD_SIM=$tools/srd-sim
for tool in "$SRD_PERF" "$SRD_SIM"; do
  [[ -x $tool ]] || { echo "There is no $tool; run without --no-build." >&2; exit 1; }
done

if reason=$(tests/fabric check 2>&1); then
  exec tests/fabric run -- scripts/lib/demo_fabric.sh
elif (($? == 77)); then
  exec scripts/lib/demo_plain.sh "${reason#fabric: }"
else
  echo "$reason" >&2
  exit 1
fi
