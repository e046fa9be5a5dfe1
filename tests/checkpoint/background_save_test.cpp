#include <dist/checkpoint/background_save.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dist/checkpoint/checkpoint_reader.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::detail::BackgroundSave;
using dist::detail::SaveTarget;
using dist::detail::Snapshot;
using support::what_throws;
using Names = std::vector<std::string>;

namespace {

Snapshot numbers(std::size_t rank, std::size_t processes) {
  Snapshot snapshot{rank, processes};
  for (int i = 0; i < 4; ++i) {
    dist::Tensor<int> values{{100}};
    for (std::size_t k = 0; k < 100; ++k) values[k] = i;
    snapshot.put("t" + std::to_string(i), std::move(values));
  }
  return snapshot;
}
SaveTarget at(const support::TemporaryFolder& folder, const std::string& name, std::uint64_t id = 1,
              std::chrono::nanoseconds timeout = std::chrono::seconds{20}) {
  folder.write(name + "/other", "");
  return {.folder = folder.path(name), .id = id, .serial = 3, .timeout = timeout};
}
std::string saving(BackgroundSave& save) {
  return what_throws<dist::FileError>([&] { save.wait(); });
}

/// Synchronised paths, in any thread.
std::mutex synced_mutex;
Names synced;

/// Number of file existence checks.
std::atomic<int> looks{0};

}  // namespace

// System calls of the tested files, which are linked with these instead of the C library's.
extern "C" int access(const char* path, int mode) noexcept {
  ++looks;
  return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, path, mode));
}
extern "C" int fsync(int descriptor) {
  char path[4096] = {};
  if (::readlink(dist::concat("/proc/self/fd/", descriptor).c_str(), path, sizeof path - 1) > 0) {
    const std::lock_guard lock{synced_mutex};
    synced.emplace_back(path);
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

TEST_CASE("new folders and files are synchronised to disk") {
  const support::TemporaryFolder folder;
  const SaveTarget place = at(folder, "new/er/est");
  synced.clear();
  BackgroundSave{place, numbers(0, 1), {}}.wait();
  const auto has = [&](const std::string& path) { return std::count(synced.begin(), synced.end(), path) > 0; };
  CHECK(has(folder.path("new/er/est")));
  CHECK(has(folder.path("new/er")));
  CHECK(has(folder.path("new")));
  CHECK(has(folder.path()));
  CHECK(std::count_if(synced.begin(), synced.end(),
                      [&](const std::string& path) { return path.find(".partial-") != std::string::npos; }) == 2);
}

TEST_CASE("a save is complete after its wait, and calls back once") {
  const support::TemporaryFolder folder;
  std::atomic<int> calls{0};
  BackgroundSave save{at(folder, "one"), numbers(0, 1), [&] {
                        CHECK(dist::detail::is_checkpoint(folder.path("one")));
                        ++calls;
                      }};
  save.wait_for_file();
  save.wait();
  save.wait();
  CHECK(save.is_done());
  CHECK(!save.is_failed());
  CHECK(calls == 1);
  CHECK(save.folder() == folder.path("one"));
  dist::detail::CheckpointReader reader{folder.path("one")};
  reader.verify();
  CHECK(reader.manifest().serial == 3);
  CHECK(reader.read<int>("t3")[7] == 3);
}

TEST_CASE("the first process waits for the files of the others, in any order") {
  const support::TemporaryFolder folder;
  std::vector<std::unique_ptr<BackgroundSave>> saves;
  for (const std::size_t rank : {2U, 0U, 1U}) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    CHECK(!dist::detail::is_checkpoint(folder.path("one")));
    saves.push_back(
        std::make_unique<BackgroundSave>(at(folder, "one"), numbers(rank, 3), dist::detail::UniqueFunction<void>{}));
  }
  for (const auto& save : saves) save->wait();
  dist::detail::CheckpointReader reader{folder.path("one")};
  reader.verify();
  CHECK(reader.keys() == Names{"t0", "t1", "t2", "t3"});
  CHECK(reader.manifest().files.size() == 3);
}

TEST_CASE("the first process polls for files with growing pauses, but at once in a wait") {
  const support::TemporaryFolder folder;
  BackgroundSave first{at(folder, "one"), numbers(0, 2), {}};
  first.wait_for_file();
  looks = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds{1300});
  CHECK(looks < 30);
  BackgroundSave{at(folder, "one"), numbers(1, 2), {}}.wait();
  const auto start = std::chrono::steady_clock::now();
  first.wait();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds{800});  // the pause is 1 s
}

