// A fake PJRT plugin: it records its calls, and reports the requested devices. fake_pjrt.hpp documents its options.
#include <pjrt_c_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct PJRT_Error {
  PJRT_Error_Code code;
  std::string message;
};
struct PJRT_DeviceDescription {
  int id, process;
  std::array<std::int64_t, 3> coordinates;
  std::array<PJRT_NamedValue, 2> attributes;
};
struct PJRT_Device {
  PJRT_DeviceDescription description;
};
struct PJRT_Client {
  std::string version;
  int process = 0;
  std::vector<std::unique_ptr<PJRT_Device>> devices;
  std::vector<PJRT_Device*> all, own;
};

namespace {

PJRT_Error* fail(PJRT_Error_Code code, const std::string& message) { return new PJRT_Error{code, message}; }
PJRT_Error* callback_error(PJRT_Error_Code code, const char* message, std::size_t size) {
  return fail(code, "callback: " + std::string{message, size});
}

struct Options {
  explicit Options(const PJRT_Client_Create_Args& arguments)
      : first(arguments.create_options), count(arguments.num_options) {}

  [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t otherwise) const {
    for (std::size_t i = 0; i < count; ++i)
      if (std::string_view{first[i].name, first[i].name_size} == name && first[i].type == PJRT_NamedValue_kInt64)
        return first[i].int64_value;
    return otherwise;
  }

