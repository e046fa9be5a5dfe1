#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/device/pjrt/executable.hpp>

namespace dist::hlo {

template <class Signature>
class Function;
template <class Signature>
class Program;

/// A folder of compiled programs, which several processes may share. The key of a file includes all inputs of the
/// compilation: the module, the number of replicas, the plugin (version, size and date) and, for CPU code, the CPU's
/// features. Old files are never removed.
class CompileCache {
 public:
  /// Creates the folder if necessary. Throws FileError.
  explicit CompileCache(std::string folder);

  /// Compiles a function for the client's devices (<dist/hlo/program.hpp>). Throws the errors of `executable`.
  template <class Signature>
  [[nodiscard]] Program<Signature> compile(const pjrt::Client& client, const Function<Signature>& function) {
    return Program<Signature>{executable(client, function.module(), function.replicas()), function.rows()};
  }
  /// Loads a module's executable, or compiles and stores it. Replaces a file that is damaged or that the plugin
  /// rejects. A file that cannot be written causes a warning. Throws the errors of Executable's constructor.
  [[nodiscard]] pjrt::Executable executable(const pjrt::Client& client, std::string_view module, std::size_t replicas);

  /// The number of programs that this object loaded from the folder.
  [[nodiscard]] std::size_t loaded() const noexcept { return loaded_; }
  /// The number of programs that this object compiled, because the folder did not have them.
  [[nodiscard]] std::size_t compiled() const noexcept { return compiled_; }

 private:
  // Header (format, both sizes, checksum), key, executable.
  static constexpr std::string_view format = "dist-hlo";
  static constexpr std::size_t head_size = format.size() + 2 * sizeof(std::uint64_t) + sizeof(std::uint32_t);

  [[nodiscard]] static std::string key_of(const pjrt::Client& client, std::string_view module, std::size_t replicas);

  /// Model and features of the first processor, as listed by Linux.
  [[nodiscard]] static std::string what_cpus_can_do();

  /// The file's name is a hash of the key (FNV-1a); the key in the file detects collisions.
  [[nodiscard]] std::string path_of(std::string_view key) const;

  [[nodiscard]] static std::optional<pjrt::Executable> load(const pjrt::Client& client, const std::string& path,
                                                            std::string_view key, std::size_t replicas);

  static void keep(const std::string& path, std::string_view key, const pjrt::Executable& executable);

  [[nodiscard]] static std::vector<std::byte> head_of(std::string_view key, std::span<const std::byte> program);

  std::string folder_;
  std::size_t loaded_ = 0;
  std::size_t compiled_ = 0;
};

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/compile_cache.ipp>
#endif
