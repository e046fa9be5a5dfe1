#include <dist/summary/writer.hpp>

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/tensor.hpp>

#include <summary/wire.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::InvalidArgument;
using dist::summary::Hyperparameter;
using dist::summary::HyperparameterRange;
using dist::summary::Image;
using dist::summary::Metric;
using dist::summary::Node;
using dist::summary::Outcome;
using dist::summary::Writer;
using dist_test::events_of;
using dist_test::Wire;

namespace {

Wire value_of(const std::string& event) { return Wire{event}.message(5).message(1); }

}  // namespace

TEST_CASE("a scalar is written after the version, with time, step, tag and number") {
  const support::TemporaryFolder folder;
  const double before = static_cast<double>(std::time(nullptr));
  Writer writer{folder.path("train")};
  writer.scalar("epoch_loss", 0.5, 3);
  CHECK(events_of(writer.path()).size() == 1);  // TensorFlow's policy: ten events, or two minutes
  writer.close();
  const auto events = events_of(writer.path());
  REQUIRE(events.size() == 2);
  CHECK(Wire{events[0]}.bytes(3) == "brain.Event:2");
  const double now = Wire{events[1]}.real(1);
  CHECK(now >= before);
  CHECK(now <= static_cast<double>(std::time(nullptr)) + 1);
  CHECK(Wire{events[1]}.integer(2) == 3);
  CHECK(value_of(events[1]).bytes(1) == "epoch_loss");
  CHECK(value_of(events[1]).message(9).message(1).bytes(1) == "scalars");
  CHECK(dist_test::scalar_of(value_of(events[1]).message(8)) == 0.5F);
}

TEST_CASE("each function writes for its plugin, in the order of the calls") {
  const support::TemporaryFolder folder;
  Writer writer{folder.path(), {.most_waiting = 1}};
  dist::Tensor<float> weights{{2, 2}};
  weights[3] = 1;
  writer.histogram("weights", weights, 1, 2);
  writer.histogram("labels", std::vector<int>{1, 1}, 2);
  writer.image("image", {1, 1, "\x89PNG\r\n\x1a\n"}, 3);
  writer.text("note", "words", 4);
  const HyperparameterRange varied[] = {{.name = "rate", .choices = {1}}};
  const Metric metrics[] = {{"epoch_loss"}};
  writer.experiment(varied, metrics);
  const Hyperparameter values[] = {{"rate", 1}};
  writer.session_start(values);
  writer.session_end(Outcome::success);
  const Node nodes[] = {{.name = "x", .op = "Placeholder"}};
  writer.graph(nodes);
  const auto events = events_of(writer.path());
  REQUIRE(events.size() == 9);
  std::vector<std::string> tags;
  std::vector<std::string> plugins;
  for (std::size_t i = 1; i < 8; ++i) {
    tags.push_back(value_of(events[i]).bytes(1));
    plugins.push_back(value_of(events[i]).message(9).message(1).bytes(1));
  }
  CHECK(tags == std::vector<std::string>{"weights", "labels", "image", "note", "_hparams_/experiment",
                                         "_hparams_/session_start_info", "_hparams_/session_end_info"});
  CHECK(plugins ==
        std::vector<std::string>{"histograms", "histograms", "images", "text", "hparams", "hparams", "hparams"});
  CHECK(dist_test::extents_of(value_of(events[1]).message(8)) == std::vector<std::int64_t>{2, 3});
  CHECK(dist_test::extents_of(value_of(events[2]).message(8)) == std::vector<std::int64_t>{30, 3});
  CHECK(Wire{Wire{Wire{events[8]}.bytes(4)}.bytes(1)}.bytes(2) == "Placeholder");
}

TEST_CASE("an invalid tag leaves the file unchanged, an invalid folder is reported") {
  const support::TemporaryFolder folder;
  Writer writer{folder.path(), {.most_waiting = 1}};
  CHECK_THROWS_AS(writer.scalar("", 1, 0), InvalidArgument);
  writer.flush();
  CHECK(events_of(writer.path()).size() == 1);
  folder.write("file", "");
  CHECK_THROWS_WITH_AS(Writer{folder.path("file/train")}, doctest::Contains("file/train' cannot be created"),
                       FileError);
}

TEST_CASE("a writer without a folder checks its arguments, but writes nothing") {
  Writer writer;
  writer.scalar("loss", 1, 0);
  writer.text("note", "text", 0);
  const dist::summary::Hyperparameter values[] = {{"rate", 0.25}};
  writer.session_start(values);
  const dist::summary::Node nodes[] = {{.name = "x", .op = "Placeholder"}};
  writer.graph(nodes);
  writer.flush();
  writer.close();
  CHECK(writer.path().empty());
  CHECK_THROWS_AS(writer.scalar("", 1, 0), dist::InvalidArgument);
}
