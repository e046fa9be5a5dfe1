#include <dist/io/atomic_file.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>

#include <io/bytes.hpp>
#include <support/processes.hpp>
#include <support/small_disk.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::FileError;
using dist::io::AtomicFile;
using dist::io::remove_abandoned;
using dist_test::Bytes;
using dist_test::bytes;
using support::what_throws;

namespace {

/// Replacements for the next system calls of a test.
struct Faults {
  std::function<ssize_t(int, const void*, std::size_t)> write;
  std::function<int()> fsync;
  std::function<int()> rename;
  std::function<void()> lock;  // called before the system call
  std::function<void(std::size_t, std::size_t)> start_writing;
} faults;

void write_file(const std::string& path, const std::string& content) {
  AtomicFile file{path};
  file.append(bytes(content));
  file.commit();
}

/// Fails with `error` once, or `times` times.
auto failing(int error, int times = 1) {
  return [=](auto&&...) mutable {
    errno = error;
    return times-- > 0 ? -1 : 0;
  };
}

}  // namespace

// The system calls of the file under test, which links to these instead of the C library's.
extern "C" ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (faults.write)
    if (const ssize_t result = faults.write(descriptor, bytes, count); result != 0) return result;
  return syscall(SYS_write, descriptor, bytes, count);
}
extern "C" int fsync(int descriptor) {
  if (faults.fsync && faults.fsync() != 0) return -1;
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}
extern "C" int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (faults.rename && faults.rename() != 0) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}

