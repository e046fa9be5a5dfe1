#include <dist/variable/cached_reads.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

using Central = dist::CentralStorage<dist::Cpu>;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("cached reads keep the first value, and writes go to the store (spec B17, G43)") {
  Central strategy{2};
  auto weights = strategy.variable<float, dist::OnWrite, dist::Mean>({3}, 1.0f);
  auto step = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>({}, 5);
  const auto outside = strategy.scope();
  {
    const dist::CachedReads cached{outside};
    const dist::TensorView<const float> first = weights.read(cached);
    CHECK(first[2] == 1.0f);
    CHECK(step.value(cached) == 5);
    weights.assign(outside, 2.0f);
    step.assign(outside, 6);
    CHECK(first[2] == 1.0f);
    CHECK(weights.read(cached)[2] == 1.0f);
    CHECK(weights.read(cached).data() == first.data());
    CHECK(step.value(cached) == 5);
    CHECK(step.read(cached)[0] == 5);
    CHECK(weights.read(outside)[2] == 2.0f);
    CHECK(step.value(outside) == 6);

    const dist::CachedReads later{outside};
    CHECK(weights.read(later)[2] == 2.0f);
  }
  CHECK_THROWS_AS(static_cast<void>(weights.value(dist::CachedReads{outside})), dist::ShapeMismatch);
}

TEST_CASE("each replica has a separate cache (spec B17)") {
  Central strategy{3};
  auto total = strategy.variable<float, dist::OnWrite, dist::Sum>({}, 1.0f);
  std::vector<float> cached_values(3), values(3);
  strategy.run([&](auto& replica) {
    const dist::CachedReads cached{replica};
    static_cast<void>(total.value(cached));
    replica.barrier();
    total.assign_add(replica, 1.0f);
    cached_values[replica.local_index()] = total.value(cached);
    values[replica.local_index()] = total.value(replica);
  });
  CHECK(cached_values == std::vector<float>(3, 1.0f));
  CHECK(values == std::vector<float>(3, 4.0f));
}

TEST_CASE("with a copy per replica, nothing is cached (spec G43)") {
  Shared strategy{2};
  auto weights = strategy.variable<float, dist::OnWrite, dist::Mean>({}, 1.0f);
  auto total = strategy.variable<float, dist::OnRead, dist::Sum>({2}, 1.0f);
  const auto outside = strategy.scope();
  const dist::CachedReads cached{outside};
  CHECK(weights.value(cached) == 1.0f);
  weights.assign(outside, 2.0f);
  CHECK(weights.value(cached) == 2.0f);
  CHECK(total.read(cached)[1] == 2.0f);
  strategy.run([&](auto& replica) {
    const dist::CachedReads here{replica};
    if (weights.read(here).data() != weights.component(replica).data()) throw std::runtime_error("not the own copy");
  });
}
