// The suite of values for variables of every element type (spec G.4, G08, and the dtype rules of assignments). A
// strategy joins in a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_checks.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/variable/given_value.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>
#include <support/sanitizers.hpp>

namespace conformance {

/// Returns all elements of all copies in this process, to compare them at once.
template <class S, class Variable>
std::vector<double> elements_of(S& strategy, const Variable& variable) {
  std::vector<double> elements;
  for (std::size_t r = 0; r < strategy.num_local_replicas(); ++r)
    for (const auto element : support::component_on_host(variable, strategy.scope(), r))
      elements.push_back(static_cast<double>(element));
  return elements;
}

template <class S>
class ValuesOf {
 public:
  explicit ValuesOf(S& strategy)
      : strategy_(strategy),
        replicas_(strategy.num_replicas_in_sync()),
        local_replicas_(strategy.num_local_replicas()) {}

  /// Writes ranks + 1, so that totals stay below the limits of the smallest type.
  template <class T>
  void check_number() {
    const std::string type{dist::dtype_name<T>};
    CAPTURE(type);
    const auto ranks = static_cast<double>(replicas_ * (replicas_ + 1) / 2);

    auto first = strategy_.template variable<T, dist::OnWrite, dist::OnlyFirstReplica>({3});
    auto sum = strategy_.template variable<T, dist::OnWrite, dist::Sum>({2});
    auto total = strategy_.template variable<T, dist::OnRead, dist::Sum>({});
    first.assign(strategy_.scope(), 1);
    std::vector<double> seen(local_replicas_);
    strategy_.run([&](auto& replica) {
      const auto mine = static_cast<T>(replica.replica_id().index() + 1);
      first.assign_add(replica, mine);
      sum.assign_add(replica, mine);
      total.assign_add(replica, mine);
      seen[replica.local_index()] = static_cast<double>(total.synchronized_value(replica));
    });
    CHECK(elements_of(strategy_, first) == everywhere(2, 3));
    CHECK(elements_of(strategy_, sum) == everywhere(ranks, 2));
    CHECK(static_cast<double>(total.value(strategy_.scope())) == ranks);
    CHECK(seen == std::vector<double>(local_replicas_, ranks));

    // Divided in the type of the variable: a multiple of the replicas for integers.
    const int divisor = shares_copies<S> ? 1 : static_cast<int>(replicas_);
    const int assigned = dist::Floating<T> ? 7 : 7 * divisor;
    total.assign(strategy_.scope(), assigned);
    CHECK(elements_of(strategy_, total) == everywhere(share<T>(assigned, divisor), 1));
    if constexpr (std::signed_integral<T> || dist::Floating<T>) {
      total.assign(strategy_.scope(), -assigned);
      CHECK(elements_of(strategy_, total) == everywhere(share<T>(-assigned, divisor), 1));
    }
  }

  template <dist::Floating T>
  void check_mean() {
    auto mean = strategy_.template variable<T, dist::OnWrite, dist::Mean>({2});
    auto own = strategy_.template variable<T, dist::OnRead, dist::Mean>({});
    strategy_.run([&](auto& replica) {
      const auto mine = static_cast<T>(replica.replica_id().index() + 1);
      mean.assign(replica, mine);
      own.assign(replica, mine);
    });
    CHECK(elements_of(strategy_, mean) == everywhere(static_cast<double>(replicas_ + 1) / 2, 2));
    CHECK(static_cast<double>(own.value(strategy_.scope())) == static_cast<double>(replicas_ + 1) / 2);
  }

  void check_bool() {
    auto flag = strategy_.template variable<bool, dist::OnWrite, dist::OnlyFirstReplica>({2});
    flag.assign(strategy_.scope(), true);
    CHECK(elements_of(strategy_, flag) == everywhere(1, 2));
    strategy_.run([&](auto& replica) { flag.assign(replica, replica.replica_id().index() != 0); });
    CHECK(elements_of(strategy_, flag) == everywhere(0, 2));
    if constexpr (has_variables<S, dist::OnRead, dist::OnlyFirstReplica>) {
      auto own = strategy_.template variable<bool, dist::OnRead, dist::OnlyFirstReplica>({});
      strategy_.run([&](auto& replica) { own.assign(replica, replica.replica_id().index() == 0); });
      CHECK(own.value(strategy_.scope()));
    }
  }

 private:
  [[nodiscard]] std::vector<double> everywhere(double value, std::size_t elements) const {
    return std::vector<double>(elements * local_replicas_, value);
  }
  template <class T>
  static double share(int total, int divisor) {
    if constexpr (dist::Floating<T>) {
      using Wide = dist::Accumulator<T>;
      return static_cast<double>(static_cast<T>(static_cast<Wide>(total) / static_cast<Wide>(divisor)));
    } else {
      return total / divisor;
    }
  }

