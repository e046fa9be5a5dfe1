#include <dist/strategy/cross_replica.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

TEST_CASE("the cross-replica context reduces and gathers, also in merge_call") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const auto counts = strategy.variable<float, dist::OnRead, dist::Sum>({}, 4.0f);
  const auto reduced = strategy.run([&](auto& replica) {
    return replica.merge_call(
        [&](auto& scope, const auto& values) {
          dist::Tensor<int> row{{1}};
          const dist::PerReplica<dist::Tensor<int>> rows(2, [&](std::size_t id) {
            row[0] = values[id];
            return row;
          });
          CHECK(dist::gather(scope, rows, 0)[1] == 20);
          CHECK(dist::reduce(scope, dist::sum, rows, dist::Axes{0})[0] == 30);
          CHECK(dist::reduce(scope, dist::max, values, dist::CommunicationOptions{}) == 20);
          CHECK(dist::reduce(scope, dist::mean, counts)[0] == 4.0f);
          return dist::reduce(scope, dist::sum, values);
        },
        replica.replica_id().index() == 0 ? 10 : 20);
  });
  CHECK(reduced[0] == 30);
  CHECK(reduced[1] == 30);
}

TEST_CASE("values for another number of replicas are refused by name") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const dist::PerReplica<int> three(3, [](std::size_t) { return 1; });
  CHECK_THROWS_WITH_AS(static_cast<void>(dist::reduce(strategy.scope(), dist::sum, three)),
                       doctest::Contains("reduce was given per-replica values of another strategy"),
                       dist::WrongStrategy);
  const dist::PerReplica<dist::Tensor<int>> tensors(3, [](std::size_t) { return dist::Tensor<int>{{1}}; });
  CHECK_THROWS_WITH_AS(static_cast<void>(dist::gather(strategy.scope(), tensors, 0)),
                       doctest::Contains("gather was given per-replica values of another strategy"),
                       dist::WrongStrategy);
}

TEST_CASE_TEMPLATE("the cross-replica context updates each copy, also in merge_call", S,
                   dist::Mirrored<dist::ThreadAllReduce>, dist::CentralStorage<dist::Cpu>) {
  S strategy{2};
  auto variable = strategy.template variable<float>({2}, 1.0f);
  strategy.run([&](auto& replica) {
    replica.merge_call([&](auto& scope) {
      const auto copies = dist::update(scope, variable, [&](auto& context) {
        variable.assign(context, 3.0f);
        return context.local_index();
      });
      CHECK(copies.size() == variable.copies());
    });
    CHECK(variable.read(replica)[1] == 3.0f);
    replica.barrier();
    dist::update(replica, variable, [&](auto& context) { variable.assign(context, 5.0f); });
    CHECK(variable.read(replica)[1] == 5.0f);
  });
}
