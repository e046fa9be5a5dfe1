#include <dist/variable/replica_buffer.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

TEST_CASE_TEMPLATE("a buffer is separate memory of each replica, initially zero", S,
                   dist::Mirrored<dist::ThreadAllReduce>, dist::CentralStorage<dist::Cpu>) {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    S strategy(replicas);
    const auto buffer = strategy.template buffer<float>({2, 3}, "gradients");
    CHECK(buffer.name() == "gradients");
    CHECK(buffer.shape() == dist::Shape{2, 3});
    CHECK(buffer.size() == 6);
    std::vector<float> before(replicas);
    strategy.run([&](auto& replica) {
      before[replica.local_index()] = buffer.component(replica)[5];
      buffer.component(replica)[5] = static_cast<float>(replica.local_index()) + 1;
    });
    CHECK(before == std::vector<float>(replicas));
    for (std::size_t r = 0; r < replicas; ++r)
      CHECK(buffer.component(strategy.scope(), r)[5] == static_cast<float>(r) + 1);
  }
}

TEST_CASE("a buffer is rejected by another strategy (spec B14)") {
  dist::CentralStorage<dist::Cpu> mine{2};
  dist::CentralStorage<dist::Cpu> other{2};
  const auto buffer = mine.buffer<float>({1}, "sums");
  CHECK_THROWS_WITH_AS(
      buffer.component(other.scope(), 0),
      (std::string("Buffer 'sums' was used with a strategy that did not make it (the context belongs to ") +
       other.describe() + "). Make the buffer with the strategy that runs the replica function.")
          .c_str(),
      dist::WrongStrategy);
  CHECK_THROWS_AS(other.run([&](auto& replica) { static_cast<void>(buffer.component(replica)); }), dist::ReplicaError);
}
