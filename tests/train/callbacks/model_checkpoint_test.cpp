#include <dist/train/callbacks/model_checkpoint.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/strategy/default.hpp>
#include <support/saved.hpp>
#include <support/temporary_folder.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::ModelCheckpoint;

namespace {

struct Script {
  std::vector<double> values;
  void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) { logs.set("val_loss", values[epoch.index]); }
};

bool exists(const std::string& path) { return std::filesystem::exists(path); }

}  // namespace

TEST_CASE("a model is saved after each epoch, and evaluates alike where it is loaded (spec Q19, Q28)") {
  const support::TemporaryFolder folder;
  for (const bool background : {false, true}) {
    CAPTURE(background);
    small::Model trained;
    trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0},
                      ModelCheckpoint{folder.path("ckpt_{epoch}"), {.background = background}});
    const support::Saved whole{trained.strategy, trained.model};
    const nn::Logs expected = trained.model.evaluate(small::examples(), {.verbose = 0});
    const auto latest = dist::latest_checkpoint(folder.path());
    REQUIRE(latest);
    CHECK(*latest == folder.path("ckpt_3"));
    CHECK((exists(folder.path("ckpt_1")) && exists(folder.path("ckpt_2"))));

    small::Model loaded{9};
    dist::Checkpoint checkpoint{loaded.strategy};
    checkpoint.add("model", loaded.model).restore(*latest);
    CHECK(support::Saved{loaded.strategy, loaded.model} == whole);
    CHECK(loaded.model.evaluate(small::examples(), {.verbose = 0})["loss"] == expected["loss"]);

    // Without a strategy of several replicas, too.
    dist::Default none;
    nn::Network<small::Net> net{none, 5};
    nn::Model model{none, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
    dist::Checkpoint without{none};
    without.add("model", model).restore(*latest);
    const nn::Logs logs = model.evaluate(small::examples(), {.verbose = 0});
    CHECK(logs["accuracy"] == expected["accuracy"]);
    CHECK(logs["loss"] == doctest::Approx(expected["loss"]).epsilon(1e-6));
  }
}

TEST_CASE("the best models alone, or every few batches") {
  const support::TemporaryFolder folder;
  small::Model trained;
  Script script{{5, 6, 4, 4}};
  trained.model.fit(small::examples(), {.epochs = 4, .verbose = 0}, script,
                    ModelCheckpoint{folder.path("{epoch}_{val_loss:.0f}"), {.save_best_only = true}});
  CHECK((exists(folder.path("1_5")) && exists(folder.path("3_4"))));
  CHECK_FALSE((exists(folder.path("2_6")) || exists(folder.path("4_4"))));

  // Four batches an epoch: after 3, 6 and 9.
  trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0},
                    ModelCheckpoint{folder.path("b{epoch}_{batch}"), {.save_freq = 3}});
  CHECK((exists(folder.path("b1_3")) && exists(folder.path("b2_2")) && exists(folder.path("b3_1")) &&
         exists(folder.path("b3_4"))));
  CHECK_FALSE(exists(folder.path("b1_4")));
}

TEST_CASE("what it cannot do is said") {
  CHECK_THROWS_AS((ModelCheckpoint{"ckpt", {.save_freq = 0}}), dist::InvalidArgument);
  small::Model trained;
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, ModelCheckpoint{"ckpt_{val_loss}"}),
                  dist::InvalidArgument);
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, ModelCheckpoint{"/dev/null/ckpt"}),
                  dist::FileError);
}
