#include <dist/variable/write.hpp>

#include <cstdint>
#include <string>

#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <doctest/doctest.h>
#include <conformance/variable_matrix.hpp>
#include <support/allocations.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>, Make<ToOne, 2>,
                               Make<ToOne, 3>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>,
                               Make<Central, 8>);

TEST_CASE("a tensor that is written may be the copy itself (spec G.4)") {
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

TEST_CASE("writes take no memory") {
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

TEST_CASE("an integer total that the replicas do not divide is refused, and nothing is written") {
  Shared strategy{3};
  const auto scope = strategy.scope();
  auto total = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>({2}, 0, "total");
  total.assign(scope, 9);
  dist::Tensor<std::int64_t> values{dist::Shape{2}};
  values[0] = 6, values[1] = -7;
  CHECK_THROWS_WITH_AS(
      total.assign(scope, values),
      "Variable 'total' cannot be assigned a total that its replicas do not divide (it is an OnRead sum "
      "of integers, -7 is not a multiple of 3). Assign a multiple, such as 0, add in a replica function, "
      "or give the variable a floating-point type.",
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
  whole.assign(central.scope(), 10);  // one copy has all of it
  CHECK(whole.value(central.scope()) == 10);
}

TEST_CASE("a number on one replica and a tensor on another are not the same write") {
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
