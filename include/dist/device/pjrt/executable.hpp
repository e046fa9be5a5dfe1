#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/device/pjrt/buffer.hpp>

namespace dist::pjrt {

/// A program that XLA has compiled for the first devices of a client, one for each replica. All replicas run the same
/// code on buffers of their own, and meet in its collectives.
class Executable {
 public:
  /// Compiles a module of StableHLO, as text, whose function `main` is the program. Throws ProgramRefused with XLA's words,
  /// and InvalidArgument where there are fewer devices than replicas.
  Executable(Client client, std::string_view module, std::size_t replicas = 1)
      : Executable(client, compile(client, module, replicas), replicas) {
    count_results();
  }

  /// What `serialized` gave another process with a client of the same plugin. Throws PjrtError, and InvalidArgument where
  /// there are fewer devices than replicas.
  [[nodiscard]] static Executable deserialized(Client client, std::span<const std::byte> bytes, std::size_t replicas);

  [[nodiscard]] PJRT_LoadedExecutable* get() const noexcept { return handle_.get(); }
  [[nodiscard]] const Client& client() const noexcept { return client_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// How many buffers each replica returns.
  [[nodiscard]] std::size_t results() const noexcept { return results_; }

  /// Starts the program with the arguments of each replica, which lie on its device: `arguments[replica][i]`. The results
  /// are buffers that devices may still compute: whoever reads them waits, and learns what went wrong. Arguments that the
  /// program declares as donated are gone afterwards. Throws InvalidArgument and PjrtError.
  [[nodiscard]] std::vector<std::vector<Buffer>> execute(std::span<const std::vector<const Buffer*>> arguments) const;

  /// The compiled program, for processes with a client of the same plugin on the same kind of machine. Throws PjrtError
  /// where the plugin cannot.
  [[nodiscard]] std::vector<std::byte> serialized() const;

 private:
  /// What the plugin says of a program, apart from the devices on which it is loaded.
  using Description = Owned<&PJRT_Executable_Destroy_Args::executable, &PJRT_Api::PJRT_Executable_Destroy>;
  [[nodiscard]] Description description() const;

  Executable(Client client, PJRT_LoadedExecutable* handle, std::size_t replicas)
      : client_(std::move(client)), handle_(handle, {&client_.api()}), replicas_(replicas) {}

  void count_results();

  [[nodiscard]] static PJRT_LoadedExecutable* compile(const Client& client, std::string_view module,
                                                      std::size_t replicas);

  static void require_devices(const Client& client, std::size_t replicas);

  /// XLA's CompileOptionsProto with the number of replicas, and one partition: field 3, executable_build_options, has them
  /// as its fields 4 and 5. For CPUs field 7, env_option_overrides, turns off maxima and minima that lose NaNs
  /// (xla/pjrt/proto/compile_options.proto).
  [[nodiscard]] static std::string compile_options(std::string_view platform, std::size_t replicas);

  Client client_;
  Owned<&PJRT_LoadedExecutable_Destroy_Args::executable, &PJRT_Api::PJRT_LoadedExecutable_Destroy> handle_;
  std::size_t replicas_;
  std::size_t results_ = 0;
};

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/executable.ipp>
#endif
