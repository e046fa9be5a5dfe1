// The suite of indexed slices on rows of variables: operation x aggregation x context. A strategy joins in a test file
// with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_checks.hpp>
#include <conformance/workers.hpp>
#include <dist/context/contexts.hpp>
#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/shape.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

enum class Scatter { add, sub, mul, div, min, max, update };
inline constexpr Scatter calculations[] = {Scatter::add, Scatter::sub, Scatter::mul, Scatter::div};
inline constexpr Scatter replacements[] = {Scatter::min, Scatter::max, Scatter::update};

inline float scattered(Scatter how, float old, float given) {
  switch (how) {
    case Scatter::add:
      return old + given;
    case Scatter::sub:
      return old - given;
    case Scatter::mul:
      return old * given;
    case Scatter::div:
      return old / given;
    case Scatter::min:
      return std::min(old, given);
    case Scatter::max:
      return std::max(old, given);
    case Scatter::update:
      break;
  }
  return given;
}

inline constexpr std::size_t scatter_rows = 5;
inline constexpr std::size_t scatter_width = 3;
inline const dist::Shape scatter_shape{scatter_rows, scatter_width};
inline constexpr float scatter_old = 6;

/// Returns the slices of replica `rank`: some rows, none on replica 1, one of them twice.
inline dist::IndexedSlices<float> slices_of(std::size_t rank) {
  const std::size_t rows = rank == 1 ? 0 : rank % 3 + 2;
  dist::IndexedSlices<float> slices{rows, scatter_shape};
  for (std::size_t row = 0; row < rows; ++row) {
    slices.indices()[row] = static_cast<std::int64_t>(row < 2 ? (rank + 2) % scatter_rows : row % scatter_rows);
    for (std::size_t i = 0; i < scatter_width; ++i)
      slices.values().row(row)[i] = static_cast<float>(rank + 2 * row + 4 * i + 1);
  }
  return slices;
}
inline void apply_to(std::vector<float>& copy, Scatter how, const dist::IndexedSlices<float>& slices,
                     float divisor = 1) {
  for (std::size_t row = 0; row < slices.rows(); ++row)
    for (std::size_t i = 0; i < scatter_width; ++i) {
      float& element = copy[static_cast<std::size_t>(slices.indices()[row]) * scatter_width + i];
      element = scattered(how, element, slices.values().row(row)[i] / divisor);
    }
}

template <class Variable, class Context, class Slices>
void scatter(Scatter how, Variable& variable, const Context& context, const Slices& slices) {
  using Agg = typename Variable::Aggregation;
  if (how == Scatter::add) variable.scatter_add(context, slices);
  if (how == Scatter::sub) variable.scatter_sub(context, slices);
  if (how == Scatter::mul) variable.scatter_mul(context, slices);
  if (how == Scatter::div) variable.scatter_div(context, slices);
  if constexpr (std::is_same_v<Agg, dist::None> || std::is_same_v<Agg, dist::OnlyFirstReplica>) {
    if (how == Scatter::min) variable.scatter_min(context, slices);
    if (how == Scatter::max) variable.scatter_max(context, slices);
    if (how == Scatter::update) variable.scatter_update(context, slices);
  }
}

template <class Sync, class Agg, class S>
class ScatterRow {
 public:
  explicit ScatterRow(S& strategy)
      : strategy_(strategy),
        replicas_(strategy.num_replicas_in_sync()),
        local_replicas_(strategy.num_local_replicas()) {}

  void check(std::span<const Scatter> operations) {
    for (const Scatter how : operations) {
      CAPTURE(static_cast<int>(how));
      if constexpr (!(shares_copies<S> && none)) check_in_replicas(how);
      check_outside(how);
      check_in_update(how);
    }
  }

 private:
  static constexpr bool none = std::is_same_v<Agg, dist::None>;

  auto make() { return strategy_.template variable<float, Sync, Agg>(scatter_shape, scatter_old); }
  [[nodiscard]] static std::vector<float> old_copy() {
    return std::vector<float>(scatter_rows * scatter_width, scatter_old);
  }
  template <class Variable>
  [[nodiscard]] std::vector<float> copy_of(const Variable& variable, std::size_t local) {
    const auto copy = support::component_on_host(variable, strategy_.scope(), local);
    return {copy.begin(), copy.end()};
  }

  void check_in_replicas(Scatter how) {
    auto variable = make();
    strategy_.run([&](auto& replica) { scatter(how, variable, replica, slices_of(replica.replica_id().index())); });
    for (std::size_t local = 0; local < local_replicas_; ++local) {
      auto expected = old_copy();
      if constexpr (none) {
        apply_to(expected, how, slices_of(strategy_.first_local_replica() + local));
      } else if constexpr (std::is_same_v<Agg, dist::OnlyFirstReplica>) {
        apply_to(expected, how, slices_of(0));
      } else {
        const float divisor = std::is_same_v<Agg, dist::Mean> ? static_cast<float>(replicas_) : 1.0f;
        for (std::size_t rank = 0; rank < replicas_; ++rank) apply_to(expected, how, slices_of(rank), divisor);
      }
      CHECK(copy_of(variable, local) == expected);
    }
  }

  void check_outside(Scatter how) {
    auto variable = make();
    const auto slices = slices_of(2);
    scatter(how, variable, strategy_.scope(), slices.view());
    auto expected = old_copy();
    apply_to(expected, how, slices);
    for (std::size_t local = 0; local < local_replicas_; ++local) CHECK(copy_of(variable, local) == expected);
  }

