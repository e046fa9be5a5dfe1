// Latency of what a step is made of: dispatch to the replicas, all-reduce by size, reduce and apply. Google Benchmark; the
// iteration's time is that of the slowest replica, as all meet in every call.
#include <benchmark/benchmark.h>

#include <cstdint>

#include <dist/dist.hpp>

#include "support/machine.hpp"

namespace {

void dispatch(benchmark::State& state) {
  dist::Mirrored<dist::SharedMemoryAllReduce> strategy{static_cast<std::size_t>(state.range(0))};
  for (auto _ : state) strategy.run([](auto&) {});
}
BENCHMARK(dispatch)->ArgName("replicas")->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

void barrier(benchmark::State& state) {
  dist::Mirrored<dist::SharedMemoryAllReduce> strategy{2};
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
BENCHMARK(barrier)->UseManualTime();

template <class Ops>
void all_reduce(benchmark::State& state) {
  dist::Mirrored<Ops> strategy{2};
  const auto elements = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  auto values = strategy.template variable<float, dist::OnRead, dist::Sum>(dist::Shape{elements}, 1.0f, "values");
  for (auto _ : state) {
    const auto times = strategy.run([&](auto& replica) {
      const auto mine = values.component(replica);
      replica.for_each(mine.size(),
                       [&](std::size_t i) { mine[i] = static_cast<float>(i % 7); });  // rewritten by their owner
      replica.barrier();
      const double start = bench::seconds();
      replica.all_reduce(dist::sum, mine);
      return bench::seconds() - start;
    });
    state.SetIterationTime(strategy.reduce(dist::max, times));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(all_reduce<dist::SharedMemoryAllReduce>)
    ->ArgName("bytes")
    ->RangeMultiplier(16)
    ->Range(4, 16 << 20)
    ->Arg(11'083'776)
    ->UseManualTime();
BENCHMARK(all_reduce<dist::ReductionToOneDevice>)
    ->ArgName("bytes")
    ->RangeMultiplier(16)
    ->Range(4, 16 << 20)
    ->Arg(11'083'776)
    ->UseManualTime();

template <class Ops>
void reduce_and_apply(benchmark::State& state) {
  dist::Mirrored<Ops> strategy{2};
  const auto elements = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  auto weights = strategy.template variable<float>(dist::Shape{elements}, 1.0f, "weights");
  auto gradients = strategy.template variable<float, dist::OnRead, dist::Sum>(dist::Shape{elements}, 1.0f, "gradients");
  for (auto _ : state) {
    const auto times = strategy.run([&](auto& replica) {
      const auto gradient = gradients.component(replica);
      replica.for_each(gradient.size(), [&](std::size_t i) { gradient[i] = static_cast<float>(i % 7); });
      replica.barrier();
      const double start = bench::seconds();
      replica.reduce_and_apply(dist::sum, gradient, weights.component(replica),
                               [](std::size_t, std::span<float> mine, std::span<const float> reduced) {
                                 for (std::size_t i = 0; i < mine.size(); ++i) mine[i] -= 1e-3f * reduced[i];
                               });
      return bench::seconds() - start;
    });
    state.SetIterationTime(strategy.reduce(dist::max, times));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(reduce_and_apply<dist::SharedMemoryAllReduce>)->ArgName("bytes")->Arg(11'083'776)->UseManualTime();
BENCHMARK(reduce_and_apply<dist::ReductionToOneDevice>)->ArgName("bytes")->Arg(11'083'776)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
