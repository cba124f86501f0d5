# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# The Debian packages that the scripts need, in one place, and how they are asked for and installed.
# Sourced by scripts/test.sh and scripts/demo.sh.

# To build the library and the tools.
SRD_BUILD_PACKAGES=(g++ make cmake libboost-dev libcli11-dev libfmt-dev nlohmann-json3-dev)
# To show them on a fabric of network namespaces beside kernel TCP.
SRD_DEMO_PACKAGES=("${SRD_BUILD_PACKAGES[@]}" iperf3 iproute2 nftables procps ethtool)
# To run every test.
SRD_TEST_PACKAGES=("${SRD_DEMO_PACKAGES[@]}" git ninja-build pkg-config python3 libgtest-dev
  libbenchmark-dev clang-14 libclang-rt-14-dev clang-tidy-14 clang-format-14 valgrind shellcheck)

# srd_ensure_packages ASSUME_YES PACKAGE...
# Installs what is missing with apt-get: at once if ASSUME_YES is 1, else after asking. Returns 1 with
# a text if something is missing and was not installed.
srd_ensure_packages() {
  local assume_yes=$1 package answer
  local -a missing=() apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is not a Debian system: nothing is installed by this script. Needed, by Debian's names: $*"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0

  echo "Debian packages that are missing: ${missing[*]}"
  if [[ $assume_yes != 1 ]]; then
    if [[ ! -t 0 ]]; then
      echo "Not installed, as nobody can be asked here. Run again with --yes, or: sudo apt-get install ${missing[*]}"
      return 1
    fi
    read -r -p "Install them now with apt-get? [y/N] " answer || answer=n
    if [[ $answer != [yY]* ]]; then
      echo "Not installed. To do it yourself: sudo apt-get install ${missing[*]}"
      return 1
    fi
  fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "Installing needs root, and there is no sudo. As root: apt-get install ${missing[*]}"
      return 1
    fi
    apt=(sudo "${apt[@]}")
  fi
  "${apt[@]}" -qq update </dev/null &&
    "${apt[@]}" -qq install -y --no-install-recommends \
      "${missing[@]}" </dev/null
}
