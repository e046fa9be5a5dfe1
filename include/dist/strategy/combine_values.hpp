/// The implementation of `reduce` and `gather`: combines the values of this process's replicas, then of all processes,
/// over the collectives `workers`.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/comm/all_reduce_slices.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/context/all_gather_tensors.hpp>
#include <dist/context/operand.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>

namespace dist::detail {

/// A Tensor, a TensorView, or a type that converts to one.
template <class V>
concept ConvertsToTensor = requires(const V& value) {
  typename V::Element;
  { value.shape() } -> std::convertible_to<Shape>;
  TensorView<const std::remove_const_t<typename V::Element>>{value};
};
/// A type that can be viewed as a tensor, including ranges of numbers and complex numbers.
template <class V>
concept TensorLike = ConvertsToTensor<V> || NumberRange<V> || NumbersValue<V>;
/// A type with axes: a tensor or a range of numbers.
template <class V>
concept HasAxes = ConvertsToTensor<V> || NumberRange<V>;
template <TensorLike V>
[[nodiscard]] auto view_of(const V& value) {
  if constexpr (ConvertsToTensor<V>)
    return TensorView<const std::remove_const_t<typename V::Element>>{value};
  else
    return view_of_numbers(value);
}
template <TensorLike V>
using ElementOf = std::remove_const_t<typename decltype(view_of(std::declval<const V&>()))::Element>;

template <class Op, TensorLike V>
[[nodiscard]] constexpr bool require_reduce_op_of() {
  if constexpr (ConvertsToTensor<V>)
    return require_reduce_op<Op, ElementOf<V>>();
  else
    return require_reduce_op_of_numbers<Op, V>();
}

/// A number that may not be available yet, such as the loss of a network.
template <class V>
concept StandsForNumber = requires(const V& value) {
  requires Reducible<typename V::Reduced>;
  { value.value() } -> std::same_as<typename V::Reduced>;
};

/// Eigen's name for a type that owns its elements.
template <class V>
concept HasPlainObject = requires {
  typename V::PlainObject;
};

/// Converts a reduction to the type of the values: a container or a value; a tensor for views.
template <class V, class T>
[[nodiscard]] auto in_form_of([[maybe_unused]] const V& one, Tensor<T>&& reduced) {
  constexpr bool is_view = NumberRange<V> && (std::is_trivially_copyable_v<V> || std::is_array_v<V>);
  const auto filled = [&](auto made) {
    std::copy_n(reduced.data(), reduced.size(), numbers_in(made).data());
    return made;
  };
  if constexpr (HasPlainObject<V>)
    return filled(typename V::PlainObject(one));
  else if constexpr (ConvertsToTensor<V> || is_view)
    return Tensor<T>{std::move(reduced)};
  else
    return filled(V(one));
}

template <class T>
inline constexpr bool is_indexed_slices =
    is_specialization<T, IndexedSlices> || is_specialization<T, IndexedSlicesView>;

template <class T>
inline constexpr bool is_tensor_view = false;
template <class T, class Where>
inline constexpr bool is_tensor_view<TensorView<T, Where>> = true;

/// Splits a structure of PerReplicas by replica.
template <class S>
[[nodiscard]] auto each_replica(const S& structure, std::size_t replicas) {
  const auto part = [&](std::size_t replica) { return select_copy(replica, structure); };
  return PerReplica<decltype(part(0))>(replicas, part);
}

/// Calls `fn` with the PerReplica of each member, and returns the results as an aggregate.
template <class A, class Fn>
[[nodiscard]] A each_member_of(const PerReplica<A>& values, Fn&& fn) {
  using Members = decltype(members_of(std::declval<const A&>()));
  []<class... Ms>(const std::tuple<Ms...>*) {
    static_assert((!is_tensor_view<std::remove_cvref_t<Ms>> && ...),
                  "reduce returns a new plain struct, whose members must own their values: give it a Tensor instead of "
                  "a TensorView");
  }(static_cast<const Members*>(nullptr));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return A{fn(PerReplica<std::remove_cvref_t<std::tuple_element_t<I, Members>>>(
        values.size(),
        [&](std::size_t replica) -> decltype(auto) { return std::get<I>(members_of(values[replica])); }))...};
  }
  (std::make_index_sequence<std::tuple_size_v<Members>>{});
}

template <class Op, class T, class Workers>
[[nodiscard]] T reduce_numbers(Op op, const PerReplica<T>& values, const Workers& workers) {
  Accumulator<T> combined{values[0]};
  for (std::size_t i = 1; i < values.size(); ++i) combined = op(combined, static_cast<Accumulator<T>>(values[i]));
  workers.all_reduce(Unfinished<Op>{}, std::span<Accumulator<T>>{&combined, 1});
  return static_cast<T>(Op::finish(combined, values.size() * workers.communicator().size()));
}

