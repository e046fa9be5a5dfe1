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

/// Compiled programs in files of a folder, so that another process need not compile them again. A file has all that its
/// program was compiled from: the text, the number of replicas, the plugin (its version, size and date) and, as code for
/// CPUs is for those on which it was compiled, what they can do. Another program or plugin has another file; nothing removes
/// the old ones. Several processes may use a folder at a time.
class CompileCache {
 public:
  /// Makes the folder where there is none. Throws FileError where it cannot.
  explicit CompileCache(std::string folder);

  /// The function as a program for the client's devices (<dist/hlo/program.hpp>). Throws what `executable` throws.
  template <class Signature>
  [[nodiscard]] Program<Signature> compile(const pjrt::Client& client, const Function<Signature>& function) {
    return Program<Signature>{executable(client, function.module(), function.replicas()), function.rows()};
  }
  /// A module, for so many replicas: loaded, or compiled and kept. A file that is damaged, or that the plugin does not take,
  /// is written anew; one that cannot be written is a warning. Throws what Executable's constructor throws.
  [[nodiscard]] pjrt::Executable executable(const pjrt::Client& client, std::string_view module, std::size_t replicas);

  /// How many programs came from files, and how many were compiled.
  [[nodiscard]] std::size_t loaded() const noexcept { return loaded_; }
  [[nodiscard]] std::size_t compiled() const noexcept { return compiled_; }

 private:
  // A file is a head, the key, and the executable. The head is the format, the sizes of both, and their checksums.
  static constexpr std::string_view format = "dist-hlo";
  static constexpr std::size_t head_size = format.size() + 2 * sizeof(std::uint64_t) + sizeof(std::uint32_t);

  [[nodiscard]] static std::string key_of(const pjrt::Client& client, std::string_view module, std::size_t replicas);

  /// The model and the flags of the first processor, as Linux lists them.
  [[nodiscard]] static std::string what_cpus_can_do();

  /// The file's name is a number made from the key (FNV-1a); whether the file is the right one, the key in it says.
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

#ifndef DIST_COMPILED_PJRT
#include <dist/hlo/compile_cache.ipp>
#endif
