// What a distributed variable does under every strategy (spec G.1, G.2). A strategy joins in a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(variables, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>

#include <doctest/doctest.h>

namespace conformance {

/// What replica `rank` writes.
inline float written(std::size_t rank) { return static_cast<float>(rank + 1) * 4; }
inline constexpr float old_value = 6;
inline constexpr float outside_value = 12;

/// What the replicas' writes become under the aggregation; for None, what replica `rank` gets.
template <class Agg>
float aggregated(std::size_t rank, std::size_t replicas) {
  float total = 0;
  for (std::size_t r = 0; r < replicas; ++r) total += written(r);
  if constexpr (std::is_same_v<Agg, dist::Sum>) return total;
  if constexpr (std::is_same_v<Agg, dist::Mean>) return total / static_cast<float>(replicas);
  if constexpr (std::is_same_v<Agg, dist::OnlyFirstReplica>) return written(0);
  return written(rank);
}

enum class Write { assign, add, subtract };

inline float after(Write write, float old, float given) {
  return write == Write::assign ? given : write == Write::add ? old + given : old - given;
}
template <class Variable, class Context, class Value>
void apply(Write write, Variable& variable, const Context& context, const Value& value) {
  if (write == Write::assign) variable.assign(context, value);
  if (write == Write::add) variable.assign_add(context, value);
  if (write == Write::subtract) variable.assign_sub(context, value);
}

/// Every copy of the variable holds `expected(replica)` in every element.
template <class S, class Variable, class Expected>
void check_copies(S& strategy, const Variable& variable, Expected&& expected) {
  for (std::size_t r = 0; r < strategy.num_local_replicas(); ++r) {
    CAPTURE(r);
    const auto copy = variable.component(strategy.scope(), r);
    const auto differs = [&](auto element) { return static_cast<float>(element) != expected(r); };
    CHECK(std::none_of(copy.begin(), copy.end(), differs));
  }
  std::vector<int> wrong(strategy.num_local_replicas());
  strategy.run([&](auto& replica) {
    const std::size_t rank = replica.local_index();
    const auto view = variable.read(replica);
    for (std::size_t i = 0; i < view.size(); ++i) wrong[rank] += static_cast<float>(view[i]) != expected(rank);
    if (variable.size() == 1) wrong[rank] += static_cast<float>(variable.value(replica)) != expected(rank);
  });
  CHECK(wrong == std::vector<int>(strategy.num_local_replicas(), 0));
}

template <class Variable, class S>
void check_outside(S& strategy, const Variable& variable, float expected) {
  const auto view = variable.read(strategy.scope());
  CHECK(view.shape() == variable.shape());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < view.size(); ++i) wrong += view[i] != expected;
  CHECK(wrong == 0);
  if (variable.size() == 1) CHECK(variable.value(strategy.scope()) == expected);
}

/// One row of the matrix of spec G.2.
template <class Sync, class Agg, class S>
void check_row(S& strategy, dist::Shape shape) {
  const std::size_t replicas = strategy.num_replicas_in_sync();
  constexpr bool on_read = std::is_same_v<Sync, dist::OnRead>;
  constexpr bool readable_outside = !(on_read && std::is_same_v<Agg, dist::None>);
  constexpr bool shares = on_read && std::is_same_v<Agg, dist::Sum>;
  CAPTURE(to_string(shape));
  for (const Write write : {Write::assign, Write::add, Write::subtract}) {
    CAPTURE(static_cast<int>(write));
    for (const bool tensor : {false, true}) {
      CAPTURE(tensor);
      auto variable = strategy.template variable<float, Sync, Agg>(shape, old_value);
      strategy.run([&](auto& replica) {
        const float mine = written(replica.local_index());
        if (tensor) {
          dist::Tensor<float> values{shape};
          std::fill(values.elements().begin(), values.elements().end(), mine);
          apply(write, variable, replica, values);
        } else {
          apply(write, variable, replica, mine);
        }
      });
      const auto expected = [&](std::size_t rank) {
        return after(write, old_value, on_read ? written(rank) : aggregated<Agg>(rank, replicas));
      };
      check_copies(strategy, variable, expected);
      if constexpr (readable_outside) {
        float outside = expected(0);
        if constexpr (shares || (on_read && std::is_same_v<Agg, dist::Mean>)) {
          for (std::size_t rank = 1; rank < replicas; ++rank) outside += expected(rank);
          if (!shares) outside /= static_cast<float>(replicas);
        }
        check_outside(strategy, variable, outside);
      }
    }
  }
  for (const bool tensor : {false, true}) {
    CAPTURE(tensor);
    dist::Tensor<float> values{shape};
    std::fill(values.elements().begin(), values.elements().end(), outside_value);
    const auto check = [&](auto write) {
      CAPTURE(static_cast<int>(write.value));
      auto variable = strategy.template variable<float, Sync, Agg>(shape, old_value);
      const auto context = strategy.scope();
      if constexpr (write.value == Write::assign)
        tensor ? variable.assign(context, values) : variable.assign(context, outside_value);
      else if constexpr (write.value == Write::add)
        tensor ? variable.assign_add(context, values) : variable.assign_add(context, outside_value);
      else
        tensor ? variable.assign_sub(context, values) : variable.assign_sub(context, outside_value);
      const float copy =
          shares ? outside_value / static_cast<float>(replicas) : after(write.value, old_value, outside_value);
      check_copies(strategy, variable, [&](std::size_t) { return copy; });
      if constexpr (readable_outside) check_outside(strategy, variable, shares ? outside_value : copy);
    };
    check(std::integral_constant<Write, Write::assign>{});
    if constexpr (!shares) {
      check(std::integral_constant<Write, Write::add>{});
      check(std::integral_constant<Write, Write::subtract>{});
    }
  }
}

