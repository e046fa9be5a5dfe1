#include <dist/variable/copies.hpp>

#include <doctest/doctest.h>

#include <conformance/paired.hpp>
#include <conformance/variable_matrix.hpp>
#include <conformance/variable_whole.hpp>
#include <support/allocations.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

using Shared = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("copies of a 16-bit type are added in float and rounded once") {
  Shared strategy{4};
  auto total = strategy.variable<dist::BFloat16, dist::OnRead, dist::Sum>({300});
  // 256 + 1 is 256 in bf16, whose next number is 258: sequential addition would lose the ones.
  const float given[] = {256, 1, 1, 2};
  strategy.run([&](auto& replica) { total.assign(replica, dist::BFloat16{given[replica.local_index()]}); });
  const auto sum = total.read(strategy.scope());
  CHECK(static_cast<float>(sum[0]) == 260.0f);
  CHECK(static_cast<float>(sum[299]) == 260.0f);
}

TEST_CASE("every element is aggregated separately, in replica order") {
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

TEST_CASE("a synchronized read of equal copies does not copy (spec B16)") {
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

using conformance::Make;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>, Make<ToOne, 2>,
                               Make<ToOne, 3>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>,
                               Make<Central, 8>);

TEST_CASE("a written tensor may be the copy itself (spec G.4)") {
  const auto check = [](auto& strategy) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{5003}}) {
      auto summed = strategy.template variable<float, dist::OnWrite, dist::Sum>(dist::Shape{count}, 3);
      auto averaged = strategy.template variable<float, dist::OnWrite, dist::Mean>(dist::Shape{count}, 3);
      auto replaced = strategy.template variable<float, dist::OnWrite, dist::OnlyFirstReplica>(dist::Shape{count}, 3);
      strategy.run([&](auto& replica) {
        summed.assign_add(replica, summed.read(replica));
        averaged.assign_sub(replica, averaged.read(replica));
        replaced.assign_add(replica, replaced.read(replica));
      });
      const auto replicas = static_cast<float>(strategy.num_replicas_in_sync());
      std::size_t wrong = 0;
      for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
        for (std::size_t i = 0; i < count; ++i) {
          wrong += summed.component(strategy.scope(), local)[i] != 3 + 3 * replicas;
          wrong += averaged.component(strategy.scope(), local)[i] != 0;
          wrong += replaced.component(strategy.scope(), local)[i] != 6;
        }
      CHECK(wrong == 0);
    }
  };
  dist::Default plain;
  check(plain);
  Shared mirrored{3};
  check(mirrored);
  ToOne to_one{3};
  check(to_one);
  Central central{3};
  check(central);
}

TEST_CASE("writes do not allocate") {
  const auto check = [](auto& strategy) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{5003}}) {
      const dist::Shape shape{count};
      auto summed = strategy.template variable<float, dist::OnWrite, dist::Sum>(shape);
      auto averaged = strategy.template variable<double, dist::OnWrite, dist::Mean>(shape);
      auto rounded = strategy.template variable<dist::BFloat16, dist::OnWrite, dist::Mean>(shape);
      auto replaced = strategy.template variable<std::int64_t, dist::OnWrite, dist::OnlyFirstReplica>(shape);
      auto of_each = strategy.template variable<float, dist::OnRead, dist::Sum>(shape);
      const dist::Tensor<float> floats{shape};
      const dist::Tensor<double> doubles{shape};
      const dist::Tensor<dist::BFloat16> halves{shape};
      const dist::Tensor<std::int64_t> integers{shape};
      const auto step = [&](auto& replica) {
        summed.assign_add(replica, floats);
        summed.assign_add(replica, 1);
        averaged.assign(replica, doubles);
        averaged.assign_sub(replica, 2);
        averaged.assign(replica, dist::same(3));
        rounded.assign_add(replica, halves);
        replaced.assign_add(replica, integers);
        replaced.assign(replica, 4);
        of_each.assign_add(replica, floats);
        of_each.assign(replica, 5);
      };
      const std::size_t before = allocations;
      for (int i = 0; i < 3; ++i) strategy.run(step);
      CHECK(allocations == before);
    }
  };
  dist::Default plain;
  check(plain);
  Shared mirrored{3};
  check(mirrored);
  ToOne to_one{3};
  check(to_one);
  Central central{3};
  check(central);
}

TEST_CASE("an integer total that is not divisible by the replicas is rejected without a write") {
  Shared strategy{3};
  const auto scope = strategy.scope();
  auto total = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>({2}, 0, "total");
  total.assign(scope, 9);
  dist::Tensor<std::int64_t> values{dist::Shape{2}};
  values[0] = 6, values[1] = -7;
  CHECK_THROWS_WITH_AS(total.assign(scope, values),
                       "Variable 'total' cannot be assigned a total that is not divisible by the number of replicas "
                       "(it is an OnRead sum of integers, -7 is not a multiple of 3). Assign a multiple, such as 0, "
                       "add in a replica function, or give the variable a floating-point type.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(total.assign(scope, 10), dist::InvalidArgument);
  CHECK(total.read(scope)[0] == 9);
  CHECK(total.read(scope)[1] == 9);
  values[1] = -3;
  total.assign(scope, values);
  CHECK(total.read(scope)[1] == -3);

  auto bytes = strategy.variable<std::uint8_t, dist::OnRead, dist::Sum>({}, 0);
  CHECK_THROWS_AS(bytes.assign(scope, 255 - 1), dist::InvalidArgument);
  bytes.assign(scope, 255);
  CHECK(bytes.value(scope) == 255);

  auto fraction = strategy.variable<double, dist::OnRead, dist::Sum>({});
  fraction.assign(scope, 10);
  CHECK(fraction.value(scope) == doctest::Approx(10.0));
  Central central{3};
  auto whole = central.variable<std::int64_t, dist::OnRead, dist::Sum>({}, 0);
  whole.assign(central.scope(), 10);  // one copy has the whole total
  CHECK(whole.value(central.scope()) == 10);
}

TEST_CASE("a number on one replica and a tensor on another are mismatched writes") {
  Shared strategy{2};
  auto variable = strategy.variable<float, dist::OnWrite, dist::Sum>(dist::Shape{100});
  const dist::Tensor<float> ones{dist::Shape{100}};
  std::string message;
  try {
    strategy.run([&](auto& replica) {
      if (replica.local_index() == 0)
        variable.assign_add(replica, 1);
      else
        variable.assign_add(replica, ones);
    });
  } catch (const dist::ReplicaError& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("The replicas did not issue the same collectives") != std::string::npos);
}

using conformance::Paired;
using Ring = dist::Mirrored<dist::RingAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<ToOne, 3>, Make<Ring, 3>,
                               Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>, Make<Paired, 1>,
                               Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);

TEST_CASE("one strategy restores the state of another") {
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

TEST_CASE("the mean of any number of equal copies is their value") {
  for (const std::size_t replicas : {std::size_t{5}, std::size_t{6}, std::size_t{7}}) {
    Shared strategy{replicas};
    auto mean = strategy.variable<float, dist::OnRead, dist::Mean>({5000});
    dist::Tensor<float> values{{5000}};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
    mean.restore(strategy.scope(), values);
    CHECK(conformance::same_elements(mean.whole(strategy.scope()), values));
  }
}