/// Returns the shapes of all replicas' values, so that every worker detects the same errors. A collective call; `what`
/// names the call that follows.
template <class Workers>
[[nodiscard]] PerReplica<Shape> shapes_of_all(std::string_view what, PerReplica<Shape> here, const Workers& workers) {
  if constexpr (CollectivesOfOne<Workers>) {
    return here;
  } else {
    PerReplica<Shape> all(here.size() * workers.communicator().size());
    PerReplica<Shape> of_each(workers.communicator().size());
    for (std::size_t local = 0; local < here.size(); ++local) {
      workers.all_gather_values(what, here[local], std::span<Shape>{of_each.begin(), of_each.size()});
      for (std::size_t worker = 0; worker < of_each.size(); ++worker)
        all[worker * here.size() + local] = of_each[worker];
    }
    return all;
  }
}

/// Concatenates the slices of all replicas in replica order (spec H10).
template <class Op, class V, class Workers>
[[nodiscard]] auto reduce_slices(Op op, const PerReplica<V>& values, const Workers& workers) {
  using T = typename V::Element;
  std::size_t rows = 0;
  for (std::size_t replica = 0; replica < values.size(); ++replica) {
    require_one_dense_shape(replica, values[replica].dense_shape(), values[0].dense_shape());
    rows += values[replica].rows();
  }
  IndexedSlices<T> here(rows, values[0].dense_shape());
  std::size_t row = 0;
  for (const V& value : values) {
    std::copy_n(value.indices().data(), value.rows(), here.indices().data() + row);
    std::copy_n(value.values().data(), value.values().size(), here.values().rows(row, value.rows()).data());
    row += value.rows();
  }
  return all_reduce_slices(workers, op, here.view(), values.size());
}

template <class Op, class V, class Workers>
[[nodiscard]] Tensor<ElementOf<V>> reduce_tensors(Op, const PerReplica<V>& values, const Workers& workers) {
  using T = ElementOf<V>;
  const PerReplica<Shape> shapes = shapes_of_all(
      "reduce of a tensor",
      PerReplica<Shape>(values.size(), [&](std::size_t replica) { return view_of(values[replica]).shape(); }), workers);
  const Shape& shape = shapes[0];
  for (std::size_t replica = 1; replica < shapes.size(); ++replica)
    if (shapes[replica] != shape)
      throw ShapeMismatch(
          concat("Replica ", replica, "'s value cannot be reduced with replica 0's"),
          concat("shapes ", to_string(shapes[replica]), " and ", to_string(shape)),
          "Return values of one shape from every replica, or reduce along the axis in which they differ");
  Tensor<T> reduced{shape};
  const OperandsOfMembers<const std::byte*> operands{
      values.size(), values.size(),
      [&](std::size_t replica) { return reinterpret_cast<const std::byte*>(view_of(values[replica]).data()); }};
  reduce_with_members(workers, Workers::template record<T, Op>(), operands, reduced.size(),
                      reinterpret_cast<std::byte*>(reduced.data()));
  return reduced;
}

/// True if any number of equal values combine to that value.
template <class Op>
inline constexpr bool is_idempotent = std::same_as<Op, Mean> || std::same_as<Op, Min> || std::same_as<Op, Max> ||
                                      std::same_as<Op, BitAnd> || std::same_as<Op, BitOr>;

/// Accepts a value that is the same on all replicas with one replica, or under a mean or maximum (spec C11, C12).
/// Throws InvalidArgument for a sum, which is ambiguous: the value, or multiplied by the number of replicas.
template <class Op, class Value>
void require_reducible_as_is(std::size_t replicas, const Value& value) {
  if constexpr (!is_idempotent<Op>) {
    if constexpr (std::equality_comparable_with<Value, int> && std::same_as<Op, Sum>)
      if (value == 0) return;
    if (replicas > 1)
      throw InvalidArgument(
          concat("reduce(", Op::name, ") was given a value that is not per-replica"),
          concat("with ", replicas,
                 " replicas the result could be the value, or the value multiplied by the number of replicas"),
          "Give it the result of run or values_from_function, or use broadcast_to first");
  }
}