template <class S>
void check_matrix(S& strategy, dist::Shape shape) {
  check_row<dist::OnWrite, dist::None>(strategy, shape);
  check_row<dist::OnWrite, dist::Sum>(strategy, shape);
  check_row<dist::OnWrite, dist::Mean>(strategy, shape);
  check_row<dist::OnWrite, dist::OnlyFirstReplica>(strategy, shape);
  check_row<dist::OnRead, dist::None>(strategy, shape);
  check_row<dist::OnRead, dist::Sum>(strategy, shape);
  check_row<dist::OnRead, dist::Mean>(strategy, shape);
  check_row<dist::OnRead, dist::OnlyFirstReplica>(strategy, shape);
}

/// The text of the error of type `E` that `fn` throws, alone or as the cause of a ReplicaError.
template <class E, class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  } catch (const dist::ReplicaError& error) {
    try {
      std::rethrow_exception(error.cause());
    } catch (const E& cause) {
      return cause.what();
    }
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Compiled once for each type of strategy, whatever the number of replicas.
template <class S>
void check_variables(std::unique_ptr<S> (*make)()) {
  auto made = make();
  auto& strategy = *made;
  const std::size_t replicas = strategy.num_replicas_in_sync();

  SUBCASE("reads and writes follow the matrix (spec G.2)") {
    check_matrix(strategy, {});
    check_matrix(strategy, {2, 3});
    check_matrix(strategy, {64});
  }
  SUBCASE("so do those of more elements than travel with an announcement") { check_matrix(strategy, {1000}); }
  SUBCASE("a variable begins with a number, a view or what a function fills in, on every replica (spec G06)") {
    const auto number = strategy.template variable<double>({3}, 2.5);
    check_copies(strategy, number, [](std::size_t) { return 2.5f; });
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
      for (std::size_t r = 0; r < replicas; ++r) {
        const auto copy = variable->component(strategy.scope(), r);
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
    auto variable = strategy.template variable<float>({2, 2}, 1.0f, "kernel");
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
  SUBCASE("value is for variables with one element") {
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
    auto variable = other->template variable<float>({}, 1.0f, "stranger");
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
  SUBCASE("names and whether it is trained (spec G03, G05)") {
    const auto named = strategy.template variable<float>({4}, 0.0f, "dense/kernel");
    CHECK(named.name() == "dense/kernel");
    CHECK(named.size() == 4);
    CHECK(strategy.template variable<float>({}).name() == "Variable");
    static_assert(std::remove_cvref_t<decltype(named)>::trainable);
    using Total = decltype(strategy.template variable<float, dist::OnRead, dist::Sum>({}));
    static_assert(!Total::trainable);
  }
  SUBCASE("integer variables aggregate exactly (spec G08)") {
    auto count = strategy.template variable<std::int64_t, dist::OnRead, dist::Sum>({}, 0);
    for (int step = 0; step < 3; ++step)
      strategy.run(
          [&](auto& replica) { count.assign_add(replica, static_cast<std::int64_t>(replica.local_index()) + 1); });
    CHECK(count.value(strategy.scope()) == static_cast<std::int64_t>(3 * replicas * (replicas + 1) / 2));
  }
  SUBCASE("a variable gives its memory back: many times the arena's capacity fits one after the other") {
    // Half a terabyte in all; memory that is not touched costs addresses only.
    constexpr std::size_t elements = std::size_t{1} << 27;
    for (int repetition = 0; repetition < 1000; ++repetition) {
      auto variable = strategy.template variable<float>({elements});
      const auto copy = variable.component(strategy.scope(), replicas - 1);
      REQUIRE(copy[elements - 1] == 0.0f);
      copy[elements - 1] = 1.0f;
    }
  }
  SUBCASE("a value that is a view of the variable itself is taken as it was before the write") {
    auto variable = strategy.template variable<float, dist::OnWrite, dist::Sum>({3}, 5.0f);
    variable.assign_add(strategy.scope(), variable.read(strategy.scope()));
    check_copies(strategy, variable, [](std::size_t) { return 10.0f; });
    variable.assign_sub(strategy.scope(),
                        dist::TensorView<const float>{variable.component(strategy.scope(), replicas - 1).data(), {3}});
    check_copies(strategy, variable, [](std::size_t) { return 0.0f; });
    variable.assign(strategy.scope(), 2.0f);
    strategy.run([&](auto& replica) { variable.assign_add(replica, variable.read(replica)); });
    check_copies(strategy, variable, [&](std::size_t) { return 2.0f + 2.0f * static_cast<float>(replicas); });

    auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({3}, 24.0f);
    total.assign(strategy.scope(), dist::TensorView<const float>{total.component(strategy.scope(), 0).data(), {3}});
    check_copies(strategy, total, [&](std::size_t) { return 24.0f / static_cast<float>(replicas); });
  }
  SUBCASE("variables move, and outlive their strategy") {
    auto variable = strategy.template variable<float>({1000}, 7.0f);
    auto moved = std::move(variable);
    auto other = strategy.template variable<float>({10}, 1.0f);
    other = std::move(moved);
    CHECK(other.shape() == dist::Shape{1000});
    const std::span<float> copy = other.component(strategy.scope(), replicas - 1);
    made.reset();
    std::fill(copy.begin(), copy.end(), 8.0f);
    CHECK(copy[999] == 8.0f);
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("variables", Maker, variables) { conformance::check_variables(&Maker::make); }
