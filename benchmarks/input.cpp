// The guide's training input: Fashion-MNIST from compressed files, decoded, normalised, fully shuffled, batched, and
// divided among two replicas. Measures images per second and the slow-down of the training step.
//
//   bench_input [ROUNDS [JSON]]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/arguments.hpp"
#include "support/cnn.hpp"
#include "support/machine.hpp"
#include "support/rounds.hpp"

namespace {

namespace data = dist::data;

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

constexpr std::size_t batch_per_replica = 64;

/// Drops incomplete batches, so that steps are comparable with steps on data in memory.
auto input(Mirrored& strategy, const auto& images, std::size_t fetch_ahead = data::InputOptions{}.fetch_ahead) {
  const std::size_t global_batch = batch_per_replica * strategy.num_replicas_in_sync();
  return strategy.distribute_dataset(
      images | data::shuffle(60'000, 1) | data::batch(global_batch, data::Remainder::drop),
      data::InputOptions{.fetch_ahead = fetch_ahead});
}

/// An endless sequence of batches of a distributed dataset.
template <class Distributed>
class Batches {
 public:
  using Value = typename Distributed::Value;

  explicit Batches(Distributed distributed) : distributed_(std::move(distributed)) {}
  Batches(const Batches&) = delete;

  /// Returns the next batch. Starts a new epoch after the last one.
  const Value& next() {
    if (!pass_ || !pass_->next(value_)) {
      pass_.emplace(distributed_.iterate(epoch_++));
      pass_->next(value_);
    }
    return value_;
  }

 private:
  Distributed distributed_;
  std::optional<data::IteratorOf<Distributed>> pass_;
  Value value_;
  std::uint64_t epoch_ = 0;
};
template <class Distributed>
Batches(Distributed) -> Batches<Distributed>;

std::size_t rows_of(const auto& batch) {
  std::size_t rows = 0;
  for (std::size_t replica = 0; replica < batch.size(); ++replica) rows += batch[replica].x.rows();
  return rows;
}

double count(const auto& batch) { return static_cast<double>(rows_of(batch)); }

/// A training step on batches of a dataset, and the time it waits for them.
template <class Distributed>
class TrainingWithInput {
 public:
  TrainingWithInput(Mirrored& strategy, Distributed distributed)
      : strategy_(strategy), training_(strategy), batches_(std::move(distributed)) {}

  double operator()() {
    const double start = bench::seconds();
    const auto& batch = batches_.next();
    const double there = bench::seconds();
    const std::size_t rows = rows_of(batch);
    strategy_.run([&](auto& replica, const auto& part) { training_.step(replica, part.x, part.y, rows); }, batch);
    waits_.push_back(1e6 * (there - start));
    steps_.push_back(1e6 * (bench::seconds() - start));
    return static_cast<double>(rows);
  }

  /// Median in microseconds.
  [[nodiscard]] double wait() const { return bench::distribution(waits_).median; }
  [[nodiscard]] double step() const { return bench::distribution(steps_).median; }

 private:
  Mirrored& strategy_;
  bench::Training<Mirrored> training_;
  Batches<Distributed> batches_;
  std::vector<double> waits_;
  std::vector<double> steps_;
};
template <class Distributed>
TrainingWithInput(Mirrored&, Distributed) -> TrainingWithInput<Distributed>;

/// Seconds of a pass that starts with reading the files, and of the reading alone.
struct FirstPass {
  double reading, all;
  std::size_t images = 0;
};

FirstPass pass_from_files(Mirrored& strategy) {
  FirstPass pass{};
  const double start = bench::seconds();
  const auto images = data::fashion_mnist(data::Split::train);
  pass.reading = bench::seconds() - start;
  auto batches = input(strategy, images);
  for (const auto& batch : batches) pass.images += rows_of(batch);
  pass.all = bench::seconds() - start;
  return pass;
}

/// Seconds until the first batch of an epoch, including the fill of the shuffle buffer.
double first_batch(auto& distributed, std::uint64_t epoch) {
  typename std::remove_reference_t<decltype(distributed)>::Value value;
  const double start = bench::seconds();
  auto pass = distributed.iterate(epoch);
  pass.next(value);
  return bench::seconds() - start;
}

void measure(int rounds, std::FILE* json) {
  Mirrored strategy{2};
  std::vector<double> reading, all;
  for (int i = 0; i < 3; ++i) {
    const FirstPass pass = pass_from_files(strategy);
    reading.push_back(static_cast<double>(pass.images) / pass.reading);
    all.push_back(static_cast<double>(pass.images) / pass.all);
  }
  const double from_files = bench::distribution(all).median;
  std::printf("One pass from the files: %.4g images/s; only decoding and normalising: %.4g images/s\n", from_files,
              bench::distribution(reading).median);

  const auto images = data::fashion_mnist(data::Split::train);
  std::vector<double> beginnings;
  auto to_begin = input(strategy, images);
  for (std::uint64_t epoch = 0; epoch < 9; ++epoch) beginnings.push_back(1e3 * first_batch(to_begin, epoch));
  const bench::Distribution beginning = bench::distribution(beginnings);
  std::printf("First batch of an epoch after %.3g ms (%.3g to %.3g)\n", beginning.median, beginning.least,
              beginning.greatest);

  Mirrored single{1};
  const bench::Images in_memory{2 * batch_per_replica};
  const bench::Images in_memory_of_one{batch_per_replica};
  bench::Training<Mirrored> training{strategy};
  bench::Training<Mirrored> training_of_one{single};
  TrainingWithInput with_input{strategy, input(strategy, images)};
  TrainingWithInput when_asked{strategy, input(strategy, images, 0)};
  TrainingWithInput one_with_input{single, input(single, images)};
  TrainingWithInput one_when_asked{single, input(single, images, 0)};
  Batches made_ahead{input(strategy, images)};
  Batches made_when_asked{input(strategy, images, 0)};

  bench::Rounds measured{"Input of the CNN's training, 64 images for each replica, (goal)", "images"};
  const auto step = measured.add("2 replicas, images in memory", [&] {
    training(in_memory);
    return static_cast<double>(in_memory.x.rows());
  });
  const auto step_with_input = measured.add("  batches prefetched", [&] { return with_input(); });
  const auto step_when_asked = measured.add("  batches on demand", [&] { return when_asked(); });
  const auto one = measured.add("1 replica, images in memory", [&] {
    training_of_one(in_memory_of_one);
    return static_cast<double>(in_memory_of_one.x.rows());
  });
  const auto one_step_with_input = measured.add("  batches prefetched", [&] { return one_with_input(); });
  const auto one_step_when_asked = measured.add("  batches on demand", [&] { return one_when_asked(); });
  const auto alone = measured.add("input alone, prefetched", [&] { return count(made_ahead.next()); });
  measured.add("  on demand", [&] { return count(made_when_asked.next()); });
  measured.ratio("input alone over 2 replicas' steps (3)", alone, step);
  measured.ratio("2 replicas, prefetched over images in memory", step_with_input, step);
  measured.ratio("  on demand", step_when_asked, step);
  measured.ratio("1 replica, prefetched over images in memory", one_step_with_input, one);
  measured.ratio("  on demand", one_step_when_asked, one);
  measured.run(rounds, 0.2, bench::quiet_cores(strategy));
  measured.print_table();

  struct Waiting {
    const char* name;
    double wait, step;
  };
  const Waiting waiting[] = {
      {"2 replicas, prefetched", with_input.wait(), with_input.step()},
      {"2 replicas, on demand", when_asked.wait(), when_asked.step()},
      {"1 replica, prefetched", one_with_input.wait(), one_with_input.step()},
      {"1 replica, on demand", one_when_asked.wait(), one_when_asked.step()},
  };
  std::printf("Median wait for the next batch, and its share of the median step\n");
  for (const Waiting& each : waiting)
    std::printf("  %-52s %9.3g us %6.2f %%\n", each.name, each.wait, 100 * each.wait / each.step);

  if (json != nullptr) {
    std::fprintf(json, "{\"from_files_images_per_second\": %.6g, \"first_batch_ms\": %.6g, \"waits\": [", from_files,
                 beginning.median);
    for (const Waiting& each : waiting)
      std::fprintf(json, "%s{\"name\": \"%s\", \"wait_us\": %.6g, \"step_us\": %.6g}", &each == waiting ? "" : ", ",
                   each.name, each.wait, each.step);
    std::fprintf(json, "], \"rounds\": ");
    measured.print_json(json);
    std::fprintf(json, "}\n");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::Arguments arguments{argc, argv, 2, "[ROUNDS [JSON]]",
                                   "Times the input pipeline alone, and how long the training step waits for it."};
  const bench::JsonFile json{arguments.text(1)};
  measure(arguments.number(0, 20), json.get());
} catch (const dist::FileError& missing) {
  std::printf("input pipeline: not measured. %s\n", missing.what());
  return 0;
}
