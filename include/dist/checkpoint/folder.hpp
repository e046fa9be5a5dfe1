/// Folders of checkpoints.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/manifest.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/core/error.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/file.hpp>
#include <dist/io/folder_names.hpp>
#include <dist/io/random_access.hpp>
#include <dist/io/writable_file.hpp>

namespace dist {

namespace detail {

/// The names in a folder, in alphabetical order, without "." and ".."; none where there is no folder. Throws FileError.
[[nodiscard]] inline std::vector<std::string> names_in(const std::string& folder) {
  return io::folder_names(folder, [&](int error) {
    if (error != ENOENT)
      throw FileError(folder, "cannot be read as a folder", std::strerror(error), "Give a folder that may be read");
  });
}

/// Removes a checkpoint, or what a save that was not completed has left: its manifest first, so that nobody takes the rest
/// for one. What cannot be removed stays.
inline void remove_checkpoint(const std::string& folder) {
  ::unlink(manifest_path(folder).c_str());
  for (const std::string& name : names_in(folder))
    if (name.starts_with("data-") || name.starts_with(manifest_name)) ::unlink(concat(folder, "/", name).c_str());
  ::rmdir(folder.c_str());
}

/// Removes the files of saves before the one that the manifest is of, and of those that were never completed.
inline void remove_older_files(const std::string& folder, const Manifest& manifest) {
  for (const std::string& name : names_in(folder)) {
    const auto is_named = [&](const ShardFile& file) { return file.name == name; };
    const bool is_of_save =
        name.starts_with("data-") || (name.starts_with(manifest_name) && name.size() > manifest_name.size());
    if (is_of_save && std::none_of(manifest.files.begin(), manifest.files.end(), is_named))
      ::unlink(concat(folder, "/", name).c_str());
  }
}

/// The path without '/' at its end.
[[nodiscard]] inline std::string without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string{path};
}
/// The folder in which the last part of a path lies that has no '/' at its end: "." where it has one part.
[[nodiscard]] inline std::string folder_of(std::string_view path) {
  const std::size_t end = path.find_last_of('/');
  if (end == std::string_view::npos) return ".";
  return std::string{end == 0 ? "/" : path.substr(0, end)};
}

/// Lets a folder that was made in `folder` outlive a power failure. Where the system does not say so, nobody is told.
inline void sync_folder(const std::string& folder) noexcept {
  const io::Descriptor opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened) ::fsync(opened.get());
}

/// The checkpoints in a folder, by their serial numbers. Those whose manifests cannot be read are left out.
struct FoundCheckpoint {
  std::string path;
  std::uint64_t serial = 0;
  std::uint64_t id = 0;  ///< of the save that wrote it
};
[[nodiscard]] inline std::vector<FoundCheckpoint> checkpoints_in(const std::string& folder) {
  std::vector<FoundCheckpoint> found;
  for (const std::string& name : names_in(folder)) {
    std::string path = concat(folder, "/", name);
    if (!is_checkpoint(path)) continue;
    try {
      const Manifest manifest = read_manifest(path);
      found.push_back({std::move(path), manifest.serial, manifest.id});
    } catch (const FileError&) {
      // Another one will be restored.
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundCheckpoint& a, const FoundCheckpoint& b) { return a.serial < b.serial; });
  return found;
}

/// Finds out whether this process may make files in a folder, rather than at the first save. Throws FileError.
inline void require_writable(const std::string& folder) {
  const std::string path = concat(folder, "/.probe-", ::getpid());
  const io::Descriptor probe{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)};
  if (!probe)
    throw FileError(folder, "is a folder in which no checkpoint can be saved", std::strerror(errno),
                    "Give a folder that all processes of the job reach, and in which they may write");
  ::unlink(path.c_str());
}

/// Held by who writes checkpoints to a folder: a second one is refused, in this process or another. The system lets go
/// when the process ends.
class FolderLock {
 public:
  /// Throws FileError, which names the process that has it, where somebody has it.
  explicit FolderLock(const std::string& folder) {
    const std::string path = concat(folder, "/.lock");
    file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file_)
      throw FileError(path, "cannot be made", std::strerror(errno), "Give a folder in which this program may write");
    const std::string me = this_process();
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string holder = read_holder();
      throw FileError(folder, "is a folder to which somebody else writes checkpoints",
                      concat(holder == me ? "this program itself, " : "", holder, ", holds its lock"),
                      "Give each model a folder of its own, or end the other program");
    }
    // Where the disk does not take it, the lock is held by a process without a name.
    if (::ftruncate(file_.get(), 0) == 0) static_cast<void>(::pwrite(file_.get(), me.data(), me.size(), 0) > 0);
  }

 private:
  [[nodiscard]] static std::string this_process() {
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    return concat("process ", ::getpid(), " on ", host[0] == '\0' ? "this machine" : static_cast<const char*>(host));
  }
  [[nodiscard]] std::string read_holder() const {
    char written[300];
    const auto size = ::pread(file_.get(), written, sizeof written, 0);
    return size > 0 ? std::string(written, static_cast<std::size_t>(size)) : "a process that left no name";
  }

  io::Descriptor file_;
};

/// Makes a folder for checkpoints, which the first process locks, and finds out in all processes of a strategy whether they may
/// write there. A collective call. Throws FileError.
template <class S>
void open_folder(const S& strategy, const std::string& folder, std::optional<FolderLock>& lock) {
  broadcast_from_chief(strategy, [&] {
    io::make_folders(folder);
    lock.emplace(folder);
    return true;
  });
  run_collectively(strategy, [&] {
    require_writable(folder);
    std::uint64_t writable = 1;
    strategy.workers().broadcast(0, std::span<std::uint64_t>{&writable, 1});
  });
}

[[nodiscard]] inline std::string end_mark_path(const std::string& folder) { return concat(folder, "/.ended"); }

}  // namespace detail

/// Tells whoever follows the checkpoints in `folder`, such as nn::SidecarEvaluator, that the training that was to go to
/// epoch `epochs` has ended, there or before: no more checkpoints will come. One process calls it. Throws FileError.
inline void mark_training_ended(const std::string& folder, std::uint64_t epochs = 0) {
  const std::string content = concat(epochs, "\n");
  io::AtomicFile file{detail::end_mark_path(folder)};
  file.append(std::as_bytes(std::span<const char>{content.data(), content.size()}));
  file.commit();
}
/// The `epochs` of the training whose end was marked last; none where none was. Throws FileError for a mark that was
/// damaged.
[[nodiscard]] inline std::optional<std::uint64_t> ended_training(const std::string& folder) {
  const std::string path = detail::end_mark_path(folder);
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  char content[32];
  const io::RandomAccessFile file{path};
  const std::size_t length = file.read_at(0, std::as_writable_bytes(std::span<char>{content}));
  std::uint64_t epochs = 0;
  const auto [end, error] = std::from_chars(content, content + length, epochs);
  if (error != std::errc{} || end + 1 != content + length || *end != '\n')
    throw FileError(path, "does not mark the end of a training", "it is not a number of epochs and the end of a line",
                    "Remove it, or let the training mark its end again");
  return epochs;
}

/// The newest checkpoint in `folder`: the path to restore; none where there is none. What processes that ended in the
/// middle of a save have left is none, and neither is one whose manifest was damaged. Throws FileError where the folder
/// cannot be read.
[[nodiscard]] inline std::optional<std::string> latest_checkpoint(const std::string& folder) {
  const std::vector<detail::FoundCheckpoint> found = detail::checkpoints_in(folder);
  if (found.empty()) return std::nullopt;
  return found.back().path;
}

}  // namespace dist
