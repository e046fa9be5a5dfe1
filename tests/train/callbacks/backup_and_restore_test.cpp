#include <dist/train/callbacks/backup_and_restore.hpp>

#include <signal.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <support/saved.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::BackupAndRestore;

namespace {

/// Ends the fit as a program ends that is killed: in the middle.
struct Interrupts {
  std::size_t epoch, step;
  std::size_t now = 0;
  void on_epoch_begin(const nn::Epoch& begun) { now = begun.index; }
  void on_train_batch_end(std::size_t done, nn::CurrentLogs) {
    if (now == epoch && done == step) throw std::runtime_error("interrupted");
  }
};
/// Tells the program to end.
struct Tells {
  std::size_t epoch, step;
  std::size_t now = 0;
  void on_epoch_begin(const nn::Epoch& begun) { now = begun.index; }
  void on_train_batch_begin(std::size_t begun) const {
    if (now == epoch && begun == step) raise(SIGTERM);
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

TEST_CASE("a fit that was interrupted goes on from its backup, with the bits of one that was not (spec Q20)") {
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
        // Without save_freq the epoch is done again; with it, the batches behind the last backup.
        const std::size_t done = 4 * epoch + step + 1;
        const std::size_t kept = save_freq ? done / *save_freq * *save_freq : 4 * epoch;
        const std::size_t first = save_freq && kept > 0 ? (kept - 1) / 4 : kept / 4;
        CHECK(began.epoch == first);
        CHECK(began.batches == 16 - kept);
        if (kept > 0) {  // else it began anew, with other weights
          CHECK(history["loss"].back() == expected["loss"].back());
          CHECK(support::Saved{again.strategy, again.model} == whole);
        }
        CHECK(!dist::latest_checkpoint(folder.path()));  // it came to its end
      }
}

TEST_CASE("backups may stay, and one folder is for one fit") {
  const support::TemporaryFolder folder;
  small::Model trained;
  BackupAndRestore stays{folder.path(), {.delete_checkpoint = false}};
  trained.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, stays);
  CHECK(dist::latest_checkpoint(folder.path()));
  // The same fit again has nothing left to do.
  small::Model same;
  CHECK(same.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, stays).epochs().empty());
  CHECK(support::Saved{same.strategy, same.model} == support::Saved{trained.strategy, trained.model});

  BackupAndRestore first{folder.path()};
  BackupAndRestore second{folder.path()};
  CHECK(support::what_throws<dist::FileError>(
            [&] { trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, first, second); })
            .starts_with("File '" + folder.path() +
                         "' is a folder to which somebody else writes checkpoints (this program itself, process "));
  CHECK_THROWS_AS((BackupAndRestore{"x", {.save_freq = 0}}), dist::InvalidArgument);
}

TEST_CASE("a fit that is told to end ends after the batch, and goes on there (spec Q20, O03)") {
  small::Model reference;
  reference.model.fit(small::examples(), {.epochs = 3, .verbose = 0});
  const support::TemporaryFolder folder;
  {
    small::Model told;
    Tells tells{1, 2};
    Began began;
    BackupAndRestore backup{folder.path(), {.save_before_preemption = true}};
    const nn::History history = told.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, backup, tells, began);
    CHECK(backup.is_preempted());
    CHECK(history.epochs().size() == 1);
    CHECK(began.batches == 4 + 3);
  }
  small::Model again{7};
  Began began;
  BackupAndRestore backup{folder.path(), {.save_before_preemption = true}};
  again.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, backup, began);
  CHECK_FALSE(backup.is_preempted());
  CHECK(began.batches == 1 + 4);
  CHECK(support::Saved{again.strategy, again.model} == support::Saved{reference.strategy, reference.model});
}
