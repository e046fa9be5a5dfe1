#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/bias.hpp>

namespace dist::nn {

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

    template <class Backend, class T>
    using Operation = detail::TableOperation<Backend, In::elements, T>;
  };
};

}  // namespace dist::nn
