#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/device/pjrt/client.hpp>
#include <dist/device/pjrt/plugin.hpp>

namespace dist::pjrt::detail {

DIST_INLINE_PJRT DeviceDescription description_of(const Api& api, PJRT_Device* device) {
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

[[nodiscard]] DIST_INLINE_PJRT PJRT_NamedValue plugin_value(const decltype(ClientOptions::values)::value_type& given) {
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

DIST_INLINE_PJRT Client::Client(const ClientOptions& options) : state_(std::make_shared<State>(options)) {}

DIST_INLINE_PJRT const Device& Client::device(std::size_t index) const {
  if (index >= devices().size())
    throw InvalidArgument(
        text("There is no device ", index),
        text("the platform ", quoted(platform()), " has ", devices().size(), ", which are numbered from 0"),
        "Name another device, or ask the plugin for more: its plugin for CPUs takes "
        "cpu_device_count among the values of ClientOptions");
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

DIST_INLINE_PJRT Client::State::State(const ClientOptions& options)
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

DIST_INLINE_PJRT PJRT_Client* Client::State::create(const ClientOptions& options) {
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
  } catch (const std::exception& error) {  // of XLA's plugin for CPUs, which reads a value as another type
    throw PjrtError(PJRT_Error_Code_INVALID_ARGUMENT,
                    text("The PJRT plugin ", quoted(api.path(), api.path().size()), " refuses to make a client"),
                    error.what(), "Give each value of ClientOptions the type that the plugin expects");
  }
  return arguments.client;
}

DIST_INLINE_PJRT void Client::State::find_devices() {
  auto list = DIST_PJRT_ARGUMENTS(PJRT_Client_AddressableDevices_Args);
  list.client = handle.get();
  api.call(&PJRT_Api::PJRT_Client_AddressableDevices, list, [] { return "to list its devices"; });
  for (PJRT_Device* const device : std::span{list.addressable_devices, list.num_addressable_devices})
    devices.push_back({detail::description_of(api, device), device});
}

}  // namespace dist::pjrt
