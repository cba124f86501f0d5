#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The part of scripts/demo.sh for systems that refuse private namespaces: loopback beside kernel TCP, and
# the protocol in the simulator. The argument is why there are no namespaces.
set -euo pipefail

readonly seconds=5 tcp_port=45201 srd_port=45211 target=127.0.0.1
tmp=$(mktemp -d)
readonly tmp
server=
finish() {
  [[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
  rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

cat <<TEXT
No network of four paths can be built here, so these are not shown: one flow over four paths, a path
that dies, packet loss, kernel TCP and MPTCP beside them. The reason:
  $1
What can be shown: loopback, and the protocol on simulated paths.

TEXT

# run TOOL PORT: one flow over loopback; its last line for the receiver.
run() {
  "$1" -s -1 -B $target -p "$2" >"$tmp/server" 2>&1 &
  server=$!
  sleep 0.5
  if ! "$1" -c $target -p "$2" -t $seconds >"$tmp/client" 2>&1; then
    cat "$tmp/server" "$tmp/client"
    exit 1
  fi
  wait $server || true
  server=
  grep receiver "$tmp/client" | tail -n 1
}

echo "Loopback, kernel TCP (iperf3), $seconds s:"
run iperf3 $tcp_port
echo "Loopback, OpenSRD (srd-perf), $seconds s:"
run "$SRD_PERF" $srd_port
echo
echo "Simulator: one flow over four simulated paths of 1 Gb/s (virtual time, the same on every machine):"
"$SRD_SIM" --scenario all --seed 1
