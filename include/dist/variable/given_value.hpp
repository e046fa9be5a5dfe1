/// Values that can be written to a variable: a number for all elements, or one number per element in a tensor of the
/// variable's shape or a contiguous range.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/context/operand.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/variable_core.hpp>

namespace dist {

namespace detail {

/// A range of numbers of type `T`, or an object that consists of them, such as a std::array.
template <class V, class T>
concept NumbersFor = (NumberRange<V> || NumbersValue<V>)&&std::same_as<typename OperandNumbers<V>::Type, T>;

/// Returns the numbers of `values` for variable `name`. Throws ShapeMismatch unless their count matches `shape`, and
/// also their extents if the range has several axes.
template <class V>
[[nodiscard]] auto numbers_for(std::string_view name, const Shape& shape, const V& values) {
  const std::span numbers = numbers_in(values);
  Shape given{numbers.size()};
  if constexpr (NumberRange<V>) given = shape_of_range(values);
  if (numbers.size() != shape.elements() || (given.rank() > 1 && given != shape))
    refuse_shape(name, shape, given,
                 "Give as many numbers as the variable has elements, or one number for all elements");
  return numbers;
}

}  // namespace detail

/// A value that is the same on all replicas, made by `same`. Writes in a replica function use it as is, without
/// communication if every replica has a copy (spec G.4).
template <class V>
struct Same {
  /// The value that every replica writes.
  V value;
};

/// Marks `value` as the same on all replicas: `steps.assign_add(replica, same(1))`. Refers to tensors and ranges
/// without a copy.
template <class V>
[[nodiscard]] constexpr auto same(const V& value) {
  if constexpr (Reducible<V>) {
    return Same<V>{value};
  } else if constexpr (detail::is_on_device<V>) {
    detail::require_host_access<detail::MemorySpaceOf<V>>();
    return Same<V>{value};
  } else if constexpr (NumberRange<V> && !detail::HasShape<V>) {
    return Same<std::span<const detail::ElementIn<V>>>{detail::numbers_in(value)};
  } else {
    return Same<TensorView<const typename V::Element>>{value};
  }
}

namespace detail {

template <class V>
inline constexpr bool is_same_value = is_specialization<V, Same>;

/// Rejects a value that is the same on all replicas if the write would sum it, with a readable compile error.
template <bool is_summed>
constexpr void require_same_is_not_summed() {
  static_assert(
      !is_summed,
      "a value that is the same on every replica cannot be summed: write each replica's own value, or give the "
      "variable another aggregation");
}

/// A written number, the same for all elements.
template <class T>
struct Uniform {
  T number;
  DIST_HD constexpr T operator[](std::size_t) const { return number; }
};

/// Converts `number` to an element of the variable `name`. Compile error for conversions between bool and numbers, and
/// from floating-point to integer types. Throws InvalidArgument if an integer is out of range; floating-point types
/// round.
template <class T, Reducible V>
[[nodiscard]] constexpr T to_element(V number, [[maybe_unused]] std::string_view name) {
  constexpr bool both_bool = std::same_as<T, bool> && std::same_as<V, bool>;
  constexpr bool one_bool = !both_bool && (std::same_as<T, bool> || std::same_as<V, bool>);
  constexpr bool cuts_fraction = std::integral<T> && !std::integral<V>;
  static_assert(!one_bool, "a bool is not a number: write a bool variable with a bool, and a number with a number");
  static_assert(
      one_bool || !cuts_fraction,
      "a variable of an integer type does not take a floating-point number, whose fraction would be lost: round "
      "it to an integer first, or give the variable a floating-point type");
  const T element = static_cast<T>(number);
  if constexpr (std::integral<T> && std::integral<V>) {
    bool sign_is_lost = false;
    if constexpr (std::is_signed_v<T> && !std::is_signed_v<V>) sign_is_lost = element < 0;
    if constexpr (std::is_signed_v<V> && !std::is_signed_v<T>) sign_is_lost = number < 0;
    if (static_cast<V>(element) != number || sign_is_lost)
      throw InvalidArgument(concat("Variable '", name, "' cannot hold the value given"),
                            concat(number, " is outside the range of ", dtype_name<T>),
                            "Give a value in the variable's range, or give the variable a wider type");
  }
  return element;
}

/// A view of elements in the memory of the variable's device.
template <class V, class Variable>
concept ViewFor = std::convertible_to<const V&, typename Variable::View>;

template <class Variable>
void require_shape(const Variable& variable, const Shape& given) {
  if (given != variable.shape())
    refuse_shape(variable.name(), variable.shape(), given,
                 "Give a value of the variable's shape, or one number for all elements");
}

/// Throws ShapeMismatch unless the variable has exactly one element.
template <class Variable>
void require_one_element(const Variable& variable) {
  if (variable.size() != 1) refuse_single_value(variable.name(), variable.shape());
}

/// Converts the value given to `variable`, for indexing by element. Throws ShapeMismatch if a tensor has another shape.
template <class Variable, class Value>
[[nodiscard]] auto given_to(const Variable& variable, const Value& value) {
  using T = typename Variable::Element;
  if constexpr (is_same_value<Value>) {
    return given_to(variable, value.value);
  } else if constexpr (Reducible<Value>) {
    return Uniform<T>{to_element<T>(value, variable.name())};
  } else if constexpr (std::convertible_to<const Value&, TensorView<const T>>) {
    const TensorView<const T> values = value;
    require_shape(variable, values.shape());
    return values.elements();
  } else if constexpr (ViewFor<Value, Variable>) {
    const typename Variable::View values = value;
    require_shape(variable, values.shape());
    return values.elements();
  } else if constexpr (NumbersFor<Value, T>) {
    return numbers_for(variable.name(), variable.shape(), value);
  } else {
    require_host_access<MemorySpaceOf<Value>>();
    static_assert(!is_per_replica<Value>,
                  "a variable is not written with a PerReplica: strategy.update gives each copy its own value, and run "
                  "gives each replica its own");
    constexpr bool is_refused = is_per_replica<Value> || is_on_device<Value>;
    constexpr bool has_numbers = HasShape<Value> || NumberRange<Value> || NumbersValue<Value>;
    static_assert(is_refused || has_numbers,
                  "a variable is written with one number, a tensor, or a contiguous range of numbers, such as a "
                  "std::vector");
    static_assert(is_refused || !has_numbers,
                  "a variable is written with one number, or with numbers of the variable's own element type: convert "
                  "the elements first");
    return Uniform<T>{};
  }
}

}  // namespace detail

}  // namespace dist
