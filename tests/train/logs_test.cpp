#include <dist/train/logs.hpp>

#include <string>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("logs keep the insertion order of names") {
  nn::Logs logs;
  logs.set("loss", 2);
  logs.set("accuracy", 0.5);
  logs.set("loss", 1);
  std::string names;
  for (const auto& entry : logs) names += entry.name + " ";
  CHECK(names == "loss accuracy ");
  CHECK(logs.size() == 2);
  CHECK(logs["loss"] == 1.0);
  CHECK_THROWS_WITH_AS(static_cast<void>(logs["val_loss"]),
                       "The logs have no 'val_loss' (they have: loss, accuracy). Use one of these names, or give the "
                       "model such a metric.",
                       dist::InvalidArgument);
}
