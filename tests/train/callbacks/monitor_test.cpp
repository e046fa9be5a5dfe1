#include <dist/train/callbacks/monitor.hpp>

#include <doctest/doctest.h>

using dist::nn::Logs;
using dist::nn::callbacks::Mode;
using dist::nn::callbacks::Monitor;

TEST_CASE("less is better, but for accuracies and what is said to be a maximum") {
  for (const char* name : {"val_loss", "loss", "mean_squared_error"}) {
    Monitor monitor{name, Mode::automatic, 0, "Test"};
    CHECK((monitor.improve(3) && monitor.improve(2) && !monitor.improve(2) && !monitor.improve(5)));
    CHECK(monitor.best() == 2);
  }
  for (const char* name : {"val_accuracy", "acc", "auc", "fmeasure_1"}) {
    Monitor monitor{name, Mode::automatic, 0, "Test"};
    CHECK((monitor.improve(0.1) && monitor.improve(0.2) && !monitor.improve(0.2)));
  }
  Monitor most{"loss", Mode::max, 0, "Test"};
  CHECK((most.improve(1) && most.improve(2)));
  Monitor least{"accuracy", Mode::min, 0, "Test"};
  CHECK((least.improve(1) && !least.improve(2)));
  least.forget();
  CHECK(least.improve(7));
}

TEST_CASE("a change of at most the smallest one is none") {
  Monitor monitor{"loss", Mode::automatic, -0.5, "Test"};  // Keras' sign does not matter
  CHECK(monitor.improve(3));
  CHECK_FALSE(monitor.improve(2.5));
  CHECK(monitor.improve(2.25));
}

TEST_CASE("what the logs have not is not found") {
  Monitor monitor{"val_loss", Mode::automatic, 0, "Test"};
  Logs logs;
  logs.set("loss", 1);
  CHECK(monitor.find(logs) == nullptr);
  logs.set("val_loss", 2);
  REQUIRE(monitor.find(logs) != nullptr);
  CHECK(*monitor.find(logs) == 2);
}
