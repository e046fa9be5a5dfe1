#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/parse_float.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/process_client.hpp>
#include <dist/device/reuse_memory.hpp>

namespace dist::pjrt::detail {

/// The client of the process, and what it is to be made with.
struct ProcessClient {
  std::mutex mutex;
  std::optional<ClientOptions> options;
  std::optional<Client> client;

  [[nodiscard]] static ProcessClient& get() {
    static ProcessClient of_process;
    return of_process;
  }
};

/// "cpu_device_count=4" as a value of ClientOptions: a whole number, true or false, a number, or else text.
[[nodiscard]] DIST_INLINE_PJRT decltype(ClientOptions::values)::value_type named_value(std::string_view entry) {
  const std::size_t equals = entry.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    throw InvalidArgument("DIST_PJRT_VALUES cannot be read", text(quoted(entry), " is not of the form name=value"),
                          "Give values for the plugin as in DIST_PJRT_VALUES=cpu_device_count=4,name=value");
  std::string name{entry.substr(0, equals)};
  const std::string_view value = entry.substr(equals + 1);
  const auto is_all = [&](const std::from_chars_result& read) {
    return read.ec == std::errc{} && read.ptr == value.data() + value.size();
  };
  std::int64_t whole = 0;
  if (is_all(std::from_chars(value.data(), value.data() + value.size(), whole))) return {std::move(name), whole};
  if (value == "true" || value == "false") return {std::move(name), value == "true"};
  float number = 0;
  if (is_all(dist::detail::parse_float(value.data(), value.data() + value.size(), number)))
    return {std::move(name), number};
  return {std::move(name), std::string{value}};
}

DIST_INLINE_PJRT ClientOptions options_of_environment() {
  ClientOptions options;
  const char* const list = std::getenv("DIST_PJRT_VALUES");
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    options.values.push_back(named_value(rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return options;
}

}  // namespace dist::pjrt::detail

namespace dist::pjrt {

DIST_INLINE_PJRT void set_process_options(ClientOptions options) {
  detail::ProcessClient& of_process = detail::ProcessClient::get();
  const std::lock_guard lock{of_process.mutex};
  if (of_process.client)
    throw InvalidArgument("The client of this process cannot be given other options",
                          text("it has been made, on platform ", quoted(of_process.client->platform())),
                          "Call pjrt::set_process_options before the first strategy on Xla devices is made");
  of_process.options = std::move(options);
}

DIST_INLINE_PJRT Client process_client(const std::string& plugin) {
  detail::ProcessClient& of_process = detail::ProcessClient::get();
  const std::lock_guard lock{of_process.mutex};
  if (!of_process.client) {
    ClientOptions options = of_process.options ? *of_process.options : detail::options_of_environment();
    if (options.plugin.empty()) options.plugin = plugin;
    of_process.client.emplace(options);
    if (of_process.client->platform() == "cpu") reuse_memory();  // of which every call of a program takes new blocks
  }
  const std::string& path = of_process.client->api().path();
  if (!plugin.empty() && plugin != path)
    throw InvalidArgument(
        "A process has one PJRT plugin, and two were named",
        text(quoted(path, path.size()), " is in use, and ", quoted(plugin, plugin.size()), " was asked for"),
        "Name the same plugin for all strategies of the process");
  return *of_process.client;
}

}  // namespace dist::pjrt
