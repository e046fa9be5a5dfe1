#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist {

/// How values of several replicas become one. An operation is a stateless type: `identity`, a combining call, and
/// `finish`, which sees the number of values once all are combined.
struct Sum {
  static constexpr std::string_view name = "sum";
  template <class T>
  static constexpr T identity = T{0};
  template <class T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
  template <class T>
  DIST_HD static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

/// The arithmetic mean: floating-point types only, as an integer mean would round silently (spec G04).
struct Mean {
  static constexpr std::string_view name = "mean";
  template <std::floating_point T>
  static constexpr T identity = T{0};
  template <std::floating_point T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return a + b;
  }
  template <std::floating_point T>
  DIST_HD static constexpr T finish(T combined, std::size_t count) {
    return combined / static_cast<T>(count);
  }
};

struct Min {
  static constexpr std::string_view name = "min";
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                     : std::numeric_limits<T>::max();
  template <class T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return b < a ? b : a;
  }
  template <class T>
  DIST_HD static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

struct Max {
  static constexpr std::string_view name = "max";
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                     : std::numeric_limits<T>::lowest();
  template <class T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return a < b ? b : a;
  }
  template <class T>
  DIST_HD static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

struct Prod {
  static constexpr std::string_view name = "prod";
  template <class T>
  static constexpr T identity = T{1};
  template <class T>
  DIST_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
  template <class T>
  DIST_HD static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

inline constexpr Sum sum{};
inline constexpr Mean mean{};
inline constexpr Min min{};
inline constexpr Max max{};
inline constexpr Prod prod{};

/// An element that can be reduced: a number that may be copied byte by byte.
template <class T>
concept Reducible = std::is_arithmetic_v<T>;

/// `Op` combines values of type `T`: it has a name for messages, an identity, a binary call and a `finish`.
template <class Op, class T>
concept ReduceOp = Reducible<T> && std::is_empty_v<Op> && requires(const Op op, T value, std::size_t count) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::template identity<T> } -> std::convertible_to<T>;
  { op(value, value) } -> std::same_as<T>;
  { Op::finish(value, count) } -> std::same_as<T>;
};

}  // namespace dist
