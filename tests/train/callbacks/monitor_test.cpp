#include <dist/train/callbacks/monitor.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

using dist::nn::Better;
using dist::nn::Logs;
using dist::nn::callbacks::Mode;
using dist::nn::callbacks::Monitor;

namespace {

dist::Default strategy;

/// A model with metrics of each kind.
struct Model final : dist::nn::ModelView {
  explicit Model(bool has_validation = true)
      : ModelView(std::make_shared<const dist::detail::AnyStrategyOf<dist::Default>>(strategy), true) {
    fit_.validates = has_validation;
    fit_.callbacks_may_log = [](std::string_view name) { return name == "accuracy_of_a_callback"; };
  }
  [[nodiscard]] std::optional<Better> better(std::string_view metric) const override {
    if (metric == "loss") return Better::less;
    if (metric == "recall") return Better::more;
    if (metric == "my_accuracy") return Better::unsaid;
    return std::nullopt;
  }
  [[nodiscard]] std::string metric_names() const override { return "loss, recall, my_accuracy"; }
  [[nodiscard]] float learning_rate() const override { return 0; }
  void set_learning_rate(float) override {}
  [[nodiscard]] std::int64_t iterations() const override { return 0; }
};

Monitor begun(const char* name, Mode mode, double min_delta = 0) {
  Monitor monitor{name, mode, min_delta, "Test"};
  monitor.begin(Model{});
  return monitor;
}

}  // namespace

TEST_CASE("the metric's type declares the better direction, and the mode overrides it") {
  for (const char* name : {"val_loss", "loss", "accuracy_of_a_callback"}) {
    Monitor monitor = begun(name, Mode::automatic);
    CHECK((monitor.improve(3) && monitor.improve(2) && !monitor.improve(2) && !monitor.improve(5)));
    CHECK(monitor.best() == 2);
  }
  for (const char* name : {"val_recall", "recall"}) {
    Monitor monitor = begun(name, Mode::automatic);
    CHECK((monitor.improve(0.1) && monitor.improve(0.2) && !monitor.improve(0.2)));
  }
  Monitor most = begun("loss", Mode::max);
  CHECK((most.improve(1) && most.improve(2)));
  Monitor least = begun("recall", Mode::min);
  CHECK((least.improve(1) && !least.improve(2)));
  least.begin(Model{});
  CHECK(least.improve(7));
}

TEST_CASE("a metric whose type does not declare the better direction needs a mode") {
  CHECK(support::what_throws<dist::InvalidArgument>([] { begun("val_my_accuracy", Mode::automatic); }) ==
        "Test cannot determine whether higher or lower values of 'val_my_accuracy' are better (the type of that metric "
        "does not define it). Set the mode, as in .mode = nn::callbacks::Mode::max, or give the metric a static "
        "constexpr bool more_is_better.");
  CHECK(begun("val_my_accuracy", Mode::max).improve(1));
}

TEST_CASE("a name that neither the model nor a callback can log is rejected when the fit begins") {
  CHECK(support::what_throws<dist::InvalidArgument>([] { begun("val_recal", Mode::max); }) ==
        "Test monitors 'val_recal', which nothing adds to the logs (the model logs loss, recall, my_accuracy, and with "
        "validation the same names after val_). Monitor one of these, give the model such a metric, or give fit a "
        "callback whose on_epoch_end adds the value.");
  CHECK(
      support::what_throws<dist::InvalidArgument>([] {
        Monitor{"val_loss", Mode::automatic, 0, "Test"}.begin(Model{false});
      }) ==
      "Test monitors 'val_loss' (the fit has no validation data). Set .validation in the options of fit, or monitor a "
      "value of the training data.");
}

TEST_CASE("a change of at most min_delta is not an improvement") {
  Monitor monitor = begun("loss", Mode::automatic, -0.5);  // the sign is ignored, like in Keras
  CHECK(monitor.improve(3));
  CHECK_FALSE(monitor.improve(2.5));
  CHECK(monitor.improve(2.25));
}

TEST_CASE("find returns nullptr for a value that is not in the logs") {
  Monitor monitor = begun("val_loss", Mode::automatic);
  Logs logs;
  logs.set("loss", 1);
  CHECK(monitor.find(Model{false}, logs) == nullptr);
  CHECK(monitor.find(Model{}, logs) == nullptr);
  logs.set("val_loss", 2);
  REQUIRE(monitor.find(Model{}, logs) != nullptr);
  CHECK(*monitor.find(Model{}, logs) == 2);
}
