#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/named.hpp>

namespace dist::nn {

namespace detail {

/// The layer with this name, or void.
template <class Name, class Layers>
struct LayerNamed {
  using Type = void;
};
template <class Name, class First, class... Rest>
struct LayerNamed<Name, std::tuple<First, Rest...>> : LayerNamed<Name, std::tuple<Rest...>> {};
template <class Name, class First, class... Rest>
  requires(First::name == Name::value)
struct LayerNamed<Name, std::tuple<First, Rest...>> {
  using Type = First;
};

template <class L>
inline constexpr bool is_embedding = false;
template <std::size_t Words, std::size_t Width, class Initializer>
inline constexpr bool is_embedding<Embedding<Words, Width, Initializer>> = true;
template <class L>
concept BoundEmbedding = requires {
  typename L::Layer;
}
&&is_embedding<typename L::Layer>;

/// The extents of the table of a placed embedding.
template <class L>
struct TableOf {
  static constexpr std::size_t words = 1, width = 1;
};
template <BoundEmbedding L>
struct TableOf<L> {
  static constexpr std::size_t words = L::parameters[0].shape[0], width = L::parameters[0].shape[1];
};

/// nn::Unembed of a TextOf.
template <class Name>
struct UnembedOf {
  /// The bound layer. `Named` has the earlier layers with a name.
  template <class In, class Named>
  struct OnAfter {
    using TiedTo = typename LayerNamed<Name, Named>::Type;
    static constexpr bool has_table = BoundEmbedding<TiedTo>;
    static constexpr std::size_t words = TableOf<TiedTo>::words, width = TableOf<TiedTo>::width;
    using Layer = UnembedOf;
    using Output = FirstExtentsAnd<In, (In::rank > 0 ? In::rank - 1 : 0), words>;
    static constexpr std::string_view name = "unembed";
    static constexpr auto& parameters = no_parameters;
    static constexpr bool is_view = false;
    static_assert(has_table,
                  "nn::Unembed<\"wte\"> needs the table of a layer named \"wte\" before it, in the same nn::Sequential "
                  "and outside scopes of nn::Named: write nn::Named<\"wte\", nn::Embedding<...>>");
    static_assert(
        !has_table || (In::rank > 0 && In::last_extent == width),
        "nn::Unembed multiplies rows of the last axis by the vectors of a table, whose width differs from the "
        "extent of this axis: put an nn::Dense with as many units as the nn::Embedding's width before it");

    /// Computes the layer. It is the input gradient of a dense layer from words to their vectors.
    template <class Backend, class T>
    class Operation {
      using State = typename Backend::State;
      template <class Element>
      using View = ViewOn<Backend, Element>;
      template <class Element>
      using Table = ParameterViewsOn<Backend, Element, 1>;

     public:
      static constexpr bool skips_parameter_gradients = true;

      void forward(State& state, View<const T> x, const Table<const T>& table, View<T> y) {
        product_.input_gradient(state, vectors(x), table[0], scores(y));
      }
      template <bool InputGradient, bool ParameterGradients = true>
      void backward(State& state, View<const T> x, const Table<const T>& table, View<const T>, View<T> dy,
                    const Table<T>& gradients, View<T> dx) {
        const View<const T> slopes = scores(dy);
        if constexpr (ParameterGradients)
          product_.parameter_gradients(state, slopes, vectors(x), gradients[0], View<T>{});
        if constexpr (InputGradient) product_.forward(state, slopes, table[0], View<const T>{}, vectors(dx));
      }

     private:
      template <class Element>
      [[nodiscard]] static View<Element> vectors(View<Element> view) {
        return {view.data(), Shape{view.size() / width, width}};
      }
      template <class Element>
      [[nodiscard]] static View<Element> scores(View<Element> view) {
        return {view.data(), Shape{view.size() / words, words}};
      }

      typename Backend::template Dense<DenseGeometry<words, width, Linear, false>, T> product_;
    };
  };
  /// The bound layer in a place without earlier layers.
  template <class In>
  using On = OnAfter<In, std::tuple<>>;
};

}  // namespace detail

/// Scores of all words, x · embeddings^T, with the table of an earlier nn::Embedding in the same network, such as
/// `nn::Named<"wte", nn::Embedding<words, width>>` (Press and Wolf, "Using the output embedding to improve language
/// models", EACL 2017; `reverse` of KerasHub's ReversibleEmbedding). Rows [..., width] become [..., words].
///
/// It has no parameters and no bias. The table is one parameter, whose gradient is the sum for both layers.
template <detail::LayerName Name>
struct Unembed : detail::UnembedOf<detail::TextOf<Name>> {};

}  // namespace dist::nn
