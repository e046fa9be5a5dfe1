#include <dist/checkpoint/checkpoint_manager.hpp>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/processes.hpp>
#include <support/stderr_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::Checkpoint;
using dist::CheckpointManager;
using support::what_throws;
using Names = std::vector<std::string>;

namespace {

/// A number, and checkpoints of it.
struct Training {
  dist::Default strategy;
  int step = 0;
  Checkpoint<dist::Default> checkpoint{strategy};

  Training() { checkpoint.add("step", step); }
};

void damage(const support::TemporaryFolder& folder, const std::string& checkpoint) {
  for (const std::string& name : dist::detail::names_in(folder.path(checkpoint)))
    if (name.starts_with("data-")) {
      std::string content = folder.read(checkpoint + "/" + name);
      content.back() = static_cast<char>(content.back() ^ 1);
      folder.write(checkpoint + "/" + name, content);
    }
}

}  // namespace

TEST_CASE("checkpoints are numbered, the newest are kept, and the newest is restored (spec N18)") {
  const support::TemporaryFolder folder;
  Training training;
  CheckpointManager manager{training.checkpoint, folder.path("all/of/them"), {.max_to_keep = 2, .keep_every = 3}};
  CHECK(manager.restore_latest() == std::nullopt);
  CHECK(manager.latest() == std::nullopt);
  CHECK(manager.checkpoints().empty());
  for (training.step = 1; training.step <= 5; ++training.step)
    CHECK(manager.save() == folder.path("all/of/them/ckpt-" + std::to_string(training.step)));
  CHECK(manager.checkpoints() ==
        Names{folder.path("all/of/them/ckpt-3"), folder.path("all/of/them/ckpt-4"), folder.path("all/of/them/ckpt-5")});
  CHECK(manager.latest() == folder.path("all/of/them/ckpt-5"));
  CHECK(dist::latest_checkpoint(folder.path("all/of/them")) == manager.latest());
  training.step = 0;
  CHECK(manager.restore_latest() == folder.path("all/of/them/ckpt-5"));
  CHECK(training.step == 5);
}

TEST_CASE("numbers continue after a restart, and an incomplete save is overwritten") {
  const support::TemporaryFolder folder;
  {
    Training training;
    CheckpointManager manager{training.checkpoint, folder.path(), {.name = "epoch"}};
    for (training.step = 1; training.step <= 10; ++training.step) manager.save();
  }
  folder.write("epoch-11/data-0000000000000001-00000-of-00001.safetensors.partial-1-1", "left by one that was killed");
  Training training;
  CheckpointManager manager{training.checkpoint, folder.path(), {.name = "epoch"}};
  CHECK(manager.latest() == folder.path("epoch-10"));
  CHECK(manager.restore_latest() == folder.path("epoch-10"));
  CHECK(training.step == 10);
  CHECK(manager.save() == folder.path("epoch-11"));
  CHECK(dist::detail::names_in(folder.path("epoch-11")).size() == 2);
  CHECK(manager.checkpoints().size() == 5);
}

TEST_CASE("a background save removes older checkpoints once complete, even after the manager is destroyed") {
  const support::TemporaryFolder folder;
  Training training;
  {
    CheckpointManager manager{training.checkpoint, folder.path(), {.max_to_keep = 1}};
    for (int i = 0; i < 3; ++i) static_cast<void>(manager.start_save());
  }
  training.checkpoint.save(folder.path("last"));  // waits for the previous save
  CHECK(dist::detail::names_in(folder.path()) == Names{".lock", "ckpt-3", "last"});
}

