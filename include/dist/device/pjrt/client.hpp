#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/device/await.hpp>
#include <dist/device/pjrt/api.hpp>
#include <dist/device/pjrt/processes.hpp>

namespace dist::pjrt {

/// The shared library of the plugin to use: `chosen`; where that is empty, what DIST_PJRT_PLUGIN or TPU_LIBRARY_PATH name;
/// and otherwise what the active Python environment (VIRTUAL_ENV) has, libtpu before the one plugin in xla_plugins. Throws
/// NoPlugin where there is none, or several of which nobody says which.
[[nodiscard]] std::string plugin_path(const std::string& chosen = {});

/// The plugin in the shared library at `path`, loaded and initialised by the first call for it. It stays loaded until the
/// process ends. Throws NoPlugin, and PjrtError where it cannot be initialised.
[[nodiscard]] const Api& load_plugin(const std::string& path);

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
[[nodiscard]] DeviceDescription description_of(const Api& api, PJRT_Device* device);
}  // namespace detail

/// The devices of a plugin that this process can use. Copies are the same client, which lives as long as one of them, or a
/// buffer or executable made with it. XLA's plugin for CPUs writes two lines to the standard error when it makes the first,
/// and starts threads: a process forks before.
class Client {
 public:
  /// Throws NoPlugin, PjrtError where the plugin refuses a value, or has no device, and what the store of the processes throws
  /// where the plugin asks in vain for a value of another process: DeadlineExceeded, Unavailable.
  explicit Client(const ClientOptions& options = {});

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
  [[nodiscard]] const Device& device(std::size_t index) const;
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return state_->timeout; }

 private:
  struct State {
    explicit State(const ClientOptions& options);

    [[nodiscard]] PJRT_Client* create(const ClientOptions& options);

    template <class Arguments>
    [[nodiscard]] std::string name(PJRT_Error* (*PJRT_Api::*function)(Arguments*), const char* Arguments::*text,
                                   std::size_t Arguments::*size) const;
    void find_devices();

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

namespace detail {

/// What the environment says: DIST_PJRT_VALUES, a list such as "cpu_device_count=4,name=value".
[[nodiscard]] ClientOptions options_of_environment();

}  // namespace detail

/// Says what the client of the process is made with, instead of the environment. Throws InvalidArgument where it has been
/// made already.
void set_process_options(ClientOptions options);

/// The client whose devices `Xla` names: one for the process, because a plugin such as libtpu serves one at a time. The
/// first call makes it, as set_process_options says, or else with the values of DIST_PJRT_VALUES, a list such as
/// "cpu_device_count=4". `plugin` is the shared library to use, unless set_process_options named one; where neither names
/// one, plugin_path finds it. On CPUs it makes the process reuse_memory(). Throws InvalidArgument where the client has
/// another plugin than `plugin`, and what Client's constructor throws; the next call then tries again.
[[nodiscard]] Client process_client(const std::string& plugin = {});

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/client.ipp>
#endif
