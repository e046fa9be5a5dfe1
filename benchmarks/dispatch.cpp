// Latency of dispatching a function to the replicas, and of a barrier. Uses Google Benchmark.
#include <benchmark/benchmark.h>

#include <cstddef>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/clock.hpp"

namespace {

void dispatch(benchmark::State& state) {
  dist::Mirrored<dist::ThreadAllReduce> strategy{static_cast<std::size_t>(state.range(0))};
  for (auto _ : state) strategy.run([](auto&) {});
}
BENCHMARK(dispatch)->ArgName("replicas")->Arg(1)->Arg(2)->Arg(4)->Arg(8)->UseRealTime();

/// Times many barriers in one run, on the slowest replica.
void barrier(benchmark::State& state) {
  dist::Mirrored<dist::ThreadAllReduce> strategy{static_cast<std::size_t>(state.range(0))};
  constexpr int barriers = 1000;
  while (state.KeepRunningBatch(barriers)) {
    const auto times = strategy.run([](auto& replica) {
      replica.barrier();
      const double start = bench::seconds();
      for (int i = 0; i < barriers; ++i) replica.barrier();
      return bench::seconds() - start;
    });
    state.SetIterationTime(strategy.reduce(dist::max, times));
  }
}
BENCHMARK(barrier)->ArgName("replicas")->Arg(2)->Arg(4)->Arg(8)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