extern "C" int sync_file_range(int descriptor, off_t offset, off_t count, unsigned flags) {
  if (faults.start_writing) faults.start_writing(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
  return static_cast<int>(syscall(SYS_sync_file_range, descriptor, offset, count, flags));
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // there is also a struct flock
extern "C" int flock(int descriptor, int operation) noexcept {
  if (faults.lock) faults.lock();
  return static_cast<int>(syscall(SYS_flock, descriptor, operation));
}
#pragma GCC diagnostic pop

TEST_CASE("readers see the old content until commit, and then the new one") {
  const support::TemporaryFolder folder;
  write_file(folder.path("a"), "old");
  AtomicFile file{folder.path("a")};
  file.append(bytes("ne"));
  CHECK(folder.read("a") == "old");
  file.append({});
  file.append(bytes("west"));
  CHECK(file.size() == 6);
  CHECK(file.path() == folder.path("a"));
  CHECK(folder.read("a") == "old");
  file.commit();
  CHECK(folder.read("a") == "newest");
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("without commit, the new content is deleted and the old one stays") {
  const support::TemporaryFolder folder;
  { AtomicFile{folder.path("a")}.append(bytes("x")); }
  CHECK(folder.names().empty());
  write_file(folder.path("a"), "old");
  {
    AtomicFile first{folder.path("a")};
    AtomicFile second{folder.path("a")};  // concurrent files have different names
    first.append(bytes("first"));
    second.append(bytes("second"));
    CHECK(folder.names().size() == 3);
    AtomicFile moved{std::move(first)};
    second = std::move(moved);
    CHECK(folder.names().size() == 2);
    second.append(bytes("!"));
    CHECK(second.size() == 6);
  }
  CHECK(folder.read("a") == "old");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("a path may be relative, and the program may change its folder before commit") {
  const support::TemporaryFolder folder;
  char before[4096];
  REQUIRE(getcwd(before, sizeof before) != nullptr);
  REQUIRE(chdir(folder.path().c_str()) == 0);
  AtomicFile file{"a"};
  REQUIRE(chdir("/") == 0);
  file.append(bytes("x"));
  file.commit();
  REQUIRE(chdir(before) == 0);
  CHECK(folder.read("a") == "x");
}

TEST_CASE("the file has the permissions of a new one, and replaces a symbolic link") {
  const support::TemporaryFolder folder;
  const mode_t before = umask(027);
  write_file(folder.path("a"), "a");
  umask(before);
  struct stat made;
  REQUIRE(stat(folder.path("a").c_str(), &made) == 0);
  CHECK((made.st_mode & 0777) == 0640);
  REQUIRE(symlink("a", folder.path("link").c_str()) == 0);
  write_file(folder.path("link"), "new");
  CHECK(folder.read("a") == "a");
  CHECK(folder.read("link") == "new");
}

TEST_CASE("an object writes one content") {
  const support::TemporaryFolder folder;
  AtomicFile file{folder.path("a")};
  file.commit();
  CHECK(folder.read("a").empty());
  CHECK_THROWS_WITH_AS(file.append(bytes("x")),
                       doctest::Contains("is not open for writing (its new content was committed"), FileError);
  CHECK_THROWS_AS(file.commit(), FileError);
}

TEST_CASE("an invalid path is rejected with a suggestion") {
  const support::TemporaryFolder folder;
  const auto refused = [](const std::string& path) { return what_throws<FileError>([&] { AtomicFile{path}; }); };
  CHECK(refused("") == "File '' cannot be written (its path does not end in a file name). Use the path of a file.");
  CHECK(refused("/tmp/").find("its path does not end in a file name") != std::string::npos);
  CHECK(refused(folder.path("b/a")) == "File '" + folder.path("b/a") +
                                           "' cannot be written (No such file or directory; no part of it remains). "
                                           "Create the folder first, or correct the path.");
  write_file(folder.path("b"), "");
  CHECK(refused(folder.path("b/a")).find("(Not a directory; ") != std::string::npos);
  CHECK(refused("/dev/full").find("something other than a file has that name") != std::string::npos);
  CHECK(refused(folder.path()).find("something other than a file has that name") != std::string::npos);
  CHECK(refused(folder.path(std::string(250, 'a'))).find("Use a shorter name") != std::string::npos);
}

TEST_CASE("a short or interrupted write continues") {
  const support::TemporaryFolder folder;
  std::string content(1000, 'a');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i % 26);
  int calls = 0;
  faults.write = [&](int descriptor, const void* data, std::size_t count) -> ssize_t {
    errno = EINTR;
    if (++calls % 3 == 0) return -1;
    return syscall(SYS_write, descriptor, data, count < 7 ? count : 7);
  };
  faults.fsync = failing(EINTR, 2);
  write_file(folder.path("a"), content);
  faults = {};
  CHECK(calls > 200);
  CHECK(folder.read("a") == content);
}

TEST_CASE("write-back starts while more is appended") {
  const support::TemporaryFolder folder;
  std::vector<std::size_t> starts;
  faults.start_writing = [&](std::size_t offset, std::size_t count) {
    starts.push_back(offset);
    starts.push_back(offset + count);
  };
  const Bytes content(std::size_t{20} << 20, std::byte{1});
  AtomicFile file{folder.path("a")};
  file.append(std::span{content}.first(5 << 20));
  CHECK(starts.empty());
  file.append(std::span{content}.subspan(5 << 20));
  CHECK(starts == std::vector<std::size_t>{0, 13 << 20});
  file.commit();
  faults = {};
  CHECK(folder.read("a").size() == content.size());
}

TEST_CASE("after any failure the old content survives, no temporary file is left, and the error names the file") {
  const support::TemporaryFolder folder;
  write_file(folder.path("a"), "old");
  const auto refused = [&] {
    const std::string said = what_throws<FileError>([&] { write_file(folder.path("a"), "new"); });
    faults = {};
    CHECK(folder.read("a") == "old");
    CHECK(folder.names() == std::vector<std::string>{"a"});
    return said;
  };
  const std::string start = "File '" + folder.path("a") + "' cannot be ";
  faults.write = failing(ENOSPC);
  CHECK(refused() == start +
                         "written (No space left on device; its old content is still there). Free space on the disk, "
                         "or write to another one.");
  faults.fsync = failing(EIO);
  CHECK(refused() == start +
                         "written (Input/output error, after 3 bytes; its old content is still there). Check the "
                         "disk and the file system that hold it.");
  faults.rename = failing(EROFS);
  CHECK(refused() == start +
                         "replaced by its new content (Read-only file system, after 3 bytes; its old content is still "
                         "there). Check the permissions of its folder, or write to another one.");
}

TEST_CASE("a failure deletes the temporary file at once, and closes the object") {
  const support::TemporaryFolder folder;
  AtomicFile file{folder.path("a")};
  file.append(bytes("x"));
  faults.write = failing(EIO);
  CHECK_THROWS_AS(file.append(bytes("y")), FileError);
  faults = {};
  CHECK(folder.names().empty());
  CHECK_THROWS_WITH_AS(file.commit(), doctest::Contains("is not open for writing"), FileError);
}

TEST_CASE("a folder that cannot be synchronised is an error, although the new content is in place") {
  const support::TemporaryFolder folder;
  const auto write_with = [&](int error) {
    faults.fsync = [=, calls = 0]() mutable {
      errno = error;
      return ++calls == 2 ? -1 : 0;  // the first call is for the file
    };
    const std::string said = what_throws<FileError>([&] { write_file(folder.path("a"), "new"); });
    faults = {};
    CHECK(folder.read("a") == "new");
    return said;
  };
  CHECK(write_with(EIO) ==
        "File '" + folder.path("a") +
            "' may be lost in a power failure (its new content is written, but the folder could not be synchronised: "
            "Input/output error). Check the disk that holds it, and write the file again.");
  CHECK(write_with(EINVAL) == "nothing was thrown");  // a file system without this operation
}

TEST_CASE("exceeding the file size limit is an error, not a signal") {
  const support::TemporaryFolder folder;
  write_file(folder.path("a"), "old");
  support::Processes child{1, [&](std::size_t) {
                             const rlimit limit{4096, 4096};
                             if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
                             const std::string said = what_throws<FileError>(
                                 [&] { write_file(folder.path("a"), std::string(10'000, 'n')); });
                             sigset_t left;
                             sigpending(&left);
                             if (sigismember(&left, SIGXFSZ) != 0) return 3;
                             pthread_sigmask(SIG_SETMASK, nullptr, &left);
                             if (sigismember(&left, SIGXFSZ) != 0) return 4;
                             return said.find(
                                        "(File too large, after 4096 bytes; its old content is still there). Raise "
                                        "the limit on the size of files (ulimit -f)") != std::string::npos
                                        ? 0
                                        : 1;
                           }};
  CHECK(child.wait() == std::vector<int>{0});
  CHECK(folder.read("a") == "old");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("full and read-only disks leave the old content") {
  const support::TemporaryFolder folder;
  support::check_on_small_disk(folder.path(), "64k", [&](const auto& make_read_only) {
    write_file(folder.path("a"), "old");
    const std::string full = what_throws<FileError>([&] { write_file(folder.path("a"), std::string(200'000, 'n')); });
    if (full.find("(No space left on device, after ") == std::string::npos) return 1;
    if (folder.read("a") != "old" || folder.names().size() != 1) return 2;
    write_file(folder.path("a"), std::string(40'000, 'n'));  // the failed write has freed its space
    make_read_only();
    const std::string read_only = what_throws<FileError>([&] { write_file(folder.path("a"), "new"); });
    if (read_only.find("(Read-only file system; its old content is still there). Check the permissions of") ==
        std::string::npos)
      return 3;
    return folder.read("a").size() == 40'000 ? 0 : 4;
  });
}

TEST_CASE("a process killed at any time during 50 writes leaves the old or the new content") {
  const support::TemporaryFolder folder;
  const auto content = [](int write) {
    return std::string(static_cast<std::size_t>(20'000 + write), static_cast<char>('a' + write % 26));
  };
  write_file(folder.path("a"), content(0));
  std::size_t between = 0;
  std::size_t abandoned = 0;
  for (int kill_number = 0; kill_number < 50; ++kill_number) {
    {
      support::Processes child{1, [&](std::size_t) {
                                 for (int write = 1; write <= 50; ++write) {
                                   AtomicFile file{folder.path("a")};
                                   const Bytes all = bytes(content(write));
                                   file.append(std::span{all}.first(7'000));
                                   file.append(std::span{all}.subspan(7'000));
                                   file.commit();
                                 }
                                 return 0;
                               }};
      std::this_thread::sleep_for(std::chrono::microseconds{137 * kill_number});
      kill(child[0], SIGKILL);
      const int status = child.wait()[0];
      CHECK((status == 0 || status == 128 + SIGKILL));
    }
    const std::string found = folder.read("a");
    const int write = static_cast<int>(found.size()) - 20'000;
    REQUIRE((0 <= write && write <= 50));
    CHECK(found == content(write));
    if (0 < write && write < 50) ++between;
    abandoned += remove_abandoned(folder.path("a"));
    CHECK(folder.names() == std::vector<std::string>{"a"});
  }
  MESSAGE(between << " of 50 were killed between two writes, and left " << abandoned << " files that were taken away");
}

TEST_CASE("remove_abandoned keeps the files of running processes") {
  const support::TemporaryFolder folder;
  AtomicFile file{folder.path("a")};
  AtomicFile other{folder.path("ab")};
  file.append(bytes("x"));
  // Files of a process that has exited, and of another file name.
  write_file(folder.path("a.partial-1-0"), "left");
  write_file(folder.path("ab.partial-1-0"), "another's");
  CHECK(remove_abandoned(folder.path("a")) == 1);
  CHECK(remove_abandoned(folder.path("a")) == 0);
  CHECK(folder.read("ab.partial-1-0") == "another's");
  file.commit();
  other.commit();
  CHECK(folder.read("a") == "x");
  CHECK_THROWS_WITH_AS(remove_abandoned(folder.path("nowhere/a")),
                       doctest::Contains("cannot be searched for unfinished files"), FileError);
}

TEST_CASE("an existing temporary file with the same name is not overwritten") {
  const support::TemporaryFolder folder;
  for (int number = 0; number < 1000; ++number)
    folder.write("a.partial-" + std::to_string(getpid()) + "-" + std::to_string(number), "left");
  AtomicFile file{folder.path("a")};
  file.append(bytes("new"));
  file.commit();
  CHECK(folder.read("a") == "new");
  std::size_t left = 0;
  for (const std::string& name : folder.names())
    if (folder.read(name) == "left") ++left;
  CHECK(left == 1000);
  CHECK(remove_abandoned(folder.path("a")) == 1000);
}

TEST_CASE("a temporary file that is deleted before its lock is taken is created again") {
  const support::TemporaryFolder folder;
  int locks = 0;
  faults.lock = [&] {
    if (++locks > 2) return;
    for (const std::string& name : folder.names()) ::unlink(folder.path(name).c_str());
  };
  AtomicFile file{folder.path("a")};
  faults = {};
  CHECK(locks == 3);
  file.append(bytes("x"));
  file.commit();
  CHECK(folder.read("a") == "x");
}
