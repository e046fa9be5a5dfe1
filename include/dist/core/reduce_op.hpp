/// Reduction operations. An operation is an empty type with a `name` for messages, an `identity`, a call operator that
/// combines two values, and `finish`, which receives the combined value and the number of values, and must return a
/// single value unchanged. Custom operations are used like Sum. The call operator must be associative up to rounding;
/// values are combined in rank order. For example, the value of largest magnitude:
///
///   struct LargestMagnitude {
///     static constexpr std::string_view name = "largest_magnitude";  // unique: it identifies the operation
///     template <dist::Reducible T> static constexpr T identity = T{0};
///     template <dist::Reducible T> constexpr T operator()(T a, T b) const { return b * b > a * a ? b : a; }
///     template <dist::Reducible T> static constexpr T finish(T combined, std::size_t) { return combined; }
///   };
///   const float gradient = replica.all_reduce(LargestMagnitude{}, mine);
///
/// `reduction` makes an operation from a binary function: `reduction(std::multiplies<>{}, 1)`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// The floating-point element types: f16, bf16, f32, f64.
template <class T>
concept Floating =
    std::same_as<T, Float16> || std::same_as<T, BFloat16> || std::same_as<T, float> || std::same_as<T, double>;

/// An element type that reductions support: a trivially copyable number.
template <class T>
concept Reducible = std::is_arithmetic_v<T> || Floating<T>;

/// The type in which values of type `T` are combined, so that a long reduction rounds once: float for 16-bit
/// floating-point types, otherwise `T`.
template <class T>
using Accumulator = std::conditional_t<std::same_as<T, Float16> || std::same_as<T, BFloat16>, float, T>;

namespace detail {

/// A reducible type that can be added: all except bool, whose sum would saturate silently.
template <class T>
concept Number = Reducible<T> && !std::same_as<T, bool>;

/// The type in which numbers of type `T` are added and multiplied: unsigned for integers, so that they wrap around, as
/// signed overflow is undefined.
template <class T>
struct ArithmeticOf {
  using Type = T;
};
template <std::integral T>
struct ArithmeticOf<T> {
  using Type = std::make_unsigned_t<decltype(T{} + T{})>;
};
template <class T>
using Arithmetic = typename ArithmeticOf<T>::Type;

/// The NaN that Min and Max return. A variable, because device code cannot call functions of the standard library.
template <std::floating_point T>
inline constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();

/// Computes Min and Max: NaN if `a` or `b` is NaN; otherwise `one` or `other`, the results of comparing `a` with `b`
/// and `b` with `a`. These differ only for -0 and +0, whose bits `merge` combines. The NaN is always the same, so the
/// result does not depend on the order of values. Branch-free, so that loops vectorise.
template <std::floating_point T, class Merge>
DIST_HD DIST_ALWAYS_INLINE constexpr T extremum(T a, T b, T one, T other, Merge merge) {
  T number = one;
  if constexpr (sizeof(T) <= 8) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    number = bits_as<T>(merge(bits_as<Bits>(one), bits_as<Bits>(other)));
  }
  return static_cast<bool>((a == a) & (b == b)) ? number : quiet_nan<T>;
}

/// `finish` of operations that return the combined value unchanged.
struct IdentityFinish {
  template <class T>
  DIST_HD static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

}  // namespace detail

/// The sum. Integers wrap around.
struct Sum : detail::IdentityFinish {
  static constexpr std::string_view name = "sum";
  template <detail::Number T>
  static constexpr T identity = T{0};
  template <detail::Number T>
  DIST_HD constexpr T operator()(T a, T b) const {
    using Wide = detail::Arithmetic<T>;
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
};

/// The arithmetic mean, for floating-point types only, as an integer mean would round silently (spec G04).
struct Mean {
  static constexpr std::string_view name = "mean";
  template <Floating T>
  static constexpr T identity = T{0};
  template <Floating T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return a + b;
  }
  template <Floating T>
  DIST_HD static constexpr T finish(T combined, std::size_t count) {
    using Wide = Accumulator<T>;  // the count may overflow a 16-bit type
    return static_cast<T>(static_cast<Wide>(combined) / static_cast<Wide>(count));
  }
};

