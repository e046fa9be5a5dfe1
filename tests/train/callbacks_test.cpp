#include <dist/train/callbacks.hpp>

#include <string>

#include <doctest/doctest.h>

namespace nn = dist::nn;
namespace hooks = dist::nn::hooks;

namespace {

struct Recorder {
  std::string name;
  std::string& record;
  void on_epoch_begin(const nn::Epoch& epoch) { record += name + "begin" + std::to_string(epoch.index) + " "; }
  void on_train_batch_end(std::size_t step, nn::CurrentLogs logs) {
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
struct Adds {
  void on_epoch_end(auto& model, const nn::Epoch& epoch, nn::Logs& logs) {
    logs.set("model", model + static_cast<int>(epoch.index));
  }
};
struct NoHook {
  void on_epoch_ending(const nn::Epoch&, const nn::Logs&) {}
};
struct OtherArguments {
  void on_epoch_end(const std::string&) {}
};

static_assert(nn::Callback<Recorder> && nn::Callback<EpochOnly> && nn::Callback<TestOnly>);
static_assert(!nn::Callback<NoHook> && !nn::Callback<int>);
static_assert(nn::Callback<OtherArguments>);  // rejected with a message when it is called

}  // namespace

TEST_CASE("every callback is called in order, with its own hooks") {
  std::string record;
  Recorder a{"a.", record};
  Recorder b{"b.", record};
  EpochOnly quiet;
  TestOnly test;
  int model = 5;
  nn::Callbacks callbacks{model, a, quiet, test, b};
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
  callbacks.call<hooks::on_epoch_begin>(nn::Epoch{.index = 3});
  callbacks.call<hooks::on_train_batch_end>(std::size_t{0}, current);
  callbacks.call<hooks::on_epoch_end>(nn::Epoch{.index = 3}, logs);
  CHECK(record == "a.begin3 b.begin3 a.batch0:7 b.batch0:7 a.end:1 b.end:1 ");
  CHECK(quiet.ended == 1);
  CHECK(reads == 2);

  callbacks.call<hooks::on_test_begin>(std::optional<std::size_t>{4});
  callbacks.call<hooks::on_test_batch_end>(std::size_t{0}, current);
  callbacks.call<hooks::on_test_end>(std::size_t{4}, logs);
  CHECK(test.record == "known 0 of 4");
  CHECK(reads == 2);  // callbacks that do not read the logs cause no computation
}

TEST_CASE("a hook may take the model first, and add to the logs for later callbacks") {
  Adds adds;
  struct Sees {
    double model = 0;
    void on_epoch_end(const nn::Epoch&, const nn::Logs& logs) { model = logs["model"]; }
    void on_train_begin() { model = -1; }
  } sees;
  int model = 5;
  nn::Callbacks callbacks{model, adds, sees};
  callbacks.call<hooks::on_train_begin>();
  CHECK(sees.model == -1);
  nn::Logs logs;
  callbacks.call<hooks::on_epoch_end>(nn::Epoch{.index = 3}, logs);
  CHECK(sees.model == 8);
}
