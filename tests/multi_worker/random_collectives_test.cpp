// Random sequences of collectives under every policy of MultiWorker, compared with computed results.
//
// Each case has a seed, which failures print: DIST_TEST_RANDOM_SEED=<seed> runs only that case. The program generates
// cases for DIST_TEST_RANDOM_SECONDS=<seconds>, by default 4.
#include <dist/multi_worker.hpp>
// ranks: 1 2 3 4
// optimised

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/context/subgroup.hpp>

#include <doctest/doctest.h>

namespace {

/// The number of apparent nodes, which are this machine under other names.
std::size_t nodes = 1;

}  // namespace

/// Replaces the system's function. Returns the name of this worker's node once MPI has started.
extern "C" int gethostname(char* name, std::size_t size) noexcept {
  int starts = 0, finalised = 0, rank = 0;
  MPI_Initialized(&starts);
  MPI_Finalized(&finalised);
  if (starts != 0 && finalised == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::snprintf(name, size, "node-%zu", static_cast<std::size_t>(rank) % nodes);
  return 0;
}

namespace {

/// Returns the same numbers for the same seed on every replica (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebU;
    return mixed ^ mixed >> 31;
  }
  std::size_t below(std::size_t end) { return next() % end; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  /// Returns a number of elements: few, some, or several MiB of floats, often near the thresholds of algorithms.
  std::size_t elements(std::size_t most) {
    constexpr std::array<std::size_t, 6> borders{1, 63, 64, 65, 32'767, 32'768};
    const std::size_t chosen = one_in(5)   ? borders[below(borders.size())]
                               : one_in(3) ? 1 + below(2'000)
                               : one_in(6) ? 1 + below(1'000'000)
                                           : 1 + below(100'000);
    return std::min(chosen, most);
  }

 private:
  std::uint64_t state_;
};

/// Returns element `i` of the operand of replica `rank` in collective `step`. Sums of all replicas are exact in float.
float value(std::size_t rank, std::size_t i, std::size_t step) {
  return static_cast<float>((rank + 1) * (i % 7 + 1) + step % 5);
}
/// The sum of these values over the replicas `rank` for which `among(rank)` is true.
struct Sums {
  std::size_t ranks = 0;  // the sum of rank + 1
  std::size_t count = 0;

  void add(std::size_t rank) {
    ranks += rank + 1;
    ++count;
  }
  [[nodiscard]] float of(std::size_t i, std::size_t step) const {
    return static_cast<float>(ranks * (i % 7 + 1) + count * (step % 5));
  }
};

/// The collectives of a replica in a run. Operands are in the strategy's memory or outside, chosen by each replica.
template <class Replica>
class Steps {
 public:
  /// `memory` has pieces of the strategy's memory. With `only_sums`, all steps sum growing operands outside of it.
  Steps(Replica& replica, std::uint64_t seed, std::array<std::span<float>, 2> memory, bool only_sums)
      : replica_(replica),
        id_(replica.replica_id().index()),
        replicas_(replica.num_replicas_in_sync()),
        common_(seed),
        own_(seed ^ (id_ + 1) * 0x2545f4914f6cdd1dU),
        memory_(memory),
        only_sums_(only_sums) {
    grows_ = common_.one_in(2) || only_sums;
    is_outside_ = common_.one_in(2) || only_sums;
    for (std::size_t rank = 0; rank < replicas_; ++rank) all_.add(rank);
  }

  /// Returns a description of the first error, or an empty string.
  [[nodiscard]] std::string do_all(std::size_t steps) {
    for (step_ = 0; step_ < steps; ++step_) {
      if (own_.one_in(8)) std::this_thread::sleep_for(std::chrono::microseconds{own_.below(300)});
      const std::size_t elements = next_elements();
      // Collectives are often repeated.
      if (step_ == 0 || common_.one_in(grows_ ? 8 : 2)) kind_ = common_.below(all_kinds);
      switch (only_sums_ ? all_kinds : kind_) {
        case 0:
          few();
          break;
        case 1:
          broadcast(elements);
          break;
        case 2:
          all_gather(elements);
          break;
        case 3:
          update(elements);
          break;
        case 4:
          update_in_halves(elements);
          break;
        case 5:
          neighbors(elements);
          break;
        case 6:
          subgroups(elements);
          break;
        case 7:
          merged(elements);
          break;
        default:
          all_reduce(elements);
      }
      if (!mistake_.empty()) return mistake_;
    }
    return {};
  }

 private:
  static constexpr std::size_t all_kinds = 16;

  /// In half of all runs, the operands grow from step to step.
  [[nodiscard]] std::size_t next_elements() {
    const std::size_t most = memory_[0].size();
    elements_ = !grows_      ? common_.elements(most)
                : step_ == 0 ? std::min(most, 30'000 + common_.below(40'000))
                             : std::min(most, elements_ + elements_ / 4);
    return elements_;
  }
  [[nodiscard]] std::span<float> operand(std::size_t which, std::size_t elements) {
    outside_[which].clear();
    outside_[which].shrink_to_fit();
    if (!is_outside_ && own_.one_in(2)) {
      const std::size_t first = own_.below(memory_[which].size() - elements + 1);
      return memory_[which].subspan(first, elements);
    }
    outside_[which].resize(elements);
    return outside_[which];
  }
  [[nodiscard]] std::span<float> brought(std::size_t which, std::size_t elements) {
    const std::span<float> values = operand(which, elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = value(id_, i, step_);
    return values;
  }
  template <class Expected>
  void check(std::string_view what, std::span<const float> found, Expected&& expected) {
    for (std::size_t i = 0; i < found.size() && mistake_.empty(); ++i)
      if (found[i] != expected(i))
        mistake_ = dist::concat("replica ", id_, ", step ", step_, ": element ", i, " of ", found.size(), " of ", what,
                                " is ", found[i], ", not ", expected(i));
  }

  void few() {
    const std::size_t sum = replica_.all_reduce(dist::sum, id_ + 1);
    const float most = replica_.all_reduce(dist::max, value(id_, 0, step_));
    if (sum != all_.ranks || most != value(replicas_ - 1, 0, step_)) mistake_ = dist::concat("numbers, step ", step_);
    if (common_.one_in(2)) replica_.barrier();
  }
  void all_reduce(std::size_t elements) {
    const std::span<float> values = brought(0, elements);
    if (common_.one_in(4)) {
      replica_.all_reduce(dist::max, values);
      check("a maximum", values, [&](std::size_t i) { return value(replicas_ - 1, i, step_); });
    } else {
      replica_.all_reduce(dist::sum, values);
      check("a sum", values, [&](std::size_t i) { return all_.of(i, step_); });
    }
  }
  void broadcast(std::size_t elements) {
    const std::size_t root = common_.below(replicas_);
    const std::span<float> values = brought(0, elements);
    replica_.broadcast(values, root);
    check("a broadcast", values, [&](std::size_t i) { return value(root, i, step_); });
  }
  void all_gather(std::size_t elements) {
    std::vector<std::size_t> counts(replicas_);
    for (std::size_t& count : counts) count = 1 + common_.below(1 + elements / replicas_);
    const dist::Tensor<float> all = replica_.all_gather(std::span<const float>{brought(0, counts[id_])}, 0);
    std::size_t first = 0;
    for (std::size_t rank = 0; rank < replicas_; first += counts[rank++])
      check("gathered values", std::span<const float>{all.elements()}.subspan(first, counts[rank]),
            [&](std::size_t i) { return value(rank, i, step_); });
  }
  [[nodiscard]] std::span<float> mirror_of(std::size_t elements) {
    const std::span<float> mirror = operand(1, elements);
    for (std::size_t i = 0; i < elements; ++i) mirror[i] = static_cast<float>(i % 3);
    return mirror;
  }
  void check_mirror(std::span<const float> mirror) {
    check("a mirror", mirror, [&](std::size_t i) { return static_cast<float>(i % 3) - all_.of(i, step_); });
  }
  void update(std::size_t elements) {
    const std::span<float> mirror = mirror_of(elements);
    replica_.reduce_and_apply(dist::sum, brought(0, elements), mirror, subtract);
    check_mirror(mirror);
  }
  void update_in_halves(std::size_t elements) {
    std::vector<float> sums(elements);
    replica_.reduce_scatter(dist::sum, brought(0, elements), [&](std::size_t first, std::span<const float> reduced) {
      std::copy(reduced.begin(), reduced.end(), sums.begin() + static_cast<std::ptrdiff_t>(first));
    });
    const std::span<float> mirror = mirror_of(elements);
    replica_.update_shards(std::span<const float>{sums}, mirror, subtract);
    check_mirror(mirror);
  }
  static constexpr auto subtract = [](std::size_t, float weight, float sum) { return weight - sum; };

  /// Random messages: several between some pairs of replicas, and some to the sender itself.
  void neighbors(std::size_t elements) {
    struct Message {
      std::size_t from;
      std::size_t first;
      std::span<float> values;
    };
    std::vector<Message> received;
    std::vector<dist::SendTo> sends;
    std::vector<dist::ReceiveFrom> receives;
    std::vector<std::size_t> sent(replicas_);
    std::size_t arriving = 0;
    const std::span<float> out = brought(0, elements);
    const std::span<float> in = operand(1, elements);
    for (std::size_t from = 0; from < replicas_; ++from)
      for (std::size_t to = 0; to < replicas_; ++to)
        for (std::size_t count = common_.one_in(3) ? 1 + common_.below(2) : 0; count > 0; --count) {
          const std::size_t size = common_.below(1 + elements / (4 * replicas_));
          const std::size_t first = sent[from]++ % (elements - size + 1);
          if (from == id_) sends.emplace_back(to, out.subspan(first, size));
          if (to != id_) continue;
          received.push_back({from, first, in.subspan(std::exchange(arriving, arriving + size), size)});
          receives.emplace_back(from, received.back().values);
        }
    replica_.neighbor_exchange(sends, receives);
    for (const Message& message : received)
      check("a message", message.values, [&](std::size_t i) { return value(message.from, message.first + i, step_); });
  }
  void subgroups(std::size_t elements) {
    const std::size_t colors = 1 + common_.below(3);
    std::vector<std::size_t> color_of(replicas_);
    for (std::size_t& color : color_of) color = common_.below(colors);
    const auto group = replica_.split(color_of[id_]);
    Sums members;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < replicas_; ++rank)
      if (color_of[rank] == color_of[id_]) {
        members.add(rank);
        last = rank;
      }
    const std::span<float> values = brought(0, elements);
    if (common_.one_in(2)) {
      group.all_reduce(dist::sum, values);
      check("a sum of a subgroup", values, [&](std::size_t i) { return members.of(i, step_); });
    } else {
      group.broadcast(values, group.size() - 1);
      check("a broadcast in a subgroup", values, [&](std::size_t i) { return value(last, i, step_); });
    }
  }
  /// A reduction by the processes, while the replicas wait.
  void merged(std::size_t elements) {
    dist::Tensor<float> mine{{std::min<std::size_t>(elements, 100'000)}};
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(id_, i, step_);
    const dist::Tensor<float> sums = replica_.merge_call(
        [](auto& scope, const auto& values) { return dist::reduce(scope, dist::sum, values); }, std::move(mine));
    check("a merged sum", sums.elements(), [&](std::size_t i) { return all_.of(i, step_); });
  }

  Replica& replica_;
  std::size_t id_;
  std::size_t replicas_;
  Random common_;
  Random own_;
  std::array<std::span<float>, 2> memory_;
  std::array<std::vector<float>, 2> outside_;
  Sums all_;
  std::size_t step_ = 0;
  std::size_t kind_ = 0;
  std::size_t elements_ = 0;
  bool only_sums_;
  bool grows_ = false;
  bool is_outside_ = false;
  std::string mistake_;
};

template <class Ops>
void use_strategy(Random& random, const dist::MultiWorkerOptions& options, bool only_sums) {
  dist::MultiWorker<Ops> strategy{options};
  const std::size_t replicas = strategy.num_replicas_in_sync();
  for (std::size_t run = 1 + random.below(3); run > 0; --run) {
    const std::size_t most = !only_sums && random.one_in(3) ? 100 + random.elements(1'000'000) : 1'000'000;
    const auto first = strategy.template buffer<float>({most});
    const auto second = strategy.template buffer<float>({most});
    const std::uint64_t seed = random.next();
    const auto mistakes = strategy.run([&](auto& replica) {
      return Steps{replica, seed, {first.component(replica), second.component(replica)}, only_sums}.do_all(12);
    });
    for (const std::string& mistake : mistakes) REQUIRE(mistake == "");

    const std::size_t elements = random.elements(50'000);
    const auto values = strategy.values_from_function([&](dist::ValueContext context) {
      dist::Tensor<float> mine{{elements}};
      for (std::size_t i = 0; i < elements; ++i) mine[i] = value(context.replica_id().index(), i, run);
      return mine;
    });
    Sums all;
    for (std::size_t rank = 0; rank < replicas; ++rank) all.add(rank);
    const dist::Tensor<float> sums = strategy.reduce(dist::sum, values);
    const dist::Tensor<float> gathered = strategy.gather(values, 0);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) wrong += sums[i] != all.of(i, run);
    for (std::size_t i = 0; i < gathered.size(); ++i) wrong += gathered[i] != value(i / elements, i % elements, run);
    REQUIRE(wrong == 0);
  }
}

/// If the seed is a multiple of 8, replicas of one node sum operands outside the strategy's memory, which grow from
/// step to step.
void do_case(std::uint64_t seed, std::size_t workers) {
  const bool only_sums = seed % 8 == 0;
  Random random{seed};
  dist::MultiWorkerOptions options;
  options.replicas = only_sums ? 2 + random.below(3) : 1 + random.below(4);
  options.communication.timeout = std::chrono::minutes{2};
  const std::size_t policy = only_sums ? 3 * random.below(2) : random.below(6);
  const std::size_t layout =
      policy == 5 || only_sums ? 0 : random.below(4);  // mostly one node, where replicas share memory
  options.hierarchical = layout != 2;
  nodes = layout == 3 ? std::min<std::size_t>(workers, 2) : 1;
  constexpr std::array<std::string_view, 6> names{"RingAllReduce", "TreeAllReduce", "HalvingDoublingAllReduce",
                                                  "AutoAllReduce", "MpiAllReduce",  "NodeAllReduce"};
  const std::string drawn =
      dist::concat("DIST_TEST_RANDOM_SEED=", seed, ": ", workers, " workers with ", *options.replicas, " replicas, ",
                   names[policy], ", ", nodes, " nodes", layout == 2 ? ", each worker a node" : "");
  INFO(drawn);
  switch (policy) {
    case 0:
      return use_strategy<dist::RingAllReduce>(random, options, only_sums);
    case 1:
      return use_strategy<dist::TreeAllReduce>(random, options, only_sums);
    case 2:
      return use_strategy<dist::HalvingDoublingAllReduce>(random, options, only_sums);
    case 3:
      return use_strategy<dist::AutoAllReduce>(random, options, only_sums);
    case 4:
      return use_strategy<dist::MpiAllReduce>(random, options, only_sums);
    default:
      return use_strategy<dist::NodeAllReduce>(random, options, only_sums);
  }
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("random sequences of collectives give the computed results") {
  int workers = 1;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &workers);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::uint64_t given = number_from("DIST_TEST_RANDOM_SEED", 0);
  if (given != 0) return do_case(given, static_cast<std::size_t>(workers));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{number_from("DIST_TEST_RANDOM_SECONDS", 4)};
  // Worker 0 chooses the seeds. 0 ends the test.
  Random seeds{static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())};
  std::size_t cases = 0;
  for (;; ++cases) {
    std::uint64_t seed = std::chrono::steady_clock::now() < end ? 1 + seeds.below(1'000'000'000) : 0;
    if (cases < 2) seed *= 8;
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (seed == 0) break;
    do_case(seed, static_cast<std::size_t>(workers));
  }
  MESSAGE(cases << " cases");
}