/// The minimum. NaN if any value is NaN, as in numpy.minimum and tf.minimum; -0 is less than +0.
struct Min : detail::IdentityFinish {
  static constexpr std::string_view name = "min";
  template <Reducible T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                     : std::numeric_limits<T>::max();
  template <Reducible T>
  DIST_HD constexpr T operator()(T a, T b) const {
    if constexpr (std::floating_point<T>)
      return detail::extremum(a, b, b < a ? b : a, a < b ? a : b, [](auto one, auto other) { return one | other; });
    else if constexpr (Floating<T>)
      return T((*this)(float{a}, float{b}));
    else
      return b < a ? b : a;
  }
};

/// The maximum. NaN if any value is NaN, as in numpy.maximum and tf.maximum; +0 is greater than -0.
struct Max : detail::IdentityFinish {
  static constexpr std::string_view name = "max";
  template <Reducible T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                     : std::numeric_limits<T>::lowest();
  template <Reducible T>
  DIST_HD constexpr T operator()(T a, T b) const {
    if constexpr (std::floating_point<T>)
      return detail::extremum(a, b, a < b ? b : a, b < a ? a : b, [](auto one, auto other) { return one & other; });
    else if constexpr (Floating<T>)
      return T((*this)(float{a}, float{b}));
    else
      return a < b ? b : a;
  }
};

/// The product. Integers wrap around.
struct Prod : detail::IdentityFinish {
  static constexpr std::string_view name = "prod";
  template <detail::Number T>
  static constexpr T identity = T{1};
  template <detail::Number T>
  DIST_HD constexpr T operator()(T a, T b) const {
    using Wide = detail::Arithmetic<T>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
};

/// Bitwise AND of integers; for bool, true if all are true.
struct BitAnd : detail::IdentityFinish {
  static constexpr std::string_view name = "bit_and";
  template <std::integral T>
  static constexpr T identity = static_cast<T>(-1);
  template <std::integral T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

/// Bitwise OR of integers; for bool, true if any is true.
struct BitOr : detail::IdentityFinish {
  static constexpr std::string_view name = "bit_or";
  template <std::integral T>
  static constexpr T identity = T{0};
  template <std::integral T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

/// Bitwise XOR of integers; for bool, true if an odd number is true.
struct BitXor : detail::IdentityFinish {
  static constexpr std::string_view name = "bit_xor";
  template <std::integral T>
  static constexpr T identity = T{0};
  template <std::integral T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

/// The operation Sum.
DIST_HD_OBJECT Sum sum{};
/// The operation Mean.
DIST_HD_OBJECT Mean mean{};
/// The operation Min.
DIST_HD_OBJECT Min min{};
/// The operation Max.
DIST_HD_OBJECT Max max{};
/// The operation Prod.
DIST_HD_OBJECT Prod prod{};
/// The operation BitAnd.
DIST_HD_OBJECT BitAnd bit_and{};
/// The operation BitOr.
DIST_HD_OBJECT BitOr bit_or{};
/// The operation BitXor.
DIST_HD_OBJECT BitXor bit_xor{};

namespace detail {

/// True if `R`, the result of a function of two `T`, represents `T` without loss: a lambda of int cannot combine
/// double.
template <class R, class T>
concept ResultFor = Reducible<R> &&(Floating<T> ? Floating<R> && sizeof(R) >= sizeof(T) : std::is_integral_v<R>);

}  // namespace detail

/// A binary function and its identity, made by `reduction`.
template <class Fn, Reducible Identity>
struct ReductionBy : detail::IdentityFinish {
  static_assert(std::is_empty_v<Fn> && std::is_default_constructible_v<Fn>,
                "a reduction's function cannot have state, because each process calls its own copy: give "
                "dist::reduction a lambda without captures or a function object without members");
  static constexpr std::string_view name = detail::type_name<Fn>();

  Identity start{};  ///< the identity

