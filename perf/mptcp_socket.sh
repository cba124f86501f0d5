#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles mptcp_socket.c into the library FILE, for LD_PRELOAD. Usage: mptcp_socket.sh FILE
set -eu
exec cc -shared -fPIC -O2 -o "$1" "$(dirname "$0")/mptcp_socket.c" -ldl
