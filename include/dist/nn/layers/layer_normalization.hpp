#pragma once

#include <cstddef>
#include <string_view>

#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/group_normalization_operation.hpp>
#include <dist/nn/layers/scale_and_shift.hpp>

namespace dist::nn {

/// What Keras' LayerNormalization takes as an argument. To change it, derive and name it again.
struct LayerNormalizationOptions {
  static constexpr double epsilon = 1e-3;  ///< added to the variance, above 0
};

/// Normalises each row, or each pixel of an image, over its channels, the last axis: Ba, Kiros, Hinton: "Layer
/// normalization", 2016.
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Rows do not influence each other, so training and inference are the same, with any number of replicas.
template <class Options = LayerNormalizationOptions>
struct LayerNormalization {
  static_assert(Options::epsilon > 0, "nn::LayerNormalization needs an epsilon above 0, as a variance may be 0");

  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(In::rank > 0,
                  "nn::LayerNormalization normalises along the last axis, and its input has no axis: put nn::Reshape "
                  "before it");
    using Geometry = detail::GroupGeometry<In, 1, false>;
    using Layer = LayerNormalization;
    using Output = In;
    static constexpr std::string_view name = "layer_normalization";
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template GroupNormalization<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::GroupNormalizationOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, Options, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::LayerNormalization: use another back end, such "
                    "as nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

}  // namespace dist::nn
