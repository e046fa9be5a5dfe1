#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/hlo/untyped.hpp>

namespace dist::hlo {

/// An array of a program that is being traced: host code records operations, and the program executes them later.
/// Type and shape are compile-time constants, except the number of rows, the extent hlo::batch; `Traced<float>` is a
/// single number. Operators and functions work element by element, like on a number, so templates over a number type
/// can be traced unchanged. Host numbers become constants.
template <class T, std::size_t... Extents>
class Traced {
 public:
  /// The type of the elements.
  using Element = T;
  /// The number of axes.
  static constexpr std::size_t rank = sizeof...(Extents);
  /// The extent of each axis; hlo::batch for the rows of a batch.
  static constexpr std::array<std::size_t, rank> extents{Extents...};
  /// The number of hlo::batch extents.
  static constexpr std::size_t batch_axes = (std::size_t{0} + ... + (Extents == batch ? 1 : 0));
  /// Per row of the batch, if there is one.
  static constexpr std::size_t elements = (std::size_t{1} * ... * (Extents == batch ? 1 : Extents));
  /// A Traced of another element type and the same shape.
  template <class Other>
  using With = Traced<Other, Extents...>;

  static_assert(rank <= Shape::max_rank, "a traced array has more axes than dist::Shape supports");

  /// Wraps a value of this type.
  explicit Traced(Value value) noexcept : value_(value) {}
  /// A constant. Throws InvalidArgument outside of a trace.
  Traced(T constant) : value_(untyped::constant(type(), literal(constant))) {}
  /// A constant, converted from another type.
  template <class Number>
    requires(std::floating_point<Number> && !std::same_as<Number, T>)
  explicit Traced(Number constant) : Traced(static_cast<T>(constant)) {}
  /// Broadcasts a traced number to all elements.
  template <std::same_as<Traced<T>> Number>
    requires(rank != 0)
  Traced(Number number) : value_(untyped::broadcast(number.value(), type().shape, {})) {}

  /// Fails to compile: the value does not exist yet.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  explicit operator Number() const {
    static_assert(::dist::detail::always_false<Number>,
                  "a traced value is known only when the program runs: use hlo::select instead of if, and hlo::loop "
                  "instead of for and while");
    return Number{};
  }

  /// The array as a value of its trace, for functions that record operations.
  [[nodiscard]] Value value() const noexcept { return value_; }
  /// The type in the traced program. Throws InvalidArgument if the array has a batch axis but the program has no
  /// batches.
  [[nodiscard]] static Type type() {
    if constexpr (batch_axes == 0) {
      return {element_kind<T>, shape()};
    } else {
      std::array<std::size_t, rank> known = extents;
      for (std::size_t& extent : known)
        if (extent == batch) extent = Trace::current().batch();
      return {element_kind<T>, Shape{std::span<const std::size_t>{known}}};
    }
  }
  /// The extents, for arrays without a batch axis.
  [[nodiscard]] static constexpr Shape shape() {
    static_assert(batch_axes == 0, "the shape of an array of a batch is known when the program is traced: use type()");
    return Shape{Extents...};
  }

  [[nodiscard]] friend Traced operator+(Traced a, Traced b) { return Traced{untyped::add(a.value_, b.value_)}; }
  [[nodiscard]] friend Traced operator-(Traced a, Traced b) { return Traced{untyped::subtract(a.value_, b.value_)}; }
  [[nodiscard]] friend Traced operator*(Traced a, Traced b) { return Traced{untyped::multiply(a.value_, b.value_)}; }
  [[nodiscard]] friend Traced operator/(Traced a, Traced b) { return Traced{untyped::divide(a.value_, b.value_)}; }
  [[nodiscard]] friend Traced operator-(Traced a) { return Traced{untyped::negate(a.value_)}; }
  /// Replaces this array by the sum.
  Traced& operator+=(Traced other) { return *this = *this + other; }
  /// Replaces this array by the difference.
  Traced& operator-=(Traced other) { return *this = *this - other; }
  /// Replaces this array by the product.
  Traced& operator*=(Traced other) { return *this = *this * other; }
  /// Replaces this array by the quotient.
  Traced& operator/=(Traced other) { return *this = *this / other; }

  /// The remainder, with the sign of `a`.
  [[nodiscard]] friend Traced operator%(Traced a, Traced b) { return Traced{untyped::remainder(a.value_, b.value_)}; }
  [[nodiscard]] friend Traced operator&(Traced a, Traced b) { return bitwise("and", a, b); }
  [[nodiscard]] friend Traced operator|(Traced a, Traced b) { return bitwise("or", a, b); }
  [[nodiscard]] friend Traced operator^(Traced a, Traced b) { return bitwise("xor", a, b); }
  [[nodiscard]] friend Traced operator<<(Traced a, Traced b) { return bitwise("shift_left", a, b); }
  [[nodiscard]] friend Traced operator>>(Traced a, Traced b) {
    return bitwise(std::signed_integral<T> ? "shift_right_arithmetic" : "shift_right_logical", a, b);
  }
  [[nodiscard]] friend Traced operator!(Traced a) requires std::same_as<T, bool> {
    return Traced{untyped::logical_not(a.value_)};
  }

