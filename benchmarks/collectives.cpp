// All-reduce by size, like nccl-tests: in place in the strategy's memory. Every replica writes new values before each
// call, and results are checked. For the options see bench_collectives --help.
#include <cstddef>
#include <cstdio>
#include <span>
#include <type_traits>

#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/collective_options.hpp"
#include "support/collective_table.hpp"
#include "support/collective_timing.hpp"

#ifdef DIST_BENCH_POLICY_HEADER  // a user-defined policy; see benchmarks/CMakeLists.txt
#include DIST_BENCH_POLICY_HEADER
#endif

namespace {

template <class Replica, class T, class Op>
struct Rank {
  const Replica& replica;
  std::span<T> values;

  void write_input(unsigned round) { bench::write_input(values, replica.local_index(), round); }
  void all_reduce() { replica.all_reduce(Op{}, values); }
  void barrier() { replica.barrier(); }
  void max(std::span<double> times) { replica.all_reduce(dist::max, times); }
  [[nodiscard]] std::size_t count_wrong(unsigned round) const {
    return bench::count_wrong(std::span<const T>{values}, std::is_same_v<Op, dist::Sum>, replica.num_replicas_in_sync(),
                              round);
  }
};

template <class Ops, class T, class Op>
int measure(const bench::CollectiveOptions& options) {
  dist::Mirrored<Ops> strategy{options.replicas};
  bench::CollectiveTable table{strategy.describe() + ", in place", options, options.replicas};
  for (const std::size_t bytes : options.sizes) {
    const std::size_t count = bytes / sizeof(T);
    if (count == 0) continue;
    const auto buffer = strategy.template buffer<T>(dist::Shape{count}, "values");
    const auto timings = strategy.run([&](auto& replica) {
      Rank<std::remove_cvref_t<decltype(replica)>, T, Op> rank{replica, buffer.component(replica)};
      return bench::time_all_reduce(rank, count * sizeof(T), options.duration);
    });
    table.add(count * sizeof(T), count, timings[0], "");
  }
  return table.finish();
}

template <class Ops>
int measure(const bench::CollectiveOptions& options) {
  return bench::with_element_type(options, [&]<class T>() {
    return options.op == "sum" ? measure<Ops, T, dist::Sum>(options) : measure<Ops, T, dist::Max>(options);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::CollectiveOptions options = bench::parse_collective_options(argc, argv);
#ifdef DIST_BENCH_POLICY
  if (options.policy == DIST_BENCH_POLICY::name) return measure<DIST_BENCH_POLICY>(options);
#endif
  if (options.policy == dist::ThreadAllReduce::name) return measure<dist::ThreadAllReduce>(options);
  if (options.policy == dist::ReductionToOneDevice::name) return measure<dist::ReductionToOneDevice>(options);
  if (options.policy == dist::RingAllReduce::name) return measure<dist::RingAllReduce>(options);
  if (options.policy == dist::HierarchicalCopyAllReduce::name) return measure<dist::HierarchicalCopyAllReduce>(options);
  std::fprintf(stderr, "Unknown policy '%s'. See bench_collectives --help\n", options.policy.c_str());
  return 2;
}
