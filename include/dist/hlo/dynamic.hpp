#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/hlo/traced.hpp>
#include <dist/hlo/untyped.hpp>

namespace dist::hlo {

/// An array of a program whose shape is known while tracing, not at compile time, such as a part of the user's batch.
/// `x.as<hlo::batch, 10>()` is the traced array. Operators and functions work element by element on arrays of one
/// shape, or on an array and a number.
template <class T>
class Dynamic {
 public:
  /// The type of the elements.
  using Element = T;
  /// A Dynamic of another element type.
  template <class Other>
  using With = Dynamic<Other>;

  /// Wraps a value of this element type.
  explicit Dynamic(Value value) noexcept : value_(value) {}
  /// A constant. Throws InvalidArgument outside of a trace.
  Dynamic(T constant) : value_(untyped::constant({element_kind<T>, Shape{}}, literal(constant))) {}
  /// A constant, converted from another type.
  template <class Number>
    requires(std::floating_point<Number> && !std::same_as<Number, T>)
  explicit Dynamic(Number constant) : Dynamic(static_cast<T>(constant)) {}
  /// An array whose shape is known at compile time.
  template <std::size_t... Extents>
  Dynamic(Traced<T, Extents...> array) noexcept : value_(array.value()) {}

  /// The array as a value of its trace.
  [[nodiscard]] Value value() const noexcept { return value_; }
  /// Throws InvalidArgument if the array belongs to another program.
  [[nodiscard]] Shape shape() const { return Trace::current().type(value_).shape; }

  /// Returns the array with static extents; hlo::batch is the number of rows. Throws ShapeMismatch if its shape
  /// differs.
  template <std::size_t... Extents>
  [[nodiscard]] Traced<T, Extents...> as() const {
    require_shape(Traced<T, Extents...>::type().shape);
    return Traced<T, Extents...>{value_};
  }
  /// Converts the elements; conversion to integers truncates.
  template <class Other>
  [[nodiscard]] Dynamic<Other> as() const {
    return Dynamic<Other>{untyped::convert(value_, element_kind<Other>)};
  }

  /// The sum of all elements.
  [[nodiscard]] Dynamic sum() const {
    return Dynamic{
        untyped::reduce("add", value_, literal(T{}), untyped::axes_in_order(untyped::type_of(value_).shape.rank()))};
  }

  // Binary operations throw ShapeMismatch if the shapes differ and neither operand is a number.
  [[nodiscard]] friend Dynamic operator+(Dynamic a, Dynamic b) { return combined(untyped::add, a, b); }
  [[nodiscard]] friend Dynamic operator-(Dynamic a, Dynamic b) { return combined(untyped::subtract, a, b); }
  [[nodiscard]] friend Dynamic operator*(Dynamic a, Dynamic b) { return combined(untyped::multiply, a, b); }
  [[nodiscard]] friend Dynamic operator/(Dynamic a, Dynamic b) { return combined(untyped::divide, a, b); }
  [[nodiscard]] friend Dynamic operator-(Dynamic a) { return Dynamic{untyped::negate(a.value_)}; }
  /// Replaces this array by the sum.
  Dynamic& operator+=(Dynamic other) { return *this = *this + other; }
  /// Replaces this array by the difference.
  Dynamic& operator-=(Dynamic other) { return *this = *this - other; }
  /// Replaces this array by the product.
  Dynamic& operator*=(Dynamic other) { return *this = *this * other; }
  /// Replaces this array by the quotient.
  Dynamic& operator/=(Dynamic other) { return *this = *this / other; }

  [[nodiscard]] friend Dynamic<bool> operator==(Dynamic a, Dynamic b) { return compared("EQ", a, b); }
  [[nodiscard]] friend Dynamic<bool> operator!=(Dynamic a, Dynamic b) { return compared("NE", a, b); }
  [[nodiscard]] friend Dynamic<bool> operator<(Dynamic a, Dynamic b) { return compared("LT", a, b); }
  [[nodiscard]] friend Dynamic<bool> operator<=(Dynamic a, Dynamic b) { return compared("LE", a, b); }
  [[nodiscard]] friend Dynamic<bool> operator>(Dynamic a, Dynamic b) { return compared("GT", a, b); }
  [[nodiscard]] friend Dynamic<bool> operator>=(Dynamic a, Dynamic b) { return compared("GE", a, b); }
  [[nodiscard]] friend Dynamic operator&(Dynamic a, Dynamic b) requires std::integral<T> {
    return combined([](Value x, Value y) { return untyped::bitwise("and", x, y); }, a, b);
  }

  [[nodiscard]] friend Dynamic abs(Dynamic a) { return Dynamic{untyped::abs(a.value_)}; }
  [[nodiscard]] friend Dynamic sqrt(Dynamic a) requires Floating<T> { return Dynamic{untyped::sqrt(a.value_)}; }
  /// 1 / sqrt(a).
  [[nodiscard]] friend Dynamic rsqrt(Dynamic a) requires Floating<T> { return Dynamic{untyped::rsqrt(a.value_)}; }
  /// Maximum and minimum, element by element; NaN if either element is NaN.
  [[nodiscard]] friend Dynamic max(Dynamic a, Dynamic b) { return combined(untyped::maximum, a, b); }
  [[nodiscard]] friend Dynamic min(Dynamic a, Dynamic b) { return combined(untyped::minimum, a, b); }
  /// `a` if `condition` is true, otherwise `b`, element by element.
  [[nodiscard]] friend Dynamic select(Dynamic<bool> condition, Dynamic a, Dynamic b) {
    const Shape shape = common(common(condition.shape(), a.shape()), b.shape());
    return Dynamic{untyped::select(spread(condition.value(), shape), spread(a.value_, shape), spread(b.value_, shape))};
  }

 private:
  void require_shape(const Shape& wanted) const {
    if (shape() == wanted) return;
    throw ShapeMismatch("An array of a program has the wrong shape", concat("it is ", shape(), ", not ", wanted),
                        "Give the program arrays of the shape that its step expects");
  }

  template <class Operation>
  static Dynamic combined(const Operation& operation, Dynamic a, Dynamic b) {
    const Shape shape = common(a.shape(), b.shape());
    return Dynamic{operation(spread(a.value_, shape), spread(b.value_, shape))};
  }
  static Dynamic<bool> compared(std::string_view direction, Dynamic a, Dynamic b) {
    const Shape shape = common(a.shape(), b.shape());
    return Dynamic<bool>{untyped::compare(direction, spread(a.value_, shape), spread(b.value_, shape))};
  }
  static Shape common(const Shape& a, const Shape& b) {
    if (a == b || b.rank() == 0) return a;
    if (a.rank() == 0) return b;
    throw ShapeMismatch("Arrays of a program do not fit together", concat("one is ", a, ", the other ", b),
                        "Compute with arrays of one shape, or with an array and one number");
  }
  static Value spread(Value x, const Shape& shape) {
    return untyped::type_of(x).shape == shape ? x : untyped::broadcast(x, shape, {});
  }

  Value value_;
};

}  // namespace dist::hlo
