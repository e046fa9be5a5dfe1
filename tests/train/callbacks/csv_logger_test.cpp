#include <dist/train/callbacks/csv_logger.hpp>

#include <string>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::CSVLogger;

namespace {

/// Puts numbers with few digits into the logs.
struct Script {
  double add = 0;
  void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) {
    nn::Logs simple;
    simple.set("loss", static_cast<double>(epoch.index) + 0.25 + add);
    simple.set("accuracy", 0.1);
    if (epoch.index != 1) simple.set("val_loss", 1e-10);
    logs = simple;
  }
};

}  // namespace

TEST_CASE("a line for each epoch, by the alphabet, under a header") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  small::Model trained;
  Script script;
  CSVLogger logger{path};
  trained.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, script, logger);
  CHECK(folder.read("log.csv") == "epoch,accuracy,loss,val_loss\n0,0.1,0.25,1e-10\n1,0.1,1.25,NA\n");
  // The next fit writes over it, unless it is told to go on.
  script.add = 4;
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0}, script, logger);
  CHECK(folder.read("log.csv") == "epoch,accuracy,loss,val_loss\n0,0.1,4.25,1e-10\n");
  CSVLogger more{path, {.append = true}};
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0}, script, more);
  CHECK(folder.read("log.csv") == "epoch,accuracy,loss,val_loss\n0,0.1,4.25,1e-10\n0,0.1,4.25,1e-10\n");
  CSVLogger tabs{path, {.separator = '\t'}};
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0}, script, tabs);
  CHECK(folder.read("log.csv") == "epoch\taccuracy\tloss\tval_loss\n0\t0.1\t4.25\t1e-10\n");
}

TEST_CASE("a file that cannot be written is named") {
  small::Model trained;
  CHECK_THROWS_WITH_AS(trained.model.fit(small::examples(), {.verbose = 0}, CSVLogger{"/nowhere/log.csv"}),
                       "File '/nowhere/log.csv' cannot be made (No such file or directory). Check its folder, the "
                       "permissions and the room on "
                       "the disk.",
                       dist::FileError);
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, CSVLogger{"/dev/full"}), dist::FileError);
}