TEST_CASE("waits end when another process fails, is late, or is known to be lost") {
  const support::TemporaryFolder folder;
  BackgroundSave first{at(folder, "one"), numbers(0, 2), {}};
  folder.write("one/" + dist::detail::shard_name(1, 1, 2) + ".failed", "");
  CHECK(saving(first).find(
            "is an incomplete checkpoint (process 1 could not write its part). Read the error of that process.") !=
        std::string::npos);
  CHECK(first.is_failed());
  BackgroundSave late{at(folder, "two", 2, std::chrono::milliseconds{30}), numbers(0, 2), {}};
  CHECK(saving(late).find("(process 1 did not write its part within 0.03 s). Use a folder that all processes share") !=
        std::string::npos);
  BackgroundSave cancelled{at(folder, "three", 3), numbers(0, 2), {}};
  cancelled.wait_for_file();
  CHECK(!cancelled.is_done());
  cancelled.cancel();
  CHECK(saving(cancelled).find("(another process failed)") != std::string::npos);
  // Files of incomplete saves are removed.
  for (const char* name : {"two", "three"}) CHECK(dist::detail::names_in(folder.path(name)) == Names{"other"});
}

TEST_CASE("a process that cannot write its file reports that to the first one") {
  const support::TemporaryFolder folder;
  const std::string name = dist::detail::shard_name(1, 1, 2);
  std::filesystem::create_directories(folder.path("one/" + name));
  BackgroundSave second{at(folder, "one"), numbers(1, 2), {}};
  CHECK(saving(second).find(name) != std::string::npos);
  CHECK(second.is_failed());
  CHECK(::access(folder.path("one/" + name + ".failed").c_str(), F_OK) == 0);
}

TEST_CASE("a failure without a wait is printed to stderr") {
  const support::TemporaryFolder folder;
  const testing::Ending ending = testing::stderr_of([&] {
    BackgroundSave lost{SaveTarget{.folder = folder.path("gone"), .id = 1, .serial = 1}, numbers(0, 1), {}};
  });
  CHECK(ending.says("dist: the checkpoint " + folder.path("gone") +
                    " was not saved, and the program did not wait for the result: File '" + folder.path("gone/data-")));
}

TEST_CASE("stack unwinding waits some seconds for other processes, not until the deadline") {
  const support::TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const testing::Ending ending = testing::stderr_of([&] {
    try {
      BackgroundSave save{at(folder, "one", 1, std::chrono::minutes{10}), numbers(0, 2), {}};
      throw 1;
    } catch (const int) {
    }
  });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{30});
  CHECK(ending.says("was not saved, and the program did not wait for the result"));
  // A save that completes in time is complete.
  BackgroundSave second{at(folder, "two"), numbers(1, 2), {}};
  try {
    BackgroundSave save{at(folder, "two"), numbers(0, 2), {}};
    throw 1;
  } catch (const int) {
  }
  CHECK(dist::detail::is_checkpoint(folder.path("two")));
}

TEST_CASE("the writing thread has a lower priority than computing threads") {
  const support::TemporaryFolder folder;
  std::atomic<int> niceness{0};
  BackgroundSave save{at(folder, "one"), numbers(0, 1), [&] { niceness = getpriority(PRIO_PROCESS, 0); }};
  save.wait();
  const int own = getpriority(PRIO_PROCESS, 0);
  CHECK(niceness == std::min(own + 10, 19));
}
