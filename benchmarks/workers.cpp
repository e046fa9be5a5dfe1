// Several processes on one machine, measured in one run: MPI_Allreduce, MpiAllReduce with and without the check of
// calls, all-reduce in the node's shared memory and in a ring; and the training step of the guide's CNN with two
// workers and with one.
//
//   mpirun -n 2 bench_workers [ROUNDS [JSON]]
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dist/multi_worker.hpp>
#include <dist/strategy/one_device.hpp>

#include "support/arguments.hpp"
#include "support/cnn.hpp"
#include "support/collective_timing.hpp"
#include "support/machine.hpp"
#include "support/rounds.hpp"

namespace {

using dist::CollectiveChecks;

int rank = 0;
int ranks = 1;

/// A barrier for all ranks that sleeps instead of spinning.
void meet_asleep() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; usleep(200)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}
bool same_on_all(bool value) {
  int flag = value ? 1 : 0;
  MPI_Bcast(&flag, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return flag != 0;
}

/// True if every rank has its own core: their joint rate is the rate of one times their number.
bool quiet() {
  double alone = 0;
  if (rank == 0) alone = bench::fma_rate(0.02);
  meet_asleep();
  double together = bench::fma_rate(0.02);
  MPI_Allreduce(MPI_IN_PLACE, &together, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return same_on_all(together >= 0.95 * ranks * alone && together <= 1.05 * ranks * alone);
}

/// True until `wanted` rounds were quiet or twice as many were run. All ranks have the same marks.
bool more_rounds(const bench::Marks& marks, int wanted) {
  return static_cast<int>(marks.quiet()) < wanted && static_cast<int>(marks.rounds()) < 2 * wanted;
}

/// An all-reduce for `bench::time_all_reduce`.
struct Contender {
  std::string name;
  std::function<void(std::span<float>)> call;
  std::span<float> memory;
  bool out_of_place;
};
struct Rank {
  const Contender& contender;
  std::span<float> input, output;

  void write_input(unsigned round) { bench::write_input(input, static_cast<std::size_t>(rank), round); }
  void all_reduce() { contender.call(output); }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void max(std::span<double> times) {
    MPI_Allreduce(MPI_IN_PLACE, times.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  [[nodiscard]] std::size_t count_wrong(unsigned round) const {
    return bench::count_wrong(std::span<const float>{output}, true, static_cast<std::size_t>(ranks), round);
  }
};

template <class Ops>
std::shared_ptr<dist::MultiWorker<Ops>> strategy_of(bool hierarchical, CollectiveChecks checks) {
  dist::MultiWorkerOptions options;
  options.hierarchical = hierarchical;
  options.checks = checks;
  return std::make_shared<dist::MultiWorker<Ops>>(options);
}
template <class Ops>
Contender contender(std::string name, std::shared_ptr<dist::MultiWorker<Ops>> strategy, std::span<float> memory) {
  return {std::move(name), [strategy](std::span<float> values) { strategy->workers().all_reduce(dist::sum, values); },
          memory, false};
}

int collectives(int rounds, std::FILE* json) {
  constexpr std::size_t most = (std::size_t{16} << 20) / sizeof(float);
  constexpr std::size_t sizes[] = {4, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  const auto in_node = strategy_of<dist::NodeAllReduce>(true, CollectiveChecks::calls);
  auto buffer = in_node->buffer<float>({most}, "benchmark");
  const std::span<float> window = buffer.component(in_node->scope(), 0);
  std::vector<float> input_memory(most), private_memory(most);
  const std::span<float> input{input_memory}, plain{private_memory};
  const auto raw_in_place = [](std::span<float> values) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  const auto raw = [&](std::span<float> values) {
    MPI_Allreduce(input.data(), values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  const Contender contenders[] = {
      {"MPI", raw, plain, true},
      {"MPI in place", raw_in_place, plain, false},
      contender("MpiAllReduce", strategy_of<dist::MpiAllReduce>(false, CollectiveChecks::none), plain),
      contender("checked", strategy_of<dist::MpiAllReduce>(false, CollectiveChecks::calls), plain),
      contender("window", in_node, window),
      contender("staged", in_node, plain),
      contender("ring", strategy_of<dist::RingAllReduce>(false, CollectiveChecks::calls), plain),
  };
  constexpr std::size_t count = std::size(contenders);
  if (rank == 0) {
    std::printf(
        "All-reduce of floats by %d processes, us (median of the counted rounds), and ratios within the rounds: "
        "median "
        "(10th to 90th percentile)\n"
        "%10s",
        ranks, "bytes");
    for (const Contender& each : contenders) std::printf(" %12s", each.name.c_str());
    std::printf(" | %17s %17s %17s %10s | %s\n", "MpiAR/MPI*", "MPI/window", "MPI*/window", "check ns", "rounds");
    if (json != nullptr) std::fprintf(json, "{\"collectives\": [");
  }
  std::size_t wrong = 0;
  for (const std::size_t bytes : sizes) {
    std::vector<double> times[count];
    bench::Marks marks;
    while (more_rounds(marks, rounds)) {
      const bool quiet_before = quiet();
      for (std::size_t i = 0; i < count; ++i) {
        const std::span<float> values = contenders[i].memory.first(bytes / sizeof(float));
        Rank self{contenders[i], contenders[i].out_of_place ? input.first(values.size()) : values, values};
        const bench::Timing timing = bench::time_all_reduce(self, bytes, 0.03);
        times[i].push_back(timing.seconds);
        wrong += timing.wrong;
      }
      marks.add(quiet() && quiet_before);
    }
    if (rank != 0) continue;
    const auto ratio = [&](std::size_t numerator, std::size_t denominator) {
      std::vector<double> values;
      for (std::size_t round = 0; round < times[0].size(); ++round)
        values.push_back(times[numerator][round] / times[denominator][round]);
      const bench::Distribution value = bench::distribution(marks.counted(values));
      char text[48];
      std::snprintf(text, sizeof text, "%.2f (%.2f-%.2f)", value.median, value.tenth, value.ninetieth);
      return std::string{text};
    };
    std::vector<double> check;
    for (std::size_t round = 0; round < times[0].size(); ++round)
      check.push_back(1e9 * (times[3][round] - times[2][round]));
    std::printf("%10zu", bytes);
    for (const auto& each : times) std::printf(" %12.3f", 1e6 * bench::median(marks.counted(each)));
    std::printf(" | %17s %17s %17s %10.0f | %s\n", ratio(2, 1).c_str(), ratio(0, 4).c_str(), ratio(1, 4).c_str(),
                bench::median(marks.counted(check)), marks.describe().c_str());
    std::fflush(stdout);
    if (json == nullptr) continue;
    std::fprintf(json, "%s{\"bytes\": %zu", bytes == sizes[0] ? "" : ", ", bytes);
    for (std::size_t i = 0; i < count; ++i)
      std::fprintf(json, ", \"%s\": %.6g", contenders[i].name.c_str(), 1e6 * bench::median(marks.counted(times[i])));
    std::fprintf(json, "}");
  }
  if (rank == 0) {
    std::printf("MPI*: in place, as ours. check: overhead of the check of calls in MpiAllReduce.\n\n");
    if (json != nullptr) std::fprintf(json, "]");
  }
  return wrong == 0 ? 0 : 1;
}

/// Runs steps for about `duration` seconds. Returns the images per second of all workers together.
template <class Step>
double rate(Step&& step, double images, double duration) {
  int steps = 0;
  const double start = bench::seconds();
  double now = start;
  for (bool more = true; more; ++steps) {
    step();
    now = bench::seconds();
    if (steps % 8 == 7) more = now - start < duration;
  }
  return images * steps / (now - start);
}

void training(int rounds, std::FILE* json) {
  dist::OneDevice<dist::Cpu> one;
  dist::MultiWorker<dist::RingAllReduce> workers;
  const bench::Images images_of_one{64};
  const bench::Images images{64 * static_cast<std::size_t>(ranks)};
  bench::Training<dist::OneDevice<dist::Cpu>> training_of_one{one};
  bench::Training<dist::MultiWorker<dist::RingAllReduce>> training_of_all{workers};
  std::vector<double> ratios, rates_of_one, rates_of_all;
  bench::Marks marks;
  while (more_rounds(marks, rounds)) {
    const bool quiet_before = quiet();
    double alone = 0;
    if (rank == 0) alone = rate([&] { training_of_one(images_of_one); }, 64, 0.5);
    meet_asleep();
    // All workers make the same number of steps.
    int steps = static_cast<int>(0.5 * std::max(alone, 64.0) / 64);
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    training_of_all(images);
    const double start = bench::seconds();
    for (int step = 0; step < steps; ++step) training_of_all(images);
    const double together = 64.0 * ranks * steps / (bench::seconds() - start);
    marks.add(quiet() && quiet_before);
    ratios.push_back(together / std::max(alone, 1.0));
    rates_of_one.push_back(alone);
    rates_of_all.push_back(together);
  }
  if (rank != 0) return;
  const bench::Distribution ratio = bench::distribution(marks.counted(ratios));
  const double rate_of_one = bench::median(marks.counted(rates_of_one));
  const double rate_of_all = bench::median(marks.counted(rates_of_all));
  std::printf(
      "The CNN, batch 64 each, images per second: 1 worker %.0f, %d workers %.0f\n"
      "  %d workers over 1: %.2f (min %.2f, 10 %% %.2f, 90 %% %.2f, max %.2f%s), %s\n",
      rate_of_one, ranks, rate_of_all, ranks, ratio.median, ratio.least, ratio.tenth, ratio.ninetieth, ratio.greatest,
      marks.effect(ratios).c_str(), marks.describe().c_str());
  if (json != nullptr)
    std::fprintf(json, ", \"cnn\": {\"one\": %.6g, \"all\": %.6g, \"ratio\": %.4g, \"min\": %.4g, \"max\": %.4g}",
                 rate_of_one, rate_of_all, ratio.median, ratio.least, ratio.greatest);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 2, "[ROUNDS [JSON]]",
      "Times all-reduce and the CNN's step on several processes: mpirun -n 2 bench_workers."};
  const dist::mpi::Environment environment;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = arguments.number(0, 20);
  const bench::JsonFile file{rank == 0 ? arguments.text(1) : nullptr};
  std::FILE* const json = file.get();
  const int status = collectives(rounds, json);
  training(rounds, json);
  if (json != nullptr) std::fprintf(json, "}\n");
  return status;
}
