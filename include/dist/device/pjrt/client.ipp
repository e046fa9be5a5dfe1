#pragma once

#include <dlfcn.h>
#include <glob.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/parse_float.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/client.hpp>
#include <dist/device/reuse_memory.hpp>

namespace dist::pjrt::detail {

DIST_INLINE DeviceDescription description_of(const Api& api, PJRT_Device* device) {
  const auto what = [] { return "to describe a device"; };
  auto description = DIST_PJRT_ARGUMENTS(PJRT_Device_GetDescription_Args);
  description.device = device;
  api.call(&PJRT_Api::PJRT_Device_GetDescription, description, what);
  const auto ask = [&](auto function, auto arguments) {
    arguments.device_description = description.device_description;
    api.call(function, arguments, what);
    return arguments;
  };
  const auto id = ask(&PJRT_Api::PJRT_DeviceDescription_Id, DIST_PJRT_ARGUMENTS(PJRT_DeviceDescription_Id_Args));
  const auto kind = ask(&PJRT_Api::PJRT_DeviceDescription_Kind, DIST_PJRT_ARGUMENTS(PJRT_DeviceDescription_Kind_Args));
  const auto process = ask(&PJRT_Api::PJRT_DeviceDescription_ProcessIndex,
                           DIST_PJRT_ARGUMENTS(PJRT_DeviceDescription_ProcessIndex_Args));
  const auto more =
      ask(&PJRT_Api::PJRT_DeviceDescription_Attributes, DIST_PJRT_ARGUMENTS(PJRT_DeviceDescription_Attributes_Args));
  DeviceDescription result{
      id.id, {kind.device_kind, kind.device_kind_size}, static_cast<std::size_t>(process.process_index)};
  for (const PJRT_NamedValue& each : std::span{more.attributes, more.num_attributes}) {
    // Attribute names of TPU plugins.
    const std::string_view name{each.name, each.name_size};
    if (name == "coords" && each.type == PJRT_NamedValue_kInt64List)
      result.coordinates.assign(each.int64_array_value, each.int64_array_value + each.value_size);
    if (name == "core_on_chip" && each.type == PJRT_NamedValue_kInt64) result.core = each.int64_value;
  }
  return result;
}

[[nodiscard]] DIST_INLINE PJRT_NamedValue plugin_value(const decltype(ClientOptions::values)::value_type& given) {
  const auto& [key, value] = given;
  auto named = DIST_PJRT_ARGUMENTS(PJRT_NamedValue);
  named.name = key.data();
  named.name_size = key.size();
  named.value_size = 1;
  if (const auto* const number = std::get_if<std::int64_t>(&value)) {
    named.type = PJRT_NamedValue_kInt64;
    named.int64_value = *number;
  } else if (const auto* const flag = std::get_if<bool>(&value)) {
    named.type = PJRT_NamedValue_kBool;
    named.bool_value = *flag;
  } else if (const auto* const fraction = std::get_if<float>(&value)) {
    named.type = PJRT_NamedValue_kFloat;
    named.float_value = *fraction;
  } else {
    const std::string& words = *std::get_if<std::string>(&value);
    named.type = PJRT_NamedValue_kString;
    named.string_value = words.data();
    named.value_size = words.size();
  }
  return named;
}

}  // namespace dist::pjrt::detail

