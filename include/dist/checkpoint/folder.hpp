#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/checkpoint/manifest.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/file.hpp>

namespace dist {

namespace detail {

/// Returns the names in a folder, sorted, without "." and ".."; none if the folder does not exist. Throws FileError.
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder);

/// Removes a checkpoint or an incomplete save, its manifest first. Ignores failures.
void remove_checkpoint(const std::string& folder);

/// Removes the files of saves before the one of `manifest`, and of incomplete saves.
void remove_older_files(const std::string& folder, const Manifest& manifest);

[[nodiscard]] std::string without_slashes(std::string_view path);
/// Returns the parent folder of a path without trailing '/': "." for a single name.
[[nodiscard]] std::string folder_of(std::string_view path);

/// Flushes the entries of `folder` to disk, so that new folders survive a power failure. Ignores errors.
void sync_folder(const std::string& folder) noexcept;

/// A checkpoint in a folder, for lists sorted by serial number. Checkpoints with unreadable manifests are skipped.
struct FoundCheckpoint {
  std::string path;
  std::uint64_t serial = 0;
  std::uint64_t id = 0;  ///< of the save that wrote it
};
[[nodiscard]] std::vector<FoundCheckpoint> checkpoints_in(const std::string& folder);

/// Checks early that this process can create files in a folder. Throws FileError.
void require_writable(const std::string& folder);

/// An exclusive lock of a folder for its writer, across processes. The system releases it when the process exits.
class FolderLock {
 public:
  /// Throws FileError with the name of the owner if the folder is locked.
  explicit FolderLock(const std::string& folder);

 private:
  [[nodiscard]] static std::string this_process();
  [[nodiscard]] std::string read_holder() const;

  io::Descriptor file_;
};

/// Opens a folder for checkpoints: the first process locks it, and all processes check that they can write there. A
/// collective call. Throws FileError.
void open_folder(const AnyStrategy& strategy, const std::string& folder, std::optional<FolderLock>& lock);

[[nodiscard]] inline std::string end_mark_path(const std::string& folder) { return concat(folder, "/.ended"); }

}  // namespace detail

/// Marks the end of a training up to epoch `epochs` for readers of the checkpoints in `folder`, such as
/// nn::SidecarEvaluator: no more checkpoints will follow, even if it ended early. Only one process calls it. Throws
/// FileError.
void mark_training_ended(const std::string& folder, std::uint64_t epochs = 0);
/// Returns the `epochs` of the last mark_training_ended, if any. Throws FileError if the mark is damaged.
[[nodiscard]] std::optional<std::uint64_t> ended_training(const std::string& folder);

/// Returns the path of the newest checkpoint in `folder`, if any. Ignores incomplete saves and damaged manifests.
/// Throws FileError if the folder cannot be read.
[[nodiscard]] std::optional<std::string> latest_checkpoint(const std::string& folder);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/checkpoint/folder.ipp>
#endif
