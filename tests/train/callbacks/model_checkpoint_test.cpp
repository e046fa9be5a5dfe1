#include <dist/train/callbacks/model_checkpoint.hpp>

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/strategy/default.hpp>
#include <dist/train/callbacks/lambda.hpp>
#include <support/processes.hpp>
#include <support/saved.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

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

TEST_CASE("a model is saved after each epoch, and evaluates the same after loading (spec Q19, Q28)") {
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

    // A strategy with one replica evaluates the same.
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

TEST_CASE("only the best models are saved, or every few batches") {
  const support::TemporaryFolder folder;
  small::Model trained;
  Script script{{5, 6, 4, 4}};
  trained.model.fit(small::examples(), {.epochs = 4, .verbose = 0}, script,
                    ModelCheckpoint{folder.path("{epoch}_{val_loss:.0f}"), {.save_best_only = true}});
  CHECK((exists(folder.path("1_5")) && exists(folder.path("3_4"))));
  CHECK_FALSE((exists(folder.path("2_6")) || exists(folder.path("4_4"))));

  // With four batches per epoch: after 3, 6 and 9.
  trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0},
                    ModelCheckpoint{folder.path("b{epoch}_{batch}"), {.save_freq = 3}});
  CHECK((exists(folder.path("b1_3")) && exists(folder.path("b2_2")) && exists(folder.path("b3_1")) &&
         exists(folder.path("b3_4"))));
  CHECK_FALSE(exists(folder.path("b1_4")));
}

TEST_CASE("unsupported options are rejected with a message") {
  CHECK_THROWS_AS((ModelCheckpoint{"ckpt", {.save_freq = 0}}), dist::InvalidArgument);
  small::Model trained;
  const support::TemporaryFolder folder;
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, ModelCheckpoint{folder.path("ckpt_{val_loss}")}),
                  dist::InvalidArgument);
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, ModelCheckpoint{"/dev/null/ckpt"}),
                  dist::FileError);
}

TEST_CASE("save_freq with a monitored validation value is rejected") {
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          ModelCheckpoint{"x", {.save_best_only = true, .save_freq = 2}};
        }) ==
        "ModelCheckpoint monitors 'val_loss' and saves after batches (save_freq is given, and validation runs after an "
        "epoch, so the value does not exist after a batch). Leave out ModelCheckpointOptions.save_freq, or monitor "
        "'loss'.");
  const support::TemporaryFolder folder;
  small::Model trained;
  trained.model.fit(
      small::examples(), {.verbose = 0},
      ModelCheckpoint{folder.path("at_{batch}"), {.monitor = "loss", .save_best_only = true, .save_freq = 4}});
  CHECK(exists(folder.path("at_4")));
}

TEST_CASE("a folder is for one model at a time, in any program; its callbacks may share it") {
  const support::TemporaryFolder folder;
  small::Model trained;
  small::Model other;
  const auto refused = [&](const std::string& path) {
    return support::what_throws<dist::FileError>(
        [&] { other.model.fit(small::examples(), {.verbose = 0}, ModelCheckpoint{path}); });
  };
  std::string why;
  bool is_refused_elsewhere = false;
  const auto try_others = [&](const nn::Epoch&, const nn::Logs&) {
    why = refused(folder.path("of/other_{epoch}"));
    CHECK(refused(folder.path("of/other/")) == why);
    support::Processes program{
        1, [&](std::size_t) { return refused(folder.path("of/{epoch}/x")) == "nothing was thrown"; }};
    is_refused_elsewhere = program.wait()[0] == 0;
    CHECK(refused(folder.path("other_{epoch}")) == "nothing was thrown");
  };
  trained.model.fit(small::examples(), {.verbose = 0}, ModelCheckpoint{folder.path("of/ckpt_{epoch}")},
                    ModelCheckpoint{folder.path("of/best"), {.monitor = "loss", .save_best_only = true}},
                    nn::callbacks::lambda<nn::hooks::on_epoch_end>(try_others));
  CHECK(why.starts_with("File '" + folder.path("of") +
                        "' is a folder that already has a writer of checkpoints (this program itself: process " +
                        std::to_string(getpid()) + " on "));
  CHECK(is_refused_elsewhere);
  CHECK((exists(folder.path("of/ckpt_1")) && exists(folder.path("of/best"))));
  CHECK(refused(folder.path("of/other_{epoch}")) == "nothing was thrown");
}

TEST_CASE("a callback of an interrupted fit saves the next model") {
  const support::TemporaryFolder folder;
  ModelCheckpoint kept{folder.path("ckpt_{epoch}")};
  const auto interrupt = [](const nn::Epoch& epoch) {
    if (epoch.index == 1) throw std::runtime_error("interrupted");
  };
  {
    small::Model first;
    CHECK_THROWS_AS(first.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, kept,
                                    nn::callbacks::lambda<nn::hooks::on_epoch_begin>(interrupt)),
                    std::runtime_error);
  }
  small::Model second{7};
  second.model.fit(small::examples(), {.verbose = 0}, kept);
  small::Model loaded{9};
  dist::Checkpoint checkpoint{loaded.strategy};
  checkpoint.add("model", loaded.model).restore(folder.path("ckpt_1"));
  CHECK(support::Saved{loaded.strategy, loaded.model} == support::Saved{second.strategy, second.model});
}