/// `replicas` is the number of replicas for a value that is not per-replica.
template <class Op, class Value, class Workers>
[[nodiscard]] auto reduce_values(Op op, const Value& value, std::size_t replicas, const Workers& workers) {
  if constexpr (is_per_replica<Value>) {
    using Each = typename Value::Value;
    DIST_EXPECT(value.size() > 0);
    if constexpr (StandsForNumber<Each>) {
      const auto number = [&](std::size_t replica) { return value[replica].value(); };
      return reduce_values(op, PerReplica<typename Each::Reduced>(value.size(), number), replicas, workers);
    } else if constexpr (Reducible<Each>) {
      if constexpr (require_reduce_op<Op, Each>())
        return reduce_numbers(op, value, workers);
      else
        return refused<Each>();
    } else if constexpr (TensorLike<Each>) {
      if constexpr (require_reduce_op_of<Op, Each>())
        return in_form_of(value[0], reduce_tensors(op, value, workers));
      else
        return refused<Each>();
    } else if constexpr (is_indexed_slices<Each>) {
      return reduce_slices(op, value, workers);
    } else {
      constexpr bool has_parts = Aggregate<Each>;
      require_host_access<MemorySpaceOf<Each>>();
      static_assert(has_parts || is_on_device<Each>,
                    "reduce combines numbers, tensors, and structures of these: tuples, pairs, arrays, optionals and "
                    "plain structs; this per-replica value has another type");
      if constexpr (has_parts)
        return each_member_of(value, [&](const auto& member) { return reduce_values(op, member, replicas, workers); });
      else
        return refused<Each>();
    }
  } else if constexpr (StandsForNumber<Value>) {
    return reduce_values(op, value.value(), replicas, workers);
  } else if constexpr (holds_per_replica<Value> || (!CollectivesOfOne<Workers> && Structure<Value>)) {
    return map_structure(value, [&](const auto& member) { return reduce_values(op, member, replicas, workers); });
  } else if constexpr (!CollectivesOfOne<Workers> &&
                       (Reducible<Value> || TensorLike<Value> || is_indexed_slices<Value> || Aggregate<Value>)) {
    // Each process passes its own value (spec C13).
    return reduce_values(op, PerReplica<Value>(1, [&](std::size_t) -> const Value& { return value; }), replicas,
                         workers);
  } else {
    constexpr bool may_combine = [] {
      if constexpr (Reducible<Value>) return require_reduce_op<Op, Value>();
      return true;
    }();
    require_host_access<MemorySpaceOf<Value>>();
    if constexpr (may_combine) require_reducible_as_is<Op>(replicas, value);
    return Value(value);
  }
}

/// The number of elements along the chosen axes.
[[nodiscard]] inline std::size_t count_along(const Shape& shape, const Axes::Chosen& chosen) {
  std::size_t count = 1;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (chosen[axis]) count *= shape[axis];
  return count;
}

/// Reduces the tensors of `count` replicas along axes; `parts(i)` is the i-th.
template <class T, class Op, class Parts, class Workers>
[[nodiscard]] Tensor<T> reduce_tensors_along(Op op, std::size_t count, Parts&& parts, Axes axes,
                                             const Workers& workers) {
  std::string what = "reduce along axes";  // with the axes: workers with other axes make another call
  if constexpr (!CollectivesOfOne<Workers>) {
    try {
      const Axes::Chosen mine = axes.of(parts(0).shape());
      for (std::size_t axis = 0; axis < Shape::max_rank; ++axis)
        if (mine[axis]) what += concat(" ", axis);
    } catch (const InvalidArgument&) {  // below, all workers reject these axes for the shape of replica 0
    }
  }
  const PerReplica<Shape> shapes = shapes_of_all(
      what, PerReplica<Shape>(count, [&](std::size_t replica) { return parts(replica).shape(); }), workers);
  const Axes::Chosen chosen = axes.of(shapes[0]);
  const Shape reduced_shape = without_axes(shapes[0], chosen);
  std::size_t elements = 0;
  for (std::size_t replica = 0; replica < shapes.size(); ++replica) {
    if (shapes[replica].rank() != shapes[0].rank() || without_axes(shapes[replica], chosen) != reduced_shape)
      throw ShapeMismatch(concat("Replica ", replica, "'s value cannot be reduced with replica 0's along these axes"),
                          concat("shapes ", to_string(shapes[replica]), " and ", to_string(shapes[0])),
                          "Return values that differ in extent along the reduced axes only");
    elements += count_along(shapes[replica], chosen);
  }
  using Wide = AxesAccumulator<Op, T>;
  Tensor<Wide> combined{reduced_shape};
  for (Wide& element : combined.elements()) element = identity_of<Wide>(op);
  for (std::size_t replica = 0; replica < count; ++replica) {
    const TensorView<const T> part = parts(replica);
    reduce_axes(op, part, chosen, combined.view());
  }
  workers.all_reduce(Unfinished<Op>{}, combined.elements());
  Tensor<T> reduced{reduced_shape};
  for (std::size_t i = 0; i < reduced.size(); ++i) reduced[i] = static_cast<T>(Op::finish(combined[i], elements));
  return reduced;
}

