// SPDX-License-Identifier: Apache-2.0
// srd-perf: throughput and latency of OpenSRD flows. Options in, exit code out.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "common/failure.hpp"
#include "common/signals.hpp"
#include "srd_perf/client.hpp"
#include "srd_perf/options.hpp"
#include "srd_perf/output.hpp"
#include "srd_perf/report_json.hpp"
#include "srd_perf/server.hpp"

namespace {

int run(const perf::Options& options) {
  perf::Output output(options.log_file, options.json ? "" : options.title, options.force_flush);
  try {
    return options.role == perf::Role::client ? perf::run_client(options, output)
                                              : perf::run_server(options, output);
  } catch (const apps::Failure& failure) {
    if (options.json) output.write_raw(perf::to_text(perf::make_error_report(failure.what())));
    if (!options.json) perf::complain(fmt::format("error - {}", failure.what()));
    return failure.exit_code();
  }
}

bool asks_for_json(std::span<char* const> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](std::string_view argument) {
    return argument == "-J" || argument == "--json";
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<perf::Options> options = perf::parse_options(argc, argv);
    if (!options) return apps::kExitSuccess;
    apps::install_signal_handlers();
    return run(*options);
  } catch (const apps::Failure& failure) {
    // Whoever asked for JSON can parse standard output in any case.
    if (asks_for_json({argv, static_cast<std::size_t>(argc)})) {
      std::fputs(perf::to_text(perf::make_error_report(failure.what())).c_str(), stdout);
    }
    perf::complain(failure.what());
    return failure.exit_code();
  } catch (const std::exception& error) {
    perf::complain(fmt::format("internal error: {}; please report it", error.what()));
    return apps::kExitFailure;
  }
}
