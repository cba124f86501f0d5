// SPDX-License-Identifier: Apache-2.0
// The command line of srd-perf: what was asked for, checked as far as one side can check it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/addresses.hpp"
#include "srd_perf/parameters.hpp"
#include "srd_perf/units.hpp"

namespace perf {

/// Next to iperf3's 5201; below the ephemeral range of Linux (32768-60999).
inline constexpr std::uint16_t kDefaultPort = 5211;

/// What an endpoint takes.
inline constexpr std::uint32_t kConnectTimeoutMinMs = 100;
inline constexpr std::uint32_t kConnectTimeoutMaxMs = 3'600'000;

enum class Role : std::uint8_t { server, client };

struct Options {
  Role role = Role::server;
  std::string host;  ///< client: the server
  std::uint16_t port = kDefaultPort;
  std::string bind_host;          ///< "": any local address
  std::uint16_t client_port = 0;  ///< --cport
  apps::Family family = apps::Family::any;
  std::string device = "udp:";
  std::uint16_t paths = 0;  ///< 0: the library's default
  double interval_s = 1;    ///< 0: no interval reports
  bool one_off = false;
  bool json = false;
  bool verbose = false;
  bool force_flush = false;
  bool busy_poll = false;
  std::uint32_t connect_timeout_ms = 3000;  ///< kConnectTimeoutMinMs to kConnectTimeoutMaxMs
  std::string log_file;
  std::string title;
  UnitFormat unit_format = UnitFormat::adaptive;
  Parameters parameters;  ///< client; the server uses bins_ms only
};

/// Parses argv. --help and --version print and return nothing with `exit_code` 0. A command line
/// that makes no sense throws apps::Failure with kExitUsage.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace perf
