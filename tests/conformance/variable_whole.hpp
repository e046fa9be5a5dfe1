// The suite of state that outlives a run: `whole` and `restore` of variables of every synchronization and aggregation.
// A strategy joins in a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_checks.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

/// Returns numbers whose sums and quotients are rounded, or do not divide evenly.
template <class T>
dist::Tensor<T> uneven(dist::Shape shape, int seed) {
  dist::Tensor<T> values{shape};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int number = static_cast<int>((i * 37 + static_cast<std::size_t>(seed) * 11) % 101) - 50;
    if constexpr (std::same_as<T, bool>)
      values[i] = number % 3 == 0;
    else if constexpr (std::integral<T>)
      values[i] = static_cast<T>(number);
    else
      values[i] = static_cast<T>(static_cast<double>(number) / 7.0);
  }
  return values;
}

template <class T>
bool same_elements(const dist::Tensor<T>& one, const dist::Tensor<T>& other) {
  return one.shape() == other.shape() && std::equal(one.data(), one.data() + one.size(), other.data());
}

template <class... T>
struct Types {};
/// One of each kind. The code is the same for all; one strategy tests every type.
using FewTypes = Types<float, std::int8_t, bool>;
using MoreTypes = Types<float, std::int8_t, bool, double, dist::BFloat16, std::int64_t>;

/// Calls `check.template operator()<Type, Sync, Agg>()` for all existing variables of these types.
template <class... T, class Check>
void for_each_kind(Types<T...>, Check&& check) {
  const auto of = [&]<class Type, class Sync, class Agg>() {
    CAPTURE(Sync::name);
    CAPTURE(Agg::name);
    check.template operator()<Type, Sync, Agg>();
  };
  const auto of_type = [&]<class Type>() {
    of.template operator()<Type, dist::OnWrite, dist::None>();
    of.template operator()<Type, dist::OnWrite, dist::OnlyFirstReplica>();
    of.template operator()<Type, dist::OnRead, dist::None>();
    of.template operator()<Type, dist::OnRead, dist::OnlyFirstReplica>();
    of.template operator()<Type, dist::OnShard, dist::None>();
    if constexpr (!std::same_as<Type, bool>) {
      of.template operator()<Type, dist::OnWrite, dist::Sum>();
      of.template operator()<Type, dist::OnRead, dist::Sum>();
    }
    if constexpr (dist::Floating<Type>) {
      of.template operator()<Type, dist::OnWrite, dist::Mean>();
      of.template operator()<Type, dist::OnRead, dist::Mean>();
    }
  };
  (of_type.template operator()<T>(), ...);
}

/// Creates the same strategy with another number of replicas per process, if supported.
template <class S>
std::unique_ptr<S> with_replicas(std::size_t replicas) {
  if constexpr (std::is_constructible_v<S, std::size_t>)
    return std::make_unique<S>(replicas);
  else
    return std::make_unique<S>();
}

/// An update that changes nothing, and marks the elements for which it was called.
struct MarkElement {
  float* marks;
  DIST_HD float operator()(std::size_t i, float weight, float) const {
    marks[i] = 1;
    return weight;
  }
};

