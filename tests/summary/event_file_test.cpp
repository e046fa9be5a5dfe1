#include <dist/summary/event_file.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <summary/wire.hpp>
#include <support/file_size_limit.hpp>
#include <support/stderr_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::FileError;
using dist::summary::EventFile;
using dist::summary::FlushPolicy;
using dist_test::events_of;

namespace {

using Events = std::vector<std::string>;

}  // namespace

TEST_CASE("the name has time, host and process, and is unique") {
  const support::TemporaryFolder folder;
  const EventFile a{folder.path("logs/train"), 1234.75, "first"};
  const EventFile b{folder.path("logs/train/"), 1234.75, "first"};
  CHECK(a.path() != b.path());
  char host[256] = {};
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  const std::string start =
      folder.path("logs/train/events.out.tfevents.0000001234.") + host + "." + std::to_string(::getpid()) + ".";
  CHECK(a.path().starts_with(start));
  CHECK(b.path().starts_with(start));
  CHECK(a.path().ends_with(".v2"));
}

TEST_CASE("the first event is written at once, others by number, by time, or by flush") {
  const support::TemporaryFolder folder;
  EventFile file{folder.path(), 0, "first", {.most_waiting = 3, .longest_wait = std::chrono::hours{1}}};
  CHECK(events_of(file.path()) == Events{"first"});
  file.append("a");
  file.append("b");
  CHECK(events_of(file.path()) == Events{"first"});
  file.append("c");
  CHECK(events_of(file.path()) == Events{"first", "a", "b", "c"});
  file.append("d");
  file.flush();
  CHECK(events_of(file.path()) == Events{"first", "a", "b", "c", "d"});

  EventFile timed{folder.path(), 0, "first", {.most_waiting = 1000, .longest_wait = std::chrono::milliseconds{40}}};
  timed.append("a");
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  timed.append("b");
  CHECK(events_of(timed.path()) == Events{"first", "a", "b"});
}

TEST_CASE("the destructor writes pending events; after close, events are rejected") {
  const support::TemporaryFolder folder;
  std::string path;
  {
    EventFile file{folder.path(), 0, "first"};
    path = file.path();
    file.append("a");
  }
  CHECK(events_of(path) == Events{"first", "a"});
  EventFile file{folder.path(), 0, "first"};
  file.append("a");
  file.close();
  CHECK(events_of(file.path()) == Events{"first", "a"});
  file.close();
  file.flush();
  CHECK_THROWS_WITH_AS(file.append("b"), doctest::Contains((file.path() + "' is closed").c_str()), FileError);
}

TEST_CASE("a folder that cannot be written is reported") {
  const support::TemporaryFolder folder;
  folder.write("file", "");
  CHECK_THROWS_WITH_AS(
      (EventFile{folder.path("file"), 0, ""}),
      doctest::Contains("cannot be created (Not a directory). Create the folder first, or correct the path."),
      FileError);
  CHECK_THROWS_WITH_AS((EventFile{"/proc/nowhere/train", 0, ""}),
                       doctest::Contains("'/proc/nowhere' cannot be created"), FileError);
  if (::geteuid() != 0) {
    std::filesystem::permissions(folder.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THROWS_WITH_AS((EventFile{folder.path(), 0, ""}), doctest::Contains("Check the permissions"), FileError);
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  }
}

TEST_CASE("at the file size limit an event is rejected, the file stays valid, and pending events are kept") {
  const support::TemporaryFolder folder;
  EventFile file{folder.path(), 0, "first", {.most_waiting = 2, .longest_wait = std::chrono::hours{1}}};
  file.append("second");
  {
    const support::FileSizeLimit limit{60};  // the first record takes 21 bytes, the second 22
    CHECK_THROWS_WITH_AS(file.append("refused"),
                         doctest::Contains((file.path() + "' cannot be written (File too large)").c_str()), FileError);
    CHECK(events_of(file.path()) == Events{"first"});
    CHECK_THROWS_AS(file.append("refused"), FileError);
  }
  file.append("third");
  CHECK(events_of(file.path()) == Events{"first", "second", "third"});
}

TEST_CASE("a failed last write is a warning with the file's name, or an error of close") {
  const support::TemporaryFolder folder;
  const testing::Ending ending = testing::stderr_of([&] {
    EventFile file{folder.path(), 0, "first"};
    file.append("second");
    static const support::FileSizeLimit limit{30};  // outlives the file
  });
  const std::filesystem::directory_iterator files{folder.path()};
  const std::string path = files->path();
  CHECK(ending.stderr_text ==
        "dist: events are lost: File '" + path +
            "' cannot be written (File too large). Raise the limit on the size of files (ulimit -f).\n");
  CHECK(events_of(path) == Events{"first"});

  EventFile file{folder.path(), 0, "first"};
  file.append("second");
  {
    const support::FileSizeLimit limit{30};
    CHECK_THROWS_AS(file.close(), FileError);
  }
  CHECK_THROWS_WITH_AS(file.append("third"), doctest::Contains("is closed"), FileError);
  CHECK(events_of(file.path()) == Events{"first"});
}
