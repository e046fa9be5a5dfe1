#include <dist/train/history.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("a history has one value per name and epoch, in the order of the logs (spec Q18)") {
  nn::History history;
  nn::Logs logs;
  logs.set("loss", 2);
  logs.set("accuracy", 0.25);
  logs.set("val_loss", 3);
  history.on_epoch_end({.index = 0, .epochs = 2}, logs);
  logs.set("loss", 1);
  logs.set("accuracy", 0.5);
  logs.set("val_loss", 2.5);
  history.on_epoch_end({.index = 1, .epochs = 2}, logs);

  REQUIRE(history.epochs().size() == 2);
  CHECK(history.epochs()[1] == 1);
  std::string names;
  for (const auto& series : history.series()) names += series.name + " ";
  CHECK(names == "loss accuracy val_loss ");
  REQUIRE(history["loss"].size() == 2);
  CHECK(history["loss"][0] == 2.0);
  CHECK(history["loss"][1] == 1.0);
  CHECK(history["val_loss"][1] == 2.5);

  nn::Logs other;
  other.set("val_loss", 2);
  history.on_epoch_end({.index = 4, .epochs = 5}, other);
  CHECK(history.series()[0].epochs == std::vector<std::size_t>{0, 1});
  CHECK(history.series()[2].epochs == std::vector<std::size_t>{0, 1, 4});
  CHECK_THROWS_WITH_AS(static_cast<void>(history["lr"]),
                       "The history has no 'lr' (it has: loss, accuracy, val_loss). Use one of these names, or give "
                       "the model such a metric.",
                       dist::InvalidArgument);
}
