#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/device/pjrt/buffer.hpp>

namespace dist::pjrt {

/// A program that XLA has compiled for the first devices of a client, one per replica. All replicas run the same code
/// on separate buffers, and communicate through its collectives.
class Executable {
 public:
  /// Compiles a StableHLO module in text form, whose function `main` is the program. Throws ProgramRefused with XLA's
  /// message, and InvalidArgument if there are fewer devices than replicas.
  Executable(Client client, std::string_view module, std::size_t replicas = 1)
      : Executable(client, compile(client, module, replicas), replicas) {
    count_results();
  }

  /// Loads the result of `serialized` from another process with a client of the same plugin. Throws PjrtError, and
  /// InvalidArgument if there are fewer devices than replicas.
  [[nodiscard]] static Executable deserialized(Client client, std::span<const std::byte> bytes, std::size_t replicas);

  /// The handle, for functions of the plugin.
  [[nodiscard]] PJRT_LoadedExecutable* get() const noexcept { return handle_.get(); }
  /// The client whose devices run the program.
  [[nodiscard]] const Client& client() const noexcept { return client_; }
  /// The number of replicas, each on one device.
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// Number of buffers that each replica returns.
  [[nodiscard]] std::size_t results() const noexcept { return results_; }

  /// Starts the program with each replica's arguments, in the memory of its device: `arguments[replica][i]`. The
  /// results may still be computed: reads wait and report errors. Donated arguments can no longer be used. Throws
  /// InvalidArgument and PjrtError.
  [[nodiscard]] std::vector<std::vector<Buffer>> execute(std::span<const std::vector<const Buffer*>> arguments) const;

  /// Serialises the compiled program, for processes with the same plugin on the same kind of machine. Throws PjrtError
  /// if the plugin does not support it.
  [[nodiscard]] std::vector<std::byte> serialized() const;

 private:
  /// The plugin's description of a program, independent of its devices.
  using Description = Owned<&PJRT_Executable_Destroy_Args::executable, &PJRT_Api::PJRT_Executable_Destroy>;
  [[nodiscard]] Description description() const;

  Executable(Client client, PJRT_LoadedExecutable* handle, std::size_t replicas)
      : client_(std::move(client)), handle_(handle, {&client_.api()}), replicas_(replicas) {}

  void count_results();

  [[nodiscard]] static PJRT_LoadedExecutable* compile(const Client& client, std::string_view module,
                                                      std::size_t replicas);

  static void require_devices(const Client& client, std::size_t replicas);

  /// Returns XLA's CompileOptionsProto with the number of replicas, and one partition: fields 4 and 5 of field 3,
  /// executable_build_options. For CPUs, field 7, env_option_overrides, disables minima and maxima that ignore NaNs
  /// (xla/pjrt/proto/compile_options.proto).
  [[nodiscard]] static std::string compile_options(std::string_view platform, std::size_t replicas);

  Client client_;
  Owned<&PJRT_LoadedExecutable_Destroy_Args::executable, &PJRT_Api::PJRT_LoadedExecutable_Destroy> handle_;
  std::size_t replicas_;
  std::size_t results_ = 0;
};

}  // namespace dist::pjrt

#ifndef DIST_COMPILED
#include <dist/device/pjrt/executable.ipp>
#endif
