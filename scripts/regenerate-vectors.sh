#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the golden packets in tests/unit/vectors anew from the encoders. Only while the wire format is
# version 0, a draft; look at the difference before you commit it.
# Usage: scripts/regenerate-vectors.sh [BUILD_FOLDER]     (default: build/vectors)
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/vectors}
cmake -S . -B "$build" -DSRD_BUILD_APPS=OFF -DSRD_BUILD_PERF=OFF >/dev/null
cmake --build "$build" --target make_vectors -- -j"$(nproc)"
rm -f tests/unit/vectors/*.hex
"$build/tests/unit/make_vectors" --hex tests/unit/vectors
git --no-pager diff --stat -- tests/unit/vectors || true