  [[nodiscard]] friend With<bool> operator==(Traced a, Traced b) { return compared("EQ", a, b); }
  [[nodiscard]] friend With<bool> operator!=(Traced a, Traced b) { return compared("NE", a, b); }
  [[nodiscard]] friend With<bool> operator<(Traced a, Traced b) { return compared("LT", a, b); }
  [[nodiscard]] friend With<bool> operator<=(Traced a, Traced b) { return compared("LE", a, b); }
  [[nodiscard]] friend With<bool> operator>(Traced a, Traced b) { return compared("GT", a, b); }
  [[nodiscard]] friend With<bool> operator>=(Traced a, Traced b) { return compared("GE", a, b); }

  [[nodiscard]] friend Traced pow(Traced a, Traced b) { return Traced{untyped::power(a.value_, b.value_)}; }
  [[nodiscard]] friend Traced abs(Traced a) { return Traced{untyped::abs(a.value_)}; }
  [[nodiscard]] friend Traced exp(Traced a) { return function(untyped::exp, a); }
  [[nodiscard]] friend Traced expm1(Traced a) { return function(untyped::expm1, a); }
  [[nodiscard]] friend Traced log(Traced a) { return function(untyped::log, a); }
  [[nodiscard]] friend Traced log1p(Traced a) { return function(untyped::log1p, a); }
  [[nodiscard]] friend Traced sqrt(Traced a) { return function(untyped::sqrt, a); }
  /// 1 / sqrt(a).
  [[nodiscard]] friend Traced rsqrt(Traced a) { return function(untyped::rsqrt, a); }
  [[nodiscard]] friend Traced sin(Traced a) { return function(untyped::sin, a); }
  [[nodiscard]] friend Traced cos(Traced a) { return function(untyped::cos, a); }
  [[nodiscard]] friend Traced tanh(Traced a) { return function(untyped::tanh, a); }
  /// 1 / (1 + exp(-a)).
  [[nodiscard]] friend Traced logistic(Traced a) { return function(untyped::logistic, a); }
  [[nodiscard]] friend Traced erf(Traced a) { return function(untyped::erf, a); }
  [[nodiscard]] friend Traced floor(Traced a) { return function(untyped::floor, a); }

  /// Converts the elements; conversion to integers truncates.
  template <class Other>
  [[nodiscard]] With<Other> as() const {
    return With<Other>{untyped::convert(value_, element_kind<Other>)};
  }

 private:
  static Traced function(Value (*operation)(Value), Traced a) {
    static_assert(Floating<T>, "this function of a traced value needs floating-point elements: use x.as<float>()");
    return Traced{operation(a.value_)};
  }
  static Traced bitwise(std::string_view operation, Traced a, Traced b) {
    static_assert(std::integral<T>, "operators on bits of a traced value need integer or bool elements");
    return Traced{untyped::bitwise(operation, a.value_, b.value_)};
  }
  static With<bool> compared(std::string_view direction, Traced a, Traced b) {
    return With<bool>{untyped::compare(direction, a.value_, b.value_)};
  }

  Value value_;
};

namespace detail {
template <class T>
inline constexpr bool is_traced = false;
template <class T, std::size_t... Extents>
inline constexpr bool is_traced<Traced<T, Extents...>> = true;
}  // namespace detail

/// A type of traced values.
template <class T>
concept TracedArray = detail::is_traced<T>;

/// Maximum, element by element; NaN if either element is NaN.
template <TracedArray A>
[[nodiscard]] A max(A a, std::type_identity_t<A> b) {
  return A{untyped::maximum(a.value(), b.value())};
}
/// Minimum, element by element; NaN if either element is NaN.
template <TracedArray A>
[[nodiscard]] A min(A a, std::type_identity_t<A> b) {
  return A{untyped::minimum(a.value(), b.value())};
}
/// Rounds each element to the nearest value of Half, BFloat16 or Float16, ties to even, in the type of `a`; overflow
/// becomes infinity. Unlike a conversion to Half and back, XLA never optimises it away. The gradient passes
/// unchanged.
template <class Half, TracedArray A>
[[nodiscard]] A rounded(A a) {
  static_assert(std::same_as<Half, BFloat16> || std::same_as<Half, Float16>,
                "hlo::rounded rounds to dist::BFloat16 or dist::Float16");
  static_assert(std::floating_point<typename A::Element>, "hlo::rounded takes elements of float or double");
  return A{untyped::rounded(a.value(), element_kind<Half>)};
}
/// `a` if `condition` is true, otherwise `b`, element by element.
template <TracedArray A>
[[nodiscard]] A select(typename A::template With<bool> condition, A a, std::type_identity_t<A> b) {
  return A{untyped::select(condition.value(), a.value(), b.value())};
}

namespace detail {

template <TracedArray... Arrays>
[[nodiscard]] std::vector<Value> values_of(const std::tuple<Arrays...>& arrays) {
  return std::apply([](const Arrays&... each) { return std::vector<Value>{each.value()...}; }, arrays);
}
/// Converts values to a std::tuple of arrays.
template <class Arrays>
[[nodiscard]] Arrays arrays_of(std::span<const Value> values) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Arrays{std::tuple_element_t<I, Arrays>{values[I]}...};
  }
  (std::make_index_sequence<std::tuple_size_v<Arrays>>{});
}

}  // namespace detail

}  // namespace dist::hlo
