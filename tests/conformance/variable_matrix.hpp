// The table of spec G.2, and its counterpart for strategies with one copy, G.3: synchronization x aggregation x
// context, for read, assign, assign_add and assign_sub. A strategy joins in a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_checks.hpp>
#include <conformance/workers.hpp>
#include <dist/context/contexts.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/given_value.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

enum class Write { assign, add, subtract };

inline float after(Write write, float old, float given) {
  return write == Write::assign ? given : write == Write::add ? old + given : old - given;
}

/// Returns the value that replica `rank` writes.
inline float written(std::size_t rank) { return static_cast<float>(rank + 1) * 4; }
inline constexpr float old_value = 6;
inline constexpr float outside_value = 12;

/// Returns `values` under the named aggregation; the first one for None.
inline float combined(std::string_view aggregation, const std::vector<float>& values) {
  float total = 0;
  for (const float value : values) total += value;
  if (aggregation == "sum") return total;
  if (aggregation == "mean") return total / static_cast<float>(values.size());
  return values[0];
}

/// Actual and expected values, collected by the templates and checked once, because doctest's macros are expensive to
/// compile.
struct Comparison {
  std::string where;
  std::vector<std::string> wrong;

  void expect(std::string_view what, std::span<const float> elements, float expected) {
    for (const float element : elements)
      if (element != expected) {
        wrong.push_back(dist::concat(where, ": ", what, " is ", element, ", not ", expected));
        return;
      }
  }
  void check() const { CHECK(wrong == std::vector<std::string>{}); }
};

/// One row of the table.
template <class Sync, class Agg, class S>
class MatrixRow {
 public:
  MatrixRow(S& strategy, dist::Shape shape)
      : strategy_(strategy),
        shape_(shape),
        replicas_(strategy.num_replicas_in_sync()),
        first_(strategy.first_local_replica()) {}

  void check() {
    for (const Write write : {Write::assign, Write::add, Write::subtract})
      for (const bool tensor : {false, true}) {
        comparison_.where = dist::concat(Sync::name, ", ", Agg::name, ", shape ", to_string(shape_), ", write ",
                                         static_cast<int>(write), tensor ? " of a tensor" : " of a number");
        if constexpr (!(shares_copies<S> && none) && !begins_at_zero) check_in_replicas(write, tensor);
        if (!shares || write == Write::assign) check_outside_replicas(write, tensor);
        check_in_update(write, tensor);
        if constexpr ((own_copies || !std::is_same_v<Agg, dist::Sum>)&&!begins_at_zero) check_same(write, tensor);
      }
    comparison_.check();
  }

 private:
  static constexpr bool none = std::is_same_v<Agg, dist::None>;
  static constexpr bool own_copies = std::is_same_v<Sync, dist::OnRead> && !shares_copies<S>;
  static constexpr bool readable_outside = !(own_copies && none);
  static constexpr bool shares = own_copies && std::is_same_v<Agg, dist::Sum>;
  static constexpr bool begins_at_zero = shares && sums_begin_at_zero<S>;

  auto make() { return strategy_.template variable<float, Sync, Agg>(shape_, old_value); }
  dist::Tensor<float> tensor_of(float number) const {
    dist::Tensor<float> values{shape_};
    std::fill(values.elements().begin(), values.elements().end(), number);
    return values;
  }

  template <class Variable, class Context, class Value>
  static void write_as(Write write, Variable& variable, const Context& context, const Value& value) {
    if (write == Write::assign) variable.assign(context, value);
    if constexpr (!(shares && dist::InCrossReplica<Context>)) {
      if (write == Write::add) variable.assign_add(context, value);
      if (write == Write::subtract) variable.assign_sub(context, value);
    }
  }
  template <class Variable, class Context>
  void give(Write write, Variable& variable, const Context& context, float number, bool tensor) const {
    tensor ? write_as(write, variable, context, tensor_of(number)) : write_as(write, variable, context, number);
  }

  /// `expected` has a number for each replica, including replicas of other processes.
  template <class Variable>
  void expect_copies(const Variable& variable, const std::vector<float>& expected) {
    for (std::size_t local = 0; local < strategy_.num_local_replicas(); ++local)
      comparison_.expect(dist::concat("copy ", local), support::component_on_host(variable, strategy_.scope(), local),
                         expected[first_ + local]);
  }
  /// Checks reads outside replica functions.
  template <class Variable>
  void expect_outside(const Variable& variable, float expected) {
    if constexpr (readable_outside) {
      const auto view = variable.read(strategy_.scope());
      CHECK(view.shape() == shape_);
      comparison_.expect("what is read outside", view.elements(), expected);
      if (variable.size() == 1) comparison_.expect("value", std::vector{variable.value(strategy_.scope())}, expected);
    }
  }

