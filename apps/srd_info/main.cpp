// SPDX-License-Identifier: Apache-2.0
// srd-info: the drivers of this build, what they can do on this host, and what would make them
// better.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "srd/srd.hpp"

#include "common/failure.hpp"
#include "common/version.hpp"
#include "srd_info/report.hpp"

namespace {

constexpr const char* kHelp = R"(Usage: srd-info [--json]

Lists the OpenSRD drivers of this build: whether each works on this host, its capabilities
and limits, what the kernel lacks, and the command that fixes it.

  --json         the same as one JSON document
  -h, --help     this text
  -v, --version  the version

Exit codes: 0 at least one driver is usable, 1 none is, 2 usage.

Examples:
  srd-info
  srd-info --json
)";

int run(int argc, char** argv) {
  CLI::App app;
  app.set_help_flag();
  bool json = false;
  bool help = false;
  bool version = false;
  app.add_flag("--json", json);
  app.add_flag("-h,--help", help);
  app.add_flag("-v,--version", version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw apps::Failure(apps::kExitUsage,
                        std::string(error.what()) + "\nsrd-info --help lists all options");
  }
  if (help) {
    std::fputs(kHelp, stdout);
    return apps::kExitSuccess;
  }
  if (version) {
    std::fputs(fmt::format("srd-info {} (OpenSRD)\n", apps::version_text()).c_str(), stdout);
    return apps::kExitSuccess;
  }
  const auto devices = srd::devices();
  const std::string text =
      json ? info::json_report(devices).dump(2) + "\n" : info::text_report(devices);
  std::fputs(text.c_str(), stdout);
  return info::any_usable(devices) ? apps::kExitSuccess : apps::kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const apps::Failure& failure) {
    std::fputs(fmt::format("srd-info: {}\n", failure.what()).c_str(), stderr);
    return failure.exit_code();
  } catch (const std::exception& error) {
    std::fputs(
        fmt::format("srd-info: internal error: {}; please report it\n", error.what()).c_str(),
        stderr);
    return apps::kExitFailure;
  }
}
