#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/pointers.hpp>
#include <dist/device/await.hpp>
#include <dist/device/pjrt/api.hpp>
#include <dist/device/pjrt/plugin.hpp>
#include <dist/device/pjrt/processes.hpp>

namespace dist::pjrt {

/// Which plugin, and what it is told.
struct ClientOptions {
  /// Its shared library; empty: see plugin_path.
  std::string plugin = {};
  /// What the plugin knows by name: "cpu_device_count" of XLA's plugin for CPUs, for instance.
  std::vector<std::pair<std::string, std::variant<std::int64_t, bool, float, std::string>>> values = {};
  /// For each wait for its devices, and for each value of another process that the plugin asks for; 0: as long as it takes.
  std::chrono::nanoseconds timeout = longest_device_wait;
  /// Those whose devices the plugin is to join. It is told their number and that of this one, num_nodes and node_id, which
  /// plugins for GPUs need. Plugins for TPUs read the environment instead, and the one for CPUs knows one process only.
  Processes processes = {};
};

/// What a plugin says of a device, which may be one of another process.
struct DeviceDescription {
  int id = 0;               ///< the plugin's number for it, among those of all processes
  std::string kind = {};    ///< what it is: "cpu", "TPU v4"
  std::size_t process = 0;  ///< the one that uses it
  /// Where its chip is in the mesh of chips, axis by axis; empty where the plugin does not say.
  std::vector<std::int64_t> coordinates = {};
  std::int64_t core = 0;  ///< its number on its chip

  friend bool operator==(const DeviceDescription&, const DeviceDescription&) = default;
};

/// One of the devices of a client. It is a reference: the client outlives it.
struct Device : DeviceDescription {
  PJRT_Device* handle;
};

namespace detail {

/// Throws PjrtError.
[[nodiscard]] inline DeviceDescription description_of(const Api& api, PJRT_Device* device) {
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
    // The names that plugins for TPUs have.
    const std::string_view name{each.name, each.name_size};
    if (name == "coords" && each.type == PJRT_NamedValue_kInt64List)
      result.coordinates.assign(each.int64_array_value, each.int64_array_value + each.value_size);
    if (name == "core_on_chip" && each.type == PJRT_NamedValue_kInt64) result.core = each.int64_value;
  }
  return result;
}

}  // namespace detail

/// The devices of a plugin that this process can use. Copies are the same client, which lives as long as one of them, or a
/// buffer or executable made with it. XLA's plugin for CPUs writes two lines to the standard error when it makes the first,
/// and starts threads: a process forks before.
class Client {
 public:
  /// Throws NoPlugin, PjrtError where the plugin refuses a value, or has no device, and what the store of the processes throws
  /// where the plugin asks in vain for a value of another process: DeadlineExceeded, Unavailable.
  explicit Client(const ClientOptions& options = {}) : state_(std::make_shared<State>(options)) {}

  [[nodiscard]] const Api& api() const noexcept { return state_->api; }
  [[nodiscard]] PJRT_Client* get() const noexcept { return state_->handle.get(); }
  /// "cpu", "tpu", "cuda".
  [[nodiscard]] const std::string& platform() const noexcept { return state_->platform; }
  /// The version of the plugin, as it says it.
  [[nodiscard]] const std::string& version() const noexcept { return state_->version; }
  /// The number of this process among those whose devices the plugin joins, as the plugin says it.
  [[nodiscard]] std::size_t process() const noexcept { return state_->process; }
  /// Those of this process.
  [[nodiscard]] const std::vector<Device>& devices() const noexcept { return state_->devices; }
  /// Throws InvalidArgument.
  [[nodiscard]] const Device& device(std::size_t index) const {
    if (index >= devices().size())
      throw InvalidArgument(
          text("There is no device ", index),
          text("the platform ", quoted(platform()), " has ", devices().size(), ", which are numbered from 0"),
          "Name another device, or ask the plugin for more: its plugin for CPUs takes "
          "cpu_device_count among the values of ClientOptions");
    return devices()[index];
  }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return state_->timeout; }

 private:
  struct State {
    explicit State(const ClientOptions& options)
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
      api.call(&PJRT_Api::PJRT_Client_ProcessIndex, index, [] { return "to tell the number of this process"; });
      process = static_cast<std::size_t>(index.process_index);
      find_devices();
    }

    [[nodiscard]] PJRT_Client* create(const ClientOptions& options) {
      auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Client_Create_Args);
      auto wanted = options.values;
      if (options.processes.share_values()) {
        wanted.emplace_back("num_nodes", static_cast<std::int64_t>(options.processes.count()));
        wanted.emplace_back("node_id", static_cast<std::int64_t>(options.processes.index()));
        callbacks.give_to(arguments);
      }
      std::vector<PJRT_NamedValue> values;
      for (const auto& [key, value] : wanted) values.push_back(named_value(key, value));
      arguments.create_options = values.data();
      arguments.num_options = values.size();
      try {
        api.call(&PJRT_Api::PJRT_Client_Create, arguments, [] { return "to make a client"; });
      } catch (const PjrtError& error) {
        callbacks.rethrow(error.code());
        throw;
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {  // of XLA's plugin for CPUs, which reads a value as another type
        throw PjrtError(PJRT_Error_Code_INVALID_ARGUMENT,
                        text("The PJRT plugin ", quoted(api.path(), api.path().size()), " refuses to make a client"),
                        error.what(), "Give each value of ClientOptions the type that the plugin expects");
      }
      return arguments.client;
    }

    [[nodiscard]] static PJRT_NamedValue named_value(const std::string& key, const auto& value) {
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

    template <class Arguments>
    [[nodiscard]] std::string name(PJRT_Error* (*PJRT_Api::*function)(Arguments*), const char* Arguments::*text,
                                   std::size_t Arguments::*size) const {
      auto arguments = sized_arguments<Arguments>(sizeof(Arguments));
      arguments.client = handle.get();
      api.call(function, arguments, [] { return "to name its platform"; });
      return {arguments.*text, arguments.*size};
    }

    void find_devices() {
      auto list = DIST_PJRT_ARGUMENTS(PJRT_Client_AddressableDevices_Args);
      list.client = handle.get();
      api.call(&PJRT_Api::PJRT_Client_AddressableDevices, list, [] { return "to list its devices"; });
      for (PJRT_Device* const device : std::span{list.addressable_devices, list.num_addressable_devices})
        devices.push_back({detail::description_of(api, device), device});
    }

    const Api& api;
    std::chrono::nanoseconds timeout;
    detail::KeyValueCallbacks callbacks;
    Owned<&PJRT_Client_Destroy_Args::client, &PJRT_Api::PJRT_Client_Destroy> handle;
    std::string platform, version;
    std::size_t process = 0;
    std::vector<Device> devices;
  };

  std::shared_ptr<State> state_;
};

}  // namespace dist::pjrt
