// Processes that are killed during saves: the old or the new state is restored, and never one older than the last
// acknowledged save.
#include <dist/checkpoint/checkpoint_manager.hpp>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>
#include <support/processes.hpp>
#include <support/temporary_folder.hpp>

namespace {

constexpr int kills = 100;  // in each test
constexpr std::size_t elements = 20'000;

/// Numbers that all equal the step.
struct Training {
  dist::Default strategy;
  dist::DistributedVariable<double, dist::OnWrite, dist::None, dist::Cpu> weights =
      strategy.variable<double>({elements});
  std::int64_t step = 0;
  dist::Checkpoint<dist::Default> checkpoint{strategy};

  Training() { checkpoint.add("weights", weights).add("step", step); }

  void advance() {
    ++step;
    weights.assign(strategy.scope(), static_cast<double>(step));
  }
};

/// Returns the step of a checkpoint after verifying it; -1 if it mixes several steps.
std::int64_t step_of(const std::string& path) {
  dist::detail::CheckpointReader reader{path};
  reader.verify();
  const std::int64_t step = reader.read<std::int64_t>("step")[0];
  const auto weights = reader.read<double>("weights");
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != static_cast<double>(step)) return -1;
  return step;
}

/// Measures the duration of a save on this machine, which may be busy.
std::chrono::microseconds time_of_a_save() {
  const support::TemporaryFolder folder;
  Training training;
  training.checkpoint.save(folder.path("first"));
  const auto start = std::chrono::steady_clock::now();
  training.checkpoint.save(folder.path("second"));
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
}

/// Starts processes that each resume where the last one was killed. `body(acknowledge)` saves in an endless loop, and
/// calls back with the first step, and after each save. `newest()` verifies the existing checkpoints and returns the
/// newest step.
template <class Body, class Newest>
void kill_saves(const Body& body, const Newest& newest) {
  std::int64_t known = newest();
  std::size_t in_between = 0;
  auto longest = 3 * time_of_a_save();
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    if (kill_number % 10 == 9) longest = 3 * time_of_a_save();  // the load of the machine may have changed
    std::array<int, 2> ends{};
    std::int64_t acknowledged = -1;
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    {
      support::Processes child{1, [&](std::size_t) {
                                 body([&](std::int64_t step) {
                                   if (write(ends[1], &step, sizeof step) != sizeof step) _exit(3);
                                 });
                                 return 0;
                               }};
      close(ends[1]);
      REQUIRE(read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged);  // before its first save
      std::this_thread::sleep_for(longest * (kill_number * 37 % kills) / kills);
      kill(child[0], SIGKILL);
      CHECK(child.wait()[0] == 128 + SIGKILL);
    }
    CHECK(acknowledged == known);
    for (std::int64_t step = 0; read(ends[0], &step, sizeof step) == sizeof step;) acknowledged = step;
    close(ends[0]);
    known = newest();
    REQUIRE(known >= acknowledged);
    REQUIRE(known <= acknowledged + 1);
    if (known > acknowledged) ++in_between;
  }
  CHECK(known > 10);
  MESSAGE(known << " saves; " << in_between << " of " << kills
                << " were killed between the new checkpoint and its acknowledgement");
}

}  // namespace

TEST_CASE("killed saves over an older checkpoint leave the old or the new one") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("saved");
  {
    Training training;
    training.checkpoint.save(path);
  }
  kill_saves(
      [&](const auto& acknowledge) {
        Training training;
        training.checkpoint.restore(path);
        acknowledge(training.step);
        for (;;) {
          training.advance();
          training.checkpoint.save(path);
          acknowledge(training.step);
        }
      },
      [&] {
        const std::int64_t step = step_of(path);
        REQUIRE(step >= 0);
        return step;
      });
  // A completed save removes the files of all killed ones.
  Training training;
  training.checkpoint.save(path);
  CHECK(dist::detail::names_in(path).size() == 2);
}

TEST_CASE("killed saves of a manager lose no acknowledged checkpoint") {
  const support::TemporaryFolder folder;
  kill_saves(
      [&](const auto& acknowledge) {
        Training training;
        dist::CheckpointManager manager{training.checkpoint, folder.path(), {.max_to_keep = 2}};
        manager.restore_latest();
        acknowledge(training.step);
        for (;;) {
          training.advance();
          manager.save();
          acknowledge(training.step);
        }
      },
      [&] {
        std::int64_t newest = 0;
        for (const auto& checkpoint : dist::detail::checkpoints_in(folder.path())) {
          const std::int64_t step = step_of(checkpoint.path);
          REQUIRE(step > newest);  // all existing checkpoints are intact and ordered
          newest = step;
        }
        return newest;
      });
  Training training;
  dist::CheckpointManager manager{training.checkpoint, folder.path(), {.max_to_keep = 2}};
  manager.save();
  CHECK(dist::detail::names_in(folder.path()).size() == 3);  // the lock, and two checkpoints
}