  S& strategy_;
  std::size_t replicas_;
  std::size_t local_replicas_;
};

template <class S>
void check_variable_values(std::unique_ptr<S> (*make)()) {
  const auto strategy = make();
  ValuesOf<S> values{*strategy};
  SUBCASE("integers") {
    values.template check_number<std::int32_t>();
    if constexpr (support::every_type) {
      values.template check_number<std::int8_t>();
      values.template check_number<std::int16_t>();
      values.template check_number<std::int64_t>();
      values.template check_number<std::uint8_t>();
      values.template check_number<std::uint16_t>();
      values.template check_number<std::uint32_t>();
      values.template check_number<std::uint64_t>();
    }
  }
  SUBCASE("floating-point numbers") {
    values.template check_number<float>();
    values.template check_number<dist::BFloat16>();
    values.template check_mean<float>();
    values.template check_mean<dist::BFloat16>();
    if constexpr (support::every_type) {
      values.template check_number<dist::Float16>();
      values.template check_number<double>();
      values.template check_mean<dist::Float16>();
      values.template check_mean<double>();
    }
  }
  SUBCASE("bools") { values.check_bool(); }
  SUBCASE("an integer that the variable's type cannot represent is refused, and nothing changes") {
    auto small = strategy->template variable<std::uint8_t, dist::OnWrite, dist::OnlyFirstReplica>({}, 7, "small");
    const std::string message = error_of<dist::InvalidArgument>([&] { small.assign(strategy->scope(), 256); });
    CAPTURE(message);
    CHECK(contains(message, "'small'"));
    CHECK(contains(message, "256"));
    CHECK(contains(message, "u8"));
    CHECK(contains(error_of<dist::InvalidArgument>([&] { small.assign_add(strategy->scope(), -1); }), "-1"));
    CHECK(contains(
        error_of<dist::InvalidArgument>([&] { strategy->run([&](auto& replica) { small.assign(replica, 300); }); }),
        "300"));
    check_copies(*strategy, small, [](std::size_t) { return 7; });
    small.assign(strategy->scope(), 255);
    check_copies(*strategy, small, [](std::size_t) { return 255; });
  }
  SUBCASE("an initial value of -0.0 keeps its sign") {
    auto variable = strategy->template variable<float>({3}, -0.0f);
    auto half = strategy->template variable<dist::BFloat16>({3}, -0.0);
    for (std::size_t replica = 0; replica < variable.copies(); ++replica) {
      CHECK(std::signbit(support::component_on_host(variable, strategy->scope(), replica)[2]));
      CHECK(std::signbit(float{support::component_on_host(half, strategy->scope(), replica)[2]}));
    }
  }
  SUBCASE("contiguous ranges can be initial and written values, without their shape") {
    auto variable =
        dist::variable<float, dist::OnlyFirstReplica>(*strategy, {2, 2}, std::vector<float>{1, 2, 3, 4}, "v");
    static_assert(std::same_as<typename decltype(variable)::Synchronization, dist::OnWrite>);
    static_assert(std::same_as<typename decltype(variable)::Aggregation, dist::OnlyFirstReplica>);
    CHECK(variable.read(strategy->scope())(1, 0) == 3);
    variable.assign(strategy->scope(), std::array{5.0f, 6.0f, 7.0f, 8.0f});
    CHECK(variable.read(strategy->scope())(1, 1) == 8);
    const std::vector<float> step{1, 1, 1, 2};
    strategy->run([&](auto& replica) { variable.assign_add(replica, dist::same(step)); });
    CHECK(variable.read(strategy->scope())(1, 1) == 10);
    CHECK(contains(error_of<dist::ShapeMismatch>([&] {
                     variable.assign(strategy->scope(), std::vector<float>{1, 2, 3});
                   }),
                   "the value has shape [3], the variable [2, 2]"));
    CHECK(contains(error_of<dist::ShapeMismatch>(
                       [&] { static_cast<void>(dist::variable<float>(*strategy, {3}, std::vector<float>{1}, "w")); }),
                   "A value does not fit variable 'w'"));
    // Policies in any order, and in a replica function.
    auto total = dist::variable<int, dist::Sum, dist::OnRead>(*strategy, {});
    static_assert(std::same_as<typename decltype(total)::Synchronization, dist::OnRead>);
    static_assert(std::same_as<typename decltype(total)::Aggregation, dist::Sum>);
    strategy->run([&](auto& replica) { total.assign_add(replica, 1); });
    CHECK(total.value(strategy->scope()) == static_cast<int>(strategy->num_replicas_in_sync()));
    if constexpr (!dist::RemoteStore<typename S::Store>) {
      std::vector<double> made(strategy->num_local_replicas());
      strategy->run([&](auto& replica) {
        const auto inner = dist::variable<double>(replica, {2}, std::array{0.5, 1.5}, "inner");
        made[replica.local_index()] = support::read_on_host(*inner, replica)[1];
      });
      CHECK(made == std::vector<double>(strategy->num_local_replicas(), 1.5));
    }
  }
  SUBCASE("steps are counted without aggregation, while every replica reads them") {
    auto steps = strategy->template variable<std::int64_t, dist::OnWrite, dist::OnlyFirstReplica>({}, 0, "steps");
    std::vector<int> wrong(strategy->num_local_replicas());
    strategy->run([&](auto& replica) {
      for (std::int64_t step = 0; step < 100; ++step) {
        wrong[replica.local_index()] += steps.value(replica) != step;
        steps.assign_add(replica, dist::same(1));
      }
    });
    CHECK(wrong == std::vector<int>(strategy->num_local_replicas(), 0));
    CHECK(steps.value(strategy->scope()) == 100);
  }
  SUBCASE("steps are also counted with aggregation None, because a value that is equal everywhere needs none") {
    auto steps = strategy->template variable<std::uint32_t>({});
    strategy->run([&](auto& replica) { steps.assign_add(replica, dist::same(2)); });
    CHECK(steps.value(strategy->scope()) == 2);
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("variables accept values of their element type (spec G08, G.4)", Maker, variable_values) {
  conformance::check_variable_values(&Maker::make);
}
