#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/placement.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist {

/// A strategy: where replicas run, where variables live, how replicas talk. Library code is written against this.
template <class S>
concept Strategy = requires(S& strategy) {
  typename S::Device;
  typename S::Collectives;
  requires Placement<typename S::Placement>;
  { strategy.num_replicas_in_sync() } -> std::same_as<std::size_t>;
  { strategy.num_local_replicas() } -> std::same_as<std::size_t>;
  { strategy.scope() } -> InCrossReplica;
  { strategy.describe() } -> std::same_as<std::string>;
  strategy.run([](auto&) {});
};

/// What every strategy offers besides `run`, written once. `Derived` brings `run`, `memory()` for variables,
/// `replica_memory()` for buffers, `num_replicas_in_sync()` and `num_local_replicas()`.
template <class Derived, class DeviceType>
class StrategyInterface {
 public:
  StrategyInterface(const StrategyInterface&) = delete;
  StrategyInterface& operator=(const StrategyInterface&) = delete;

  /// The context outside replica functions (spec B03).
  [[nodiscard]] CrossReplicaContext<Derived> scope() noexcept { return CrossReplicaContext<Derived>{derived()}; }

  /// A variable with one copy per replica, all with replica 0's initial value (spec G06).
  ///
  /// `initial` is one number for all elements, a TensorView of the shape, or a function that fills a `TensorView<T>`. Throws
  /// ShapeMismatch, OutOfMemory.
  template <Reducible T, Synchronization Sync = OnWrite, Aggregation Agg = None, class Initial = T>
  [[nodiscard]] DistributedVariable<T, Sync, Agg, DeviceType> variable(Shape shape, Initial&& initial = T{},
                                                                       std::string name = "Variable") {
    DistributedVariable<T, Sync, Agg, DeviceType> made{derived().memory(), shape, std::move(name)};
    const auto context = scope();
    const std::span<T> first = made.component(context, 0);
    if constexpr (std::convertible_to<Initial, T>) {
      if (static_cast<T>(initial) == T{0}) return made;  // memory comes zeroed: leave its pages untouched
      std::fill(first.begin(), first.end(), static_cast<T>(initial));
    } else if constexpr (std::convertible_to<Initial, TensorView<const T>>) {
      const TensorView<const T> values = initial;
      if (values.shape() != shape)
        throw ShapeMismatch(
            text("The initial value does not fit variable '", made.name(), "'"),
            text("the value has shape ", to_string(values.shape()), ", the variable ", to_string(shape)),
            "Give an initial value of the variable's shape");
      std::copy_n(values.data(), values.size(), first.data());
    } else {
      static_assert(std::invocable<Initial&, TensorView<T>>,
                    "a variable's initial value must be a number, a TensorView of its element type, or a function that "
                    "fills a TensorView of it");
      initial(TensorView<T>{first, shape});
    }
    if constexpr (std::same_as<typename Derived::Placement, OnEveryReplica>) {
      // Each replica copies for itself, so that the pages come from memory near its processor.
      derived().run([&](auto& replica) {
        if (replica.local_index() != 0) std::copy_n(first.data(), first.size(), made.component(replica).data());
      });
    }
    return made;
  }

  /// Memory of `shape` for every replica, for what lives no longer than a step. Throws OutOfMemory.
  template <class T>
  [[nodiscard]] ReplicaBuffer<T, DeviceType> buffer(Shape shape, std::string name = "Buffer") {
    return {derived().replica_memory(), shape, std::move(name)};
  }

  /// The values of all replicas become one (spec C07): numbers to a number, tensors element by element to a new tensor. A
  /// plain value, which is what `run` returns where there is one replica, is returned as it is.
  template <class Op, class Value>
  [[nodiscard]] auto reduce(Op op, const Value& value) const {
    if constexpr (!is_per_replica<Value>) {
      return value;
    } else if constexpr (Reducible<typename Value::Value>) {
      DIST_EXPECT(value.size() > 0);
      using T = typename Value::Value;
      static_assert(ReduceOp<Op, T>,
                    "this reduction does not combine values of this type: Mean needs a floating-point type");
      T combined = value[0];
      for (std::size_t i = 1; i < value.size(); ++i) combined = op(combined, value[i]);
      return Op::finish(combined, value.size());
    } else {
      return reduce_tensors(op, value);
    }
  }

  /// The values of this process's replicas, in replica order; a plain value counts as one (spec C15).
  template <class Value>
  [[nodiscard]] auto local_results(const Value& value) const noexcept {
    if constexpr (is_per_replica<Value>) {
      return value.values();
    } else {
      return std::span<const Value>{&value, 1};
    }
  }
  /// Of a temporary, such as what `run` has just returned: a PerReplica that owns the values.
  template <class Value>
    requires(!std::is_reference_v<Value> && !std::is_const_v<Value>)
  [[nodiscard]] auto local_results(Value&& value) const {
    if constexpr (is_per_replica<Value>) {
      return std::forward<Value>(value);
    } else {
      return PerReplica<Value>(1, [&](std::size_t) { return std::forward<Value>(value); });
    }
  }

 protected:
  StrategyInterface() = default;
  ~StrategyInterface() = default;

 private:
  [[nodiscard]] Derived& derived() noexcept { return static_cast<Derived&>(*this); }

  template <class Op, class Value>
  [[nodiscard]] static auto reduce_tensors(Op op, const Value& value) {
    using T = std::remove_const_t<typename Value::Value::Element>;
    static_assert(ReduceOp<Op, T>,
                  "this reduction does not combine elements of this type: Mean needs a floating-point type");
    DIST_EXPECT(value.size() > 0);
    Tensor<T> combined{value[0].shape()};
    std::copy_n(value[0].data(), combined.size(), combined.data());
    for (std::size_t replica = 1; replica < value.size(); ++replica) {
      if (value[replica].shape() != combined.shape())
        throw ShapeMismatch(text("Replica ", replica, "'s value cannot be reduced with replica 0's"),
                            text("shapes ", to_string(value[replica].shape()), " and ", to_string(combined.shape())),
                            "Return values of one shape from every replica");
      for (std::size_t i = 0; i < combined.size(); ++i) combined[i] = op(combined[i], value[replica].data()[i]);
    }
    for (T& element : combined.elements()) element = Op::finish(element, value.size());
    return combined;
  }
};

}  // namespace dist
