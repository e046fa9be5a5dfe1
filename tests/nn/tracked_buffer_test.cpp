#include <dist/nn/tracked_buffer.hpp>

#include <cstddef>
#include <cstdint>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("numbers that all replicas have alike are kept once, and given to all of them") {
  Mirrored strategy{3};
  const auto counts = strategy.buffer<std::int64_t>({2});
  using Counts = std::remove_const_t<decltype(counts)>;
  const dist::nn::TrackedBuffer<Counts, dist::OnlyFirstReplica> tracked{counts};
  dist::Tensor<std::int64_t> values{{2}, {5, 6}};
  tracked.restore(strategy.scope(), values);
  for (std::size_t local = 0; local < 3; ++local) CHECK(counts.component(strategy.scope(), local)[1] == 6);
  CHECK(tracked.whole(strategy.scope()) == values);
}

TEST_CASE("of parts of a sum the sum is kept, and given to one replica") {
  Mirrored strategy{3};
  const auto parts = strategy.buffer<float>({2});
  using Parts = std::remove_const_t<decltype(parts)>;
  const dist::nn::TrackedBuffer<Parts, dist::Sum> tracked{parts};
  for (std::size_t local = 0; local < 3; ++local)
    for (float& part : parts.component(strategy.scope(), local)) part = static_cast<float>(local + 1);
  const auto sum = tracked.whole(strategy.scope());
  CHECK(sum == dist::Tensor<float>{{2}, {6, 6}});
  tracked.restore(strategy.scope(), sum);
  CHECK(parts.component(strategy.scope(), 0)[1] == 6);
  CHECK(parts.component(strategy.scope(), 2)[1] == 0);
  CHECK(tracked.whole(strategy.scope()) == sum);
}
