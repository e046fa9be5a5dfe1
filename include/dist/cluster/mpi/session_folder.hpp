#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <dist/io/file.hpp>
#include <dist/net/error.hpp>

namespace dist::detail {

/// Removes the folder `name` in `parent`, with its content. Does not follow links.
inline void remove_folder(int parent, const char* name) {
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder >= 0) {
    if (DIR* entries = fdopendir(folder)) {
      while (const dirent* entry = readdir(entries)) {
        const std::string_view inside = entry->d_name;
        if (inside == "." || inside == "..") continue;
        if (unlinkat(folder, entry->d_name, 0) != 0) remove_folder(folder, entry->d_name);
      }
      closedir(entries);
    } else {
      close(folder);
    }
  }
  unlinkat(parent, name, AT_REMOVEDIR);
}

/// A memory-backed folder for a hosted world's files on a node: PMIx stores, session folders and shared segments of
/// MPI. The server removes it at exit. A killed server's folder, recognised by its released lock, is removed when this
/// user's next world starts.
class SessionFolder {
 public:
  /// Creates a folder for the files of `ranks` ranks, on disk if memory has too little room, as in a container with a
  /// small /dev/shm, where libpmix would lose its store. Throws RendezvousError.
  explicit SessionFolder(std::size_t ranks = 1) {
    const char* temporary = std::getenv("TMPDIR");
    const auto try_all = [&](std::size_t room) {
      return make("/dev/shm", room) || (temporary != nullptr && make(temporary, room)) || make("/tmp", room);
    };
    if (!try_all(ranks * room_for_a_rank) && !try_all(0))
      throw RendezvousError("The server of this node has no folder for temporary files", net::system_text(),
                            "Make /dev/shm or TMPDIR writable");
  }
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;
  ~SessionFolder() { remove_folder(AT_FDCWD, path_.c_str()); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static std::string prefix() { return concat("dist-world.", std::to_string(getuid()), "."); }

  /// for MPI's shared segments (slightly over 4 MiB) and libpmix's stores
  static constexpr std::size_t room_for_a_rank = std::size_t{8} << 20;

  bool make(const std::string& parent, std::size_t room) {
    sweep(parent);
    struct statvfs system {};
    if (room != 0 && (statvfs(parent.c_str(), &system) != 0 || system.f_bavail * system.f_frsize < room)) return false;
    for (int attempt = 0; attempt < 8; ++attempt) {
      std::string path = concat(parent, "/", prefix(), "XXXXXX");
      if (mkdtemp(path.data()) == nullptr) return false;
      lock_.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      // Another world's sweep may have removed the folder; then try the next one.
      struct stat opened {
      }, named{};
      if (lock_ && flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 && fstat(lock_.get(), &opened) == 0 &&
          stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino) {
        path_ = std::move(path);
        return true;
      }
    }
    return false;
  }

  static void sweep(const std::string& parent) {
    DIR* entries = opendir(parent.c_str());
    if (entries == nullptr) return;
    while (const dirent* entry = readdir(entries)) {
      if (!std::string_view{entry->d_name}.starts_with(prefix())) continue;
      const io::Descriptor folder{
          openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
      struct stat status {};
      if (folder && fstat(folder.get(), &status) == 0 && status.st_uid == getuid() &&
          flock(folder.get(), LOCK_EX | LOCK_NB) == 0)
        remove_folder(dirfd(entries), entry->d_name);
    }
    closedir(entries);
  }

  std::string path_;
  io::Descriptor lock_;
};

}  // namespace dist::detail
