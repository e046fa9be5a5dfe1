/// What a variable can be written with: one number for all elements, or a tensor of the variable's shape and element
/// type.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/context/per_replica.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// A value that its writer knows to be the same on every replica; `same` makes one. Written in a replica function it is
/// taken as it is, without communication where every replica has a copy (spec G.4: a value that is not distributed).
template <class V>
struct Same {
  V value;
};

/// Marks `value`, which every replica gives alike: `steps.assign_add(replica, same(1))`. A tensor is referred to.
template <class V>
[[nodiscard]] constexpr auto same(const V& value) {
  if constexpr (Reducible<V>) {
    return Same<V>{value};
  } else {
    return Same<TensorView<const typename V::Element>>{value};
  }
}

namespace detail {

template <class V>
inline constexpr bool is_same_value = false;
template <class V>
inline constexpr bool is_same_value<Same<V>> = true;

template <class V>
concept HasShape = requires(const V& value) {
  value.shape();
};

/// A written number: the same for every element.
template <class T>
struct Uniform {
  T number;
  constexpr T operator[](std::size_t) const { return number; }
};

/// `number` as an element of the variable `name`. Kinds of numbers do not mix silently: a fraction is not cut off and a
/// bool is no number. An integer must be one that an integer type can hold, else InvalidArgument; a floating-point type
/// rounds.
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
    if (static_cast<V>(element) != number || (element < T{}) != (number < V{}))
      throw InvalidArgument(text("Variable '", name, "' cannot hold the value given"),
                            text(number, " is outside the range of ", dtype_name<T>),
                            "Give a value of the variable's range, or give the variable a wider type");
  }
  return element;
}

/// The value given to `variable`, to be indexed by element. Throws ShapeMismatch for a tensor of another shape.
template <class Variable, class Value>
[[nodiscard]] auto given_to(const Variable& variable, const Value& value) {
  using T = typename Variable::Element;
  if constexpr (is_same_value<Value>) {
    return given_to(variable, value.value);
  } else if constexpr (Reducible<Value>) {
    return Uniform<T>{to_element<T>(value, variable.name())};
  } else if constexpr (std::convertible_to<const Value&, TensorView<const T>>) {
    const TensorView<const T> values = value;
    if (values.shape() != variable.shape())
      throw ShapeMismatch(
          text("A value does not fit variable '", variable.name(), "'"),
          text("the value has shape ", to_string(values.shape()), ", the variable ", to_string(variable.shape())),
          "Give a value of the variable's shape, or one number for all elements");
    return values.elements();
  } else {
    static_assert(!is_per_replica<Value>,
                  "a variable is not written with a PerReplica: strategy.update hands each copy its own value, and run "
                  "hands each replica its own");
    static_assert(is_per_replica<Value> || HasShape<Value>,
                  "a variable is written with one number, a Tensor or a TensorView: make a TensorView of other arrays, "
                  "such as a std::vector, which do not say their shape");
    static_assert(is_per_replica<Value> || !HasShape<Value>,
                  "a variable is written with one number, or with a tensor of the variable's own element type: convert "
                  "the elements first");
    return Uniform<T>{};
  }
}

}  // namespace detail

}  // namespace dist
