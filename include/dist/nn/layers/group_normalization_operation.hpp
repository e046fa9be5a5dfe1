#pragma once

#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// The Operation of layers that normalise parts of single rows. `Kernel` is the back end's operation.
template <class Backend, class Kernel, class Options, class T>
class GroupNormalizationOperation {
 public:
  void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
               const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, T> y) {
    kernel_.forward(state, x, parameters[0], parameters[1], Options::epsilon, y);
  }
  template <bool InputGradient>
  void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, const T>,
                ViewOn<Backend, T> dy, const ParameterViewsOn<Backend, T, 2>& gradients, ViewOn<Backend, T> dx) {
    kernel_.backward(state, x, parameters[0], dy, gradients[0], gradients[1],
                     InputGradient ? dx : ViewOn<Backend, T>{});
  }

 private:
  Kernel kernel_;
};

/// The numbers of channels, the last axis of `In`, in groups; with `PixelsTogether` statistics are over the other axes, too.
template <class In, std::size_t Groups, bool PixelsTogether>
struct GroupGeometry {
  static constexpr std::size_t channels = In::rank == 0 ? Groups : In::last_extent;
  static constexpr std::size_t groups = Groups;
  static constexpr std::size_t pixels = PixelsTogether ? In::elements / channels : 1;
};

}  // namespace dist::nn::detail
