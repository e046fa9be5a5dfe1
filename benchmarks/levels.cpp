// The levels of MultiWorker, measured in one run: the all-reduce of all replicas, inside and outside of the
// strategy's memory; Adam's fused update with the number of parameters of the guide's CNN; and the halo exchange of a
// ring of replicas, compared with copies or MPI_Sendrecv. Each process has REPLICAS replicas.
//
//   mpirun -n 2 bench_levels [REPLICAS [ROUNDS [JSON]]]
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <dist/context/subgroup.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>

#include "support/arguments.hpp"
#include "support/rounds.hpp"

namespace {

using Strategy = dist::MultiWorker<dist::RingAllReduce>;

constexpr std::size_t parameter_count = 2'770'634;

/// The members that an optimizer needs.
struct Network {
  decltype(std::declval<Strategy&>().variable<float>(dist::Shape{})) all_parameters;
  decltype(std::declval<Strategy&>().buffer<float>(dist::Shape{})) all_gradients;

  explicit Network(Strategy& strategy)
      : all_parameters(strategy.variable<float>(dist::Shape{parameter_count}, 1.0f, "parameters")),
        all_gradients(strategy.buffer<float>(dist::Shape{parameter_count}, "gradients")) {}
  auto& parameters() { return all_parameters; }
  auto& gradients() { return all_gradients; }
};

/// Seconds per `call(replica)`, averaged over `calls` calls, on the slowest replica.
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

/// The boundaries of a replica's part of a domain and the halos from its neighbours, `elements` elements each.
struct Halo {
  Halo(std::span<float> memory, std::size_t elements)
      : from_left(memory.first(elements)),
        to_left(memory.subspan(elements, elements)),
        to_right(memory.subspan(2 * elements, elements)),
        from_right(memory.subspan(3 * elements, elements)) {}

  std::span<float> from_left, to_left, to_right, from_right;
};
struct Neighbors {
  explicit Neighbors(const auto& replica)
      : left((replica.replica_id().index() + replica.num_replicas_in_sync() - 1) % replica.num_replicas_in_sync()),
        right((replica.replica_id().index() + 1) % replica.num_replicas_in_sync()) {}

  std::size_t left, right;
};

void exchange_by_mpi(const Halo& halo, const Neighbors& neighbors) {
  const auto pass = [](std::span<float> from, std::size_t to, std::span<float> into, std::size_t source) {
    MPI_Sendrecv(from.data(), static_cast<int>(from.size()), MPI_FLOAT, static_cast<int>(to), 0, into.data(),
                 static_cast<int>(into.size()), MPI_FLOAT, static_cast<int>(source), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  };
  pass(halo.to_left, neighbors.left, halo.from_right, neighbors.right);
  pass(halo.to_right, neighbors.right, halo.from_left, neighbors.left);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 3, "[REPLICAS [ROUNDS [JSON]]]",
      "Times all-reduce, halo exchange and fused update of MultiWorker: mpirun -n 2 bench_levels."};
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
  for (const std::size_t elements : {std::size_t{1}, std::size_t{16}, std::size_t{256}, std::size_t{1024},
                                     std::size_t{4096}, std::size_t{65536}, parameter_count}) {
    const std::size_t calls = std::clamp<std::size_t>(2'000'000 / elements, 3, 5000);
    const auto add = [&](std::string_view where, auto memory) {
      lines.push_back(
          {dist::concat("all_reduce ", elements * sizeof(float), " B ", where), [&strategy, calls, elements, memory] {
             return time_of(strategy, calls, [&](auto& replica) {
               replica.collectives().all_reduce(dist::sum, memory(replica).first(elements));
             });
           }});
    };
    add("in place", [&](auto& replica) { return buffer.component(replica); });
    add("elsewhere", [&](auto& replica) { return std::span<float>{elsewhere[replica.local_index()]}; });
  }
  for (const std::size_t elements : {std::size_t{16}, std::size_t{1024}, std::size_t{65536}}) {
    const std::size_t calls = std::clamp<std::size_t>(2'000'000 / elements, 30, 5000);
    const auto add = [&](std::string_view how, auto exchange) {
      lines.push_back({dist::concat("halo 2 x ", elements * sizeof(float), " B ", how), [&, calls, elements, exchange] {
                         return time_of(strategy, calls, [&](auto& replica) {
                           exchange(replica, Halo{buffer.component(replica), elements}, Neighbors{replica});
                         });
                       }});
    };
    add("neighbor_exchange", [](auto& replica, const Halo& halo, const Neighbors& neighbors) {
      replica.neighbor_exchange({{neighbors.left, halo.to_left}, {neighbors.right, halo.to_right}},
                                {{neighbors.right, halo.from_right}, {neighbors.left, halo.from_left}});
    });
    if (strategy.num_workers() == 1)
      add("barrier, copies, barrier", [&, elements](auto& replica, const Halo& halo, const Neighbors& neighbors) {
        replica.barrier();
        const auto of = [&](std::size_t other) { return Halo{buffer.component(strategy.scope(), other), elements}; };
        std::copy_n(of(neighbors.left).to_right.data(), elements, halo.from_left.data());
        std::copy_n(of(neighbors.right).to_left.data(), elements, halo.from_right.data());
        replica.barrier();
      });
    else if (strategy.num_local_replicas() == 1)
      add("MPI_Sendrecv",
          [](auto&, const Halo& halo, const Neighbors& neighbors) { exchange_by_mpi(halo, neighbors); });
  }
  lines.push_back({"Adam, fused",
                   [&] { return time_of(strategy, 3, [&](auto& replica) { optimizer.apply_gradients(replica); }); }});

  for (int round = 0; round < rounds; ++round)
    for (Line& line : lines) line.times.push_back(line.seconds());
  if (!speaks) return 0;
  std::printf("%s\n%42s %12s %12s\n", strategy.describe().c_str(), "", "median us", "least us");
  if (file.get() != nullptr) std::fprintf(file.get(), "{");
  for (const Line& line : lines) {
    const double least = *std::min_element(line.times.begin(), line.times.end());
    std::printf("%42s %12.3f %12.3f\n", line.name.c_str(), 1e6 * bench::median(line.times), 1e6 * least);
    if (file.get() != nullptr)
      std::fprintf(file.get(), "%s\"%s\": %.6g", &line == lines.data() ? "" : ", ", line.name.c_str(),
                   1e6 * bench::median(line.times));
  }
  if (file.get() != nullptr) std::fprintf(file.get(), "}\n");
  return 0;
}
