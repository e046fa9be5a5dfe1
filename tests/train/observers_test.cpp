#include <dist/train/observers.hpp>

#include <string>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Recorder {
  std::string name;
  std::string& record;
  void on_epoch_begin(const nn::Epoch& epoch) { record += name + "begin" + std::to_string(epoch.index) + " "; }
  void on_batch_end(std::size_t step, nn::CurrentLogs logs) {
    record += name + "batch" + std::to_string(step) + ":" + std::to_string(static_cast<int>(logs()["loss"])) + " ";
  }
  void on_epoch_end(const nn::Epoch&, const nn::Logs& logs) {
    record += name + "end:" + std::to_string(logs.size()) + " ";
  }
};
struct EpochOnly {
  int ended = 0;
  void on_epoch_end(const nn::Epoch&, const nn::Logs&) { ++ended; }
};
struct TestOnly {
  std::string record;
  void on_test_begin(std::optional<std::size_t> steps) { record += steps ? "known " : "unknown "; }
  void on_test_batch_end(std::size_t step, nn::CurrentLogs) { record += std::to_string(step) + " "; }
  void on_test_end(std::size_t steps, const nn::Logs&) { record += "of " + std::to_string(steps); }
};
struct NoHook {
  void on_epoch_ending(const nn::Epoch&, const nn::Logs&) {}
};
struct OtherArguments {
  void on_epoch_end(const std::string&) {}
};

static_assert(nn::Observer<Recorder> && nn::Observer<EpochOnly> && nn::Observer<TestOnly>);
static_assert(!nn::Observer<NoHook> && !nn::Observer<OtherArguments> && !nn::Observer<int>);

}  // namespace

TEST_CASE("every observer is called in order, with the hooks that it has") {
  std::string record;
  Recorder a{"a.", record};
  Recorder b{"b.", record};
  EpochOnly quiet;
  TestOnly test;
  nn::Observers observers{a, quiet, test, b};
  nn::Logs logs;
  logs.set("loss", 7);
  int reads = 0;
  struct Source {
    nn::Logs& logs;
    int& reads;
  } source{logs, reads};
  const nn::CurrentLogs current{&source, [](void* from) -> const nn::Logs& {
                                  ++static_cast<Source*>(from)->reads;
                                  return static_cast<Source*>(from)->logs;
                                }};
  observers.epoch_begin({.index = 3});
  observers.batch_end(0, current);
  observers.epoch_end({.index = 3}, logs);
  CHECK(record == "a.begin3 b.begin3 a.batch0:7 b.batch0:7 a.end:1 b.end:1 ");
  CHECK(quiet.ended == 1);
  CHECK(reads == 2);

  observers.test_begin(4);
  observers.test_batch_end(0, current);
  observers.test_end(4, logs);
  CHECK(test.record == "known 0 of 4");
  CHECK(reads == 2);  // an observer that does not look causes no reading
}