template <class S>
void check_variable_whole(std::unique_ptr<S> (*make)()) {
  const auto made = make();
  S& strategy = *made;
  const std::vector<dist::Shape> shapes{dist::Shape{}, dist::Shape{3, 5}, dist::Shape{1000}};

  SUBCASE("whole returns what was restored, for any number of replicas") {
    std::vector<std::unique_ptr<S>> others;
    for (std::size_t replicas = 1; replicas <= 4; ++replicas) others.push_back(with_replicas<S>(replicas));
    for (const dist::Shape& shape : shapes) {
      for_each_kind(FewTypes{}, [&]<class T, class Sync, class Agg>() {
        if constexpr (has_variables<S, Sync, Agg>) {
          const auto values = uneven<T>(shape, 1);
          auto variable = strategy.template variable<T, Sync, Agg>(shape);
          variable.restore(strategy.scope(), values);
          const auto kept = variable.whole(strategy.scope());
          CHECK(same_elements(kept, values));
          for (const auto& other : others) {
            auto restored = other->template variable<T, Sync, Agg>(shape);
            restored.restore(other->scope(), kept);
            const auto kept_again = restored.whole(other->scope());
            CHECK(same_elements(kept_again, values));
            variable.restore(strategy.scope(), uneven<T>(shape, 2));
            variable.restore(strategy.scope(), kept_again);
            CHECK(same_elements(variable.whole(strategy.scope()), values));
          }
        }
      });
    }
  }
  SUBCASE("replicas continue with restored values") {
    const dist::Shape shape{1000};
    const auto values = uneven<double>(shape, 3);
    auto weights = strategy.template variable<double>(shape);
    auto total = strategy.template variable<double, dist::OnRead, dist::Sum>(shape);
    auto mean = strategy.template variable<double, dist::OnRead, dist::Mean>(shape);
    weights.restore(strategy.scope(), values);
    total.restore(strategy.scope(), values);
    mean.restore(strategy.scope(), values);
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const auto copy = support::component_on_host(weights, strategy.scope(), local);
      CHECK(std::equal(copy.begin(), copy.end(), values.data()));
      const auto own = support::component_on_host(mean, strategy.scope(), local);
      CHECK(std::equal(own.begin(), own.end(), values.data()));
    }
    strategy.run([&](auto& replica) { total.assign_add(replica, 1.0); });
    const auto counted = total.whole(strategy.scope());
    const auto replicas = static_cast<double>(strategy.num_replicas_in_sync());
    double worst = 0;
    for (std::size_t i = 0; i < counted.size(); ++i)
      worst = std::max(worst, std::abs(counted[i] - values[i] - replicas));
    CHECK(worst < 1e-12);
  }
  SUBCASE("copies without aggregation are saved with replica 0's values, in all processes") {
    if constexpr (!S::Store::shared && has_variables<S, dist::OnRead, dist::None>) {
      auto own = strategy.template variable<std::int64_t, dist::OnRead, dist::None>({2});
      strategy.run(
          [&](auto& replica) { own.assign(replica, static_cast<std::int64_t>(replica.replica_id().index()) + 5); });
      CHECK(own.whole(strategy.scope())[1] == 5);
    }
  }
  SUBCASE("only the owners of an OnShard variable's elements store them") {
    if constexpr (has_variables<S, dist::OnShard, dist::None>)
      for (const std::size_t size : {std::size_t{3}, std::size_t{5000}}) {
        const auto values = uneven<float>({size}, 4);
        auto slots = strategy.template variable<float, dist::OnShard>({size}, 0.0f, "slots");
        slots.assign(strategy.scope(), values);
        CHECK(same_elements(dist::Tensor<float>{slots.read(strategy.scope())}, values));
        std::vector<int> wrong(strategy.num_local_replicas());
        auto weights = strategy.template variable<float>({size});
        auto gradients = strategy.template buffer<float>({size});
        auto marks = strategy.template buffer<float>({size});
        strategy.run([&](auto& replica) {
          int& mistakes = wrong[replica.local_index()];
          const auto mine = support::component_on_host(slots, replica);
          const auto all = slots.synchronized_read(replica);
          mistakes += !same_elements(all, values);
          replica.reduce_and_apply(dist::sum, gradients.component(replica), weights.component(replica),
                                   MarkElement{marks.component(replica).data()});
          const auto owned = support::component_on_host(marks, replica);
          for (std::size_t i = 0; i < size; ++i)
            if (owned[i] == 1 || !S::Store::shared) mistakes += mine[i] != (owned[i] == 1 ? values[i] : 0.0f);
        });
        CHECK(wrong == std::vector<int>(strategy.num_local_replicas(), 0));
      }
  }
  SUBCASE("values of another shape, and another strategy, are refused by name") {
    auto variable = strategy.template variable<float>({4}, 1.0f, "kernel");
    CHECK(contains(error_of<dist::ShapeMismatch>([&] {
                     variable.restore(strategy.scope(), uneven<float>({2, 2}, 0));
                   }),
                   "'kernel'"));
    const auto other = make();
    CHECK(contains(error_of<dist::WrongStrategy>([&] { static_cast<void>(variable.whole(other->scope())); }),
                   "'kernel'"));
    CHECK(contains(error_of<dist::WrongStrategy>([&] { variable.restore(other->scope(), uneven<float>({4}, 0)); }),
                   "'kernel'"));
    check_copies(strategy, variable, [](std::size_t) { return 1; });
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("whole and restore of variables are inverse operations", Maker, variable_whole) {
  conformance::check_variable_whole(&Maker::make);
}
