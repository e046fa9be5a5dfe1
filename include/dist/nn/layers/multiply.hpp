#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/branches.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn {

namespace detail {

/// The product of tensors of one shape.
template <std::size_t Count, class T>
struct ProductOf {
  const T* from[Count];  // a std::array is not usable in device code
  T* to;
  DIST_HD void operator()(std::size_t i) const {
    T product = from[0][i];
    for (std::size_t other = 1; other < Count; ++other) product *= from[other][i];
    to[i] = product;
  }
};

/// Multiplies the outputs. The gradient of an output is the gradient of the product times the other outputs.
struct ProductOfBranches {
  template <class T, std::size_t Count>
  static void join(const auto& queue, const auto& outputs, auto y) {
    queue.for_each({0, y.size()}, product<T, Count>(outputs, y));
  }
  template <std::size_t Index>
  static void part(const auto& queue, const auto& outputs, auto dy, auto gradient) {
    using T = std::remove_pointer_t<decltype(gradient.data())>;
    auto others = product<T, std::tuple_size_v<std::remove_cvref_t<decltype(outputs)>>>(outputs, gradient);
    others.from[Index] = dy.data();
    queue.for_each({0, gradient.size()}, others);
  }

 private:
  template <class T, std::size_t Count>
  static ProductOf<Count, T> product(const auto& outputs, auto to) {
    ProductOf<Count, T> product{{}, to.data()};
    for (std::size_t branch = 0; branch < Count; ++branch) product.from[branch] = outputs[branch].data();
    return product;
  }
};

}  // namespace detail

/// The product, element by element, of the outputs of several branches with the same input (Keras' `Multiply`). A branch
/// is a layer or a Sequential, trained like all layers of the network; `Sequential<>` passes the input through. A gated
/// layer is a product, such as SwiGLU (Shazeer, "GLU variants improve Transformer", 2020):
///
///     using SwiGlu = nn::Sequential<nn::Multiply<nn::Dense<1024, nn::Silu>, nn::Dense<1024>>, nn::Dense<384>>;
template <class... Branch>
struct Multiply {
  static_assert(sizeof...(Branch) > 1,
                "nn::Multiply needs at least two branches, such as a layer and nn::Sequential<>");

  /// The bound layer.
  template <class In>
  struct On : detail::Branches<In, Branch...> {
    using Layer = Multiply;
    using Output = typename detail::Branches<In, Branch...>::template Net<0>::OutputShape;
    static_assert((std::is_same_v<Output, typename detail::NetworkOn<In, Branch>::OutputShape> && ...),
                  "nn::Multiply needs branches whose outputs have the same shape, because it multiplies element by "
                  "element: give the last layers of the branches equal units or filters");
    static constexpr std::string_view name = "multiply";

    template <class Backend, class T>
    using Operation = detail::BranchesOperation<On, Backend, T, detail::ProductOfBranches>;
  };
};

}  // namespace dist::nn
