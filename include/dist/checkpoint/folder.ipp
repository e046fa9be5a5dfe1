#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <span>
#include <utility>

#include <dist/checkpoint/folder.hpp>
#include <dist/io/random_access.hpp>

namespace dist::detail {

DIST_INLINE std::vector<std::string> names_in(const std::string& folder) {
  return io::folder_names(folder, [&](int error) {
    if (error != ENOENT)
      throw FileError(folder, "cannot be read as a folder", std::strerror(error), "Use a readable folder");
  });
}

DIST_INLINE void remove_checkpoint(const std::string& folder) {
  ::unlink(manifest_path(folder).c_str());
  for (const std::string& name : names_in(folder))
    if (name.starts_with("data-") || name.starts_with(manifest_name)) ::unlink(concat(folder, "/", name).c_str());
  ::rmdir(folder.c_str());
}

DIST_INLINE void remove_older_files(const std::string& folder, const Manifest& manifest) {
  for (const std::string& name : names_in(folder)) {
    const auto is_named = [&](const ShardFile& file) { return file.name == name; };
    const bool is_of_save =
        name.starts_with("data-") || (name.starts_with(manifest_name) && name.size() > manifest_name.size());
    if (is_of_save && std::none_of(manifest.files.begin(), manifest.files.end(), is_named))
      ::unlink(concat(folder, "/", name).c_str());
  }
}

DIST_INLINE std::string without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string{path};
}

DIST_INLINE std::string folder_of(std::string_view path) {
  const std::size_t end = path.find_last_of('/');
  if (end == std::string_view::npos) return ".";
  return std::string{end == 0 ? "/" : path.substr(0, end)};
}

DIST_INLINE void sync_folder(const std::string& folder) noexcept {
  const io::Descriptor opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened) ::fsync(opened.get());
}

DIST_INLINE std::vector<FoundCheckpoint> checkpoints_in(const std::string& folder) {
  std::vector<FoundCheckpoint> found;
  for (const std::string& name : names_in(folder)) {
    std::string path = concat(folder, "/", name);
    if (!is_checkpoint(path)) continue;
    try {
      const Manifest manifest = read_manifest(path);
      found.push_back({std::move(path), manifest.serial, manifest.id});
      // Insertion: std::sort would be most of the code here.
      for (std::size_t i = found.size() - 1; i > 0 && found[i].serial < found[i - 1].serial; --i)
        std::swap(found[i], found[i - 1]);
    } catch (const FileError&) {
      // Skipped, so that an older one is restored.
    }
  }
  return found;
}

DIST_INLINE void require_writable(const std::string& folder) {
  const std::string path = concat(folder, "/.probe-", ::getpid());
  const io::Descriptor probe{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)};
  if (!probe)
    throw FileError(folder, "is a folder in which checkpoints cannot be saved", std::strerror(errno),
                    "Use a folder in which all processes of the job can write");
  ::unlink(path.c_str());
}

DIST_INLINE FolderLock::FolderLock(const std::string& folder) {
  const std::string path = concat(folder, "/.lock");
  file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_)
    throw FileError(path, "cannot be created", std::strerror(errno), "Use a folder in which this program can write");
  const std::string me = this_process();
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    const std::string holder = read_holder();
    throw FileError(folder, "is a folder that already has a writer of checkpoints",
                    concat(holder == me ? "this program itself: " : "", holder, " holds its lock"),
                    "Give each model its own folder, or end the other program");
  }
  // If the disk is full, the lock has no owner name.
  if (::ftruncate(file_.get(), 0) == 0) static_cast<void>(::pwrite(file_.get(), me.data(), me.size(), 0) > 0);
}

DIST_INLINE std::string FolderLock::this_process() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return concat("process ", ::getpid(), " on ", host[0] == '\0' ? "this machine" : static_cast<const char*>(host));
}

DIST_INLINE std::string FolderLock::read_holder() const {
  char written[300];
  const auto size = ::pread(file_.get(), written, sizeof written, 0);
  return size > 0 ? std::string(written, static_cast<std::size_t>(size)) : "an unknown process";
}

DIST_INLINE void open_folder(const AnyStrategy& strategy, const std::string& folder, std::optional<FolderLock>& lock) {
  strategy.broadcast_from_chief([&] {
    io::make_folders(folder);
    lock.emplace(folder);
    return std::uint64_t{1};
  });
  strategy.run_collectively([&] {
    require_writable(folder);
    std::uint64_t writable[1] = {1};
    strategy.broadcast(writable);
  });
}

}  // namespace dist::detail

namespace dist {

DIST_INLINE void mark_training_ended(const std::string& folder, std::uint64_t epochs) {
  const std::string content = concat(epochs, "\n");
  io::AtomicFile file{detail::end_mark_path(folder)};
  file.append(std::as_bytes(std::span<const char>{content.data(), content.size()}));
  file.commit();
}

DIST_INLINE std::optional<std::uint64_t> ended_training(const std::string& folder) {
  const std::string path = detail::end_mark_path(folder);
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  char content[32];
  const io::RandomAccessFile file{path};
  const std::size_t length = file.read_at(0, std::as_writable_bytes(std::span<char>{content}));
  std::uint64_t epochs = 0;
  const auto [end, error] = std::from_chars(content, content + length, epochs);
  if (error != std::errc{} || end + 1 != content + length || *end != '\n')
    throw FileError(path, "does not mark the end of a training", "it is not a number of epochs and a line break",
                    "Remove it, or mark the end of the training again");
  return epochs;
}

DIST_INLINE std::optional<std::string> latest_checkpoint(const std::string& folder) {
  const std::vector<detail::FoundCheckpoint> found = detail::checkpoints_in(folder);
  if (found.empty()) return std::nullopt;
  return found.back().path;
}

}  // namespace dist
