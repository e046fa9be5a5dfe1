#include <dist/train/callbacks/backup_and_restore.hpp>

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <dist/checkpoint/folder.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/train/callbacks/csv_logger.hpp>
#include <dist/train/callbacks/early_stopping.hpp>
#include <dist/train/callbacks/reduce_lr_on_plateau.hpp>
#include <support/saved.hpp>
#include <support/stderr_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::BackupAndRestore;

namespace {

/// Ends the fit in the middle, like a program that is killed.
struct Interrupts {
  std::size_t epoch, step;
  std::size_t now = 0;
  void on_epoch_begin(const nn::Epoch& begun) { now = begun.index; }
  void on_train_batch_end(std::size_t done, nn::CurrentLogs) {
    if (now == epoch && done == step) throw std::runtime_error("interrupted");
  }
};
/// Sends SIGTERM to the program.
struct Tells {
  std::size_t epoch, step;
  int signal = SIGTERM;
  std::size_t now = 0;
  void on_epoch_begin(const nn::Epoch& begun) { now = begun.index; }
  void on_train_batch_begin(std::size_t begun) const {
    if (now == epoch && begun == step) raise(signal);
  }
};
struct Began {
  std::optional<std::size_t> epoch;
  std::size_t batches = 0;
  void on_epoch_begin(const nn::Epoch& begun) {
    if (!epoch) epoch = begun.index;
  }
  void on_train_batch_end(std::size_t, nn::CurrentLogs) { ++batches; }
};

}  // namespace

TEST_CASE("an interrupted fit continues from its backup, bitwise identical to an uninterrupted one (spec Q20)") {
  small::Model reference;
  const nn::History expected = reference.model.fit(small::examples(), {.epochs = 4, .verbose = 0});
  const support::Saved whole{reference.strategy, reference.model};
  for (const std::optional<std::size_t> save_freq : {std::optional<std::size_t>{}, std::optional<std::size_t>{3}})
    for (const std::size_t epoch : {0U, 2U})
      for (const std::size_t step : {0U, 3U}) {
        CAPTURE(save_freq.value_or(0));
        CAPTURE(epoch);
        CAPTURE(step);
        const support::TemporaryFolder folder;
        {
          small::Model interrupted;
          Interrupts interrupts{epoch, step};
          CHECK_THROWS_AS(interrupted.model.fit(small::examples(), {.epochs = 4, .verbose = 0},
                                                BackupAndRestore{folder.path(), {.save_freq = save_freq}}, interrupts),
                          std::runtime_error);
        }
        small::Model again{7};
        Began began;
        const nn::History history = again.model.fit(small::examples(), {.epochs = 4, .verbose = 0},
                                                    BackupAndRestore{folder.path(), {.save_freq = save_freq}}, began);
        // Without save_freq the epoch is repeated; with it, the batches after the last backup.
        const std::size_t done = 4 * epoch + step;  // backups are made after the hooks of all other callbacks
        const std::size_t kept = save_freq ? done / *save_freq * *save_freq : 4 * epoch;
        const std::size_t first = save_freq && kept > 0 ? (kept - 1) / 4 : kept / 4;
        CHECK(began.epoch == first);
        CHECK(began.batches == 16 - kept);
        if (kept > 0) {  // otherwise it starts again, with other weights
          CHECK(history["loss"].back() == expected["loss"].back());
          CHECK(support::Saved{again.strategy, again.model} == whole);
        }
        CHECK(!dist::latest_checkpoint(folder.path()));  // the fit is complete
      }
}

namespace {

/// A value of the logs that stops improving, a function of the epoch.
struct Script {
  void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) const {
    constexpr double values[] = {5, 4, 4.5, 4.6, 4.7, 4.8, 4.9, 5};
    logs.set("val_loss", values[epoch.index]);
  }
};
struct Counts {
  std::uint64_t batches = 0;
  void on_train_batch_end(std::size_t, nn::CurrentLogs) { ++batches; }
  void track(auto& visit) { visit("batches", batches); }
};

}  // namespace