  void check_in_replicas(Write write, bool tensor) {
    auto variable = make();
    std::vector<float> given;
    for (std::size_t r = 0; r < replicas_; ++r) given.push_back(written(r));
    std::vector<float> expected;
    for (std::size_t r = 0; r < replicas_; ++r)
      expected.push_back(after(write, old_value, own_copies || none ? given[r] : combined(Agg::name, given)));
    // Without aggregation, each process reads its first copy.
    const float expected_of_all = own_copies ? combined(Agg::name, expected) : expected[first_];

    std::vector<Comparison> seen(strategy_.num_local_replicas());
    strategy_.run([&](auto& replica) {
      const std::size_t r = replica.replica_id().index();
      Comparison& comparison = seen[replica.local_index()];
      comparison.where = dist::concat(comparison_.where, ", replica ", r);
      give(write, variable, replica, given[r], tensor);
      comparison.expect("what is read", support::read_on_host(variable, replica), expected[r]);
      if (variable.size() == 1) comparison.expect("value", std::vector{variable.value(replica)}, expected[r]);
      if constexpr (readable_outside) {
        const float right = own_copies ? expected_of_all : expected[r];
        const auto all = variable.synchronized_read(replica);
        comparison.expect("what is read synchronized", support::on_host(variable.queue(replica), all), right);
        if (variable.size() == 1)
          comparison.expect("synchronized value", std::vector{variable.synchronized_value(replica)}, right);
      }
    });
    for (const Comparison& one : seen) one.check();
    expect_copies(variable, expected);
    expect_outside(variable, expected_of_all);
  }

  void check_outside_replicas(Write write, bool tensor) {
    auto variable = make();
    give(write, variable, strategy_.scope(), outside_value, tensor);
    const float copy = shares ? outside_value / static_cast<float>(replicas_) : after(write, old_value, outside_value);
    expect_copies(variable, std::vector<float>(replicas_, copy));
    expect_outside(variable, shares ? outside_value : copy);
  }

  /// Checks that an update sets only this copy to the value, for all policies.
  void check_in_update(Write write, bool tensor) {
    auto variable = make();
    std::vector<float> expected(replicas_, old_value);
    for (std::size_t copy = 0; copy < variable.copies(); ++copy) {
      const std::size_t local = first_reader<S>(copy);
      const dist::UpdateContext<S> update{strategy_, local};
      const std::size_t r = first_ + local;
      give(write, variable, update, written(r), tensor);
      expected[r] = after(write, old_value, written(r));
      for (std::size_t other = local; other < strategy_.num_local_replicas(); ++other)
        if (S::Store::copy_of(other) == copy) expected[first_ + other] = expected[r];
      comparison_.expect("what is read in an update", support::read_on_host(variable, update), expected[r]);
      comparison_.expect("the component of an update", support::component_on_host(variable, update), expected[r]);
      if (variable.size() == 1) comparison_.expect("value", std::vector{variable.value(update)}, expected[r]);
      expect_copies(variable, expected);
    }
  }

  /// Checks that a value that is equal on every replica is applied once to every copy, without aggregation.
  void check_same(Write write, bool tensor) {
    auto variable = make();
    const dist::Tensor<float> values = tensor_of(outside_value);
    strategy_.run([&](auto& replica) {
      for (int time = 0; time < 2; ++time)
        tensor ? write_as(write, variable, replica, dist::same(values))
               : write_as(write, variable, replica, dist::same(outside_value));
    });
    const float expected = after(write, after(write, old_value, outside_value), outside_value);
    expect_copies(variable, std::vector<float>(replicas_, expected));
  }

  S& strategy_;
  dist::Shape shape_;
  std::size_t replicas_;
  std::size_t first_;  // the replica of this process's first copy
  Comparison comparison_;
};

/// One element, some, more than a block, and more than fit into an announcement.
#ifdef DIST_TEST_FEW_ELEMENTS
inline const std::vector<dist::Shape> matrix_shapes{{}, {2, 3}, {1000}};
#else
inline const std::vector<dist::Shape> matrix_shapes{{}, {2, 3}, {64}, {257}, {1000}};
#endif

template <class Sync, class S>
void check_rows(S& strategy) {
  for (const dist::Shape& shape : matrix_shapes) {
    const auto check = [&]<class Agg>(Agg) {
      if constexpr (has_variables<S, Sync, Agg>) MatrixRow<Sync, Agg, S>{strategy, shape}.check();
    };
    check(dist::None{});
    check(dist::Sum{});
    check(dist::Mean{});
    check(dist::OnlyFirstReplica{});
  }
}

/// Compiled once per type of strategy, for all numbers of replicas.
template <class S>
void check_variable_matrix(std::unique_ptr<S> (*make)()) {
  const auto strategy = make();
  SUBCASE("OnWrite") { check_rows<dist::OnWrite>(*strategy); }
  SUBCASE("OnRead") { check_rows<dist::OnRead>(*strategy); }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE(
    "reads and writes of variables follow the table (spec G.2, G.3, B06, B16, A19, G40, G41, G42, G45)", Maker,
    variable_matrix) {
  conformance::check_variable_matrix(&Maker::make);
}
