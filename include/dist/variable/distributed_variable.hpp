#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/slice.hpp>

namespace dist {

/// A variable with one copy per replica, in the strategy's memory. Made by `strategy.variable<T, Sync, Agg>(shape, …)`.
///
/// Every operation takes the context it is called in, and the table of spec G.2 is resolved at compile time:
///
/// | Sync, Agg | read in a replica | read outside | write in a replica | write outside |
/// |---|---|---|---|---|
/// | OnWrite, None | own copy | copy 0 | own copy only | every copy |
/// | OnWrite, Sum / Mean / OnlyFirstReplica | own copy | copy 0 | aggregate the replicas' values, then every copy | every copy |
/// | OnRead, Sum | own copy | sum of the copies | own copy only | assign: value / replicas in every copy; add, sub: refused |
/// | OnRead, Mean | own copy | mean of the copies | own copy only | every copy |
/// | OnRead, OnlyFirstReplica | own copy | copy 0 | own copy only | every copy |
/// | OnRead, None | own copy | refused | own copy only | every copy |
///
/// A written value is one number for all elements, or as many elements as the variable has. Aggregating writes are
/// collective calls. Throws WrongStrategy when the context belongs to another strategy, ShapeMismatch for a value that does
/// not fit; both name the variable.
template <Reducible T, Synchronization Sync, Aggregation Agg, class Device = Cpu>
class DistributedVariable {
  static_assert(
      !std::same_as<Agg, Mean> || std::floating_point<T>,
      "a variable with aggregation Mean must have a floating-point type: an integer mean would round; use another "
      "aggregation or another type");

 public:
  using Element = T;
  using Synchronization = Sync;
  using Aggregation = Agg;
  using Memory = typename Device::Memory;

  /// Whether optimizers may change it: state that is aggregated on reading is not trained (spec G03).
  static constexpr bool trainable = !std::same_as<Sync, OnRead>;

  DistributedVariable(std::shared_ptr<Memory> memory, Shape shape, std::string name)
      : slice_(std::move(memory), shape.elements()), shape_(shape), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return slice_.size(); }

  /// The calling replica's own copy, to read and to change without communication.
  [[nodiscard]] std::span<T> component(const InReplica auto& replica) const {
    require_same_strategy(replica);
    return slice_.on(replica.local_index());
  }
  /// The copy of one replica of this process, for those who see all of them.
  [[nodiscard]] std::span<T> component(const InCrossReplica auto& context, std::size_t local_replica) const {
    require_same_strategy(context);
    return slice_.on(local_replica);
  }

  [[nodiscard]] TensorView<const T> read(const InReplica auto& replica) const {
    return {component(replica).data(), shape_};
  }
  /// OnWrite: a view of copy 0. OnRead: a new tensor with the aggregated copies.
  [[nodiscard]] auto read(const InCrossReplica auto& context) const {
    require_same_strategy(context);
    if constexpr (std::same_as<Sync, OnWrite>) {
      return TensorView<const T>{slice_.on(0).data(), shape_};
    } else {
      Tensor<T> aggregated{shape_};
      for (std::size_t i = 0; i < size(); ++i) aggregated[i] = aggregate(i);
      return aggregated;
    }
  }

  /// The value of a variable with one element, read by the rules of `read` but without a tensor.
  [[nodiscard]] T value(const InReplica auto& replica) const {
    require_one_element();
    return component(replica)[0];
  }
  [[nodiscard]] T value(const InCrossReplica auto& context) const {
    require_same_strategy(context);
    require_one_element();
    if constexpr (std::same_as<Sync, OnWrite>) {
      return slice_.on(0)[0];
    } else {
      return aggregate(0);
    }
  }

  template <class Context>
  void assign(const Context& context, const std::convertible_to<T> auto& value) {
    write(context, Uniform{static_cast<T>(value)}, Assign{});
  }
  template <class Context>
  void assign(const Context& context, TensorView<const T> values) {
    write(context, elements_of(values), Assign{});
  }
  template <class Context>
  void assign_add(const Context& context, const std::convertible_to<T> auto& value) {
    write(context, Uniform{static_cast<T>(value)}, Add{});
  }
  template <class Context>
  void assign_add(const Context& context, TensorView<const T> values) {
    write(context, elements_of(values), Add{});
  }
  template <class Context>
  void assign_sub(const Context& context, const std::convertible_to<T> auto& value) {
    write(context, Uniform{static_cast<T>(value)}, Subtract{});
  }
  template <class Context>
  void assign_sub(const Context& context, TensorView<const T> values) {
    write(context, elements_of(values), Subtract{});
  }