/// `has_axes` is true if the value consists of tensors.
template <bool has_axes, class Value>
[[nodiscard]] constexpr bool require_axes() {
  require_host_access<MemorySpaceOf<Value>>();
  static_assert(
      has_axes || is_on_device<Value>,
      "reduce along an axis takes tensors, and structures of these; a number has no axis: leave the axis out");
  return has_axes;
}

template <class Op, class Value, class Workers>
[[nodiscard]] auto reduce_values_along(Op op, const Value& value, Axes axes, std::size_t replicas,
                                       const Workers& workers) {
  if constexpr (is_per_replica<Value>) {
    using Each = typename Value::Value;
    DIST_EXPECT(value.size() > 0);
    if constexpr (HasAxes<Each>) {
      if constexpr (require_reduce_op_of<Op, Each>())
        return reduce_tensors_along<ElementOf<Each>>(
            op, value.size(), [&](std::size_t replica) { return view_of(value[replica]); }, axes, workers);
      else
        return refused<Tensor<ElementOf<Each>>>();
    } else if constexpr (require_axes<Aggregate<Each>, Each>()) {
      return each_member_of(
          value, [&](const auto& member) { return reduce_values_along(op, member, axes, replicas, workers); });
    } else {
      return refused<Each>();
    }
  } else if constexpr (holds_per_replica<Value>) {
    return map_structure(value,
                         [&](const auto& member) { return reduce_values_along(op, member, axes, replicas, workers); });
  } else if constexpr (require_axes<HasAxes<Value>, Value>()) {
    if constexpr (require_reduce_op_of<Op, Value>()) {
      if constexpr (CollectivesOfOne<Workers>) require_reducible_as_is<Op>(replicas, value);
      return reduce_tensors_along<ElementOf<Value>>(
          op, 1, [&](std::size_t) { return view_of(value); }, axes, workers);
    } else {
      return refused<Tensor<ElementOf<Value>>>();
    }
  }
}

/// `has_axes` is true if the value consists of tensors.
template <bool has_axes, class Value>
[[nodiscard]] constexpr bool require_gatherable() {
  require_host_access<MemorySpaceOf<Value>>();
  static_assert(has_axes || is_on_device<Value>,
                "gather takes tensors, and structures of these; a number has no axis: return a tensor of shape [1]");
  return has_axes;
}

template <class Value, class Workers>
[[nodiscard]] auto gather_values(const Value& value, int axis, const Workers& workers) {
  if constexpr (is_per_replica<Value>) {
    using Each = typename Value::Value;
    DIST_EXPECT(value.size() > 0);
    if constexpr (HasAxes<Each>) {
      const PerReplica<Shape> shapes(value.size(), [&](std::size_t r) { return view_of(value[r]).shape(); });
      static_cast<void>(
          concatenated_shape("replica", shapes_of_all("gather of a tensor", shapes, workers).values(), axis));
      Tensor<ElementOf<Each>> whole{concatenated_shape("replica", shapes.values(), axis)};
      const std::size_t along = Axes::resolve(axis, whole.shape());
      std::size_t before = 0;
      for (std::size_t replica = 0; replica < value.size(); ++replica) {
        place_part(view_of(value[replica]), along, before, whole.view());
        before += shapes[replica][along];
      }
      if constexpr (CollectivesOfOne<Workers>)
        return whole;
      else
        return all_gather_tensors(workers, "worker", whole.view(), axis);
    } else if constexpr (require_gatherable<Aggregate<Each>, Each>()) {
      return each_member_of(value, [&](const auto& member) { return gather_values(member, axis, workers); });
    } else {
      return refused<Each>();
    }
  } else if constexpr (holds_per_replica<Value>) {
    return map_structure(value, [&](const auto& member) { return gather_values(member, axis, workers); });
  } else if constexpr (require_gatherable<HasAxes<Value>, Value>()) {
    const TensorView<const ElementOf<Value>> view = view_of(value);
    if constexpr (!CollectivesOfOne<Workers>) return all_gather_tensors(workers, "worker", view, axis);
    Tensor<ElementOf<Value>> copy{concatenated_shape("replica", {&view.shape(), 1}, axis)};
    std::copy_n(view.data(), view.size(), copy.data());
    return copy;
  }
}

}  // namespace dist::detail
