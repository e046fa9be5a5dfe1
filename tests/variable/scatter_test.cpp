#include <dist/variable/scatter.hpp>

#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <doctest/doctest.h>
#include <conformance/variable_scatter.hpp>
#include <support/allocations.hpp>
#include <support/unshared.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;
using Apart = dist::Mirrored<testing::Unshared>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>, Make<ToOne, 3>,
                               Make<Apart, 3>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 8>);

TEST_CASE("slices may refer to the variable itself (spec G26, G28)") {
  const dist::Shape shape{4, 100};
  const auto check = [&](auto& strategy) {
    auto summed = strategy.template variable<float, dist::OnWrite, dist::Sum>(shape);
    auto replaced = strategy.template variable<float, dist::OnWrite, dist::OnlyFirstReplica>(shape);
    dist::Tensor<float> rows{shape};
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    summed.assign(strategy.scope(), rows);
    replaced.assign(strategy.scope(), rows);
    const std::int64_t to[] = {2, 3, 0, 1};
    strategy.run([&](auto& replica) {
      const auto shown = [&](const auto& variable) {
        return dist::IndexedSlicesView<float>{to, variable.read(replica), shape};
      };
      summed.scatter_add(replica, shown(summed));
      replaced.scatter_update(replica, shown(replaced));
    });
    const auto replicas = static_cast<float>(strategy.num_replicas_in_sync());
    std::size_t wrong = 0;
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const float moved = rows[(i + 200) % 400];
        wrong += summed.component(strategy.scope(), local)[i] != rows[i] + replicas * moved;
        wrong += replaced.component(strategy.scope(), local)[i] != moved;
      }
    CHECK(wrong == 0);
  };
  dist::Default plain;
  check(plain);
  Shared mirrored{3};
  check(mirrored);
  Central central{3};
  check(central);
}

TEST_CASE("scatter operations do not allocate") {
  const auto check = [](auto& strategy) {
    const dist::Shape shape{20, 64};
    auto summed = strategy.template variable<float, dist::OnWrite, dist::Sum>(shape);
    auto averaged = strategy.template variable<float, dist::OnWrite, dist::Mean>(shape);
    auto replaced = strategy.template variable<float, dist::OnWrite, dist::OnlyFirstReplica>(shape);
    dist::IndexedSlices<float> slices{50, shape};
    for (std::size_t row = 0; row < slices.rows(); ++row) slices.indices()[row] = static_cast<std::int64_t>(row % 20);
    const auto step = [&](auto& replica) {
      summed.scatter_add(replica, slices);
      averaged.scatter_sub(replica, slices);
      replaced.scatter_update(replica, slices);
    };
    const std::size_t before = allocations;
    for (int i = 0; i < 3; ++i) strategy.run(step);
    CHECK(allocations == before);
  };
  dist::Default plain;
  check(plain);
  Shared mirrored{3};
  check(mirrored);
  Central central{3};
  check(central);
}