namespace dist::pjrt {

DIST_INLINE Client::Client(const ClientOptions& options) : state_(std::make_shared<State>(options)) {}

DIST_INLINE const Device& Client::device(std::size_t index) const {
  if (index >= devices().size())
    throw InvalidArgument(
        concat("Device ", index, " does not exist"),
        concat("the platform ", quoted(platform()), " has ", devices().size(), ", numbered from 0"),
        "Name another device, or configure more: the plugin for CPUs takes cpu_device_count among the values of "
        "ClientOptions");
  return devices()[index];
}

template <class Arguments>
std::string Client::State::name(PJRT_Error* (*PJRT_Api::*function)(Arguments*), const char* Arguments::*text,
                                std::size_t Arguments::*size) const {
  auto arguments = sized_arguments<Arguments>(sizeof(Arguments));
  arguments.client = handle.get();
  api.call(function, arguments, [] { return "to name its platform"; });
  return {arguments.*text, arguments.*size};
}

DIST_INLINE Client::State::State(const ClientOptions& options)
    : api(load_plugin(plugin_path(options.plugin))),
      timeout(options.timeout),
      callbacks(options.processes, options.timeout),
      handle(create(options), {&api}) {
  platform = name(&PJRT_Api::PJRT_Client_PlatformName, &PJRT_Client_PlatformName_Args::platform_name,
                  &PJRT_Client_PlatformName_Args::platform_name_size);
  version = name(&PJRT_Api::PJRT_Client_PlatformVersion, &PJRT_Client_PlatformVersion_Args::platform_version,
                 &PJRT_Client_PlatformVersion_Args::platform_version_size);
  auto index = DIST_PJRT_ARGUMENTS(PJRT_Client_ProcessIndex_Args);
  index.client = handle.get();
  api.call(&PJRT_Api::PJRT_Client_ProcessIndex, index, [] { return "to return the number of this process"; });
  process = static_cast<std::size_t>(index.process_index);
  find_devices();
}

DIST_INLINE PJRT_Client* Client::State::create(const ClientOptions& options) {
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Client_Create_Args);
  auto wanted = options.values;
  if (options.processes.share_values()) {
    wanted.emplace_back("num_nodes", static_cast<std::int64_t>(options.processes.count()));
    wanted.emplace_back("node_id", static_cast<std::int64_t>(options.processes.index()));
    callbacks.give_to(arguments);
  }
  std::vector<PJRT_NamedValue> values;
  for (const auto& each : wanted) values.push_back(detail::plugin_value(each));
  arguments.create_options = values.data();
  arguments.num_options = values.size();
  try {
    api.call(&PJRT_Api::PJRT_Client_Create, arguments, [] { return "to make a client"; });
  } catch (const PjrtError& error) {
    callbacks.rethrow(error.code());
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // from XLA's CPU plugin, if a value has the wrong type
    throw PjrtError(PJRT_Error_Code_INVALID_ARGUMENT,
                    concat("The PJRT plugin ", quoted(api.path(), api.path().size()), " refuses to make a client"),
                    error.what(), "Give each value of ClientOptions the type that the plugin expects");
  }
  return arguments.client;
}

DIST_INLINE void Client::State::find_devices() {
  auto list = DIST_PJRT_ARGUMENTS(PJRT_Client_AddressableDevices_Args);
  list.client = handle.get();
  api.call(&PJRT_Api::PJRT_Client_AddressableDevices, list, [] { return "to list its devices"; });
  for (PJRT_Device* const device : std::span{list.addressable_devices, list.num_addressable_devices})
    devices.push_back({detail::description_of(api, device), device});
}

}  // namespace dist::pjrt

namespace dist::pjrt::detail {

/// Returns the files that match a pattern such as "/usr/lib/*.so", sorted by name.
[[nodiscard]] DIST_INLINE std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

}  // namespace dist::pjrt::detail

