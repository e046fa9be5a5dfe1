#include <dist/summary/value.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

using dist::InvalidArgument;
using dist::summary::experiment_value;
using dist::summary::Hyperparameter;
using dist::summary::HyperparameterRange;
using dist::summary::Metric;
using dist::summary::Outcome;
using dist::summary::session_end_value;
using dist::summary::session_start_value;
using dist::summary::Value;
using dist_test::Wire;

namespace {

/// Returns the plugin's message in `field` of a valid value.
Wire content_of(const Value& value, std::uint64_t field) {
  CHECK(value.plugin == "hparams");
  CHECK(dist_test::extents_of(Wire{value.tensor}) == std::vector<std::int64_t>{0});
  return Wire{value.content}.message(field);
}
std::string group_of(const std::vector<Hyperparameter>& hyperparameters, const char* group = "") {
  return content_of(session_start_value(hyperparameters, group, 0), 3).bytes(4);
}

}  // namespace

TEST_CASE("an experiment has its hyperparameters and metrics") {
  const HyperparameterRange varied[] = {{.name = "rate", .interval = {{1e-5, 0.5}}},
                                        {.name = "optimizer", .choices = {"adam", "sgd"}},
                                        {.name = "batch", .choices = {32, 64}},
                                        {.name = "flip", .choices = {true, false}}};
  const Metric metrics[] = {{"epoch_accuracy", "validation"}, {"epoch_loss"}};
  const Wire experiment = content_of(experiment_value(varied, metrics, 12.5), 2);
  CHECK(experiment.real(3) == 12.5);
  const auto infos = experiment.strings(4);
  REQUIRE(infos.size() == 4);
  CHECK(Wire{infos[0]}.bytes(1) == "rate");
  CHECK(Wire{infos[0]}.integer(4) == 3);
  CHECK(Wire{infos[0]}.message(6).real(1) == 1e-5);
  CHECK(Wire{infos[0]}.message(6).real(2) == 0.5);
  CHECK(Wire{infos[1]}.integer(4) == 1);
  CHECK(Wire{Wire{infos[1]}.message(5).strings(1)[1]}.bytes(3) == "sgd");
  CHECK(Wire{infos[2]}.integer(4) == 3);
  CHECK(Wire{Wire{infos[2]}.message(5).strings(1)[0]}.real(2) == 32);
  CHECK(Wire{infos[3]}.integer(4) == 2);
  CHECK(Wire{Wire{infos[3]}.message(5).strings(1)[0]}.integer(4) == 1);
  const auto found = experiment.strings(5);
  REQUIRE(found.size() == 2);
  CHECK(Wire{found[0]}.message(1).bytes(1) == "validation");
  CHECK(Wire{found[0]}.message(1).bytes(2) == "epoch_accuracy");
  CHECK(Wire{found[1]}.message(1).bytes(1).empty());
}

TEST_CASE("a session starts with values and ends with an outcome") {
  const Hyperparameter values[] = {{"rate", 0.25}, {"optimizer", "adam"}, {"flip", true}, {"batch", 64U}};
  const Wire session = content_of(session_start_value(values, "trial 1", 3.5), 3);
  const auto entries = session.strings(1);
  REQUIRE(entries.size() == 4);
  CHECK(Wire{entries[0]}.bytes(1) == "rate");
  CHECK(Wire{entries[0]}.message(2).real(2) == 0.25);
  CHECK(Wire{entries[1]}.message(2).bytes(3) == "adam");
  CHECK(Wire{entries[2]}.message(2).integer(4) == 1);
  CHECK(Wire{entries[3]}.message(2).real(2) == 64);
  CHECK(session.bytes(4) == "trial 1");
  CHECK(session.real(5) == 3.5);
  const Wire end = content_of(session_end_value(Outcome::failure, 9), 4);
  CHECK(end.integer(1) == 2);
  CHECK(end.real(2) == 9);
}

TEST_CASE("sessions with equal values are one group, in any order of the values") {
  CHECK(group_of({{"a", 1}, {"b", "x"}}) == group_of({{"b", "x"}, {"a", 1}}));
  CHECK(group_of({{"a", 0.1}}) != group_of({{"a", 0.1 + 1e-17 * 4}}));
  CHECK(group_of({{"a", true}}) != group_of({{"a", false}}));
  CHECK(group_of({{"a", 1}}, "mine") == "mine");
}

TEST_CASE("hyperparameters that the plugin cannot show are rejected by name") {
  const auto refuse = [](const HyperparameterRange& varied, const char* because) {
    CHECK_THROWS_WITH_AS(static_cast<void>(experiment_value({&varied, 1}, {}, 0)), doctest::Contains(because),
                         InvalidArgument);
  };
  refuse({.name = "rate"}, "Hyperparameter 'rate' varies over nothing");
  refuse({.name = "rate", .choices = {1, "two"}}, "Hyperparameter 'rate' has choices of several types ('two'");
  refuse({.name = "", .choices = {1}}, "a hyperparameter that is empty");
  const Hyperparameter unnamed{"", 1};
  CHECK_THROWS_AS(static_cast<void>(session_start_value({&unnamed, 1}, "", 0)), InvalidArgument);
  const Metric metric{"", "validation"};
  CHECK_THROWS_AS(static_cast<void>(experiment_value({}, {&metric, 1}, 0)), InvalidArgument);
}
