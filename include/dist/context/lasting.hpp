/// Views that a replica function returns.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

namespace detail {

/// Types that refer to elements and do not keep them.
template <class T>
inline constexpr bool is_view = false;
template <class T, class Where>
inline constexpr bool is_view<TensorView<T, Where>> = true;
template <class T, class Where>
inline constexpr bool is_view<DeviceSpan<T, Where>> = true;
template <class T, std::size_t Extent>
inline constexpr bool is_view<std::span<T, Extent>> = true;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;

}  // namespace detail

/// A view of memory that outlives the run that returns it; `lasting` makes one. `run` returns the view itself.
template <class View>
struct Lasting {
  View view;
  operator View() const { return view; }
};

/// Lets a replica function return a view: `return dist::lasting(variable.read(replica));`. Its memory must outlive the
/// run, as that of variables and of what the program captured does, and that of the function's own variables does not.
template <class View>
  requires detail::is_view<View>
[[nodiscard]] constexpr Lasting<View> lasting(View view) { return {view}; }

namespace detail {

/// What `run` returns for a `T`: views in place of lasting ones.
template <class T>
struct WithoutLasting {
  using Type = T;
};
template <class View>
struct WithoutLasting<Lasting<View>> {
  using Type = View;
};
template <class... Ts>
struct WithoutLasting<std::tuple<Ts...>> {
  using Type = std::tuple<typename WithoutLasting<Ts>::Type...>;
};
template <class A, class B>
struct WithoutLasting<std::pair<A, B>> {
  using Type = std::pair<typename WithoutLasting<A>::Type, typename WithoutLasting<B>::Type>;
};
template <class T>
struct WithoutLasting<std::optional<T>> {
  using Type = std::optional<typename WithoutLasting<T>::Type>;
};

template <class T>
inline constexpr bool returns_view = is_view<T>;
template <class... Ts>
inline constexpr bool returns_view<std::tuple<Ts...>> = (returns_view<std::remove_cv_t<Ts>> || ...);
template <class A, class B>
inline constexpr bool returns_view<std::pair<A, B>> = returns_view<A> || returns_view<B>;
template <class T, std::size_t Size>
inline constexpr bool returns_view<std::array<T, Size>> = returns_view<T>;
template <class T>
inline constexpr bool returns_view<std::optional<T>> = returns_view<T>;

/// What `run` makes of the result of a replica function: `Returned`, decayed. Refuses views.
template <class Returned>
constexpr auto require_lasting_result() {
  static_assert(
      !returns_view<Returned>,
      "a replica function returns a view, whose elements may have ended with it: return a number, a Tensor or another "
      "value that owns them, or dist::lasting(view) where they outlive the run");
  return std::type_identity<typename WithoutLasting<Returned>::Type>{};
}

}  // namespace detail

}  // namespace dist
