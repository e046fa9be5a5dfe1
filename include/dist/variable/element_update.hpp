/// Element updates of writes: the new value from the old and the given value. The reductions Sum, Prod, Min and Max are
/// also updates.
#pragma once

#include <concepts>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::detail {

struct Assign {
  template <class T>
  DIST_HD constexpr T operator()(T, T given) const {
    return given;
  }
};
/// Assigns one of `replicas` equal shares of the given value.
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
/// Division, truncated for integers. The caller must exclude integer division by zero.
struct Divide {
  template <class T>
  DIST_HD constexpr T operator()(T old, T given) const {
    if constexpr (std::signed_integral<T>) {
      // The minimum divided by -1 wraps around like other overflows, instead of trapping.
      if (given == T{-1}) return static_cast<T>(0 - static_cast<unsigned long long>(old));
    }
    return static_cast<T>(old / given);
  }
};
/// An ElementUpdate with the same update for all elements.
template <class Update>
struct WriteElement {
  Update update;

  template <class T>
  DIST_HD constexpr T operator()(std::size_t, T old, T given) const {
    return update(old, given);
  }
};

/// True unless the update does arithmetic with bools, which can only be assigned; otherwise a readable compile error.
template <class T, class Update>
[[nodiscard]] constexpr bool require_update_of() {
  constexpr bool is_update = !std::same_as<T, bool> || std::same_as<Update, Assign>;
  static_assert(
      is_update,
      "a bool variable can only be assigned: bools are not added, subtracted or compared; count in an integer type");
  return is_update;
}

}  // namespace dist::detail
