#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The part of scripts/demo.sh that runs inside the private namespaces: kernel TCP, MPTCP and OpenSRD, one
# after the other, over the same fabric, and one table at the end. All numbers come from the receiver.
set -euo pipefail

readonly fabric=$PWD/tests/fabric
readonly seconds=6              # of each run
readonly fault_after_s=2        # a path dies so long after the start
readonly tcp_port=5201 srd_port=5211
tmp=$(mktemp -d /run/demo.XXXXXX) # /run is private here
readonly tmp
trap 'exit 130' INT
trap 'exit 143' TERM HUP

declare -A result silence # [transport case]
step=0

on() { "$fabric" exec "$@"; }
progress() { printf '[%3d s] %s' "$SECONDS" "$*"; }

# ---- what runs ------------------------------------------------------------------------------------

prepare_mptcp() {
  [[ -e /proc/sys/net/mptcp/enabled ]] || { echo "this kernel has no MPTCP"; return 1; }
  perf/mptcp_socket.sh "$tmp/mptcp.so" || { echo "it does not compile"; return 1; }
  "$fabric" mptcp 4
}

# start_server TRANSPORT, start_client TRANSPORT: in the background, process numbers in $server, $client.
start_server() {
  local port=$tcp_port sockets=-Hltn preload=""
  local -a command=(iperf3)
  case $1 in
    mptcp) preload=$tmp/mptcp.so ;;
    srd) command=("$SRD_PERF"); port=$srd_port; sockets=-Hlun ;;
  esac
  LD_PRELOAD=$preload "$fabric" exec B "${command[@]}" -s -1 -i 0.5 -f m --forceflush >"$tmp/server" 2>&1 &
  server=$!
  for _ in {1..100}; do
    [[ -z $(on B ss $sockets "sport = :$port") ]] || return 0
    sleep 0.05
  done
  echo "the server did not open port $port:"; cat "$tmp/server"
  return 1
}

start_client() {
  local preload="" target; target=$("$fabric" addr B)
  local -a command=(iperf3 --cport "$client_port")
  case $1 in
    mptcp) preload=$tmp/mptcp.so ;;
    srd) command=("$SRD_PERF") ;;
  esac
  LD_PRELOAD=$preload "$fabric" exec A "${command[@]}" -c "$target" -t $seconds >"$tmp/client" 2>&1 &
  client=$!
}

stop() {
  kill -KILL "$@" 2>/dev/null || true
  wait "$@" 2>/dev/null || true
}

# ---- what is measured -------------------------------------------------------------------------------

# "microseconds bytes" about every 10 ms: what host B's link has delivered. Process number in $sampler.
start_sampler() {
  # shellcheck disable=SC2016
  "$fabric" exec B bash -c '
    exec {never}<> <(:)
    while :; do
      while read -r name bytes _; do [ "$name" != hB: ] || echo "${EPOCHREALTIME/[.,]/} $bytes"; done </proc/net/dev
      read -rt 0.01 -u $never || true
    done' >"$tmp/samples" &
  sampler=$!
}

# rate FROM TO: Gb/s that the receiver reported for its intervals within these seconds of the run.
rate() {
  awk -v from="$1" -v to="$2" '
    /sender|receiver|SUM/ { next }
    match($0, /[0-9.]+-[0-9.]+ +sec/) {
      split(substr($0, RSTART), range, /[- ]+/)
      if (range[1] + 0 < from || range[2] + 0 > to + 0.1) next
      for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") {
        sum += $(i - 1) * (range[2] - range[1])
        seconds += range[2] - range[1]
      }
    }
    END { printf "%.2f", seconds ? sum / seconds / 1000 : 0 }' "$tmp/server"
}

# longest_silence FROM_US UNTIL_US: in ms, with ">" if it did not end in that time. Silent: less than a
# hundredth of one path arrives. Samples are 10 ms apart.
longest_silence() {
  awk -v from="$1" -v until="$2" '
    $1 < from { time = $1; bytes = $2; next }
    $1 > until { exit }
    { if (($2 - bytes) * 8 > 10 * ($1 - time)) quiet = 0; else quiet += $1 - time
      if (quiet > longest) longest = quiet
      time = $1; bytes = $2 }
    END { printf "%s%d", longest < 10000 ? "<" : (quiet == longest && quiet > 100000) ? ">" : "", longest < 10000 ? 10 : longest / 1000 }' "$tmp/samples"
}

now_us() { echo "${EPOCHREALTIME/[.,]/}"; }

