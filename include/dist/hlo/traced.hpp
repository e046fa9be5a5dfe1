#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <dist/core/bfloat16.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/never.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/hlo/trace.hpp>

namespace dist::hlo {

namespace detail {

/// StableHLO's name of a number type: "f32", "i64", "ui8", "i1".
template <class T>
[[nodiscard]] std::string element_name() {
  if constexpr (std::same_as<T, bool>) return "i1";
  if constexpr (std::unsigned_integral<T>) return dist::text("ui", 8 * sizeof(T));
  return std::string{dtype_name<T>};
}

/// A number as StableHLO reads it back without a change.
template <class T>
[[nodiscard]] std::string literal(T value) {
  if constexpr (std::same_as<T, bool>) return value ? "true" : "false";
  if constexpr (Floating<T>) {
    const double number =
        static_cast<double>(static_cast<std::conditional_t<std::same_as<T, double>, double, float>>(value));
    char digits[40];
    if (std::isfinite(number)) {
      std::snprintf(digits, sizeof digits, "%.17e", number);
    } else {
      using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                      std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
      std::snprintf(digits, sizeof digits, "0x%0*llX", static_cast<int>(2 * sizeof(T)),
                    static_cast<unsigned long long>(std::bit_cast<Bits>(value)));
    }
    return digits;
  } else {
    return dist::text(value);
  }
}

}  // namespace detail

/// An array of a program that is traced, known when the program runs: what the host's code does with it, the program does
/// later. Type and shape are known when C++ compiles; `Traced<float>` is one number. Operators and functions work element
/// by element, as on a number, so that code that is a template over its number type is traced without a change. Numbers of
/// the host are constants of the program.
template <class T, std::size_t... Extents>
class Traced {
 public:
  using Element = T;
  static constexpr std::size_t rank = sizeof...(Extents);
  static constexpr std::size_t elements = (std::size_t{1} * ... * Extents);
  static constexpr std::array<std::size_t, rank> extents{Extents...};
  /// Of other elements, in the same shape.
  template <class Other>
  using With = Traced<Other, Extents...>;

  static_assert(rank <= Shape::max_rank, "a traced array has more axes than a dist::Shape holds");

  /// The result of an operation of this type.
  explicit Traced(Value value) noexcept : value_(value) {}
  /// A constant. Throws InvalidArgument where no program is traced.
  Traced(T constant)
      : value_(
            Trace::current().add(dist::text("stablehlo.constant dense<", detail::literal(constant), "> : ", type()))) {}
  /// The same from a number of another type.
  template <class Number>
    requires(std::floating_point<Number> && !std::same_as<Number, T>)
  explicit Traced(Number constant) : Traced(static_cast<T>(constant)) {}
  /// A traced number for each element.
  template <std::same_as<Traced<T>> Number>
    requires(rank != 0)
  Traced(Number number)
      : value_(Trace::current().add(dist::text("stablehlo.broadcast_in_dim ", number.name(), ", dims = [] : (",
                                               Traced<T>::type(), ") -> ", type()))) {}

  /// There is no such value yet.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  explicit operator Number() const {
    static_assert(::dist::detail::never<Number>,
                  "a traced value is known only when the program runs: use hlo::select instead of if, and hlo::loop "
                  "instead of for and while");
    return Number{};
  }

  [[nodiscard]] Value value() const noexcept { return value_; }
  /// How operations of the program that is traced name it. Throws InvalidArgument for one of another program.
  [[nodiscard]] std::string name() const { return Trace::current().name(value_); }
  /// StableHLO's name of the type: "tensor<64x10xf32>".
  [[nodiscard]] static std::string type() {
    std::string name = "tensor<";
    for (const std::size_t extent : extents) name += dist::text(extent, "x");
    return name + detail::element_name<T>() + ">";
  }
  [[nodiscard]] static constexpr Shape shape() { return Shape{Extents...}; }

  [[nodiscard]] friend Traced operator+(Traced a, Traced b) { return elementwise("add", a, b); }
  [[nodiscard]] friend Traced operator-(Traced a, Traced b) { return elementwise("subtract", a, b); }
  [[nodiscard]] friend Traced operator*(Traced a, Traced b) { return elementwise("multiply", a, b); }
  [[nodiscard]] friend Traced operator/(Traced a, Traced b) { return elementwise("divide", a, b); }
  [[nodiscard]] friend Traced operator-(Traced a) { return elementwise("negate", a); }
  Traced& operator+=(Traced other) { return *this = *this + other; }
  Traced& operator-=(Traced other) { return *this = *this - other; }
  Traced& operator*=(Traced other) { return *this = *this * other; }
  Traced& operator/=(Traced other) { return *this = *this / other; }

  /// The remainder, with the sign of `a`.
  [[nodiscard]] friend Traced operator%(Traced a, Traced b) { return elementwise("remainder", a, b); }
  [[nodiscard]] friend Traced operator&(Traced a, Traced b) { return bitwise("and", a, b); }
  [[nodiscard]] friend Traced operator|(Traced a, Traced b) { return bitwise("or", a, b); }
  [[nodiscard]] friend Traced operator^(Traced a, Traced b) { return bitwise("xor", a, b); }
  [[nodiscard]] friend Traced operator<<(Traced a, Traced b) { return bitwise("shift_left", a, b); }
  [[nodiscard]] friend Traced operator>>(Traced a, Traced b) {
    return bitwise(std::signed_integral<T> ? "shift_right_arithmetic" : "shift_right_logical", a, b);
  }
  [[nodiscard]] friend Traced operator!(Traced a) requires std::same_as<T, bool> { return elementwise("not", a); }

