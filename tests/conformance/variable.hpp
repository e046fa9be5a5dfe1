// The suite of distributed variables, except the table of reads and writes in variable_matrix.hpp. A strategy joins in
// a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(variables, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_checks.hpp>
#include <conformance/workers.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

/// Compiled once per type of strategy, for all numbers of replicas.
template <class S>
void check_variables(std::unique_ptr<S> (*make)()) {
  auto made = make();
  auto& strategy = *made;
  const std::size_t replicas = strategy.num_replicas_in_sync();
  const std::size_t local_replicas = strategy.num_local_replicas();

  SUBCASE("a variable starts with a number, a view or the values of a function, on every replica (spec G06)") {
    const auto number = strategy.template variable<double>({3}, 2.5);
    check_copies(strategy, number, [](std::size_t) { return 2.5; });
    const auto zero = strategy.template variable<std::int32_t>({5});
    check_copies(strategy, zero, [](std::size_t) { return 0.0f; });

    dist::Tensor<float> values{{2, 2}};
    for (std::size_t i = 0; i < 4; ++i) values[i] = static_cast<float>(i) + 0.5f;
    const auto from_view = strategy.template variable<float>({2, 2}, values.view());
    const auto from_tensor = strategy.template variable<float>({2, 2}, values);
    int calls = 0;
    const auto from_function = strategy.template variable<float>({2, 2}, [&](dist::TensorView<float> view) {
      ++calls;
      CHECK(view.shape() == dist::Shape{2, 2});
      for (std::size_t i = 0; i < 4; ++i) view[i] = static_cast<float>(i) + 0.5f;
    });
    CHECK(calls == 1);
    for (const auto* variable : {&from_view, &from_tensor, &from_function})
      for (std::size_t local = 0; local < local_replicas; ++local) {
        const auto copy = support::component_on_host(*variable, strategy.scope(), local);
        CHECK(std::equal(copy.begin(), copy.end(), values.data()));
      }
  }
  SUBCASE("an initial value of another shape names the variable and both shapes") {
    const dist::Tensor<float> values{{3}};
    const std::string message = error_of<dist::ShapeMismatch>([&] {
      static_cast<void>(strategy.template variable<float>({2, 2}, values.view(), "kernel"));
    });
    CAPTURE(message);
    CHECK(contains(message, "'kernel'"));
    CHECK(contains(message, "[3]"));
    CHECK(contains(message, "[2, 2]"));
  }
  SUBCASE("a written value of another shape names the variable and changes nothing") {
    auto variable = strategy.template variable<float, dist::OnWrite, dist::Mean>({2, 2}, 1.0f, "kernel");
    const dist::Tensor<float> values{{4}};
    const std::string outside = error_of<dist::ShapeMismatch>([&] { variable.assign(strategy.scope(), values); });
    CAPTURE(outside);
    CHECK(contains(outside, "'kernel'"));
    CHECK(contains(outside, "[4]"));
    CHECK(contains(outside, "[2, 2]"));
    const std::string inside = error_of<dist::ShapeMismatch>(
        [&] { strategy.run([&](auto& replica) { variable.assign_add(replica, values); }); });
    CHECK(inside == outside);
    check_copies(strategy, variable, [](std::size_t) { return 1.0f; });
  }
  SUBCASE("value requires a variable with one element") {
    const auto variable = strategy.template variable<float>({2}, 1.0f, "pair");
    const std::string message =
        error_of<dist::ShapeMismatch>([&] { static_cast<void>(variable.value(strategy.scope())); });
    CAPTURE(message);
    CHECK(contains(message, "'pair'"));
    CHECK(contains(message, "[2]"));
    CHECK(error_of<dist::ShapeMismatch>(
              [&] { strategy.run([&](auto& replica) { static_cast<void>(variable.value(replica)); }); }) == message);
  }
  SUBCASE("a variable used with another strategy names itself and that strategy (spec G21)") {
    auto other = make();
    auto variable = other->template variable<float, dist::OnWrite, dist::Mean>({}, 1.0f, "stranger");
    const auto check = [&](const std::string& message) {
      CAPTURE(message);
      CHECK(contains(message, "'stranger'"));
      CHECK(contains(message, strategy.describe()));
    };
    check(error_of<dist::WrongStrategy>([&] { variable.assign(strategy.scope(), 2.0f); }));
    check(error_of<dist::WrongStrategy>([&] { static_cast<void>(variable.read(strategy.scope())); }));
    check(error_of<dist::WrongStrategy>([&] { static_cast<void>(variable.value(strategy.scope())); }));
    check(error_of<dist::WrongStrategy>([&] { static_cast<void>(variable.component(strategy.scope(), 0)); }));
    check(error_of<dist::WrongStrategy>(
        [&] { strategy.run([&](auto& replica) { variable.assign_add(replica, 2.0f); }); }));
    check(error_of<dist::WrongStrategy>(
        [&] { strategy.run([&](auto& replica) { static_cast<void>(variable.read(replica)); }); }));
    CHECK(variable.value(other->scope()) == 1.0f);
  }
  SUBCASE("a copy of a replica that does not exist names the variable") {
    const auto variable = strategy.template variable<float>({}, 1.0f, "kernel");
    const std::string message = error_of<dist::InvalidArgument>(
        [&] { static_cast<void>(variable.component(strategy.scope(), local_replicas)); });
    CAPTURE(message);
    CHECK(contains(message, "'kernel'"));
    CHECK(contains(message, std::to_string(local_replicas)));
  }
  SUBCASE("variables and their copies have names (spec G05, G09)") {
    const auto named = strategy.template variable<float>({4}, 0.0f, "dense/kernel");
    CHECK(named.name() == "dense/kernel");
    CHECK(named.component_name(0) == "dense/kernel");
    CHECK(named.component_name(2) == "dense/kernel/replica_2");
    CHECK(named.size() == 4);
    CHECK(named.copies() == S::Store::copies(local_replicas));
    CHECK(strategy.template variable<float>({}).name() == "Variable");
  }
  SUBCASE("by default OnWrite variables are trainable, and OnRead variables are not (spec G03)") {
    using Weights = dist::DistributedVariable<float, dist::Auto, dist::Mean, typename S::Device>;
    using State = dist::DistributedVariable<float, dist::OnRead, dist::Mean, typename S::Device>;
    const auto trainable = [&](auto type, dist::Trainable how) {
      return typename decltype(type)::type{strategy.template memory_on<typename S::Device>(), {}, "v", how}.trainable();
    };
    const std::type_identity<Weights> weights;
    const std::type_identity<State> state;
    CHECK(trainable(weights, dist::Trainable::by_synchronization));
    CHECK(!trainable(state, dist::Trainable::by_synchronization));
    CHECK(!trainable(weights, dist::Trainable::no));
    CHECK(trainable(state, dist::Trainable::yes));
  }
  SUBCASE("a collective over an OnWrite variable counts every copy (spec G25)") {
    const auto variable = strategy.template variable<float, dist::OnWrite, dist::Sum>({}, 3.0f);
    strategy.run([&](auto& replica) {
      const float total = replica.all_reduce(dist::sum, variable.value(replica));
      if (total != 3.0f * static_cast<float>(replicas)) throw std::runtime_error("not every copy was counted");
    });
  }
  SUBCASE("arithmetic follows the read rule of the context (spec D07, F02, G29)") {
    const auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({}, 4.0f);
    CHECK(2 * total.value(strategy.scope()) == 8 * (shares_copies<S> ? 1.0f : static_cast<float>(replicas)));
    std::vector<float> seen(local_replicas);
    strategy.run([&](auto& replica) { seen[replica.local_index()] = 1 + total.value(replica); });
    CHECK(seen == std::vector<float>(local_replicas, sums_begin_at_zero<S> ? 1 : 5));
  }
  SUBCASE("integer variables aggregate exactly (spec G08)") {
    auto count = strategy.template variable<std::int64_t, dist::OnRead, dist::Sum>({}, 0);
    for (int step = 0; step < 3; ++step)
      strategy.run([&](auto& replica) {
        count.assign_add(replica, static_cast<std::int64_t>(replica.replica_id().index()) + 1);
      });
    CHECK(count.value(strategy.scope()) == static_cast<std::int64_t>(3 * replicas * (replicas + 1) / 2));
  }
  SUBCASE("a variable releases its memory: many times the arena's capacity fits in succession") {
    // Half a terabyte in total on the host, where untouched memory uses address space only; on a device, or on servers,
    // slightly more than its capacity.
    constexpr bool here = S::Device::Space::host_accessible && !dist::RemoteStore<typename S::Store>;
    constexpr std::size_t elements = std::size_t{1} << (here ? 27 : 22);
    const std::size_t repetitions = here ? 1000 : 80 / local_replicas;
    for (std::size_t repetition = 0; repetition < repetitions; ++repetition) {
      auto variable = strategy.template variable<float>({elements});
      const auto queue = variable.queue(strategy.scope(), variable.copies() - 1);
      const auto last = variable.component(strategy.scope(), local_replicas - 1).subspan(elements - 1);
      REQUIRE(support::on_host(queue, last)[0] == 0.0f);
      queue.fill(last, 1.0f);
    }
  }
  SUBCASE("a value that is a view of the variable itself is read before the write") {
    auto variable = strategy.template variable<float, dist::OnWrite, dist::Sum>({3}, 5.0f);
    variable.assign_add(strategy.scope(), variable.read(strategy.scope()));
    check_copies(strategy, variable, [](std::size_t) { return 10.0f; });
    if constexpr (S::Device::Space::host_accessible) {
      variable.assign_sub(strategy.scope(), dist::TensorView<const float>{
                                                variable.component(strategy.scope(), local_replicas - 1).data(), {3}});
      check_copies(strategy, variable, [](std::size_t) { return 0.0f; });
    }
    variable.assign(strategy.scope(), 2.0f);
    strategy.run([&](auto& replica) { variable.assign_add(replica, variable.read(replica)); });
    check_copies(strategy, variable, [&](std::size_t) { return 2.0f + 2.0f * static_cast<float>(replicas); });

    if constexpr (S::Device::Space::host_accessible && !sums_begin_at_zero<S>) {
      auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({3}, 24.0f);
      total.assign(strategy.scope(), dist::TensorView<const float>{total.component(strategy.scope(), 0).data(), {3}});
      check_copies(strategy, total,
                   [&](std::size_t) { return shares_copies<S> ? 24.0f : 24.0f / static_cast<float>(replicas); });
    }
  }
  SUBCASE("variables move, and outlive their strategy") {
    auto variable = strategy.template variable<float>({1000}, 7.0f);
    auto moved = std::move(variable);
    auto other = strategy.template variable<float>({10}, 1.0f);
    other = std::move(moved);
    CHECK(other.shape() == dist::Shape{1000});
    const auto copy = other.component(strategy.scope(), local_replicas - 1);
    made.reset();
    if constexpr (S::Device::Space::host_accessible) {  // otherwise the queues were destroyed with the strategy
      std::fill(copy.begin(), copy.end(), 8.0f);
      CHECK(copy[999] == 8.0f);
    }
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("variables", Maker, variables) { conformance::check_variables(&Maker::make); }
