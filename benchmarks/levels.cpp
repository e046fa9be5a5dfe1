// The levels of MultiWorker, measured in one run by the same ranks: the all-reduce of all replicas, in their memory and
// elsewhere, and Adam's fused update of as many parameters as the guide's CNN has, with REPLICAS replicas in each process.
//
//   mpirun -n 2 bench_levels [REPLICAS [ROUNDS [JSON]]]
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <dist/multi_worker.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>

#include "support/arguments.hpp"
#include "support/rounds.hpp"

namespace {

using Strategy = dist::MultiWorker<dist::RingAllReduce>;

constexpr std::size_t parameter_count = 2'770'634;

/// What an optimizer sees of a network.
struct Network {
  decltype(std::declval<Strategy&>().variable<float>(dist::Shape{})) all_parameters;
  decltype(std::declval<Strategy&>().buffer<float>(dist::Shape{})) all_gradients;

  explicit Network(Strategy& strategy)
      : all_parameters(strategy.variable<float>(dist::Shape{parameter_count}, 1.0f, "parameters")),
        all_gradients(strategy.buffer<float>(dist::Shape{parameter_count}, "gradients")) {}
  auto& parameters() { return all_parameters; }
  auto& gradients() { return all_gradients; }
};

/// Seconds of one `call(replica)` of `calls` in a row, on the slowest replica.
template <class Call>
double time_of(Strategy& strategy, std::size_t calls, const Call& call) {
  return strategy.reduce(dist::max, strategy.run([&](auto& replica) {
    call(replica);
    replica.barrier();
    const double start = bench::seconds();
    for (std::size_t each = 0; each < calls; ++each) call(replica);
    return (bench::seconds() - start) / static_cast<double>(calls);
  }));
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 3, "[REPLICAS [ROUNDS [JSON]]]",
      "All-reduce and fused update of the levels of MultiWorker: mpirun -n 2 bench_levels."};
  const dist::mpi::Environment environment;
  Strategy strategy{static_cast<std::size_t>(arguments.number(0, 2))};
  const int rounds = arguments.number(1, 10);
  const bool speaks = strategy.is_chief();
  const bench::JsonFile file{speaks ? arguments.text(2) : nullptr};
  auto buffer = strategy.buffer<float>(dist::Shape{parameter_count}, "values");
  std::vector<std::vector<float>> elsewhere(strategy.num_local_replicas(), std::vector<float>(parameter_count));
  Network network{strategy};
  dist::nn::Optimizer optimizer{strategy, network, dist::nn::Adam{}};

  struct Line {
    std::string name;
    std::function<double()> seconds;
    std::vector<double> times{};
  };
  std::vector<Line> lines;
  for (const std::size_t elements :
       {std::size_t{1}, std::size_t{16}, std::size_t{256}, std::size_t{4096}, std::size_t{65536}, parameter_count}) {
    const std::size_t calls = std::clamp<std::size_t>(2'000'000 / elements, 3, 5000);
    const auto add = [&](std::string_view where, auto memory) {
      lines.push_back(
          {dist::text("all_reduce ", elements * sizeof(float), " B ", where), [&strategy, calls, elements, memory] {
             return time_of(strategy, calls, [&](auto& replica) {
               replica.collectives().all_reduce(dist::sum, memory(replica).first(elements));
             });
           }});
    };
    add("in place", [&](auto& replica) { return buffer.component(replica); });
    add("elsewhere", [&](auto& replica) { return std::span<float>{elsewhere[replica.local_index()]}; });
  }
  lines.push_back({"Adam, fused",
                   [&] { return time_of(strategy, 3, [&](auto& replica) { optimizer.apply_gradients(replica); }); }});

  for (int round = 0; round < rounds; ++round)
    for (Line& line : lines) line.times.push_back(line.seconds());
  if (!speaks) return 0;
  std::printf("%s\n%28s %12s %12s\n", strategy.describe().c_str(), "", "median us", "least us");
  if (file.get() != nullptr) std::fprintf(file.get(), "{");
  for (const Line& line : lines) {
    const double least = *std::min_element(line.times.begin(), line.times.end());
    std::printf("%28s %12.3f %12.3f\n", line.name.c_str(), 1e6 * bench::median(line.times), 1e6 * least);
    if (file.get() != nullptr)
      std::fprintf(file.get(), "%s\"%s\": %.6g", &line == lines.data() ? "" : ", ", line.name.c_str(),
                   1e6 * bench::median(line.times));
  }
  if (file.get() != nullptr) std::fprintf(file.get(), "}\n");
  return 0;
}
