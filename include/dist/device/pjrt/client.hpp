#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/device/pjrt/api.hpp>
#include <dist/device/pjrt/processes.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist::pjrt {

/// Returns the plugin's shared library: `chosen`, or if empty, DIST_PJRT_PLUGIN or TPU_LIBRARY_PATH, or else a plugin
/// in the active Python environment (VIRTUAL_ENV): libtpu, or the only plugin in xla_plugins. Throws NoPlugin if none
/// is found, or several in xla_plugins.
[[nodiscard]] std::string plugin_path(const std::string& chosen = {});

/// Loads and initialises the plugin at `path` on the first call. It is never unloaded. Throws NoPlugin, or PjrtError if
/// the initialisation fails.
[[nodiscard]] const Api& load_plugin(const std::string& path);

/// The plugin and its parameters.
struct ClientOptions {
  /// Path of the shared library; if empty, see plugin_path.
  std::string plugin = {};
  /// Named values for the plugin, such as "cpu_device_count" of XLA's CPU plugin.
  std::vector<std::pair<std::string, std::variant<std::int64_t, bool, float, std::string>>> values = {};
  /// Timeout of waits for devices and for values of other processes (0: no limit).
  std::chrono::nanoseconds timeout = longest_device_wait;
  /// The processes whose devices the plugin joins. GPU plugins get their number and the rank of this process as
  /// num_nodes and node_id. TPU plugins read the environment instead, and the CPU plugin supports one process only.
  Processes processes = {};
};

/// The plugin's description of a device, possibly of another process.
struct DeviceDescription {
  int id = 0;               ///< the plugin's number, unique among all processes
  std::string kind = {};    ///< "cpu", "TPU v4"
  std::size_t process = 0;  ///< the process that uses it
  /// Coordinates of its chip in the mesh; empty if the plugin does not report them.
  std::vector<std::int64_t> coordinates = {};
  std::int64_t core = 0;  ///< its number on the chip

  friend bool operator==(const DeviceDescription&, const DeviceDescription&) = default;
};

/// A device of a client, which must outlive this reference.
struct Device : DeviceDescription {
  PJRT_Device* handle;  ///< for functions of the plugin
};

namespace detail {
/// Throws PjrtError.
[[nodiscard]] DeviceDescription description_of(const Api& api, PJRT_Device* device);
}  // namespace detail

/// The devices of a plugin that this process can use. Copies share the client, which also lives as long as its buffers
/// and executables. XLA's CPU plugin writes two lines to stderr for the first client, and starts threads: fork before.
class Client {
 public:
  /// Throws NoPlugin; PjrtError if the plugin rejects a value or has no devices; and the errors of the process store,
  /// when the plugin waits in vain for a value of another process: DeadlineExceeded, Unavailable.
  explicit Client(const ClientOptions& options = {});

  /// The functions of the plugin.
  [[nodiscard]] const Api& api() const noexcept { return state_->api; }
  /// The handle, for functions of the plugin.
  [[nodiscard]] PJRT_Client* get() const noexcept { return state_->handle.get(); }
  /// "cpu", "tpu", "cuda".
  [[nodiscard]] const std::string& platform() const noexcept { return state_->platform; }
  /// The plugin's version text.
  [[nodiscard]] const std::string& version() const noexcept { return state_->version; }
  /// The plugin's number for this process, among the processes whose devices it joins.
  [[nodiscard]] std::size_t process() const noexcept { return state_->process; }
  /// The devices of this process.
  [[nodiscard]] const std::vector<Device>& devices() const noexcept { return state_->devices; }
  /// Throws InvalidArgument if `index` is out of range.
  [[nodiscard]] const Device& device(std::size_t index) const;
  /// The maximum wait for devices and for values of other processes; 0: no limit.
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

/// Parses DIST_PJRT_VALUES, a list such as "cpu_device_count=4,name=value".
[[nodiscard]] ClientOptions options_of_environment();

}  // namespace detail

/// Sets the options of the process's client instead of the environment. Throws InvalidArgument if the client exists.
void set_process_options(ClientOptions options);

/// Returns the client for `Xla` devices: one per process. The first call creates it with the options of
/// set_process_options, by default with the values of DIST_PJRT_VALUES, such as "cpu_device_count=4". The plugin is the
/// one in these options, or else `plugin`, or else found by plugin_path. On CPUs, calls reuse_memory(). Throws
/// InvalidArgument if the client uses another plugin than `plugin`, and the errors of Client's constructor; the next
/// call then retries.
[[nodiscard]] Client process_client(const std::string& plugin = {});

}  // namespace dist::pjrt

#ifndef DIST_COMPILED
#include <dist/device/pjrt/client.ipp>
#endif
