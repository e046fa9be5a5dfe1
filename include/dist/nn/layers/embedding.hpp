#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// A trained vector of `Width` numbers for each of `Words` ids: rows [length] become [length, width]. Ids have the
/// network's type, so float ids are exact up to 2^24; fractions are cut off, as in Keras.
///
/// The table's gradient is dense: all rows are reduced over the replicas, with zeros for ids not in the batch. Ids
/// have a gradient of zero. `forward` throws InvalidArgument for an id out of range. On a GPU, which is asynchronous,
/// the id's vector is NaN, and a later `forward` throws.
template <std::size_t Words, std::size_t Width, class Initializer = SmallUniform>
struct Embedding {
  static_assert(Words > 0 && Width > 0, "nn::Embedding needs at least one word and a width of at least one number");

  /// The bound layer.
  template <class In>
  struct On {
    using Layer = Embedding;
    using Output = FirstExtentsAnd<In, In::rank, Width>;
    static constexpr std::string_view name = "embedding";
    static constexpr std::array parameters{ParameterSpec{"embeddings", Shape{Words, Width}}};
    static constexpr bool is_view = false;
    static constexpr bool takes_ids = true;

    template <std::size_t, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      Initializer::fill(view, Fans{Words, Width}, stream);
    }

    /// Selects the kernel.
    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template Embedding<Words, Width, T>;
    };
    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
     public:
      static constexpr bool skips_parameter_gradients = true;
      static constexpr bool adds_parameter_gradients = true;

      void forward(typename Backend::State& state, ViewOn<Backend, const T> ids,
                   const ParameterViewsOn<Backend, const T, 1>& weights, ViewOn<Backend, T> y) {
        kernel_.forward(state, ids, weights[0], y);
      }
      template <bool InputGradient, bool ParameterGradients = true>
      void backward(typename Backend::State& state, ViewOn<Backend, const T> ids,
                    const ParameterViewsOn<Backend, const T, 1>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 1>& gradients, ViewOn<Backend, T> dx) {
        if constexpr (ParameterGradients) kernel_.add_table_gradient(state, ids, dy, gradients[0]);
        if constexpr (InputGradient) detail::queue_of<Backend>(state).fill(dx.elements(), T{0});
      }

     private:
      detail::KernelFrom<Backend, Asked<T>> kernel_;
    };
  };
};

}  // namespace dist::nn
