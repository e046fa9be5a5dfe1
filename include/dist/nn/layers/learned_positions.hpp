#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

namespace detail {

/// Adds the table to a row of the batch.
template <class T>
struct AddTable {
  const T* x;
  const T* table;
  std::size_t size;
  T* y;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    const T* const from = x + row * size;
    T* const to = y + row * size;
    for_each_of(threads, [&](auto k) { to[k] = from[k] + table[k]; });
  }
};

}  // namespace detail

/// Adds a trained vector to each position of a sequence: y = x + embeddings, for rows [length, width]. The parameter
/// embeddings [length, width] starts as `Initializer` (PositionEmbedding of KerasHub).
template <class Initializer = GlorotUniform>
struct LearnedPositions {
  /// The bound layer.
  template <class In>
  struct On {
    static_assert(In::rank == 2,
                  "nn::LearnedPositions takes rows [length, width], but its input has a different number of axes: put "
                  "nn::Embedding or nn::Reshape before it");
    using Layer = LearnedPositions;
    using Output = In;
    static constexpr std::string_view name = "position_embedding";
    static constexpr std::array parameters{ParameterSpec{"embeddings", In::shape()}};
    static constexpr bool is_view = false;

    template <std::size_t, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      Initializer::fill(view, Fans{view.shape()[0], view.shape()[1]}, stream);
    }

    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
     public:
      static constexpr bool skips_parameter_gradients = true;

      void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 1>& weights, ViewOn<Backend, T> y) {
        detail::for_each_row<Backend>(state, x.rows(), In::elements,
                                      detail::AddTable<T>{x.data(), weights[0].data(), In::elements, y.data()});
      }
      template <bool InputGradient, bool ParameterGradients = true>
      void backward(typename Backend::State& state, ViewOn<Backend, const T>,
                    const ParameterViewsOn<Backend, const T, 1>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 1>& gradients, ViewOn<Backend, T> dx) {
        if constexpr (ParameterGradients)
          detail::sum_columns<Backend>(state, dy.rows(), In::elements,
                                       detail::SumOfElements<T>{dy.data(), In::elements}, gradients[0].data());
        if constexpr (InputGradient)
          detail::queue_of<Backend>(state).copy(ViewOn<Backend, const T>{dy.data(), dy.shape()}.elements(),
                                                dx.elements());
      }
    };
  };
};

}  // namespace dist::nn