# ---- one run ------------------------------------------------------------------------------------------

declare -A title=([tcp]="kernel TCP" [mptcp]="MPTCP" [srd]="OpenSRD")

# run TRANSPORT CASE WORDS
run() {
  local client_port transport=$1 case=$2 fault_us="" dead_path="" finished=1
  step=$((step + 1))
  client_port=$((40000 + step)) # known, to find its path; new, as a dead connection may keep its own
  progress "$step/$steps ${title[$transport]}, $3 ... "
  start_server "$transport"
  start_sampler
  start_client "$transport"
  if [[ $case == death ]]; then
    sleep "$fault_after_s"
    # The path of the TCP connection, of MPTCP's first one; OpenSRD, which uses all, loses the one TCP lost.
    dead_path=$tcp_path
    [[ $transport == srd ]] || dead_path=$("$fabric" path-of A tcp "$client_port" "$tcp_port")
    [[ $transport != tcp ]] || tcp_path=$dead_path
    fault_us=$(now_us)
    "$fabric" fail "$dead_path"
  fi
  # A connection whose path is dead may wait for ever: it gets two seconds more than it should need.
  local deadline=$((SECONDS + seconds + 2))
  [[ $case != death ]] || deadline=$((deadline - fault_after_s))
  while kill -0 $client 2>/dev/null; do
    ((SECONDS < deadline)) || { finished=0; break; }
    sleep 0.1
  done
  stop $sampler
  sleep 0.2
  stop $client $server
  if [[ $case == death ]]; then
    "$fabric" heal "$dead_path"
    result[$transport,$case]=$(rate $((fault_after_s + 1)) $seconds)
    silence[$transport]=$(longest_silence "$fault_us" $((fault_us + (seconds - fault_after_s) * 1000000 - 300000)))
    echo "${result[$transport,$case]} Gb/s after path $dead_path died, silent for ${silence[$transport]} ms"
  else
    result[$transport,$case]=$(rate 1 $seconds)
    echo "${result[$transport,$case]} Gb/s"
  fi
  # Only TCP and MPTCP may stop, and only when a path died.
  if [[ $transport == srd || $case != death ]] && { ((!finished)) || [[ ${result[$transport,$case]} == 0.00 ]]; }; then
    echo "This run did not end as it should. Client and server said:"
    tail -n 20 "$tmp/client" "$tmp/server"
    exit 1
  fi
}

# ---- the table ----------------------------------------------------------------------------------------

ratio() { # SRD OTHER
  awk -v a="$1" -v b="$2" 'BEGIN { if (b < 0.005) print "it stopped"; else printf "%.1f x", a / b }'
}

row() { # WORDS CASE
  local other
  printf '%-38s' "$1"
  for other in "${transports[@]}"; do printf '%12s' "${result[$other,$2]}"; done
  for other in "${transports[@]}"; do
    [[ $other == srd ]] || printf '%16s' "$(ratio "${result[srd,$2]}" "${result[$other,$2]}")"
  done
  echo
}

table() {
  local other
  echo
  printf '%-38s' "Gb/s received"
  for other in "${transports[@]}"; do printf '%12s' "${title[$other]}"; done
  for other in "${transports[@]}"; do
    [[ $other == srd ]] || printf '%16s' "to ${title[$other]}"
  done
  echo
  row "healthy, 4 paths x 1 Gb/s" healthy
  row "after one path died" death
  printf '%-38s' "  longest silence then, ms"
  for other in "${transports[@]}"; do printf '%12s' "${silence[$other]}"; done
  echo
  row "1 % of packets lost, 4 x 500 Mb/s" loss
  echo
  echo "One flow each, on this machine with $(nproc) cores and Linux $(uname -r). The path that died is the one that"
  echo "carried the TCP connection; silences are seen in steps of 10 ms. docs/PERFORMANCE.md has measurements."
}

transports=(tcp mptcp srd)
"$fabric" up 4 1gbit
if ! reason=$(prepare_mptcp 2>&1); then
  echo "MPTCP is left out: $reason"
  transports=(tcp srd)
fi
steps=$((3 * ${#transports[@]}))
tcp_path=0
for transport in "${transports[@]}"; do run "$transport" healthy "four healthy paths"; done
for transport in "${transports[@]}"; do run "$transport" death "a path dies"; done
"$fabric" segment on # or loss would hit bursts of packets
"$fabric" rate all 500mbit
"$fabric" loss all 10
for transport in "${transports[@]}"; do run "$transport" loss "1 % of packets lost"; done
table
