#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/checkpoint/folder.hpp>
#include <dist/core/error.hpp>

namespace dist {

struct CheckpointManagerOptions {
  /// Older checkpoints than the newest so many are removed; 0 keeps all.
  std::size_t max_to_keep = 5;
  /// Of every so many one is never removed: those whose number is a multiple of it. 0: none.
  std::uint64_t keep_every = 0;
  /// The checkpoints are "<folder>/<name>-<number>".
  std::string name = "ckpt";
};

namespace detail {

/// The checkpoints "<folder>/<name>-<number>", and the lock of who writes them.
struct CheckpointSeries {
  std::string folder;
  CheckpointManagerOptions options;
  std::optional<FolderLock> lock = std::nullopt;  ///< in the process that removes old ones

  [[nodiscard]] std::string path_of(std::uint64_t number) const {
    return concat(folder, "/", options.name, "-", number);
  }
  /// The number of "<name>-<number>".
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view name) const {
    if (!name.starts_with(options.name)) return std::nullopt;
    name.remove_prefix(options.name.size());
    if (!name.starts_with('-')) return std::nullopt;
    name.remove_prefix(1);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size() || number == 0) return std::nullopt;
    return number;
  }
  /// The checkpoints in the folder, by their numbers.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> all;
    for (const std::string& name : detail::names_in(folder))
      if (const auto number = number_of(name); number && detail::is_checkpoint(concat(folder, "/", name)))
        all.push_back(*number);
    std::sort(all.begin(), all.end());
    return all;
  }
  /// Removes what is too old, and what saves before the newest have left that did not complete.
  void remove_old() const {
    const std::vector<std::uint64_t> all = numbers();
    for (const std::string& name : names_in(folder))
      if (const auto number = number_of(name);
          number && !all.empty() && *number < all.back() && !is_checkpoint(path_of(*number)))
        remove_checkpoint(path_of(*number));
    if (options.max_to_keep == 0 || all.size() <= options.max_to_keep) return;
    for (std::size_t i = 0; i + options.max_to_keep < all.size(); ++i)
      if (options.keep_every == 0 || all[i] % options.keep_every != 0) detail::remove_checkpoint(path_of(all[i]));
  }
};

}  // namespace detail

}  // namespace dist
