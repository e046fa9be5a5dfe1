#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/branches.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn {

namespace detail {

/// Copies rows of `count` elements between matrices of different widths.
template <class T>
struct CopyColumns {
  const T* from;
  std::size_t from_width;
  T* to;
  std::size_t to_width;
  std::size_t count;
  DIST_HD void operator()(std::size_t row) const {
    for (std::size_t i = 0; i < count; ++i) to[row * to_width + i] = from[row * from_width + i];
  }
};

/// Concatenates outputs along the last axis; `Widths` are their extents.
template <std::size_t... Widths>
struct SideBySide {
  static constexpr std::array<std::size_t, sizeof...(Widths)> widths{Widths...};
  static constexpr std::size_t width = (Widths + ...);
  static constexpr std::size_t first(std::size_t branch) {
    std::size_t before = 0;
    for (std::size_t other = 0; other < branch; ++other) before += widths[other];
    return before;
  }

  template <class T, std::size_t Count>
  static void join(const auto& queue, const auto& outputs, auto y) {
    for (std::size_t branch = 0; branch < Count; ++branch)
      queue.for_each({0, y.size() / width}, CopyColumns<T>{outputs[branch].data(), widths[branch],
                                                           y.data() + first(branch), width, widths[branch]});
  }
  template <std::size_t Branch>
  static void part(const auto& queue, const auto&, auto dy, auto gradient) {
    using T = std::remove_pointer_t<decltype(gradient.data())>;
    queue.for_each({0, dy.size() / width},
                   CopyColumns<T>{dy.data() + first(Branch), width, gradient.data(), widths[Branch], widths[Branch]});
  }
};

/// True if all other axes are equal.
template <class A, class B>
[[nodiscard]] constexpr bool differ_in_last_axis_only() {
  if (A::rank == 0 || A::rank != B::rank) return false;
  for (std::size_t axis = 0; axis + 1 < A::rank; ++axis)
    if (A::shape()[axis] != B::shape()[axis]) return false;
  return true;
}

}  // namespace detail

/// The outputs of several branches with the same input, concatenated along the last axis. A branch is a layer or a
/// Sequential, trained like all layers of the network; `Sequential<>` passes the input through.
template <class... Branch>
struct Concatenate {
  static_assert(sizeof...(Branch) > 1,
                "nn::Concatenate needs at least two branches, such as a layer and nn::Sequential<>");

  /// The bound layer.
  template <class In>
  struct On : detail::Branches<In, Branch...> {
   private:
    using First = typename detail::Branches<In, Branch...>::template Net<0>::OutputShape;
    template <class B>
    using OutputOf = typename detail::NetworkOn<In, B>::OutputShape;
    static constexpr bool fit = (detail::differ_in_last_axis_only<First, OutputOf<Branch>>() && ...);
    static_assert(fit,
                  "nn::Concatenate joins outputs along the last axis, but the outputs of its branches differ along "
                  "other axes: give them the same height and width");

   public:
    using Layer = Concatenate;
    /// A shape that prevents further errors after a failed assertion.
    using Fitting = std::conditional_t<fit, First, StaticShape<1>>;
    using Output = FirstExtentsAnd<Fitting, Fitting::rank - 1, (OutputOf<Branch>::last_extent + ...)>;
    static constexpr std::string_view name = "concatenate";

    template <class Backend, class T>
    using Operation = detail::BranchesOperation<On, Backend, T, detail::SideBySide<OutputOf<Branch>::last_extent...>>;
  };
};

}  // namespace dist::nn
