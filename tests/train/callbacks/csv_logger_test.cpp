#include <dist/train/callbacks/csv_logger.hpp>

#include <string>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::CSVLogger;

namespace {

/// Sets values with few digits in the logs.
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

TEST_CASE("a file has a header and one line per epoch, with columns in alphabetical order") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  small::Model trained;
  Script script;
  CSVLogger logger{path};
  trained.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, script, logger);
  CHECK(folder.read("log.csv") == "epoch,accuracy,loss,val_loss\n0,0.1,0.25,1e-10\n1,0.1,1.25,NA\n");
  // The next fit overwrites the file, unless it appends.
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

TEST_CASE("new columns are added to previous lines") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  struct Grows {
    void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) {
      nn::Logs simple;
      simple.set("loss", static_cast<double>(epoch.index));
      if (epoch.index == 1) simple.set("extra", 0.5);
      logs = simple;
    }
  };
  small::Model trained;
  trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, Grows{}, CSVLogger{path});
  CHECK(folder.read("log.csv") == "epoch,extra,loss\n0,NA,0\n1,0.5,1\n2,NA,2\n");
  // Another fit appends other columns.
  Script script;
  trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0}, script, CSVLogger{path, {.append = true}});
  CHECK(folder.read("log.csv") ==
        "epoch,accuracy,extra,loss,val_loss\n0,NA,NA,0,NA\n1,NA,0.5,1,NA\n2,NA,NA,2,NA\n0,0.1,NA,0.25,1e-10\n");
  // The columns of a validation exist before the first one.
  trained.model.fit(small::examples(),
                    {.epochs = 1, .validation = small::examples(), .validation_freq = 2, .verbose = 0},
                    CSVLogger{path});
  CHECK(folder.read("log.csv").starts_with("epoch,accuracy,loss,val_accuracy,val_loss\n0,"));
  CHECK_THROWS_AS(
      trained.model.fit(small::examples(), {.verbose = 0}, CSVLogger{path, {.separator = ';', .append = true}}),
      dist::FileError);
}

TEST_CASE("a file that cannot be written is reported") {
  small::Model trained;
  CHECK_THROWS_WITH_AS(trained.model.fit(small::examples(), {.verbose = 0}, CSVLogger{"/nowhere/log.csv"}),
                       "File '/nowhere/log.csv' cannot be created (No such file or directory). Check its folder, the "
                       "permissions and the free disk space.",
                       dist::FileError);
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, CSVLogger{"/dev/full"}), dist::FileError);
}