 private:
  struct Assign {
    static constexpr T apply(T, T given) { return given; }
  };
  struct Add {
    static constexpr T apply(T old, T given) { return static_cast<T>(old + given); }
  };
  struct Subtract {
    static constexpr T apply(T old, T given) { return static_cast<T>(old - given); }
  };

  /// A written value: the same number for every element, or one per element.
  struct Uniform {
    T number;
    T operator[](std::size_t) const { return number; }
  };

  [[nodiscard]] std::span<const T> elements_of(TensorView<const T> values) const {
    if (values.shape() != shape_)
      throw ShapeMismatch(text("A value does not fit variable '", name_, "'"),
                          text("the value has shape ", to_string(values.shape()), ", the variable ", to_string(shape_)),
                          "Give a value of the variable's shape, or one number for all elements");
    return values.elements();
  }

  template <class Operation, class Value>
  static void apply(std::span<T> component, const Value& value, Operation) {
    for (std::size_t i = 0; i < component.size(); ++i) component[i] = Operation::apply(component[i], value[i]);
  }

  template <InReplica Context, class Value, class Operation>
  void write(const Context& replica, const Value& value, Operation operation) {
    const std::span<T> mine = component(replica);
    if constexpr (std::same_as<Sync, OnRead> || std::same_as<Agg, None>) {
      apply(mine, value, operation);
    } else {
      constexpr std::size_t on_stack = 64;
      T few[on_stack];
      AlignedBuffer<T> many(size() > on_stack ? size() : 0);
      const std::span<T> aggregated{size() > on_stack ? many.data() : few, size()};
      apply(aggregated, value, Assign{});
      if constexpr (std::same_as<Agg, OnlyFirstReplica>) {
        replica.collectives().broadcast(0, aggregated);
      } else {
        replica.collectives().all_reduce(Agg{}, aggregated);
      }
      apply(mine, aggregated, operation);
    }
  }

  template <InCrossReplica Context, class Value, class Operation>
  void write(const Context& context, const Value& value, Operation) {
    require_same_strategy(context);
    if constexpr (std::same_as<Sync, OnRead> && std::same_as<Agg, Sum>) {
      static_assert(
          std::same_as<Operation, Assign>,
          "an OnRead variable with aggregation Sum takes no assign_add or assign_sub outside replica functions: "
          "each copy holds an unknown share of the sum; add in a replica function, or assign the total");
      // The number of replicas may not fit a small integer type.
      using Wide = std::conditional_t<std::floating_point<T>, T,
                                      std::conditional_t<std::signed_integral<T>, long long, unsigned long long>>;
      const auto replicas = static_cast<Wide>(context.num_replicas_in_sync());
      apply_to_all(value, [&](T, T given) { return static_cast<T>(static_cast<Wide>(given) / replicas); });
    } else {
      apply_to_all(value, [](T old, T given) { return Operation::apply(old, given); });
    }
  }

  /// Element by element over all copies, so that the value may be a view of one of them.
  template <class Value, class Combine>
  void apply_to_all(const Value& value, Combine&& combine) {
    for (std::size_t i = 0; i < size(); ++i) {
      const T given = value[i];
      for (std::size_t replica = 0; replica < slice_.replicas(); ++replica) {
        T& element = slice_.on(replica)[i];
        element = combine(element, given);
      }
    }
  }

  [[nodiscard]] T aggregate(std::size_t i) const {
    static_assert(
        !std::same_as<Agg, None>,
        "an OnRead variable with aggregation None has no value outside replica functions: give it the aggregation "
        "Sum, Mean or OnlyFirstReplica, or read it in a replica function");
    T combined = slice_.on(0)[i];
    if constexpr (std::same_as<Agg, Sum> || std::same_as<Agg, Mean>) {
      for (std::size_t replica = 1; replica < slice_.replicas(); ++replica)
        combined = Agg{}(combined, slice_.on(replica)[i]);
      combined = Agg::finish(combined, slice_.replicas());
    }
    return combined;
  }

  template <class Context>
  void require_same_strategy(const Context& context) const {
    if (context.strategy().memory() != slice_.memory())
      throw WrongStrategy(text("Variable '", name_, "' was used with a strategy that did not make it"),
                          text("the context belongs to ", context.strategy().describe()),
                          "Make the variable with the strategy that runs the replica function");
  }
  void require_one_element() const {
    if (size() != 1)
      throw ShapeMismatch(text("Variable '", name_, "' has no single value"), text("its shape is ", to_string(shape_)),
                          "Use read for variables with several elements");
  }

  Slice<T, Memory> slice_;
  Shape shape_;
  std::string name_;
};

}  // namespace dist
