#include <dist/variable/read.hpp>

#include <cstddef>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

using Shared = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("copies of a 16-bit type are added in float and rounded once") {
  Shared strategy{4};
  auto total = strategy.variable<dist::BFloat16, dist::OnRead, dist::Sum>({300});
  // 256 + 1 is 256 in bf16, whose next number is 258: added one by one the ones would be lost.
  const float given[] = {256, 1, 1, 2};
  strategy.run([&](auto& replica) { total.assign(replica, dist::BFloat16{given[replica.local_index()]}); });
  const auto sum = total.read(strategy.scope());
  CHECK(static_cast<float>(sum[0]) == 260.0f);
  CHECK(static_cast<float>(sum[299]) == 260.0f);
}

TEST_CASE("every element is aggregated for itself, in replica order") {
  Shared strategy{3};
  auto mean = strategy.variable<double, dist::OnRead, dist::Mean>({2, 300});
  strategy.run([&](auto& replica) {
    const auto copy = mean.component(replica);
    for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = static_cast<double>(i * (replica.local_index() + 1));
  });
  const auto outside = mean.read(strategy.scope());
  CHECK(outside.shape() == dist::Shape{2, 300});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 600; ++i) wrong += outside[i] != static_cast<double>(2 * i);
  CHECK(wrong == 0);
  const auto synchronized = strategy.run([&](auto& replica) { return mean.synchronized_read(replica)[599]; });
  CHECK(synchronized[0] == 1198.0);
  CHECK(synchronized[2] == 1198.0);
}

TEST_CASE("a synchronized read of copies that are kept equal is no copy (spec B16)") {
  Shared mirrored{2};
  dist::CentralStorage<dist::Cpu> central{2};
  const auto weights = mirrored.variable<float, dist::OnWrite, dist::Mean>({8}, 1.0f);
  const auto total = central.variable<float, dist::OnRead, dist::Sum>({8}, 1.0f);
  mirrored.run(
      [&](auto& replica) { CHECK(weights.synchronized_read(replica).data() == weights.component(replica).data()); });
  central.run([&](auto& replica) {
    CHECK(total.synchronized_read(replica).data() == total.component(replica).data());
    CHECK(total.synchronized_read(replica)[7] == 1.0f);
  });
}
