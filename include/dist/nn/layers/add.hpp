#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/tensor.hpp>
#include <dist/nn/layers/branches.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn {

namespace detail {

/// Adds the outputs, which share the gradient of the sum.
struct SumOfBranches {
  template <class T, std::size_t Count>
  static void join(const auto& queue, const auto& outputs, auto y) {
    SumOf<Count, T> sum{{}, y.data()};
    for (std::size_t branch = 0; branch < Count; ++branch) sum.from[branch] = outputs[branch].data();
    queue.for_each({0, y.size()}, sum);
  }
  template <std::size_t>
  static void part(const auto& queue, const auto&, auto dy, auto gradient) {
    queue.copy(dy.elements(), gradient.elements());
  }
};

}  // namespace detail

/// The sum of the outputs of several branches with the same input. A branch is a layer or a Sequential, trained like
/// all layers of the network; `Sequential<>` passes the input through.
template <class... Branch>
struct Add {
  static_assert(sizeof...(Branch) > 1, "nn::Add needs at least two branches, such as a layer and nn::Sequential<>");

  /// The bound layer.
  template <class In>
  struct On : detail::Branches<In, Branch...> {
    using Layer = Add;
    using Output = typename detail::Branches<In, Branch...>::template Net<0>::OutputShape;
    static_assert(
        (std::is_same_v<Output, typename detail::NetworkOn<In, Branch>::OutputShape> && ...),
        "nn::Add needs branches whose outputs have the same shape: give the shortcut of a residual block a projection, "
        "such as nn::Conv2D with the filters and the stride of the other branch and a window of 1");
    static constexpr std::string_view name = "add";

    template <class Backend, class T>
    using Operation = detail::BranchesOperation<On, Backend, T, detail::SumOfBranches>;
  };
};

/// A residual block: the sum of `Body` and `Shortcut`, which is the input, or a projection if the body changes the
/// shape (He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016).
template <class Body, class Shortcut = Sequential<>>
using Residual = Add<Body, Shortcut>;

}  // namespace dist::nn