  void check_in_update(Scatter how) {
    auto variable = make();
    const std::size_t last = first_reader<S>(variable.copies() - 1);
    scatter(how, variable, dist::UpdateContext<S>{strategy_, last}, slices_of(2));
    auto expected = old_copy();
    apply_to(expected, how, slices_of(2));
    CHECK(copy_of(variable, last) == expected);
    if (last > 0) CHECK(copy_of(variable, last - 1) == old_copy());
  }

  S& strategy_;
  std::size_t replicas_;
  std::size_t local_replicas_;
};

template <class S>
void check_variable_scatter(std::unique_ptr<S> (*make)()) {
  const auto strategy = make();
  SUBCASE("each operation, by aggregation and context (spec G26, G27)") {
    ScatterRow<dist::OnWrite, dist::None, S> none{*strategy};
    none.check(calculations);
    none.check(replacements);
    ScatterRow<dist::OnWrite, dist::OnlyFirstReplica, S> first{*strategy};
    first.check(calculations);
    first.check(replacements);
    ScatterRow<dist::OnWrite, dist::Sum, S>{*strategy}.check(calculations);
    ScatterRow<dist::OnWrite, dist::Mean, S>{*strategy}.check(calculations);
    if constexpr (shares_copies<S>) ScatterRow<dist::OnRead, dist::Sum, S>{*strategy}.check(calculations);  // spec G45
  }
  SUBCASE("slices of another shape name the variable and both shapes, and change nothing") {
    auto table = strategy->template variable<float, dist::OnWrite, dist::Sum>({4, 3}, 1.0f, "table");
    const std::string message =
        error_of<dist::ShapeMismatch>([&] { table.scatter_add(strategy->scope(), slices_of(0)); });
    CAPTURE(message);
    CHECK(contains(message, "'table'"));
    CHECK(contains(message, "[5, 3]"));
    CHECK(contains(message, "[4, 3]"));
    CHECK(error_of<dist::ShapeMismatch>(
              [&] { strategy->run([&](auto& replica) { table.scatter_sub(replica, slices_of(0)); }); }) == message);
    check_copies(*strategy, table, [](std::size_t) { return 1; });
  }
  SUBCASE("a variable of another strategy is refused") {
    const auto other = make();
    auto table = other->template variable<float, dist::OnWrite, dist::Sum>(scatter_shape, 1.0f, "stranger");
    CHECK(contains(error_of<dist::WrongStrategy>([&] { table.scatter_add(strategy->scope(), slices_of(0)); }),
                   "'stranger'"));
  }
  SUBCASE("integers: products, quotients, and no division by zero") {
    auto counts = strategy->template variable<std::int32_t, dist::OnWrite, dist::Sum>({3}, 7, "counts");
    dist::IndexedSlices<std::int32_t> slices{2, {3}};
    slices.indices()[0] = slices.indices()[1] = 1;
    slices.values()[0] = 2;
    slices.values()[1] = 3;
    const auto outside = strategy->scope();
    counts.scatter_mul(outside, slices);
    CHECK(counts.read(outside)[1] == 42);
    slices.values()[0] = 4;
    slices.values()[1] = -1;
    counts.scatter_div(outside, slices);
    CHECK(counts.read(outside)[1] == -10);
    slices.values()[1] = 0;
    CHECK(contains(error_of<dist::InvalidArgument>([&] { counts.scatter_div(outside, slices); }), "'counts'"));
    CHECK(contains(error_of<dist::InvalidArgument>(
                       [&] { strategy->run([&](auto& replica) { counts.scatter_div(replica, slices); }); }),
                   "'counts'"));
    CHECK(counts.read(outside)[1] == -10);
    CHECK(counts.read(outside)[0] == 7);
  }
  SUBCASE("bools can be replaced") {
    auto seen = strategy->template variable<bool, dist::OnWrite, dist::OnlyFirstReplica>({4});
    dist::IndexedSlices<bool> slices{1, {4}};
    slices.indices()[0] = 2;
    slices.values()[0] = true;
    strategy->run([&](auto& replica) { seen.scatter_update(replica, slices); });
    for (std::size_t r = 0; r < strategy->num_local_replicas(); ++r) {
      CHECK(support::component_on_host(seen, strategy->scope(), r)[2]);
      CHECK(!support::component_on_host(seen, strategy->scope(), r)[1]);
    }
  }
  // Slices can refer to copies only if the host can access them.
  if constexpr (S::Device::Space::host_accessible)
    SUBCASE("slices whose values are rows of a copy change all copies equally, row by row") {
      auto table = strategy->template variable<float>({2, 2}, 3.0f);
      const std::int64_t indices[] = {1, 0};
      const dist::IndexedSlicesView<float> own{indices, table.read(strategy->scope()), {2, 2}};
      table.scatter_add(strategy->scope(), own);
      // Row 1 becomes 3 + 3, then row 1 is added to row 0.
      for (std::size_t r = 0; r < strategy->num_local_replicas(); ++r) {
        CHECK(table.component(strategy->scope(), r)[2] == 6.0f);
        CHECK(table.component(strategy->scope(), r)[0] == 9.0f);
      }
    }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("indexed slices change rows of variables (spec G08, G26, G27, G41, G42)", Maker,
                          variable_scatter) {
  conformance::check_variable_scatter(&Maker::make);
}
