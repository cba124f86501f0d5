#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs every test in every configuration. Each configuration is a CMake preset in its own
# folder build/NAME; what it tests is in the table below and in CMakePresets.json. Ends with ctest's
# summaries, the skipped tests with their reasons, and the line "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 2
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh

usage() {
  cat <<'TEXT'
Usage: scripts/test.sh [--yes | --no-install] [--only NAME[,NAME...]] [--full]
Builds and runs the tests. Configurations, in this order:
  release  optimised; all tests: unit, simulator, driver, API, end to end, install, style
  dev      AddressSanitizer + UndefinedBehaviorSanitizer: unit, simulator, driver, API, tools
  tsan     ThreadSanitizer: unit, driver and API tests, where the threads are
  clang    clang 14 with warnings as errors and clang-tidy: unit, API
  fuzz     libFuzzer + AddressSanitizer: the corpus, then new inputs for a short time
Options:
  --only NAMES   only these configurations
  --full         longer: more random seeds, longer fuzzing, clang-tidy on tools and tests (hours)
  --yes          install missing Debian packages without asking (also when CI=true)
  --no-install   install nothing; skip the configurations whose tools are missing
Exit code: 0 all passed, 1 something failed or nothing ran, 2 usage or missing packages.
TEXT
}

configurations=(release dev tsan clang fuzz)
selected=("${configurations[@]}")
assume_yes=0
install=1
full=0
[[ ${CI:-} == true ]] && assume_yes=1
while (($# > 0)); do
  case $1 in
    --only)
      IFS=, read -r -a selected <<<"${2:-}"
      ((${#selected[@]} > 0)) || { echo "--only needs names of: ${configurations[*]}" >&2; exit 2; }
      for name in "${selected[@]}"; do
        [[ " ${configurations[*]} " == *" $name "* ]] ||
          { echo "no configuration '$name'; there are: ${configurations[*]}" >&2; exit 2; }
      done
      shift
      ;;
    --full) full=1 ;;
    --yes) assume_yes=1 ;;
    --no-install) install=0 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "unknown option '$1'; scripts/test.sh --help lists them" >&2; exit 2 ;;
  esac
  shift
done
if ((install)); then
  srd_ensure_packages "$assume_yes" "${SRD_TEST_PACKAGES[@]}" || exit 2
fi

# What the tests may use: how long the searches for the unforeseen go on.
if ((full)); then
  export SRD_TEST_FULL=1
  timeout_s=7200
else
  unset SRD_TEST_FULL
  timeout_s=600
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

jobs=$(nproc)
results=build/results
rm -rf "$results"
mkdir -p "$results"

# One step at a time runs in a process group of its own, so that nothing of it outlives this script.
step_pid=
stop_step() {
  [[ -n $step_pid ]] || return 0
  kill -TERM -- "-$step_pid" 2>/dev/null
  for _ in {1..20}; do
    kill -0 -- "-$step_pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$step_pid" 2>/dev/null
}
trap stop_step EXIT
trap 'echo "interrupted"; exit 130' INT
trap 'exit 143' TERM HUP

# step LOG COMMAND...: runs it with its output on the terminal and in LOG; its exit code.
step() {
  local log=$1 code
  shift
  set -m
  (
    set -o pipefail
    "$@" 2>&1 </dev/null | tee "$log"
  ) &
  step_pid=$!
  set +m
  wait "$step_pid"
  code=$?
  stop_step
  step_pid=
  return "$code"
}

progress() { printf '\n[%dm%02ds] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

# Prints what `configuration` cannot run without on this machine; nothing if all is there.
missing_tool() {
  local tool
  local -a tools=(cmake ninja g++ python3)
  [[ $1 == clang ]] && tools+=(clang++-14 clang-tidy-14)
  [[ $1 == fuzz ]] && tools+=(clang++-14)
  for tool in "${tools[@]}"; do
    command -v "$tool" >/dev/null || echo "$tool is not installed"
  done | head -n 1
}

# Test folders a configuration builds, "" for everything. The labels it runs are in CMakePresets.json.
test_folders() {
  case $1 in
    dev) echo unit sim driver api tools ;;
    tsan) echo unit driver api ;;
    fuzz) echo fuzz ;;
  esac
}

run_configuration() {
  local name=$1 reason folder
  local -a targets=()
  reason=$(missing_tool "$name")
  if [[ -n $reason ]]; then
    progress "$name: skipped, $reason"
    echo "$reason" >"$results/$name.skipped"
    return
  fi
  progress "$name: configure"
  if ! step "$results/$name.configure.log" cmake --preset "$name"; then
    echo "cmake --preset $name failed" >"$results/$name.failed"
    return
  fi
  for folder in $(test_folders "$name"); do
    [[ -f tests/$folder/CMakeLists.txt ]] && targets+=("tests/$folder/all")
  done
  progress "$name: build"
  if ! step "$results/$name.build.log" \
    cmake --build --preset "$name" -j "$jobs" ${targets:+--target "${targets[@]}"} -- -k 0; then
    echo "cmake --build --preset $name failed" >"$results/$name.failed"
    return
  fi
  progress "$name: test"
  step "$results/$name.test.log" ctest --preset "$name" -j "$jobs" --timeout "$timeout_s" \
    --output-junit "$PWD/$results/$name.xml" --test-output-size-passed 65536
  echo $? >"$results/$name.code"
}

for name in "${selected[@]}"; do
  run_configuration "$name"
done

progress "summary"
for name in "${selected[@]}"; do
  if [[ -f $results/$name.test.log ]]; then
    printf '\n%s:\n' "$name"
    sed -n '/tests passed/,$p' "$results/$name.test.log"
  fi
done
echo
python3 scripts/lib/results.py "$results"
