#include <dist/checkpoint/folder.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/processes.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

#include "saved_folder.hpp"

using checkpoint_tests::write_checkpoint;
using support::what_throws;
using Names = std::vector<std::string>;

TEST_CASE("names_in lists the names in a folder") {
  const support::TemporaryFolder folder;
  folder.write("b", "");
  folder.write("a", "");
  folder.write(".lock", "");
  CHECK(dist::detail::names_in(folder.path()) == Names{".lock", "a", "b"});
  CHECK(dist::detail::names_in(folder.path("gone")).empty());
  CHECK(what_throws<dist::FileError>([&] { static_cast<void>(dist::detail::names_in(folder.path("a"))); }) ==
        "File '" + folder.path("a") + "' cannot be read as a folder (Not a directory). Use a readable folder.");
}

TEST_CASE("paths are split into folders and names") {
  using dist::detail::folder_of;
  using dist::detail::without_slashes;
  CHECK(folder_of("a") == ".");
  CHECK(folder_of("a/b") == "a");
  CHECK(folder_of("/a") == "/");
  CHECK(folder_of("/a/b/c") == "/a/b");
  CHECK(without_slashes("a/b//") == "a/b");
  CHECK(without_slashes("a") == "a");
  CHECK(without_slashes("/") == "/");
  CHECK(without_slashes("").empty());
}

TEST_CASE("a checkpoint is removed with the files of its saves, and other files stay") {
  const support::TemporaryFolder folder;
  write_checkpoint(folder, "one");
  REQUIRE(unlink(folder.path("one/here").c_str()) == 0);
  folder.write("one/data-77-00000-of-00001.safetensors.partial-1-0", "left");
  folder.write("one/manifest.json.partial-1-0", "left");
  dist::detail::remove_checkpoint(folder.path("one"));
  CHECK(folder.names().empty());
  write_checkpoint(folder, "two");
  dist::detail::remove_checkpoint(folder.path("two"));
  CHECK(dist::detail::names_in(folder.path("two")) == Names{"here"});
  dist::detail::remove_checkpoint(folder.path("gone"));
}

TEST_CASE("the files of earlier saves are removed, and the files of the manifest stay") {
  const support::TemporaryFolder folder;
  const Names files = write_checkpoint(folder, "one");
  folder.write("one/data-0000000000000099-00000-of-00001.safetensors", "old");
  folder.write("one/data-0000000000000099-begun", "");
  folder.write("one/manifest.json.partial-1-0", "left");
  dist::detail::remove_older_files(folder.path("one"), dist::detail::read_manifest(folder.path("one")));
  CHECK(dist::detail::names_in(folder.path("one")) == Names{files[0], files[1], "here", "manifest.json"});
}

TEST_CASE("the newest checkpoint has the largest serial number, independent of its name") {
  const support::TemporaryFolder folder;
  CHECK(dist::latest_checkpoint(folder.path("gone")) == std::nullopt);
  CHECK(dist::latest_checkpoint(folder.path()) == std::nullopt);
  write_checkpoint(folder, "z", 1, 1);
  write_checkpoint(folder, "best", 1, 12);
  write_checkpoint(folder, "k", 1, 9);
  folder.write("file", "");
  folder.write("begun/data-1-00000-of-00001.safetensors", "not complete");
  CHECK(dist::latest_checkpoint(folder.path()) == folder.path("best"));
  CHECK(dist::detail::checkpoints_in(folder.path()).size() == 3);
  folder.write("best/manifest.json", "damaged");
  CHECK(dist::latest_checkpoint(folder.path()) == folder.path("k"));
}

TEST_CASE("a folder has one lock owner across programs") {
  const support::TemporaryFolder folder;
  const auto refused = [&] {
    return what_throws<dist::FileError>([&] { const dist::detail::FolderLock second{folder.path()}; });
  };
  {
    const dist::detail::FolderLock lock{folder.path()};
    char host[256] = {};
    REQUIRE(gethostname(host, sizeof host - 1) == 0);
    const std::string holder = "process " + std::to_string(getpid()) + " on " + host;
    const auto refusal = [&](const std::string& whose) {
      return "File '" + folder.path() + "' is a folder that already has a writer of checkpoints (" + whose + holder +
             " holds its lock). Give each model its own folder, or end the other program.";
    };
    CHECK(refused() == refusal("this program itself: "));
    support::Processes other{1, [&](std::size_t) { return refused() == refusal("") ? 0 : 1; }};
    CHECK(other.wait()[0] == 0);
    folder.write(".lock", "");  // it could not be written
    CHECK(refused().find("(an unknown process holds its lock)") != std::string::npos);
  }
  folder.write(".lock", std::string(400, 'x'));  // of an exited process
  CHECK(refused() == "nothing was thrown");
  CHECK(what_throws<dist::FileError>([&] {
          const dist::detail::FolderLock lock{folder.path("gone")};
        }).starts_with("File '" + folder.path("gone/.lock") + "' cannot be created (No such file or directory)"));
}

TEST_CASE("the end of a training is marked in its checkpoint folder") {
  const support::TemporaryFolder folder;
  CHECK(dist::ended_training(folder.path("gone")) == std::nullopt);
  CHECK(dist::ended_training(folder.path()) == std::nullopt);
  dist::mark_training_ended(folder.path());
  CHECK(dist::ended_training(folder.path()) == 0);
  dist::mark_training_ended(folder.path(), 12);
  CHECK(dist::ended_training(folder.path()) == 12);
  CHECK(dist::latest_checkpoint(folder.path()) == std::nullopt);
  for (const char* damaged : {"", "\n", "12", "twelve\n", "-1\n", "12\n\n", "99999999999999999999\n"}) {
    folder.write(".ended", damaged);
    CHECK(what_throws<dist::FileError>([&] { static_cast<void>(dist::ended_training(folder.path())); }) ==
          "File '" + folder.path(".ended") +
              "' does not mark the end of a training (it is not a number of epochs and a line break). Remove it, or "
              "mark the end of the training again.");
  }
  CHECK_THROWS_AS(dist::mark_training_ended(folder.path("gone")), dist::FileError);
}