TEST_CASE("the state of all callbacks is restored, wherever the backup is in their list") {
  using nn::callbacks::EarlyStopping;
  using nn::callbacks::ReduceLROnPlateau;
  struct Ended {
    support::Saved model;
    std::size_t best_epoch;
    std::uint64_t batches;
    std::string log;
  };
  const auto fit = [](const support::TemporaryFolder& folder, bool is_first, std::size_t interrupted_in,
                      std::uint64_t seed) {
    small::Model trained{seed};
    Script script;
    Interrupts interrupts{interrupted_in, 1};
    EarlyStopping stopping{{.patience = 5, .restore_best_weights = true}};
    EarlyStopping other{{.patience = 6}};
    ReduceLROnPlateau reduce{{.factor = 0.5, .patience = 2}};
    nn::callbacks::CSVLogger log{folder.path("log.csv")};
    Counts counts;
    BackupAndRestore backup{folder.path("backup")};
    const auto run = [&](auto&... callbacks) {
      trained.model.fit(small::examples(), {.epochs = 8, .verbose = 0}, callbacks...);
    };
    if (is_first)
      run(backup, script, interrupts, stopping, other, reduce, log, counts);
    else
      run(script, interrupts, stopping, other, reduce, log, counts, backup);
    return Ended{support::Saved{trained.strategy, trained.model}, stopping.best_epoch(), counts.batches,
                 folder.read("log.csv")};
  };
  const support::TemporaryFolder whole;
  const Ended expected = fit(whole, false, 99, 1);
  CHECK(expected.best_epoch == 1);
  CHECK(expected.batches == 4 * 7);  // stopped after epoch 6
  for (const bool is_first : {true, false})
    for (const std::size_t interrupted_in : {2U, 4U, 6U}) {
      CAPTURE(is_first);
      CAPTURE(interrupted_in);
      const support::TemporaryFolder folder;
      CHECK_THROWS_AS(fit(folder, is_first, interrupted_in, 1), std::runtime_error);
      const Ended again = fit(folder, is_first, 99, 7);
      CHECK(again.model == expected.model);
      CHECK(again.best_epoch == expected.best_epoch);
      CHECK(again.batches == expected.batches);
      CHECK(again.log == expected.log);
    }
}

TEST_CASE("an interrupted fit can continue with an additional callback and an additional metric") {
  const support::TemporaryFolder folder;
  {
    small::Model interrupted;
    CHECK_THROWS_AS(interrupted.model.fit(small::examples(), {.epochs = 3, .verbose = 0},
                                          BackupAndRestore{folder.path()}, Interrupts{1, 1}),
                    std::runtime_error);
  }
  small::Strategy strategy{2};
  nn::Network<small::Net> net{strategy, 7};
  nn::Model more{strategy,
                 net,
                 nn::Adam{.learning_rate = 0.01F},
                 nn::SparseCategoricalCrossentropy{},
                 nn::SparseCategoricalAccuracy{},
                 nn::MeanOf<nn::SparseCategoricalCrossentropy>{.name = "mean"}};
  const nn::History history =
      more.fit(small::examples(), {.epochs = 3, .verbose = 0}, nn::callbacks::EarlyStopping{{.monitor = "loss"}},
               BackupAndRestore{folder.path()});
  CHECK(history.epochs().front() == 1);
  CHECK(history["mean"].back() == doctest::Approx(history["loss"].back()).epsilon(1e-6));
}

TEST_CASE("backups may be kept, and a folder is for one fit") {
  const support::TemporaryFolder folder;
  small::Model trained;
  BackupAndRestore stays{folder.path(), {.delete_checkpoint = false}};
  trained.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, stays);
  CHECK(dist::latest_checkpoint(folder.path()));
  // This fit is already complete.
  small::Model same;
  CHECK(same.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, stays).epochs().empty());
  CHECK(support::Saved{same.strategy, same.model} == support::Saved{trained.strategy, trained.model});

  BackupAndRestore first{folder.path()};
  BackupAndRestore second{folder.path()};
  CHECK(support::what_throws<dist::FileError>(
            [&] { trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, first, second); })
            .starts_with("File '" + folder.path() +
                         "' is a folder that already has a writer of checkpoints (this program itself: process "));
  CHECK_THROWS_AS((BackupAndRestore{"x", {.save_freq = 0}}), dist::InvalidArgument);
}

TEST_CASE("after a signal a fit ends after the batch, and continues there later (spec Q20, O03)") {
  small::Model reference;
  reference.model.fit(small::examples(), {.epochs = 3, .verbose = 0});
  for (const int signal : {SIGTERM, SIGUSR1}) {
    CAPTURE(signal);
    const support::TemporaryFolder folder;
    const nn::callbacks::BackupAndRestoreOptions options{.save_before_preemption = true, .signal = signal};
    {
      small::Model told;
      Tells tells{1, 2, signal};
      Began began;
      BackupAndRestore backup{folder.path(), options};
      const nn::History history = told.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, backup, tells, began);
      CHECK(backup.is_preempted());
      CHECK(history.epochs().size() == 1);
      CHECK(began.batches == 4 + 3);
    }
    small::Model again{7};
    Began began;
    BackupAndRestore backup{folder.path(), options};
    again.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, backup, began);
    CHECK_FALSE(backup.is_preempted());
    CHECK(began.batches == 1 + 4);
    CHECK(support::Saved{again.strategy, again.model} == support::Saved{reference.strategy, reference.model});
  }
}

TEST_CASE("the chief logs where a fit continues") {
  const support::TemporaryFolder folder;
  const auto fit_to = [&](std::size_t epochs) {
    return testing::stderr_of([&] {
      small::Model model;
      BackupAndRestore backup{folder.path(), {.delete_checkpoint = false}};
      model.model.fit(small::examples(), {.epochs = epochs, .verbose = 0}, backup);
    });
  };
  CHECK(fit_to(2).stderr_text.empty());
  const testing::Ending ending = fit_to(3);
  CAPTURE(ending.stderr_text);
  CHECK(ending.says("BackupAndRestore: the fit continues from " + folder.path() + "/ckpt-2, at epoch 3, batch 1\n"));
}