namespace dist::pjrt {

DIST_INLINE std::string plugin_path(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  for (const char* name : {"DIST_PJRT_PLUGIN", "TPU_LIBRARY_PATH"})
    if (const char* const path = std::getenv(name); path != nullptr && *path != 0) return path;
  const char* const environment = std::getenv("VIRTUAL_ENV");
  constexpr std::string_view how =
      "Name the plugin's shared library in DIST_PJRT_PLUGIN; PyPI's xla-cpu-pjrt has one for CPUs, libtpu one for TPUs";
  if (environment == nullptr)
    throw NoPlugin("No PJRT plugin was found",
                   "neither DIST_PJRT_PLUGIN nor TPU_LIBRARY_PATH is set, and no Python environment is active", how);
  const std::string packages = concat(environment, "/lib/python3*/site-packages/");
  if (const auto tpu = detail::files_like(packages + "libtpu/libtpu.so"); !tpu.empty()) return tpu.front();
  const std::string pattern = packages + "xla_plugins/*/*.so";
  const std::vector<std::string> found = detail::files_like(pattern);
  if (found.empty())
    throw NoPlugin("No PJRT plugin was found",
                   concat("neither DIST_PJRT_PLUGIN nor TPU_LIBRARY_PATH is set, and no file matches ",
                          quoted(pattern, pattern.size())),
                   how);
  if (found.size() > 1)
    throw NoPlugin("The choice of a PJRT plugin is ambiguous",
                   concat("found ", quoted(found[0], 200), " and ", quoted(found[1], 200)), how);
  return found.front();
}

DIST_INLINE const Api& load_plugin(const std::string& path) {
  static std::mutex mutex;
  // Never destroyed: static clients may outlive it.
  static auto& loaded = *new std::vector<std::unique_ptr<const Api>>;
  const std::lock_guard lock{mutex};
  for (const std::unique_ptr<const Api>& known : loaded)
    if (known->path() == path) return *known;
  const auto refuse = [&](std::string_view why) {
    throw NoPlugin(concat("The PJRT plugin ", quoted(path, path.size()), " cannot be loaded"), why,
                   "Name the shared library of a plugin, or install it again");
  };
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    refuse(printable(error == nullptr ? "the reason is unknown" : error, 500));
  }
  // POSIX returns functions as object pointers.
  const auto get_functions = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get_functions == nullptr) refuse("it has no function GetPjrtApi");
  const PJRT_Api* const functions = get_functions();
  if (functions == nullptr) refuse("its function GetPjrtApi returns nothing");
  auto api = std::make_unique<Api>(functions, path);
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Plugin_Initialize_Args);
  api->call(&PJRT_Api::PJRT_Plugin_Initialize, arguments, [] { return "to be initialised"; });
  return *loaded.emplace_back(std::move(api));
}

}  // namespace dist::pjrt

namespace dist::pjrt::detail {

/// The client of the process, and its options.
struct ProcessClient {
  std::mutex mutex;
  std::optional<ClientOptions> options;
  std::optional<Client> client;

  [[nodiscard]] static ProcessClient& get() {
    static ProcessClient of_process;
    return of_process;
  }
};

/// Parses "cpu_device_count=4" as a value of ClientOptions: an integer, true or false, a number, or else text.
[[nodiscard]] DIST_INLINE decltype(ClientOptions::values)::value_type named_value(std::string_view entry) {
  const std::size_t equals = entry.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    throw InvalidArgument("DIST_PJRT_VALUES cannot be read", concat(quoted(entry), " is not of the form name=value"),
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

DIST_INLINE ClientOptions options_of_environment() {
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

DIST_INLINE void set_process_options(ClientOptions options) {
  detail::ProcessClient& of_process = detail::ProcessClient::get();
  const std::lock_guard lock{of_process.mutex};
  if (of_process.client)
    throw InvalidArgument("The options of the client of this process cannot be changed",
                          concat("it has already been created, on platform ", quoted(of_process.client->platform())),
                          "Call pjrt::set_process_options before the first strategy on Xla devices is created");
  of_process.options = std::move(options);
}

DIST_INLINE Client process_client(const std::string& plugin) {
  detail::ProcessClient& of_process = detail::ProcessClient::get();
  const std::lock_guard lock{of_process.mutex};
  if (!of_process.client) {
    ClientOptions options = of_process.options ? *of_process.options : detail::options_of_environment();
    if (options.plugin.empty()) options.plugin = plugin;
    of_process.client.emplace(options);
    if (of_process.client->platform() == "cpu") reuse_memory();  // because each call of a program allocates new blocks
  }
  const std::string& path = of_process.client->api().path();
  if (!plugin.empty() && plugin != path)
    throw InvalidArgument(
        "A process has one PJRT plugin, but two were named",
        concat(quoted(path, path.size()), " is in use, and ", quoted(plugin, plugin.size()), " was requested"),
        "Name the same plugin for all strategies of the process");
  return *of_process.client;
}

}  // namespace dist::pjrt
