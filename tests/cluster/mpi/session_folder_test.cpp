#include <dist/cluster/mpi/session_folder.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <optional>

#include <support/processes.hpp>

using dist::detail::SessionFolder;

namespace {

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

void make_file(const std::string& path) { close(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }

}  // namespace

TEST_CASE("a world's folder is private, and removed with its content") {
  std::string path;
  {
    const SessionFolder directory;
    path = directory.path();
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    REQUIRE(mkdir((path + "/a").c_str(), 0700) == 0);
    REQUIRE(mkdir((path + "/a/b").c_str(), 0700) == 0);
    make_file(path + "/a/b/file");
    REQUIRE(symlink("/tmp", (path + "/link").c_str()) == 0);
  }
  CHECK_FALSE(exists(path));
  CHECK(exists("/tmp"));
}

TEST_CASE("a world's folder is where its files fit, or anywhere if they fit nowhere") {
  struct statvfs memory {
  }, disk{};
  REQUIRE(statvfs("/dev/shm", &memory) == 0);
  REQUIRE(statvfs("/tmp", &disk) == 0);
  unsetenv("TMPDIR");
  constexpr std::size_t mebibyte = 1 << 20;
  const std::size_t free_memory = memory.f_bavail * memory.f_frsize / mebibyte;
  const std::size_t free_disk = disk.f_bavail * disk.f_frsize / mebibyte;
  if (free_memory > 64) CHECK(SessionFolder{1}.path().starts_with("/dev/shm/"));
  if (free_disk > 2 * free_memory + 64) CHECK(SessionFolder{free_memory / 8 + 2}.path().starts_with("/tmp/"));
  const SessionFolder too_large{std::size_t{1} << 40};
  CHECK(exists(too_large.path()));
}

TEST_CASE("files of a killed server are removed by the next, and folders in use are not") {
  const SessionFolder other;
  make_file(other.path() + "/used");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  {
    support::Processes killed{1, [&](std::size_t) {
                                const SessionFolder left;
                                make_file(left.path() + "/store");
                                CHECK(write(ends[1], left.path().c_str(), left.path().size()) > 0);
                                raise(SIGKILL);
                                return 0;
                              }};
    killed.wait();
  }
  char bytes[256];
  const ssize_t size = read(ends[0], bytes, sizeof bytes);
  REQUIRE(size > 0);
  const std::string left{bytes, static_cast<std::size_t>(size)};
  CHECK(exists(left + "/store"));
  const SessionFolder next;
  CHECK_FALSE(exists(left));
  CHECK(exists(other.path() + "/used"));
  CHECK(next.path() != other.path());
  close(ends[0]);
  close(ends[1]);
}