  template <Reducible T>
    requires(std::floating_point<Identity> ? Floating<T> : true)
  [[nodiscard]] constexpr T identity_as() const { return static_cast<T>(start); }
  template <Reducible T>
    requires requires(const Fn combine, T value) {
      { combine(value, value) } -> detail::ResultFor<T>;
    }
  DIST_HD constexpr T operator()(T a, T b) const { return static_cast<T>(Fn{}(a, b)); }
};

/// Makes an operation from `fn(a, b)`, such as `std::multiplies<>{}` or a lambda without captures, and its `identity`:
/// `reduction([](auto a, auto b) { return std::hypot(a, b); }, 0)`. Values are combined in rank order; `fn` must be
/// associative up to rounding. Kernels call only functions marked DIST_HD: other lambdas and standard functions combine
/// values in host memory.
template <class Fn, Reducible Identity>
[[nodiscard]] constexpr ReductionBy<Fn, Identity> reduction(Fn, Identity identity) {
  return {{}, identity};
}

/// Rejects an identity that is not a number.
template <class Fn, class Identity>
  requires(!Reducible<Identity>)
[[nodiscard]] constexpr Sum reduction(Fn, const Identity&) {
  constexpr bool is_number = Reducible<Identity>;
  static_assert(is_number,
                "dist::reduction combines numbers, not whole structs, pairs or tuples: reduce the members one by one, "
                "or combine whole values after an all_gather");
  return {};
}

namespace detail {

/// Returns the identity of `op` for `T`.
template <class T, class Op>
  requires requires { Op::template identity<T>; }
[[nodiscard]] constexpr T identity_of(const Op&) { return Op::template identity<T>; }
template <class T, class Op>
  requires requires(const Op op) { op.template identity_as<T>(); }
[[nodiscard]] constexpr T identity_of(const Op& op) { return op.template identity_as<T>(); }

/// An operation without state, except perhaps an identity.
template <class Op, class T>
concept Stateless = std::is_empty_v<Op> ||
    (std::is_default_constructible_v<Op>&& requires(const Op op) { op.template identity_as<T>(); });

template <class Op, class T>
concept Combines = requires(const Op op, T value, std::size_t count) {
  { identity_of<T>(op) } -> std::convertible_to<T>;
  { op(value, value) } -> std::same_as<T>;
  { Op::finish(value, count) } -> std::same_as<T>;
};

}  // namespace detail

/// `Op` combines values of type `T`: it has a name for messages, and an identity, a binary call operator and `finish`
/// for `T` and for its Accumulator.
template <class Op, class T>
concept ReduceOp = Reducible<T> && detail::Stateless<Op, T> && requires {
  { Op::name } -> std::convertible_to<std::string_view>;
} && detail::Combines<Op, T> && detail::Combines<Op, Accumulator<T>>;

namespace detail {

/// Operations on records of several numbers, `Op::Record`, within one queue. They have no name for messages.
template <class Op, class T>
concept CombinesRecords = std::same_as<typename Op::Record, T> && std::is_trivially_copyable_v<T> && Combines<Op, T>;

/// `Op` on a part of the values, without `finish`, which is called once all parts are combined.
template <class Op>
struct Unfinished : IdentityFinish {
  static constexpr std::string_view name = Op::name;
  template <class T>
    requires requires { Op::template identity<T>; }
  static constexpr T identity = Op::template identity<T>;
  template <class T>
  requires std::invocable<const Op, T, T> DIST_HD constexpr T operator()(T a, T b) const { return Op{}(a, b); }
};
template <class Op>
struct Unfinished<Unfinished<Op>> : Unfinished<Op> {};
template <class Fn, class Identity>
struct Unfinished<ReductionBy<Fn, Identity>> : ReductionBy<Fn, Identity> {};

/// Maps Unfinished<Op> to `Op`, and other operations to themselves.
template <class Op>
struct FinishedOf {
  using Type = Op;
};
template <class Op>
struct FinishedOf<Unfinished<Op>> : FinishedOf<Op> {};

/// True if the reduction supports these values; otherwise a single readable compile error. Called in `if constexpr`, so
/// that this error is the first.
template <class Op, class T>
[[nodiscard]] DIST_HD constexpr bool require_reduce_op() {
  constexpr bool has_name = requires { Op::name; };
  constexpr bool is_function = std::is_invocable_v<const Op&, T, T> && !has_name;
  static_assert(!is_function,
                "a function is a reduction only together with its identity, the value that does not change other "
                "values: dist::reduction(std::multiplies<>{}, 1)");
  static_assert(has_name || is_function,
                "this is not a reduction: give dist::sum, dist::mean, dist::min, dist::max, dist::prod, a bitwise one, "
                "or dist::reduction(function, identity)");
  constexpr bool fits = ReduceOp<Op, T>;
  static_assert(!has_name || fits,
                "this reduction does not combine values of this type: Mean needs a floating-point type, Sum and Prod "
                "do not take bool, bitwise reductions need an integer type; your own reduction needs an identity, a "
                "call operator and a finish function for it");
  return fits;
}
/// True if a queue can combine these values with `Op`; otherwise a single readable compile error.
template <class Op, class T>
[[nodiscard]] DIST_HD constexpr bool require_queue_op() {
  if constexpr (CombinesRecords<Op, T>)
    return true;
  else
    return require_reduce_op<Op, T>();
}

}  // namespace detail

}  // namespace dist