  [[nodiscard]] friend With<bool> operator==(Traced a, Traced b) { return compared("EQ", a, b); }
  [[nodiscard]] friend With<bool> operator!=(Traced a, Traced b) { return compared("NE", a, b); }
  [[nodiscard]] friend With<bool> operator<(Traced a, Traced b) { return compared("LT", a, b); }
  [[nodiscard]] friend With<bool> operator<=(Traced a, Traced b) { return compared("LE", a, b); }
  [[nodiscard]] friend With<bool> operator>(Traced a, Traced b) { return compared("GT", a, b); }
  [[nodiscard]] friend With<bool> operator>=(Traced a, Traced b) { return compared("GE", a, b); }

  [[nodiscard]] friend Traced pow(Traced a, Traced b) { return elementwise("power", a, b); }
  [[nodiscard]] friend Traced abs(Traced a) { return elementwise("abs", a); }
  [[nodiscard]] friend Traced exp(Traced a) { return function("exponential", a); }
  [[nodiscard]] friend Traced expm1(Traced a) { return function("exponential_minus_one", a); }
  [[nodiscard]] friend Traced log(Traced a) { return function("log", a); }
  [[nodiscard]] friend Traced log1p(Traced a) { return function("log_plus_one", a); }
  [[nodiscard]] friend Traced sqrt(Traced a) { return function("sqrt", a); }
  /// 1 / sqrt(a).
  [[nodiscard]] friend Traced rsqrt(Traced a) { return function("rsqrt", a); }
  [[nodiscard]] friend Traced sin(Traced a) { return function("sine", a); }
  [[nodiscard]] friend Traced cos(Traced a) { return function("cosine", a); }
  [[nodiscard]] friend Traced tanh(Traced a) { return function("tanh", a); }
  /// 1 / (1 + exp(-a)).
  [[nodiscard]] friend Traced logistic(Traced a) { return function("logistic", a); }
  [[nodiscard]] friend Traced floor(Traced a) { return function("floor", a); }

  /// The same numbers as another type; what is no whole number is cut for an integer type.
  template <class Other>
  [[nodiscard]] With<Other> as() const {
    return With<Other>{
        Trace::current().add(dist::text("stablehlo.convert ", name(), " : (", type(), ") -> ", With<Other>::type()))};
  }

 private:
  static Traced elementwise(std::string_view operation, Traced a) {
    return Traced{Trace::current().add(dist::text("stablehlo.", operation, " ", a.name(), " : ", type()))};
  }
  static Traced elementwise(std::string_view operation, Traced a, Traced b) {
    return Traced{
        Trace::current().add(dist::text("stablehlo.", operation, " ", a.name(), ", ", b.name(), " : ", type()))};
  }
  static Traced function(std::string_view operation, Traced a) {
    static_assert(Floating<T>, "this function of a traced value needs floating-point elements: use x.as<float>()");
    return elementwise(operation, a);
  }
  static Traced bitwise(std::string_view operation, Traced a, Traced b) {
    static_assert(std::integral<T>, "operators on bits of a traced value need integer or bool elements");
    return elementwise(operation, a, b);
  }
  static With<bool> compared(std::string_view direction, Traced a, Traced b) {
    return With<bool>{Trace::current().add(dist::text("stablehlo.compare ", direction, ", ", a.name(), ", ", b.name(),
                                                      " : (", type(), ", ", type(), ") -> ", With<bool>::type()))};
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

/// The greater element of two; NaN where one of them is.
template <TracedArray A>
[[nodiscard]] A max(A a, std::type_identity_t<A> b) {
  return A{Trace::current().add(dist::text("stablehlo.maximum ", a.name(), ", ", b.name(), " : ", A::type()))};
}
/// The lesser element of two; NaN where one of them is.
template <TracedArray A>
[[nodiscard]] A min(A a, std::type_identity_t<A> b) {
  return A{Trace::current().add(dist::text("stablehlo.minimum ", a.name(), ", ", b.name(), " : ", A::type()))};
}
/// `a` where `condition` holds, and `b` elsewhere.
template <TracedArray A>
[[nodiscard]] A select(typename A::template With<bool> condition, A a, std::type_identity_t<A> b) {
  return A{Trace::current().add(dist::text("stablehlo.select ", condition.name(), ", ", a.name(), ", ", b.name(), " : ",
                                           condition.type(), ", ", A::type()))};
}

namespace detail {

/// Values as operations list them, "%1, %2", and their types.
struct Listed {
  std::string names, types;
};
template <TracedArray... Arrays>
[[nodiscard]] Listed listed(const std::tuple<Arrays...>& values) {
  Listed all;
  const auto add = [](std::string& list, std::string_view one) { list += dist::text(list.empty() ? "" : ", ", one); };
  std::apply([&](const Arrays&... each) { ((add(all.names, each.name()), add(all.types, each.type())), ...); }, values);
  return all;
}

}  // namespace detail

}  // namespace dist::hlo