  const PJRT_NamedValue* first;
  std::size_t count;
};

/// Returns the value of the key, or the callback's error.
std::pair<std::string, PJRT_Error*> get(const PJRT_Client_Create_Args& create, const std::string& key, int timeout) {
  PJRT_CallbackError make_error = callback_error;
  PJRT_KeyValueGetCallback_Args arguments{};
  arguments.struct_size = PJRT_KeyValueGetCallback_Args_STRUCT_SIZE;
  arguments.key = key.data();
  arguments.key_size = key.size();
  arguments.timeout_in_ms = timeout;
  arguments.callback_error = &make_error;
  arguments.user_arg = create.kv_get_user_arg;
  if (PJRT_Error* const error = create.kv_get_callback(&arguments)) return {"", error};
  std::string value{arguments.value, arguments.value_size};
  arguments.value_deleter_callback(arguments.value);
  return {value, nullptr};
}
std::pair<std::string, PJRT_Error*> try_get(const PJRT_Client_Create_Args& create, const std::string& key) {
  PJRT_CallbackError make_error = callback_error;
  PJRT_KeyValueTryGetCallback_Args arguments{};
  arguments.struct_size = PJRT_KeyValueTryGetCallback_Args_STRUCT_SIZE;
  arguments.key = key.data();
  arguments.key_size = key.size();
  arguments.callback_error = &make_error;
  arguments.user_arg = create.kv_try_get_user_arg;
  if (PJRT_Error* const error = create.kv_try_get_callback(&arguments)) return {"", error};
  std::string value{arguments.value, arguments.value_size};
  arguments.value_deleter_callback(arguments.value);
  return {value, nullptr};
}
PJRT_Error* put(const PJRT_Client_Create_Args& create, const std::string& key, const std::string& value) {
  PJRT_CallbackError make_error = callback_error;
  PJRT_KeyValuePutCallback_Args arguments{};
  arguments.struct_size = PJRT_KeyValuePutCallback_Args_STRUCT_SIZE;
  arguments.key = key.data();
  arguments.key_size = key.size();
  arguments.value = value.data();
  arguments.value_size = value.size();
  arguments.callback_error = &make_error;
  arguments.user_arg = create.kv_put_user_arg;
  return create.kv_put_callback(&arguments);
}

/// Publishes the number of this process's devices, and reads the numbers of other processes.
PJRT_Error* exchange(const PJRT_Client_Create_Args& create, const Options& options, PJRT_Client& client,
                     std::vector<std::int64_t>& devices) {
  const std::int64_t own = options.number("node_id", 0);
  if (auto [value, error] = try_get(create, "never put"); error == nullptr || error->code != PJRT_Error_Code_NOT_FOUND)
    return error != nullptr ? error : fail(PJRT_Error_Code_INTERNAL, "what nobody has put has the value " + value);
  else
    delete error;
  const std::string name = "devices/" + std::to_string(options.number("put_for", own));
  if (PJRT_Error* const error = put(create, name, std::to_string(devices[static_cast<std::size_t>(own)]))) return error;
  for (std::size_t process = 0; process < devices.size(); ++process) {
    const std::string key = "devices/" + std::to_string(process);
    const auto [value, error] = get(create, key, static_cast<int>(options.number("timeout_ms", 60'000)));
    if (error != nullptr) {
      if (options.number("other_error", 0) == 0) return error;
      delete error;
      return fail(PJRT_Error_Code_FAILED_PRECONDITION, "something else");
    }
    client.version += " " + key + "=" + value;
    devices[process] = std::stoll(value);
  }
  return nullptr;
}

/// Arranges the chips of two cores in one row per process.
void add_devices(PJRT_Client& client, const std::vector<std::int64_t>& devices, bool have_coordinates) {
  int id = 0;
  for (std::size_t process = 0; process < devices.size(); ++process)
    for (std::int64_t i = 0; i < devices[process]; ++i) {
      auto device = std::make_unique<PJRT_Device>();
      PJRT_DeviceDescription& its = device->description;
      its.id = id++;
      its.process = static_cast<int>(process);
      its.coordinates = {i / 2, its.process, 0};
      std::memset(its.attributes.data(), 0, sizeof its.attributes);
      const auto name = [](PJRT_NamedValue& value, std::string_view text) {
        value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
        value.name = text.data();
        value.name_size = text.size();
      };
      name(its.attributes[0], have_coordinates ? "coords" : "memory");
      its.attributes[0].type = PJRT_NamedValue_kInt64List;
      its.attributes[0].int64_array_value = its.coordinates.data();
      its.attributes[0].value_size = its.coordinates.size();
      name(its.attributes[1], have_coordinates ? "core_on_chip" : "speed");
      its.attributes[1].type = PJRT_NamedValue_kInt64;
      its.attributes[1].int64_value = i % 2;
      its.attributes[1].value_size = 1;
      client.all.push_back(device.get());
      if (its.process == client.process) client.own.push_back(device.get());
      client.devices.push_back(std::move(device));
    }
}

PJRT_Error* create(PJRT_Client_Create_Args* arguments) {
  const Options options{*arguments};
  auto client = std::make_unique<PJRT_Client>();
  client->version = "fake";
  client->process = static_cast<int>(options.number("process", options.number("node_id", 0)));
  std::vector<std::int64_t> devices(static_cast<std::size_t>(options.number("num_nodes", 1)),
                                    options.number("devices", 4));
  if (arguments->kv_get_callback != nullptr)
    if (PJRT_Error* const error = exchange(*arguments, options, *client, devices)) return error;
  devices.back() += options.number("more_devices_of_the_last", 0);
  add_devices(*client, devices, options.number("coordinates", 1) != 0);
  arguments->client = client.release();
  return nullptr;
}

PJRT_Api make_api() {
  PJRT_Api api;
  std::memset(&api, 0, sizeof api);
  const char* const version = std::getenv("DIST_FAKE_PJRT_MAJOR_VERSION");
  const char* const size = std::getenv("DIST_FAKE_PJRT_STRUCT_SIZE");
  api.struct_size = size == nullptr ? sizeof(PJRT_Api) : std::strtoull(size, nullptr, 10);
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = version == nullptr ? PJRT_API_MAJOR : std::atoi(version);
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  api.PJRT_Error_Destroy = [](PJRT_Error_Destroy_Args* arguments) { delete arguments->error; };
  api.PJRT_Error_Message = [](PJRT_Error_Message_Args* arguments) {
    arguments->message = arguments->error->message.data();
    arguments->message_size = arguments->error->message.size();
  };
  api.PJRT_Error_GetCode = [](PJRT_Error_GetCode_Args* arguments) -> PJRT_Error* {
    arguments->code = arguments->error->code;
    return nullptr;
  };
  api.PJRT_Plugin_Initialize = [](PJRT_Plugin_Initialize_Args*) -> PJRT_Error* { return nullptr; };
  api.PJRT_Client_Create = create;
  api.PJRT_Client_Destroy = [](PJRT_Client_Destroy_Args* arguments) -> PJRT_Error* {
    delete arguments->client;
    return nullptr;
  };
  api.PJRT_Client_PlatformName = [](PJRT_Client_PlatformName_Args* arguments) -> PJRT_Error* {
    arguments->platform_name = "fake tpu";
    arguments->platform_name_size = 8;
    return nullptr;
  };
  api.PJRT_Client_PlatformVersion = [](PJRT_Client_PlatformVersion_Args* arguments) -> PJRT_Error* {
    arguments->platform_version = arguments->client->version.data();
    arguments->platform_version_size = arguments->client->version.size();
    return nullptr;
  };
  api.PJRT_Client_ProcessIndex = [](PJRT_Client_ProcessIndex_Args* arguments) -> PJRT_Error* {
    arguments->process_index = arguments->client->process;
    return nullptr;
  };
  api.PJRT_Client_Devices = [](PJRT_Client_Devices_Args* arguments) -> PJRT_Error* {
    arguments->devices = arguments->client->all.data();
    arguments->num_devices = arguments->client->all.size();
    return nullptr;
  };
  api.PJRT_Client_AddressableDevices = [](PJRT_Client_AddressableDevices_Args* arguments) -> PJRT_Error* {
    arguments->addressable_devices = arguments->client->own.data();
    arguments->num_addressable_devices = arguments->client->own.size();
    return nullptr;
  };
  api.PJRT_Client_BufferFromHostBuffer = [](PJRT_Client_BufferFromHostBuffer_Args*) -> PJRT_Error* {
    return fail(PJRT_Error_Code_RESOURCE_EXHAUSTED, "a fake has no memory");
  };
  api.PJRT_Device_GetDescription = [](PJRT_Device_GetDescription_Args* arguments) -> PJRT_Error* {
    arguments->device_description = &arguments->device->description;
    return nullptr;
  };
  api.PJRT_DeviceDescription_Id = [](PJRT_DeviceDescription_Id_Args* arguments) -> PJRT_Error* {
    arguments->id = arguments->device_description->id;
    return nullptr;
  };
  api.PJRT_DeviceDescription_Kind = [](PJRT_DeviceDescription_Kind_Args* arguments) -> PJRT_Error* {
    arguments->device_kind = "TPU v0";
    arguments->device_kind_size = 6;
    return nullptr;
  };
  api.PJRT_DeviceDescription_ProcessIndex = [](PJRT_DeviceDescription_ProcessIndex_Args* arguments) -> PJRT_Error* {
    arguments->process_index = arguments->device_description->process;
    return nullptr;
  };
  api.PJRT_DeviceDescription_Attributes = [](PJRT_DeviceDescription_Attributes_Args* arguments) -> PJRT_Error* {
    arguments->attributes = arguments->device_description->attributes.data();
    arguments->num_attributes = arguments->device_description->attributes.size();
    return nullptr;
  };
  return api;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static std::vector<std::unique_ptr<PJRT_Api>> made;
  made.push_back(std::make_unique<PJRT_Api>(make_api()));
  return made.back().get();
}
