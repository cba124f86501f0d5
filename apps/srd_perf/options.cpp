// SPDX-License-Identifier: Apache-2.0
// Command line parsing with CLI11; see the header. The help text is written by hand (help.cpp) in
// the groups that iperf3 users know.
#include "srd_perf/options.hpp"

#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "srd/address.hpp"

#include "common/failure.hpp"
#include "srd_perf/help.hpp"

namespace perf {
namespace {

[[noreturn]] void usage_error(const std::string& text) {
  throw apps::Failure(apps::kExitUsage, text + "\nsrd-perf --help lists all options");
}

/// What CLI11 fills in; numbers with suffixes are converted afterwards.
struct RawOptions {
  std::string format, bytes, length, bitrate, window, rate, size, response_size;
  bool server = false, reverse = false, bidirectional = false, latency = false;
  bool v4 = false, v6 = false, help = false, version = false;
  double time_s = 10;
  std::uint32_t port = kDefaultPort, client_port = 0, paths = 0;
};

void declare_common(CLI::App& app, Options& options, RawOptions& raw) {
  app.add_option("-p,--port", raw.port);
  app.add_option("-f,--format", raw.format);
  app.add_option("-i,--interval", options.interval_s);
  app.add_option("-B,--bind", options.bind_host);
  app.add_flag("-4,--version4", raw.v4);
  app.add_flag("-6,--version6", raw.v6);
  app.add_option("--device", options.device);
  app.add_option("--paths", raw.paths);
  app.add_flag("--busy-poll", options.busy_poll);
  app.add_option("--bins-ms", options.parameters.bins_ms);
  app.add_flag("-J,--json", options.json);
  app.add_option("--logfile", options.log_file);
  app.add_option("-T,--title", options.title);
  app.add_flag("-V,--verbose", options.verbose);
  app.add_flag("--forceflush", options.force_flush);
  app.add_flag("-s,--server", raw.server);
  app.add_flag("-1,--one-off", options.one_off);
  app.add_flag("-h,--help", raw.help);
  app.add_flag("-v,--version", raw.version);
}

void declare_client(CLI::App& app, Options& options, RawOptions& raw) {
  Parameters& parameters = options.parameters;
  app.add_option("-c,--client", options.host);
  app.add_option("-t,--time", raw.time_s);
  app.add_option("-n,--bytes", raw.bytes);
  app.add_option("-l,--length", raw.length);
  app.add_option("-P,--parallel", parameters.streams);
  app.add_flag("-R,--reverse", raw.reverse);
  app.add_flag("--bidir", raw.bidirectional);
  app.add_option("-b,--bitrate,--bandwidth", raw.bitrate);
  app.add_option("-w,--window", raw.window);
  app.add_option("-O,--omit", parameters.omit_s);
  app.add_option("--cport", raw.client_port);
  app.add_option("--connect-timeout", options.connect_timeout_ms);
  app.add_flag("--verify", parameters.verify);
  app.add_flag("--get-server-output", parameters.want_server_output);
  app.add_flag("--latency", raw.latency);
  app.add_option("--depth", parameters.depth);
  app.add_option("--rate", raw.rate);
  app.add_option("--size", raw.size);
  app.add_option("--response-size", raw.response_size);
}

void convert_bytes(const char* option, const std::string& text, std::uint64_t& out) {
  if (text.empty()) return;
  const auto value = parse_bytes(text);
  if (!value) usage_error(fmt::format("{} \"{}\": not a number of bytes like 64K", option, text));
  out = *value;
}

void convert_rate(const char* option, const std::string& text, std::uint64_t& out) {
  if (text.empty()) return;
  const auto value = parse_rate(text);
  if (!value) usage_error(fmt::format("{} \"{}\": not a rate like 500M", option, text));
  out = *value;
}

std::uint16_t convert_port(const char* option, std::uint32_t value, std::uint32_t least) {
  if (value < least || value > UINT16_MAX) {
    usage_error(fmt::format("{} {}: not a port from {} to 65535", option, value, least));
  }
  return static_cast<std::uint16_t>(value);
}

void convert_latency(const CLI::App& app, const RawOptions& raw, Parameters& parameters) {
  if (!raw.latency) {
    for (const char* option : {"--depth", "--rate", "--size", "--response-size"}) {
      if (app.count(option) > 0) usage_error(fmt::format("{} needs --latency", option));
    }
    return;
  }
  if (app.count("--rate") > 0 && app.count("--depth") > 0) {
    usage_error("--rate (open loop) and --depth (closed loop) exclude each other");
  }
  if (app.count("--length") > 0 && app.count("--size") > 0) {
    usage_error("-l and --size both give the size of a request; use one");
  }
  if (app.count("--bitrate") > 0) usage_error("-b has no meaning with --latency; use --rate");
  if (app.count("--bytes") > 0) usage_error("-n has no meaning with --latency; use -t");
  parameters.mode = app.count("--rate") > 0 ? Mode::latency_open : Mode::latency_closed;
  convert_rate("--rate", raw.rate, parameters.requests_per_s);
  convert_bytes("-l", raw.length, parameters.request_bytes);
  convert_bytes("--size", raw.size, parameters.request_bytes);
  convert_bytes("--response-size", raw.response_size, parameters.response_bytes);
}

void convert_client(const CLI::App& app, const RawOptions& raw, Options& options) {
  Parameters& parameters = options.parameters;
  if (raw.reverse && raw.bidirectional) usage_error("-R and --bidir exclude each other");
  parameters.direction = raw.bidirectional ? Direction::bidirectional
                         : raw.reverse     ? Direction::reverse
                                           : Direction::forward;
  convert_bytes("-l", raw.length, parameters.message_bytes);
  convert_bytes("-n", raw.bytes, parameters.total_bytes);
  convert_bytes("-w", raw.window, parameters.window_bytes);
  convert_rate("-b", raw.bitrate, parameters.rate_bits_per_s);
  convert_latency(app, raw, parameters);
  parameters.duration_s = raw.time_s;
  if (app.count("--bytes") > 0) {
    if (app.count("--time") > 0) usage_error("only one end of the test (-t, -n) may be given");
    if (parameters.total_bytes == 0) usage_error("-n must be at least 1 byte");
    parameters.duration_s = 0;
  }
  options.client_port = convert_port("--cport", raw.client_port, 0);
  if (options.connect_timeout_ms < kConnectTimeoutMinMs ||
      options.connect_timeout_ms > kConnectTimeoutMaxMs) {
    usage_error(fmt::format("--connect-timeout is {} ms; it must be {} to {}",
                            options.connect_timeout_ms, kConnectTimeoutMinMs,
                            kConnectTimeoutMaxMs));
  }
  // Client and server check again against their endpoints; here only what can be known at once.
  if (std::string text = validate_parameters(parameters, kNoMessageLimit); !text.empty()) {
    usage_error(text);
  }
}

/// The endpoint is bound to what -B and -p say: an address in the device string would be ignored.
void refuse_device_address(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string::npos) return;
  const std::string place = device.substr(colon + 1, device.find('?') - colon - 1);
  if (place.empty() || !srd::parse_address(place)) return;
  usage_error(fmt::format("--device \"{}\" has an address, which is not used; give -B and {}",
                          device, "-p (a client: --cport)"));
}

/// A client's option on a server would be ignored silently; iperf3 refuses it, too.
void refuse_client_options(const CLI::App& app) {
  for (const char* option :
       {"--time", "--bytes", "--length", "--parallel", "--reverse", "--bidir", "--bitrate",
        "--window", "--omit", "--cport", "--connect-timeout", "--verify", "--get-server-output",
        "--latency", "--depth", "--rate", "--size", "--response-size"}) {
    if (app.count(option) > 0) {
      usage_error(
          fmt::format("{} is an option of the client; the server takes it from there", option));
    }
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  Options options;
  RawOptions raw;
  CLI::App app;
  app.set_help_flag();
  declare_common(app, options, raw);
  declare_client(app, options, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    usage_error(error.what());
  }
  if (raw.help || raw.version) {
    std::fputs((raw.help ? help_text() : version_text()).c_str(), stdout);
    return std::nullopt;
  }
  const bool client = app.count("--client") > 0;
  if (raw.server && client) usage_error("cannot be both server (-s) and client (-c)");
  if (!raw.server && !client) usage_error("must either be a client (-c HOST) or a server (-s)");
  if (raw.v4 && raw.v6) usage_error("-4 and -6 exclude each other");
  options.role = client ? Role::client : Role::server;
  options.family = raw.v4 ? apps::Family::v4 : raw.v6 ? apps::Family::v6 : apps::Family::any;
  options.port = convert_port("-p", raw.port, 1);
  refuse_device_address(options.device);
  if (app.count("--paths") > 0 && (raw.paths == 0 || raw.paths > 64)) {
    usage_error(fmt::format("--paths {} is outside 1 to 64", raw.paths));
  }
  options.paths = static_cast<std::uint16_t>(raw.paths);
  if (!raw.format.empty()) {
    const auto format = parse_unit_format(raw.format);
    if (!format) usage_error(fmt::format("-f \"{}\": must be one of k m g t K M G T", raw.format));
    options.unit_format = *format;
  }
  if (options.interval_s != 0 && !(options.interval_s >= 0.1 && options.interval_s <= 60)) {
    usage_error(fmt::format("-i {}: must be 0 or from 0.1 to 60 seconds", options.interval_s));
  }
  if (client) {
    if (options.one_off) usage_error("-1 is an option of the server");
    convert_client(app, raw, options);
  } else {
    refuse_client_options(app);
    if (options.parameters.bins_ms > 1000) usage_error("--bins-ms must be from 1 to 1000");
  }
  return options;
}

}  // namespace perf
