// SPDX-License-Identifier: Apache-2.0
#include "base/options.hpp"

#include <algorithm>
#include <charconv>

#include "base/error_text.hpp"

namespace srd {

Options::Options(std::string_view text) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(piece.size() + 1, text.size()));
    const std::size_t equals = piece.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      complain(std::string(piece) + " is not of the form name=value");
      continue;
    }
    Option option{std::string(piece.substr(0, equals)), std::string(piece.substr(equals + 1))};
    const bool again = std::any_of(options_.begin(), options_.end(),
                                   [&](const Option& o) { return o.name == option.name; });
    if (again) complain("option " + option.name + " is given twice");
    options_.push_back(std::move(option));
  }
}

void Options::take_flag(const char* name, bool& out) {
  const Option* option = take(name, "on|off");
  if (option == nullptr) return;
  if (option->value != "on" && option->value != "off") {
    complain(option->name + "=" + option->value + ": the value must be on or off");
    return;
  }
  out = option->value == "on";
}

void Options::take_number(const char* name, std::uint64_t min, std::uint64_t max,
                          std::uint64_t& out) {
  const std::string range = std::to_string(min) + ".." + std::to_string(max);
  const Option* option = take(name, range.c_str());
  if (option == nullptr) return;
  const std::string& text = option->value;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < min || number > max) {
    complain(option->name + "=" + text + ": the value must be a number in " + range);
    return;
  }
  out = number;
}

void Options::take_text(const char* name, std::string& out) {
  const Option* option = take(name, "TEXT");
  if (option != nullptr) out = option->value;
}

Errc Options::finish(const char* subject) const {
  std::string problem = error_;
  for (const Option& option : options_) {
    if (option.taken || !problem.empty()) continue;
    problem = "unknown option " + option.name;
  }
  if (problem.empty()) return Errc::ok;
  fail(Errc::invalid_argument, "%s: %s; options are: %s", subject, problem.c_str(),
       known_.empty() ? "none" : known_.c_str());
  return Errc::invalid_argument;
}

Options::Option* Options::take(const char* name, const char* form) {
  known_.append(known_.empty() ? "" : ", ").append(name).append("=").append(form);
  for (Option& option : options_) {
    if (option.name != name) continue;
    option.taken = true;
    return &option;
  }
  return nullptr;
}

void Options::complain(std::string text) {
  if (error_.empty()) error_ = std::move(text);
}

}  // namespace srd
