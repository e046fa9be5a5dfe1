/// What a write does to one element: the new value from the old one and the one given. The reductions Sum, Prod, Min and
/// Max are such updates too.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::detail {

struct Assign {
  template <class T>
  DIST_HD constexpr T operator()(T, T given) const {
    return given;
  }
};
/// One of `replicas` equal shares of what is given.
template <class Wide>
struct AssignShare {
  Wide replicas;
  template <class T>
  DIST_HD constexpr T operator()(T, T total) const {
    return static_cast<T>(static_cast<Wide>(total) / replicas);
  }
};
struct Subtract {
  template <class T>
  DIST_HD constexpr T operator()(T old, T given) const {
    using Wide = Arithmetic<T>;  // in which integers wrap around
    return static_cast<T>(static_cast<Wide>(old) - static_cast<Wide>(given));
  }
};
/// Of integers the quotient without its fraction. The caller makes sure that no integer is divided by zero.
struct Divide {
  template <class T>
  DIST_HD constexpr T operator()(T old, T given) const {
    if constexpr (std::signed_integral<T>) {
      // The least integer has no negative: like any other overflow of a copy it wraps, where the processor would trap.
      if (given == T{-1}) return static_cast<T>(0 - static_cast<unsigned long long>(old));
    }
    return static_cast<T>(old / given);
  }
};
/// The same as an ElementUpdate, of any element.
template <class Update>
struct WriteElement {
  Update update;

  template <class T>
  DIST_HD constexpr T operator()(std::size_t, T old, T given) const {
    return update(old, given);
  }
};

/// Refuses, in a sentence, to calculate with bools, which can only be replaced, and says whether it did not.
template <class T, class Update>
[[nodiscard]] constexpr bool require_update_of() {
  constexpr bool is_update = !std::same_as<T, bool> || std::same_as<Update, Assign>;
  static_assert(
      is_update,
      "a bool variable can be assigned only: bools are not added, subtracted or compared; count in an integer type");
  return is_update;
}

}  // namespace dist::detail
