#include <dist/variable/whole.hpp>

#include <cstddef>
#include <cstdint>

#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <doctest/doctest.h>
#include <conformance/paired.hpp>
#include <conformance/variable_whole.hpp>

using conformance::Make;
using conformance::Paired;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;
using Ring = dist::Mirrored<dist::RingAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<ToOne, 3>, Make<Ring, 3>,
                               Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>, Make<Paired, 1>,
                               Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);

TEST_CASE("what one strategy keeps another one restores") {
  Shared mirrored{3};
  Central central{2};
  conformance::for_each_kind(conformance::MoreTypes{}, [&]<class T, class Sync, class Agg>() {
    const auto values = conformance::uneven<T>({300}, 5);
    auto from = mirrored.template variable<T, Sync, Agg>({300});
    auto to = central.template variable<T, Sync, Agg>({300});
    from.restore(mirrored.scope(), values);
    to.restore(central.scope(), from.whole(mirrored.scope()));
    CHECK(conformance::same_elements(to.whole(central.scope()), values));
  });
}

TEST_CASE("a mean of equal copies is their value, whatever their number") {
  for (const std::size_t replicas : {std::size_t{5}, std::size_t{6}, std::size_t{7}}) {
    Shared strategy{replicas};
    auto mean = strategy.variable<float, dist::OnRead, dist::Mean>({5000});
    dist::Tensor<float> values{{5000}};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
    mean.restore(strategy.scope(), values);
    CHECK(conformance::same_elements(mean.whole(strategy.scope()), values));
  }
}