TEST_CASE("a folder has one manager") {
  const support::TemporaryFolder folder;
  Training training;
  std::optional<CheckpointManager<dist::Default>> manager;
  manager.emplace(training.checkpoint, folder.path());
  const auto second = [&] {
    return what_throws<dist::FileError>([&] { CheckpointManager{training.checkpoint, folder.path()}; });
  };
  CHECK(second().find("is a folder that already has a writer of checkpoints") != std::string::npos);
  support::Processes other{1, [&](std::size_t) {
                             Training theirs;
                             return what_throws<dist::FileError>([&] {
                                      CheckpointManager{theirs.checkpoint, folder.path()};
                                    }) == "nothing was thrown"
                                        ? 1
                                        : 0;
                           }};
  CHECK(other.wait()[0] == 0);
  manager.reset();
  CHECK(second() == "nothing was thrown");
  for (const char* name : {"", "a/b"})
    CHECK(
        what_throws<dist::InvalidArgument>([&] {
          CheckpointManager{training.checkpoint, folder.path(), {.name = name}};
        }).starts_with("CheckpointManagerOptions.name is not a valid folder name (it is '" + std::string{name} + "')"));
  folder.write("file", "");
  CHECK(what_throws<dist::FileError>([&] {
          CheckpointManager{training.checkpoint, folder.path("file/a")};
        }).starts_with("File '" + folder.path("file/a") + "'"));
}

TEST_CASE("a folder that is not writable is rejected at the start, not at the first save") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("of_others");
  support::Processes user{
      1, [&](std::size_t) {
        {
          Training training;
          const CheckpointManager before{training.checkpoint, path};
        }
        namespace fs = std::filesystem;
        fs::permissions(path + "/.lock", fs::perms::all);  // it may still be locked
        fs::permissions(path, fs::perms{0555});
        fs::permissions(folder.path(), fs::perms::all);
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct none[2] = {};
        if (syscall(SYS_capset, &header, none) != 0) return 2;  // drops root's capability to write everywhere
        const std::string said = what_throws<dist::FileError>([&] {
          Training training;
          const CheckpointManager manager{training.checkpoint, path};
        });
        return said.starts_with("File '" + path +
                                "' is a folder in which checkpoints cannot be saved (Permission denied)")
                   ? 0
                   : 1;
      }};
  CHECK(user.wait()[0] == 0);
  std::filesystem::permissions(path, std::filesystem::perms::all);  // so that it can be removed
}

TEST_CASE("a damaged newest checkpoint is skipped with a message, and the previous one is restored") {
  const support::TemporaryFolder folder;
  Training training;
  CheckpointManager manager{training.checkpoint, folder.path()};
  for (training.step = 1; training.step <= 3; ++training.step) manager.save();
  damage(folder, "ckpt-3");
  const testing::Ending ending = testing::stderr_of([&] {
    if (manager.restore_latest() != folder.path("ckpt-2") || training.step != 2) _exit(1);
    dist::log_line("it was restored");
  });
  CHECK(ending.says("it was restored"));
  CHECK(ending.says("dist: checkpoint " + folder.path("ckpt-3") + " is skipped: File '" + folder.path("ckpt-3/data-")));
  // Skips a truncated manifest, too.
  folder.write("ckpt-2/manifest.json", folder.read("ckpt-2/manifest.json").substr(0, 40));
  CHECK(manager.restore_latest() == folder.path("ckpt-1"));
  CHECK(training.step == 1);
  damage(folder, "ckpt-1");
  training.step = 77;
  const std::string said = what_throws<dist::FileError>([&] { static_cast<void>(manager.restore_latest()); });
  CHECK(
      said.starts_with("File '" + folder.path() + "' has no intact checkpoint (File '" + folder.path("ckpt-3/data-")));
  CHECK(said.ends_with("Train from the beginning, in another folder."));
  CHECK(training.step == 77);
  CHECK(manager.save() == folder.path("ckpt-4"));
  CHECK(manager.restore_latest() == folder.path("ckpt-4"));
}

TEST_CASE("an intact checkpoint that does not fit is an error, not skipped") {
  const support::TemporaryFolder folder;
  {
    Training training;
    CheckpointManager{training.checkpoint, folder.path()}.save();
  }
  dist::Default strategy;
  auto step = strategy.variable<int>({2});
  Checkpoint checkpoint{strategy};
  checkpoint.add("step", step);
  CheckpointManager manager{checkpoint, folder.path()};
  CHECK_THROWS_AS(static_cast<void>(manager.restore_latest()), dist::ShapeMismatch);
}
