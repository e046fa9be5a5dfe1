#include <dist/train/fit_loop.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <dist/core/error.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;
using dist::InvalidArgument;
using dist::data::Cardinality;
using nn::detail::FitLoop;
using nn::detail::FitPlan;

namespace {

class NoMeasurements final : public nn::detail::Measurements {};

/// Passes of three batches, and a record of the loop's calls.
struct Batches final : dist::data::detail::AnyDataset {
  std::string& record;

  struct Pass final : dist::data::detail::AnyPass {
    int given = 0;
    bool next(void*) override { return given++ < 3; }
  };

  explicit Batches(std::string& of) : AnyDataset(dist::data::detail::element_ops<int>), record(of) {}
  [[nodiscard]] Cardinality cardinality() const override { return Cardinality::known(3); }
  [[nodiscard]] std::unique_ptr<dist::data::detail::AnyPass> iterate(std::uint64_t epoch,
                                                                     std::uint64_t position) const override {
    record += "pass" + std::to_string(epoch) + " ";
    if (position > 0) record += "seek" + std::to_string(position) + " ";
    auto pass = std::make_unique<Pass>();
    pass->given = static_cast<int>(position);
    return pass;
  }
};

struct Steps final : nn::detail::LoopSteps {
  std::string& record;
  Steps(const Batches& batches, std::string& of) : LoopSteps(batches), record(of) {}
  void run() override { record += "step "; }
};

struct Watching {
  std::string& record;
  void on_train_batch_end(std::size_t step, nn::CurrentLogs) { record += "end" + std::to_string(step) + " "; }
  void on_epoch_end(const nn::Epoch&, const nn::Logs& logs) { record += "loss:" + logs.names() + " "; }
};

std::string fitted(const FitPlan& plan, nn::detail::FitPosition from = {}) {
  std::string record;
  nn::detail::FitState state;
  NoMeasurements measured;
  dist::Default strategy;
  const dist::detail::AnyStrategyOf<dist::Default> processes{strategy};
  const auto validate = [](nn::TestCallback&) {
    nn::Logs logs;
    logs.set("loss", 7);
    return logs;
  };
  const auto finalize = [&] { record += "final "; };
  const Batches batches{record};
  Steps steps{batches, record};
  int of_callbacks = 0;
  struct BeginsAt {
    nn::detail::FitState& state;
    nn::detail::FitPosition from;
    void on_train_begin() { state.begins_at = from; }
  } begins{state, from};
  Watching watching{record};
  nn::Callbacks callbacks{of_callbacks, begins, watching};
  FitLoop loop{plan,
               {state, measured, processes, validate, finalize},
               nn::detail::FitCallback{callbacks},
               nn::TestCallback{callbacks},
               nn::ProgressCallback{nn::Verbosity::silent, nn::Console::standard_output()}};
  const nn::History history = loop.run(steps);
  CHECK(history.epochs().size() == state.epochs_trained);
  return record;
}

constexpr FitPlan plan{.epochs = 2,
                       .initial_epoch = 0,
                       .steps_per_epoch = std::nullopt,
                       .steps_per_execution = 1,
                       .validation_freq = 2,
                       .validates = true};

}  // namespace

TEST_CASE("a fit iterates over its batches once per epoch, and validates every validation_freq epochs") {
  CHECK(fitted(plan) ==
        "pass0 step end0 step end1 step end2 loss:nothing pass1 step end0 step end1 step end2 loss:val_loss final ");
}

TEST_CASE("a resumed fit starts after the completed batches") {
  CHECK(fitted(plan, {.epoch = 1, .step = 2}) == "pass0 seek2 step end2 loss:val_loss final ");
}

TEST_CASE("callbacks see groups of steps, the last one possibly smaller") {
  FitPlan in_groups = plan;
  in_groups.epochs = 1;
  in_groups.steps_per_execution = 2;
  CHECK(fitted(in_groups) == "pass0 step step end1 step end2 loss:nothing final ");
}

TEST_CASE("numbers of 0 are rejected by name") {
  FitPlan none = plan;
  none.validation_freq = 0;
  CHECK_THROWS_WITH_AS(nn::detail::require_counts(none, std::nullopt),
                       doctest::Contains("FitOptions.validation_freq is out of range"), InvalidArgument);
  CHECK_THROWS_WITH_AS(nn::detail::require_counts(plan, 0),
                       doctest::Contains("FitOptions.validation_steps is out of range"), InvalidArgument);
}

TEST_CASE("an infinite dataset needs a number of steps") {
  CHECK(nn::detail::batches_of(Cardinality::known(4), false) == 4U);
  CHECK_FALSE(nn::detail::batches_of(Cardinality::infinite(), true));
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::detail::batches_of(Cardinality::infinite(), false)),
                       doctest::Contains("The dataset of fit or evaluate has no end"), InvalidArgument);
}
